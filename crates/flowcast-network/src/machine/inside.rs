//! Cost of a message between two ranks of the same node: `T = L + size/bandwidth`, by the network's rule.
//!
//! A file without these values does not mean that such messages are free. The built-in network `shared-memory`, measured
//! within a socket, supplies the missing values. An explicit 0 is used as given, as in Dimemas' configurations, which always
//! state both values.

use std::fmt;

use super::{Machine, NodeGroup};
use flowcast_units::{Bytes, Rate, Time};

/// Built-in network whose interface supplies values that a file leaves open.
pub(crate) const STAND_IN: &str = "shared-memory";

/// Values of that network. They are repeated here because reading its file would take a millisecond.
const STAND_IN_LATENCY: Time = Time::from_nanos(760.0);
const STAND_IN_RATE: Rate = Rate::from_bytes_per_second(39_038e6);

/// Cost of a message within a node: `latency + size/rate`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InsideNode {
    /// Start-up time of a message of any size.
    pub latency: Time,
    /// Bytes per second; 0 is infinite.
    pub rate: Rate,
}

/// Source of the costs of messages within nodes. The displayed text continues the words "inside nodes".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsideSource {
    /// The network file states the costs.
    Stated,
    /// The network file states costs of 0.
    StatedFree,
    /// The network file states no costs; `STAND_IN` supplies them.
    StandIn,
    /// The network file states some costs; `STAND_IN` supplies the others.
    Partly,
}

impl InsideNode {
    /// Time of a message of this size.
    pub fn time_for(&self, size: Bytes) -> Time {
        self.latency + self.rate.time_for(size)
    }
}

impl NodeGroup {
    /// Creates `count` nodes with `cpus` processors each and defaults in all other fields.
    pub fn new(count: u32, cpus: u32) -> NodeGroup {
        NodeGroup {
            count,
            cpus,
            ..NodeGroup::default()
        }
    }

    /// Cost of a message within one of these nodes.
    pub fn inside(&self) -> InsideNode {
        InsideNode {
            latency: self.intra_latency.unwrap_or(STAND_IN_LATENCY),
            rate: self.intra_bandwidth.unwrap_or(STAND_IN_RATE),
        }
    }
}

impl Machine {
    /// Sets the cost of messages within each node.
    pub fn set_inside(&mut self, inside: InsideNode) {
        self.nodes = self.groups();
        for group in &mut self.nodes {
            group.intra_latency = Some(inside.latency);
            group.intra_bandwidth = Some(inside.rate);
        }
    }

    /// Groups of nodes. If the machine names none, a single group with as many nodes as ranks.
    pub fn groups(&self) -> Vec<NodeGroup> {
        match self.nodes.is_empty() {
            true => vec![NodeGroup {
                count: 0,
                ..NodeGroup::default()
            }],
            false => self.nodes.clone(),
        }
    }
}

impl InsideSource {
    /// Determines the source for these groups of nodes.
    pub fn from_groups(groups: &[NodeGroup]) -> InsideSource {
        let mut costs = groups.iter().flat_map(|group| {
            [
                group.intra_latency.is_some(),
                group.intra_bandwidth.is_some(),
            ]
        });
        match (
            costs.clone().any(|stated| stated),
            costs.all(|stated| stated),
        ) {
            (_, true)
                if groups.iter().all(|group: &NodeGroup| {
                    let InsideNode { latency, rate } = group.inside();
                    latency == Time::ZERO && rate.as_bytes_per_second() == 0.0
                }) =>
            {
                InsideSource::StatedFree
            }
            (_, true) => InsideSource::Stated,
            (true, false) => InsideSource::Partly,
            (false, false) => InsideSource::StandIn,
        }
    }

    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            InsideSource::Stated | InsideSource::StatedFree => "network",
            InsideSource::StandIn => STAND_IN,
            InsideSource::Partly => "network and shared-memory",
        }
    }
}

impl fmt::Display for InsideSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InsideSource::Stated => f.write_str("as the network states"),
            InsideSource::StatedFree => f.write_str("free, as the network states"),
            InsideSource::StandIn => write!(f, "as {STAND_IN}"),
            InsideSource::Partly => {
                write!(f, "as the network states, as {STAND_IN} where it does not")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::network::Network;

    fn network(nodes: &str) -> Network {
        let text = format!(
            "{}\n[[machine.nodes]]\n{nodes}",
            builtin::text("gige-tcp").unwrap()
        );
        let network = Network::from_toml(&text, &[]).unwrap();
        assert_eq!(
            Network::from_toml(&network.to_toml(), &[]).unwrap(),
            network,
            "it is read back as it was"
        );
        network
    }

    fn costs(network: &Network) -> (f64, f64) {
        let InsideNode { latency, rate } = network.machine.groups()[0].inside();
        (latency.as_nanos(), rate.as_bytes_per_second())
    }

    #[test]
    fn missing_values_come_from_shared_memory_and_a_stated_zero_is_kept() {
        let stand_in = builtin::network(STAND_IN).unwrap().nic;
        let (latency, rate) = (
            stand_in.latency.as_nanos(),
            stand_in.rate().as_bytes_per_second(),
        );
        for (nodes, expected, source) in [
            ("cpus = 4", (latency, rate), InsideSource::StandIn),
            (
                "intra_latency = \"1us\"",
                (1000.0, rate),
                InsideSource::Partly,
            ),
            (
                "intra_bandwidth = \"0B/s\"",
                (latency, 0.0),
                InsideSource::Partly,
            ),
            (
                "intra_latency = \"1us\"\nintra_bandwidth = \"2B/s\"",
                (1000.0, 2.0),
                InsideSource::Stated,
            ),
            (
                "intra_latency = \"0s\"\nintra_bandwidth = \"0B/s\"",
                (0.0, 0.0),
                InsideSource::StatedFree,
            ),
        ] {
            let network = network(nodes);
            assert_eq!(
                (
                    costs(&network),
                    InsideSource::from_groups(&network.machine.groups())
                ),
                (expected, source),
                "{nodes}"
            );
        }
        let plain = builtin::network("gige-tcp").unwrap();
        assert_eq!(costs(&plain), (latency, rate));
        assert_eq!(
            plain.quantity("machine.nodes.*.intra_latency"),
            Some(stand_in.latency.into())
        );
    }
}
