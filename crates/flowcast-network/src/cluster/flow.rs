//! A flow: one message from node to node.

use flowcast_units::{Bytes, Node, Time};

/// One message in flight between two different nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Number in results, counted from 1 in pattern files.
    pub id: u32,
    /// Sending node; the flow uses its outgoing link.
    pub src: Node,
    /// Receiving node; the flow uses its incoming link.
    pub dst: Node,
    /// Size; a flow of 0 bytes ends immediately.
    pub size: Bytes,
    /// Time of the sender's call.
    pub start: Time,
}

/// A flow of a pattern or a conflict.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternFlow {
    /// Name of the pattern.
    pub pattern: String,
    /// The flow as it appears in the pattern.
    pub flow: Flow,
}
