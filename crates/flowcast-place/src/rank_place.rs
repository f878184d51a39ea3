//! Places of ranks, and the level of a network at which two ranks meet.

use flowcast_units::named;

/// Place of a rank. Numbers refer to the whole machine or to one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankPlace {
    /// Node of the rank.
    pub node: u32,
    /// Switch of the node.
    pub switch: u32,
    /// Group of the switch: a cell, an island or a cabinet.
    pub group: u32,
}

named! {
    /// The lowest level of a network that connects two ranks.
    pub enum JoinLevel {
        /// Ranks on one node.
        Node = "node",
        /// Ranks on different nodes of one switch.
        Switch = "switch",
        /// Ranks on different switches of one group.
        Group = "group",
        /// Ranks in different groups.
        Global = "global",
    }
}

impl RankPlace {
    /// Returns the level at which two ranks meet.
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
