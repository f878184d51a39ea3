//! Why a sharing model gives no shares.

use std::{fmt::Display, ops::RangeInclusive};

use thiserror::Error;

use flowcast_units::Node;

/// Why a model gives no shares.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SharingError {
    /// No model of that name.
    #[error("no sharing model is named {found}, expected one of {expected}")]
    UnknownModel {
        /// The name asked for, and the one that may be meant.
        found: String,
        /// Names of all models, with commas between.
        expected: String,
    },
    /// A parameter that the model needs is missing or out of range.
    #[error("{field}: found {found}, expected {expected}")]
    Parameter {
        /// Dotted name, as in `--set`.
        field: &'static str,
        /// Its value, or `nothing`.
        found: String,
        /// The range.
        expected: &'static str,
    },
    /// Flow cuts know dual-processor nodes only (RR-5910 section 5.2), and the strict reading was asked for.
    #[error(
        "node {node}: found {flows} flows {direction} at a time, expected at most 2 (flow-cuts with --strict)"
    )]
    Crowded {
        /// The node with more than two flows in one direction.
        node: Node,
        /// Flows in one direction.
        flows: u32,
        /// `out` of the node or `in`.
        direction: &'static str,
    },
    /// Messages that take longer than times are counted at packet level.
    #[error(
        "packet: found messages that take {seconds:.3e} s, expected at most {most:.1e} s (sizes, starts, nic.bandwidth)"
    )]
    TooLong {
        /// A bound on the time of all of them.
        seconds: f64,
        /// What can be counted.
        most: f64,
    },
    /// More packets or connections than have numbers.
    #[error(
        "packet: found {found} packets of a connection or connections, expected at most {most}"
    )]
    TooManyPackets {
        /// Number of packets or connections that were asked for.
        found: u64,
        /// What can be counted.
        most: u64,
    },
    /// More packets than a run is to take.
    #[error(
        "packet: found {found} packets or more, expected at most {most}: raise sharing.packet.most_packets, or take a model \
         without packets, such as fair"
    )]
    TooMuchWork {
        /// Packets that the messages make.
        found: u64,
        /// The most that are followed (`sharing.packet.most_packets`).
        most: u64,
    },
    /// A path that crosses more links than a model follows.
    #[error(
        "found a way over {found} links, expected at most {most} under this model (fair and its kin follow any)"
    )]
    TooManyHops {
        /// Links of the path.
        found: usize,
        /// The most that are followed.
        most: usize,
    },
    /// A topology that cannot be built, or a routing that its shape does not know.
    #[error("{field}: found {found}, expected {expected}")]
    Topology {
        /// Dotted name, as in `--set`.
        field: String,
        /// What stands there.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// A node that the topology has no place for.
    #[error(
        "node {node}: found a flow from or to it, expected a node below {nodes}, as many as [topology] joins"
    )]
    NoSuchNode {
        /// The node, whose number is too large.
        node: Node,
        /// How many nodes there are.
        nodes: u64,
    },
    /// The pattern says where nodes stand, and so does the network.
    #[error("found `node .. rack` lines beside a network with [topology], expected one of the two")]
    RacksInTopology,
    /// The network says twice what joins the nodes.
    #[error("found [bus] beside [topology], expected one of the two")]
    BusInTopology,
    /// Rates at which flows have no end that is a number.
    #[error(
        "found {flows} flows that never end, expected rates that end them: look for a value that is too small in the network"
    )]
    Endless {
        /// How many they are.
        flows: usize,
    },
    /// The closed loop's equations were not solved to the accuracy promised.
    #[error(
        "closed-loop found no steady rates for {flows} flows: a link is {residual:.1e} of its capacity off its balance \
         (try another sharing.closed_loop.alpha or sharing.closed_loop.kappa)"
    )]
    Unsettled {
        /// Flows in the part that did not settle.
        flows: usize,
        /// Largest part of a link's capacity by which its load misses the complementarity conditions.
        residual: f64,
    },
}

impl SharingError {
    /// A parameter that is missing or out of range.
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
    /// The value of a parameter, if it is in range.
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
