//! Where ranks run, and at which level of a network they meet.

use flowcast_units::named;

/// Where a rank runs. Numbers are those of the whole machine, or of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPlace {
    /// Its node.
    pub node: u32,
    /// The switch of the node.
    pub switch: u32,
    /// The group of switches: a cell, an island, a cabinet.
    pub group: u32,
}

named! {
    /// The lowest level of a network that joins two ranks.
    pub enum JoinLevel {
        /// One node.
        Node = "node",
        /// One switch.
        Switch = "switch",
        /// One group of switches.
        Group = "group",
        /// Different groups.
        Global = "global",
    }
}

impl RankPlace {
    /// The level at which two ranks meet.
    pub fn level(self, other: RankPlace) -> JoinLevel {
        if self.node == other.node {
            JoinLevel::Node
        } else if self.group != other.group {
            JoinLevel::Global
        } else if self.switch == other.switch {
            JoinLevel::Switch
        } else {
            JoinLevel::Group
        }
    }
}
