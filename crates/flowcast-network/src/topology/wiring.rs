//! Interface of all topologies: routes between nodes, and names of cables.

use flowcast_units::{Node, named};
use serde::{Deserialize, Serialize};

named! {
    /// Choice among the possible routes of a message.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Routing {
        /// Upward by destination: at level `i` the cable `floor(dst / switches of a group) mod cables`.
        DModK = "d-mod-k",
        /// Upward by source, with the same formula.
        SModK = "s-mod-k",
        /// Selected by a hash of the message.
        Random = "random",
        /// Selected by a hash of source and destination, so that all messages of a pair of nodes take the same route.
        Ecmp = "ecmp",
        /// One dimension after the other.
        DimensionOrder = "dimension-order",
        /// The shortest route, the default of a Dragonfly; a hash of source and destination selects among several cables.
        Minimal = "minimal",
        /// Over an intermediate group, selected by a hash of the message.
        Valiant = "valiant",
        /// The shortest route or the one over an intermediate group, depending on the load of both when the message starts.
        Ugal = "ugal",
    }
}

impl Routing {
    /// `true` if all messages between two nodes take the same route.
    pub fn is_by_pair(self) -> bool {
        !matches!(self, Routing::Random | Routing::Valiant | Routing::Ugal)
    }
}

/// A cable between two switches, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cable {
    /// Index of its class among those of [`Topology::classes`](super::Topology::classes), from 1.
    pub class: u8,
    /// Plane of equal switches that contains the cable, from 0.
    pub plane: u32,
    /// The switch, or pair of groups, that the cable is counted with.
    pub switch: u32,
    /// Index among the cables there.
    pub port: u32,
}

/// A cable in the direction in which a message crosses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The cable.
    pub cable: Cable,
    /// `true` for the direction opposite to the one in which the cable is counted; in trees, downward.
    pub is_backward: bool,
}

impl Hop {
    pub(crate) fn forward(cable: Cable) -> Hop {
        Hop {
            cable,
            is_backward: false,
        }
    }

    /// Crosses the cable forward if the condition holds, otherwise backward.
    pub(crate) fn along(cable: Cable, is_forward: bool) -> Hop {
        Hop {
            cable,
            is_backward: !is_forward,
        }
    }

    /// Crosses the cable in the opposite direction.
    pub(crate) fn back(self) -> Hop {
        Hop {
            is_backward: !self.is_backward,
            ..self
        }
    }
}

/// A message to be routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// Source node.
    pub src: Node,
    /// Destination node.
    pub dst: Node,
    /// Plane of switches that the message uses.
    pub plane: u32,
    /// Number of the message among all messages.
    pub message: u64,
}

impl Trip {
    /// Random number that is the same for all messages of the pair.
    pub(crate) fn pair_draw(&self, seed: u64, salt: u64) -> u64 {
        let pair = u64::from(self.src.0) << 32 | u64::from(self.dst.0);
        mixed(mixed(seed ^ salt).wrapping_add(pair))
    }

    /// Random number of this message.
    pub(crate) fn own_draw(&self, seed: u64, salt: u64) -> u64 {
        mixed(self.pair_draw(seed, salt).wrapping_add(self.message))
    }
}

/// Output function of SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A switch, within its plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Switch {
    /// Level in a tree, from 1. In a Dragonfly+, 1 for leaves and 2 for spines; otherwise 1.
    pub level: u8,
    /// Number within the level, counted from 0.
    pub number: u32,
}

/// Switches and cables of one plane.
pub(crate) trait Wiring: std::fmt::Debug + Send + Sync {
    /// Number of nodes; `None` if there is no limit.
    fn nodes(&self) -> Option<u64>;

    /// Maximum number of cables on a route between switches.
    fn longest(&self) -> u32;

    /// Appends the cables between the switches of both nodes, from source to destination.
    fn way(&self, trip: &Trip, way: &mut Vec<Hop>);

    /// Appends a longer route; returns `false` if there is none.
    fn detour(&self, _trip: &Trip, _way: &mut Vec<Hop>) -> bool {
        false
    }

    /// Fills in the number of cables on the shortest route from this node's switch to each switch with nodes, in the order
    /// of switch numbers.
    fn cables_to_switches(&self, from: Node, cables: &mut [u16]);

    /// All cables that routes between these nodes may cross; the nodes are in ascending order.
    fn cables(&self, nodes: &[Node]) -> Vec<Cable>;

    /// The switch that a node is attached to.
    fn switch_of(&self, node: Node) -> Switch;

    /// The two ends of a cable, in the direction in which it is counted.
    fn ends(&self, cable: Cable) -> [Switch; 2];

    /// The two ends of a cable, in the direction of a hop.
    fn ends_of_hop(&self, hop: Hop) -> [Switch; 2] {
        let mut ends = self.ends(hop.cable);
        if hop.is_backward {
            ends.reverse();
        }
        ends
    }

    /// Level at which two nodes meet, an index into [`Wiring::meetings`].
    fn meeting(&self, one: Node, other: Node) -> usize;

    /// Names of the levels at which nodes meet, the closest first. By default they state the distance in switches.
    fn meetings(&self) -> Vec<String> {
        let farther = (1..=self.longest()).map(|steps| match steps {
            1 => "1 switch further".to_owned(),
            _ => format!("{steps} switches further"),
        });
        std::iter::once("same switch".to_owned())
            .chain(farther)
            .collect()
    }

    /// Number of cables of each class (from 1) that leave a unit at this level of meeting. Nodes in the same unit meet at
    /// this level or below.
    fn leaving(&self, meeting: usize) -> Vec<(u8, u64)>;

    /// Name of a cable in one direction, for users.
    fn name(&self, hop: Hop) -> String;

    /// Name of a switch for users.
    fn switch_name(&self, switch: Switch) -> String;
}
