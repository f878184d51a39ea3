//! Errors of sharing models.

use std::{fmt::Display, ops::RangeInclusive};

use thiserror::Error;

use flowcast_units::Node;

/// Reason why a model cannot compute shares.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SharingError {
    /// No model has this name.
    #[error("no sharing model is named {found}, expected one of {expected}")]
    UnknownModel {
        /// The requested name, with a suggestion.
        found: String,
        /// Names of all models, separated by commas.
        expected: String,
    },
    /// A required parameter of the model is missing or out of range.
    #[error("{field}: found {found}, expected {expected}")]
    Parameter {
        /// Dotted field name, as in `--set`.
        field: &'static str,
        /// Value of the parameter, or `nothing`.
        found: String,
        /// Description of the valid range.
        expected: &'static str,
    },
    /// More than two flows in one direction of a node, under the strict rules. Flow cuts are defined only for dual-processor
    /// nodes (RR-5910 section 5.2).
    #[error(
        "node {node}: found {flows} flows {direction} at a time, expected at most 2 (flow-cuts with --strict)"
    )]
    Crowded {
        /// The node with more than two flows in one direction.
        node: Node,
        /// Number of flows in one direction.
        flows: u32,
        /// Direction: `out` of the node or `in`.
        direction: &'static str,
    },
    /// Messages take longer than the largest time at packet level.
    #[error(
        "packet: found messages that take {seconds:.3e} s, expected at most {most:.1e} s (sizes, starts, nic.bandwidth)"
    )]
    TooLong {
        /// Upper bound on the total time, in seconds.
        seconds: f64,
        /// Largest representable time, in seconds.
        most: f64,
    },
    /// There are more packets or connections than numbers for them.
    #[error("packet: found {found} connections or packets per connection, expected at most {most}")]
    TooManyPackets {
        /// Number of requested packets or connections.
        found: u64,
        /// Largest allowed number of packets of a connection, or of connections.
        most: u64,
    },
    /// There are more packets than the limit for a run.
    #[error(
        "packet: found {found} packets or more, expected at most {most}: raise sharing.packet.most_packets, or choose a \
         model without packets, such as fair"
    )]
    TooMuchWork {
        /// Number of packets in the messages.
        found: u64,
        /// Maximum number of packets (`sharing.packet.most_packets`).
        most: u64,
    },
    /// A path crosses more links than the model supports.
    #[error(
        "found a route over {found} links, expected at most {most} under this model (fair and similar models have no limit)"
    )]
    TooManyHops {
        /// Number of links on the path.
        found: usize,
        /// Maximum number of links.
        most: usize,
    },
    /// A topology cannot be built, or its shape does not have the routing.
    #[error("{field}: found {found}, expected {expected}")]
    Topology {
        /// Dotted field name, as in `--set`.
        field: String,
        /// Value that was found.
        found: String,
        /// Description of the valid values, such as `1 to 1024`.
        expected: String,
    },
    /// The topology has no such node.
    #[error(
        "node {node}: found a flow from or to it, expected a node below {nodes}, the number of nodes in [topology]"
    )]
    NoSuchNode {
        /// The node whose number is too large.
        node: Node,
        /// Number of nodes in the topology.
        nodes: u64,
    },
    /// Both the pattern and the network place nodes.
    #[error(
        "found `node .. rack` lines and a network with [topology], expected only one of the two"
    )]
    RacksInTopology,
    /// The network states twice how its nodes are connected.
    #[error("found [bus] and [topology], expected only one of the two")]
    BusInTopology,
    /// At these rates, flows end at no finite time.
    #[error(
        "found {flows} flows that never end, expected a finite end of each flow: look for a value that is too small in \
         the network"
    )]
    Endless {
        /// Number of these flows.
        flows: usize,
    },
    /// The closed loop's equations were not solved to the required accuracy.
    #[error(
        "closed-loop found no steady rates for {flows} flows: the load of a link is off by {residual:.1e} of its capacity \
         (try another sharing.closed_loop.alpha or sharing.closed_loop.kappa)"
    )]
    Unsettled {
        /// Number of flows in the part that did not converge.
        flows: usize,
        /// Largest violation of the complementarity conditions by a link's load, relative to its capacity.
        residual: f64,
    },
}

impl SharingError {
    /// Creates the error for a parameter that is missing or out of range.
    pub(crate) fn parameter(
        field: &'static str,
        found: Option<f64>,
        expected: &'static str,
    ) -> SharingError {
        let found = found.map_or("nothing".to_owned(), |value| value.to_string());
        SharingError::Parameter {
            field,
            found,
            expected,
        }
    }
    /// Returns the value of a parameter if it is in range.
    pub(crate) fn check<T: PartialOrd + Display>(
        field: &'static str,
        value: T,
        range: RangeInclusive<T>,
        expected: &'static str,
    ) -> Result<T, SharingError> {
        if range.contains(&value) {
            return Ok(value);
        }
        Err(SharingError::Parameter {
            field,
            found: value.to_string(),
            expected,
        })
    }
}
