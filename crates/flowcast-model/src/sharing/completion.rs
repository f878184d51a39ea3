//! What became of a flow: when its data arrived, and what it got on the way.

use flowcast_units::Time;

use super::fabric::{Limit, Share};

/// When a flow's data were through.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FlowCompletion {
    /// The end.
    pub end: Time,
    /// Time under way.
    pub duration: Time,
}

/// A stretch of a flow's life with one share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// What the flow got.
    pub share: Share,
    /// Why not more.
    pub limit: Limit,
}
