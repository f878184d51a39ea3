//! What every topology says of its switches and cables: the ways between nodes, and what their cables are called.

use flowcast_units::{Node, named};
use serde::{Deserialize, Serialize};

named! {
    /// Which of several ways a message takes.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Routing {
        /// Upward by the destination: at level `i` the cable `floor(dst / switches of a group) mod cables`.
        DModK = "d-mod-k",
        /// The same by the source.
        SModK = "s-mod-k",
        /// By a hash of the message.
        Random = "random",
        /// By a hash of source and destination, so that a pair of nodes keeps its way.
        Ecmp = "ecmp",
        /// One dimension after the other.
        DimensionOrder = "dimension-order",
        /// The shortest way.
        Minimal = "minimal",
        /// Over a group in between, by a hash of the message.
        Valiant = "valiant",
        /// The shortest way or the one over a group in between, by the load of both as the message starts.
        Ugal = "ugal",
    }
}

impl Routing {
    /// Whether all messages between two nodes take the same way.
    pub fn is_by_pair(self) -> bool {
        !matches!(self, Routing::Random | Routing::Valiant | Routing::Ugal)
    }
}

/// A cable between two switches, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cable {
    /// Index of its class among those of [`Topology::classes`](super::Topology::classes), from 1.
    pub class: u8,
    /// Which of the equal planes of switches it is in, from 0.
    pub plane: u32,
    /// The switch, or pair of groups, at which it is counted.
    pub switch: u32,
    /// Which of the cables there.
    pub port: u32,
}

/// A cable in the direction in which a message crosses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The cable.
    pub cable: Cable,
    /// Against the direction in which the cable is counted: in trees downward.
    pub is_backward: bool,
}

impl Hop {
    pub(crate) fn forward(cable: Cable) -> Hop {
        Hop {
            cable,
            is_backward: false,
        }
    }

    /// Along the cable if the condition holds.
    pub(crate) fn along(cable: Cable, is_forward: bool) -> Hop {
        Hop {
            cable,
            is_backward: !is_forward,
        }
    }

    /// The same cable the other way.
    pub(crate) fn back(self) -> Hop {
        Hop {
            is_backward: !self.is_backward,
            ..self
        }
    }
}

/// A message that looks for its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// Where it begins.
    pub src: Node,
    /// Where it ends.
    pub dst: Node,
    /// The plane of switches that it takes.
    pub plane: u32,
    /// Its number among all messages.
    pub message: u64,
}

impl Trip {
    /// A draw that is the same for all messages of the pair.
    pub(crate) fn pair_draw(&self, seed: u64, salt: u64) -> u64 {
        let pair = u64::from(self.src.0) << 32 | u64::from(self.dst.0);
        mixed(mixed(seed ^ salt).wrapping_add(pair))
    }

    /// A draw of the message's own.
    pub(crate) fn own_draw(&self, seed: u64, salt: u64) -> u64 {
        mixed(self.pair_draw(seed, salt).wrapping_add(self.message))
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A switch, within its plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Switch {
    /// Its level in a tree, from 1; of a Dragonfly+ 1 for leaves and 2 for spines; else 1.
    pub level: u8,
    /// Counted from 0 within its level.
    pub number: u32,
}

/// Switches and cables of one plane.
pub(crate) trait Wiring: std::fmt::Debug + Send + Sync {
    /// How many nodes there are; none if any number.
    fn nodes(&self) -> Option<u64>;

    /// No way between switches crosses more cables.
    fn longest(&self) -> u32;

    /// Appends the cables between the switches of both nodes, from the source to the destination.
    fn way(&self, trip: &Trip, way: &mut Vec<Hop>);

    /// Appends a longer way; false if there is none.
    fn detour(&self, _trip: &Trip, _way: &mut Vec<Hop>) -> bool {
        false
    }

    /// By switch with nodes, in the order of their numbers: how many cables the shortest way crosses from this node's switch there.
    fn cables_to_switches(&self, from: Node, cables: &mut [u16]);

    /// All cables that ways between these nodes, in ascending order, may cross.
    fn cables(&self, nodes: &[Node]) -> Vec<Cable>;

    /// The switch that a node hangs on.
    fn switch_of(&self, node: Node) -> Switch;

    /// The two ends of a cable, in the direction in which it is counted.
    fn ends(&self, cable: Cable) -> [Switch; 2];

    /// At which level two nodes meet, an index into [`Wiring::meetings`].
    fn meeting(&self, one: Node, other: Node) -> usize;

    /// What the levels are called at which nodes meet, the nearest first: by how many switches they are apart.
    fn meetings(&self) -> Vec<String> {
        let farther = (1..=self.longest()).map(|steps| match steps {
            1 => "1 switch further".to_owned(),
            _ => format!("{steps} switches further"),
        });
        std::iter::once("same switch".to_owned())
            .chain(farther)
            .collect()
    }

    /// How many cables of each class (from 1) leave what nodes share that meet at this level or below.
    fn leaving(&self, meeting: usize) -> Vec<(u8, u64)>;

    /// What people call a cable in one direction.
    fn name(&self, hop: Hop) -> String;

    /// What people call a switch.
    fn switch_name(&self, switch: Switch) -> String;
}
