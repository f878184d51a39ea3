//! Network file of a machine whose collective operations were measured.

use std::collections::BTreeMap;

use flowcast_network::{
    algorithm::{AlgorithmTable, Base},
    collective_costs::CollectiveCosts,
    measured_collectives::MeasuredCollectives,
    network::{MessageRule, Network, Nic, SingleFlowRate},
    sharing::error::SharingError,
};
use flowcast_place::rank_place::RankPlace;
use flowcast_units::{Bytes, Node, Time, TimePerByte};

/// Network for all other predictions, with the costs of single messages: latency between switches of a group, the mean of
/// both overheads, bandwidth, the limit of eager messages, and the cost of combining. `known` provides the topology and the
/// interfaces of a node, if available.
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
    let mut nic = Nic {
        overhead: Time::from_seconds((send_overhead + receive_overhead) / 2.0),
        ..Nic::new(
            Time::from_seconds(group_latency),
            SingleFlowRate::GapPerByte(per_byte),
        )
    };
    if let Some(known) = known {
        // Each plane of switches has its own interface.
        (nic.count, nic.choice) = (known.nic.count, known.nic.choice);
    }
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
        ..Network::new(name, MessageRule::Loggops, nic)
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

/// Capacity of the links out of a group of switches, in multiples of a node's interface. Infinite if the network has no
/// topology, or one without groups.
///
/// # Errors
/// A topology that contradicts itself.
pub fn group_links(network: &Network) -> Result<f64, SharingError> {
    let Some(topology) = &network.topology else {
        return Ok(f64::INFINITY);
    };
    let group = topology.meetings()?.len().saturating_sub(2);
    let interface = network.nic.rate();
    let leaving = topology.leaving(group, interface)?;
    Ok(leaving.map_or(f64::INFINITY, |rate| {
        rate.as_bytes_per_second() / interface.as_bytes_per_second()
    }))
}

/// Places of the first nodes of a network. Without a topology, each node has its own switch, and all are in one group.
///
/// # Errors
/// A topology that contradicts itself or has fewer nodes.
pub fn first_places(network: &Network, nodes: u32) -> Result<Vec<RankPlace>, SharingError> {
    let pairs: Vec<[Node; 2]> = (1..nodes)
        .map(|node| [Node(node - 1), Node(node)])
        .collect();
    let (meetings, last) = match &network.topology {
        Some(topology) => (
            topology.meetings_of(&pairs)?,
            topology.meetings()?.len() - 1,
        ),
        None => (vec![1; pairs.len()], 2),
    };
    let mut place = RankPlace {
        node: 0,
        switch: 0,
        group: 0,
    };
    let mut places = vec![place];
    for meeting in meetings {
        place.node += 1;
        place.switch += u32::from(meeting > 0);
        place.group += u32::from(meeting > 0 && meeting == last);
        places.push(place);
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(topology: &str) -> Network {
        let nic = "schema = 'flowcast/network/2'\nname = 'n'\n[point_to_point]\nrule = 'loggops'\n[nic]\nlatency = '1us'\nbandwidth = '10GB/s'\n";
        Network::from_toml(&format!("{nic}{topology}"), &[]).unwrap()
    }

    #[test]
    fn nodes_fill_switches_and_groups_in_their_order() {
        let dragonfly =
            with("[topology]\ndragonfly = { groups = 3, switches = 2, nodes = 2, global = 1 }\n");
        let places = first_places(&dragonfly, 6).unwrap();
        let numbers: Vec<_> = places
            .iter()
            .map(|place| (place.node, place.switch, place.group))
            .collect();
        assert_eq!(
            numbers,
            [
                (0, 0, 0),
                (1, 0, 0),
                (2, 1, 0),
                (3, 1, 0),
                (4, 2, 1),
                (5, 2, 1)
            ]
        );
        assert_eq!(group_links(&dragonfly).unwrap(), 2.0);
    }

    #[test]
    fn without_a_topology_nothing_is_shared() {
        let places = first_places(&with(""), 2).unwrap();
        let numbers: Vec<_> = places
            .iter()
            .map(|place| (place.node, place.switch, place.group))
            .collect();
        assert_eq!(numbers, [(0, 0, 0), (1, 1, 0)]);
        assert!(group_links(&with("")).unwrap().is_infinite());
    }
}
