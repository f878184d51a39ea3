//! Conversion of a fit to a network file.

use std::collections::BTreeMap;

use super::{DimemasFit, DimemasIntervals};
use flowcast_network::{
    collective::Collectives,
    machine::{Machine, NodeGroup},
    network::{MessageRule, Network, Nic, ParameterInterval, PointToPoint, Progress},
};
use flowcast_units::{Bytes, Rate, Time};

impl DimemasFit {
    /// The fitted network; messages of at least `rendezvous_from` wait for their receiver.
    pub fn to_network(
        &self,
        name: &str,
        rendezvous_from: Option<Bytes>,
        provenance: BTreeMap<String, String>,
    ) -> Network {
        let mut collectives = Collectives::default();
        collectives.rows.extend(&self.rows);
        let group = NodeGroup {
            // 0 means as many nodes as ranks.
            count: 0,
            in_links: self.links.incoming,
            out_links: self.links.outgoing,
            ..NodeGroup::default()
        };
        let latency = Time::from_nanos(self.latency.as_nanos().round());
        let bandwidth = Rate::from_bytes_per_second(self.bandwidth.as_bytes_per_second().round());
        let DimemasIntervals {
            latency: (least, most),
            bandwidth: (slowest, fastest),
            correlation,
            level,
        } = self.intervals;
        let mut of_latency = ParameterInterval::around(latency, least, most, level);
        let correlation =
            correlation.map(|found| ("nic.bandwidth".to_owned(), (found * 1e3).round() / 1e3));
        of_latency.correlations.extend(correlation);
        let of_bandwidth = ParameterInterval::around(bandwidth, slowest, fastest, level);
        Network {
            intervals: [
                ("nic.latency".to_owned(), of_latency),
                ("nic.bandwidth".to_owned(), of_bandwidth),
            ]
            .into(),
            title: "Dimemas' parameters found by search".to_owned(),
            source: format!("flowcast fit of {} regions", self.regions.all().len()),
            point_to_point: PointToPoint {
                rule: MessageRule::Dimemas,
                rendezvous_from,
                progress: Progress::Asynchronous,
            },
            machine: Machine {
                buses: self.buses,
                nodes: vec![group],
                ..Machine::default()
            },
            collectives,
            provenance,
            ..Network::new(name, MessageRule::Dimemas, Nic::new(latency, bandwidth))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Exercise, MeasuredRegion, NodeLinks},
        *,
    };
    use flowcast_statistics::observation::{Observation, Observations};
    use flowcast_units::CollectiveOp;

    #[test]
    fn the_network_file_contains_the_fit_and_reads_back() {
        let region = MeasuredRegion {
            name: "x".into(),
            exercise: Exercise::PingPong,
            size: Bytes(1),
            ranks: 2,
            once: Time::from_seconds(1.0),
        };
        let fit = DimemasFit {
            latency: Time::from_micros(120.0),
            bandwidth: Rate::from_bytes_per_second(2.35e6),
            links: NodeLinks {
                incoming: 1,
                outgoing: 0,
            },
            buses: 3,
            rows: BTreeMap::from([(CollectiveOp::Bcast, "LIN MAX | NULL".parse().unwrap())]),
            regions: Observations::new([Observation {
                of: region,
                predicted: 2.0,
                measured: 1.0,
            }])
            .unwrap(),
            intervals: DimemasIntervals {
                latency: (Time::from_micros(110.0), Time::from_micros(125.0)),
                bandwidth: (
                    Rate::from_bytes_per_second(2.3e6),
                    Rate::from_bytes_per_second(2.4e6),
                ),
                correlation: Some(-0.5),
                level: 0.95,
            },
        };
        let network = fit.to_network("found", Some(Bytes(65_536)), BTreeMap::new());
        assert_eq!(
            Network::from_toml(&network.to_toml(), &[]).unwrap(),
            network
        );
        assert_eq!(
            network.collectives.row(CollectiveOp::Bcast).to_string(),
            "LIN MAX | NULL"
        );
        assert_eq!(
            (network.machine.buses, network.machine.nodes[0].in_links),
            (3, 1)
        );
    }
}
