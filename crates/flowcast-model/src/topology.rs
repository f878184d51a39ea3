//! The section `[topology]` of a network file: the switches between the nodes.
//!
//! ```toml
//! [topology]
//! fat_tree = 16            # three levels of 16-port switches, 1024 nodes
//! oversubscription = 2     # the lowest switches have one cable upward for two nodes
//! ```
//!
//! or level by level, the lowest first (`cluster::tree` says what they mean and how messages are routed):
//!
//! ```toml
//! [[topology.levels]]
//! down = 16                # nodes on each switch
//! up = 4                   # cables of each switch to the level above
//! bandwidth = "10Gbit/s"   # of each cable, in each direction
//! ```

use serde::{Deserialize, Serialize};

use crate::cluster::tree::{Level, Tree, TreeError};
use crate::sharing::SharingError;
use flowcast_units::Rate;

/// Switches between nodes. Either `fat_tree` or `levels` is given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Topology {
    /// Ports of each switch of a fat tree of three levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fat_tree: Option<u32>,
    /// Nodes for each cable upward at the lowest switches of the fat tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversubscription: Option<u32>,
    /// Rate of the fat tree's cables; that of the interfaces if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Rate>,
    /// Level by level, the lowest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<TopologyLevel>,
}

/// One level of switches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopologyLevel {
    /// Nodes, or groups of the level below, that a group joins.
    pub down: u32,
    /// Cables of each switch to the level above; 0 at the top.
    #[serde(default = "one")]
    pub up: u32,
    /// Rate of each cable upward, in each direction; that of the interfaces if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Rate>,
}

const fn one() -> u32 {
    1
}

impl Topology {
    /// The tree, and the rate of the cables of each level (none: that of the interfaces).
    ///
    /// # Errors
    /// [`SharingError::Topology`] names the field.
    pub fn tree(&self) -> Result<(Tree, Vec<Option<Rate>>), SharingError> {
        let refuse = |field: &str, found: String, expected: &str| {
            Err(SharingError::Topology { field: format!("topology.{field}"), found, expected: expected.to_owned() })
        };
        let Some(ports) = self.fat_tree else {
            if self.oversubscription.is_some() {
                return refuse("oversubscription", "it without fat_tree".into(), "topology.fat_tree beside it");
            }
            if self.bandwidth.is_some() {
                let expected = "topology.fat_tree beside it, or a bandwidth in topology.levels";
                return refuse("bandwidth", "it without fat_tree".into(), expected);
            }
            return self.levelled();
        };
        if !self.levels.is_empty() {
            return refuse("levels", "them beside fat_tree".into(), "one of the two");
        }
        let rates = vec![checked_rate("topology.bandwidth", self.bandwidth)?; 3];
        let tree = Tree::fat(ports, self.oversubscription.unwrap_or(1));
        tree.map(|tree| (tree, rates)).map_err(|error| in_field("topology.fat_tree".into(), error))
    }

    fn levelled(&self) -> Result<(Tree, Vec<Option<Rate>>), SharingError> {
        let rate = |(place, level): (usize, &TopologyLevel)| {
            checked_rate(&format!("topology.levels.{place}.bandwidth"), level.bandwidth)
        };
        let rates = self.levels.iter().enumerate().map(rate).collect::<Result<_, _>>()?;
        let levels = self.levels.iter().map(|level| Level { down: level.down, up: level.up }).collect();
        let tree = Tree::new(levels).map_err(|error| in_field(format!("topology.levels.{}", error.level), error))?;
        Ok((tree, rates))
    }
}

fn in_field(field: String, error: TreeError) -> SharingError {
    SharingError::Topology { field, found: error.found, expected: error.expected.to_owned() }
}

fn checked_rate(field: &str, rate: Option<Rate>) -> Result<Option<Rate>, SharingError> {
    match rate {
        Some(rate) if rate.as_bytes_per_second() <= 0.0 => Err(SharingError::Topology {
            field: field.to_owned(),
            found: rate.to_string(),
            expected: "a rate above 0".to_owned(),
        }),
        _ => Ok(rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        toml::from_str::<Topology>(text).unwrap().tree().unwrap_err().to_string()
    }

    #[test]
    fn both_forms_give_the_same_tree() {
        let short: Topology = toml::from_str("fat_tree = 8\noversubscription = 2").unwrap();
        let levels = "[[levels]]\ndown = 4\nup = 2\n[[levels]]\ndown = 4\nup = 4\n[[levels]]\ndown = 8\nup = 0";
        let long: Topology = toml::from_str(levels).unwrap();
        assert_eq!(short.tree().unwrap(), long.tree().unwrap());
        assert_eq!(short.tree().unwrap().0.nodes(), Some(128));
    }

    #[test]
    fn errors_name_the_field() {
        for (text, start) in [
            ("fat_tree = 7", "topology.fat_tree: found 7 ports, expected an even number"),
            ("fat_tree = 8\noversubscription = 3", "topology.fat_tree: found an over-subscription of 3"),
            ("oversubscription = 2", "topology.oversubscription: found it without fat_tree"),
            ("bandwidth = \"1GB/s\"", "topology.bandwidth: found it without fat_tree"),
            ("fat_tree = 4\nbandwidth = \"0B/s\"", "topology.bandwidth: found 0MB/s"),
            ("[[levels]]\ndown = 4\n[[levels]]\ndown = 0", "topology.levels.1: found down = 0"),
            ("[[levels]]\ndown = 4\nbandwidth = \"0B/s\"", "topology.levels.0.bandwidth: found 0MB/s"),
            ("fat_tree = 4\n[[levels]]\ndown = 4", "topology.levels: found them beside fat_tree"),
            ("", "topology.levels.0: found 0 levels"),
        ] {
            let message = message(text);
            assert!(message.starts_with(start), "{text}: {message}");
        }
    }
}
