//! Positions of the nodes of a job in a topology.
//!
//! The scheduler gives a job some switches of some groups, and some nodes of each switch. A topology numbers all of its
//! nodes. The position of a node is its number in the topology.

use std::collections::BTreeMap;

use crate::rank_place::RankPlace;
use flowcast_network::{sharing::SharingError, topology::Topology};
use flowcast_units::Node;
use thiserror::Error;

use flowcast_program::key_map::number_of;

/// Number of nodes that are considered in a topology without a limit.
const NODES_OF_UNBOUNDED: u64 = 1 << 16;

/// Highest level of [`Topology::meetings`] at which two nodes are in the same group.
const SAME_GROUP: usize = 1;

/// Error for nodes without positions.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PositionError {
    /// The job has more groups, switches or nodes than the topology.
    #[error("found {found}, expected at most {expected}, the number in the topology")]
    TooMany {
        /// Number in the job with its unit, such as `5 groups`.
        found: String,
        /// Maximum number in the topology.
        expected: String,
    },
    /// The topology cannot be built.
    #[error(transparent)]
    Topology(#[from] SharingError),
}

/// Returns the positions of nodes with known switches and groups. The groups of the job become the groups of the topology
/// in order of appearance, and so do the switches of a group and the nodes of a switch. The assignment of groups does not
/// matter if all are alike.
///
/// # Errors
/// [`PositionError::TooMany`] for a group, a switch or a node without a place in the topology.
pub fn positions(topology: &Topology, places: &[RankPlace]) -> Result<Vec<Node>, PositionError> {
    let groups = groups(topology)?;
    let (mut groups_known, mut switches_known) = (BTreeMap::new(), BTreeMap::new());
    let mut used: BTreeMap<[usize; 2], usize> = BTreeMap::new();
    let mut positions = Vec::with_capacity(places.len());
    for place in places {
        let group = number_of(&mut groups_known, place.group);
        let there = groups
            .get(group)
            .ok_or_else(|| too_many(group, "groups", groups.len()))?;
        let switches = switches_known.entry(group).or_default();
        let switch = number_of(switches, place.switch);
        let nodes = there
            .get(switch)
            .ok_or_else(|| too_many(switch, "switches in a group", there.len()))?;
        let node = used.entry([group, switch]).or_default();
        let position = nodes.get(*node);
        positions.push(*position.ok_or_else(|| too_many(*node, "nodes on a switch", nodes.len()))?);
        *node += 1;
    }
    Ok(positions)
}

fn too_many(number: usize, what: &str, most: usize) -> PositionError {
    PositionError::TooMany {
        found: format!("{} {what}", number + 1),
        expected: most.to_string(),
    }
}

/// Returns the nodes of each switch of each group, in numerical order.
fn groups(topology: &Topology) -> Result<Vec<Vec<Vec<Node>>>, PositionError> {
    let plan = topology.plan(topology.nodes()?.unwrap_or(NODES_OF_UNBOUNDED))?;
    let mut switches: Vec<Vec<Node>> = Vec::new();
    let mut last = None;
    for node in (0..plan.nodes as u32).map(Node) {
        let switch = plan.switch_of(node);
        if last != Some(switch) {
            switches.push(Vec::new());
            last = Some(switch);
        }
        switches.last_mut().expect("one was begun").push(node);
    }
    // Nodes of one group have consecutive numbers, so comparing neighbouring switches finds the end of a group.
    let pairs: Vec<[Node; 2]> = switches
        .windows(2)
        .map(|pair| [pair[0][0], pair[1][0]])
        .collect();
    let meetings = topology.meetings_of(&pairs)?;
    let mut groups: Vec<Vec<Vec<Node>>> = Vec::new();
    for (number, nodes) in switches.into_iter().enumerate() {
        if number == 0 || meetings[number - 1] > SAME_GROUP {
            groups.push(Vec::new());
        }
        groups.last_mut().expect("one was begun").push(nodes);
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use flowcast_network::topology::{
        CableKind, TopologyShape,
        dragonfly::{Arrangement, Dragonfly, Inside},
    };

    use super::*;

    fn place(node: u32, switch: u32, group: u32) -> RankPlace {
        RankPlace {
            node,
            switch,
            group,
        }
    }

    #[test]
    fn groups_and_switches_of_a_job_become_those_of_the_topology() {
        let topology = Topology::new(TopologyShape::Dragonfly {
            groups: Dragonfly {
                groups: 3,
                inside: Inside::All { switches: 2 },
                nodes: 4,
                global: 1,
                per_pair: None,
                arrangement: Arrangement::Absolute,
            },
            local: CableKind::default(),
            global: CableKind::default(),
        });
        let job = [
            place(0, 9, 5),
            place(1, 8, 5),
            place(2, 9, 5),
            place(3, 7, 6),
        ];
        assert_eq!(positions(&topology, &job).unwrap(), [0, 4, 1, 8].map(Node));
        let full = [0, 1, 2].map(|switch| place(switch, switch, 0));
        let error = positions(&topology, &full).unwrap_err().to_string();
        assert_eq!(
            error,
            "found 3 switches in a group, expected at most 2, the number in the topology"
        );
    }
}
