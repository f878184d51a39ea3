//! A flow: one message from node to node.

use flowcast_units::{Bytes, Node, Time};

/// One message in flight between two different nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Its number in results, counted from 1 in pattern files.
    pub id: u32,
    /// Node that sends; the flow takes its outgoing link.
    pub src: Node,
    /// Node that receives; the flow takes its incoming link.
    pub dst: Node,
    /// Size; a flow of no bytes ends at once.
    pub size: Bytes,
    /// When the sender calls.
    pub start: Time,
}

/// A flow of a pattern or a conflict.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternFlow {
    /// Name of the pattern.
    pub pattern: String,
    /// The flow as the pattern has it.
    pub flow: Flow,
}
