//! The switches between the nodes: the section `[topology]` of a network file.
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

use crate::{
    cluster::tree::{Level, Tree, TreeError},
    link_rate::LinkRate,
    sharing::error::SharingError,
};
use flowcast_units::Rate;

/// Switches and cables between the nodes, through which messages are routed by destination.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// The switches and the cables between them.
    pub shape: Shape,
}

/// Switches and cables, whose rates are those of the interfaces if absent.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A fat tree of three levels.
    FatTree {
        /// Ports of each switch.
        ports: u32,
        /// Nodes for each cable upward at the lowest switches.
        oversubscription: u32,
        /// Rate of each cable.
        rate: Option<LinkRate>,
    },
    /// Level by level, the lowest first, with the rate of each cable upward.
    Levels(Vec<(Level, Option<LinkRate>)>),
}

impl Topology {
    /// The tree, and the goodput of the cables of each level (none: that of the interfaces).
    ///
    /// # Errors
    /// [`SharingError::Topology`] names the field.
    pub fn tree(&self) -> Result<(Tree, Vec<Option<Rate>>), SharingError> {
        match &self.shape {
            Shape::FatTree {
                ports,
                oversubscription,
                rate,
            } => {
                let field = if Tree::fat(*ports, 1).is_ok() {
                    "oversubscription"
                } else {
                    "fat_tree"
                };
                let tree = Tree::fat(*ports, *oversubscription);
                tree.map(|tree| (tree, vec![goodput(rate); 3]))
                    .map_err(|error| in_field(format!("topology.{field}"), error))
            }
            Shape::Levels(levels) => {
                let tree = Tree::new(levels.iter().map(|(level, _)| *level).collect());
                let tree = tree
                    .map_err(|error| in_field(format!("topology.levels.{}", error.level), error))?;
                Ok((tree, levels.iter().map(|(_, rate)| goodput(rate)).collect()))
            }
        }
    }

    /// The rates of its cables.
    pub(crate) fn rates_mut(&mut self) -> Vec<&mut Option<LinkRate>> {
        match &mut self.shape {
            Shape::FatTree { rate, .. } => vec![rate],
            Shape::Levels(levels) => levels.iter_mut().map(|(_, rate)| rate).collect(),
        }
    }
}

fn goodput(rate: &Option<LinkRate>) -> Option<Rate> {
    rate.map(LinkRate::goodput)
}

fn in_field(field: String, error: TreeError) -> SharingError {
    SharingError::Topology {
        field,
        found: error.found,
        expected: error.expected,
    }
}
