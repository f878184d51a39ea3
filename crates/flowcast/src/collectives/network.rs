//! A machine whose collective operations were measured, as a network file.

use std::collections::BTreeMap;

use flowcast_model::{
    algorithm::{AlgorithmTable, Base},
    collective_costs::CollectiveCosts,
    measured_collectives::MeasuredCollectives,
    network::{LoneFlow, Network, Nic, Rule},
};
use flowcast_units::{Bytes, Time, TimePerByte};

/// The network with the costs of single messages for all other predictions: latency between switches of a group, the mean of
/// both overheads, bandwidth, the limit of eager messages, and what combining costs. `known` has the topology, if anything is known.
pub fn to_network(
    measured: MeasuredCollectives,
    name: &str,
    known: Option<&Network>,
    base: Base,
    provenance: BTreeMap<String, String>,
) -> Network {
    let CollectiveCosts {
        group_latency,
        send_overhead,
        receive_overhead,
        gap,
        eager_limit,
        combine,
        ..
    } = measured.costs.costs;
    let per_byte = TimePerByte::from_nanos(gap * 1e9);
    let nic = Nic {
        overhead: Time::from_seconds((send_overhead + receive_overhead) / 2.0),
        ..Nic::new(
            Time::from_seconds(group_latency),
            LoneFlow::GapPerByte(per_byte),
        )
    };
    let rows: usize = measured
        .series
        .iter()
        .map(|series| series.bytes.len())
        .sum();
    let mut network = Network {
        title: format!("{}: costs of collective operations", measured.system),
        source: format!("flowcast fit of {rows} measured collective operations"),
        topology: known.and_then(|known| known.topology.clone()),
        provenance,
        ..Network::new(name, Rule::Loggops, nic)
    };
    network.point_to_point.rendezvous_from = Some(Bytes(eager_limit as u64 + 1));
    network.collectives.algorithms = Some(AlgorithmTable {
        base,
        ..AlgorithmTable::default()
    });
    network.collectives.reduction = Some(TimePerByte::from_nanos(combine * 1e9));
    network.collectives.measured = Some(Box::new(measured));
    network
}
