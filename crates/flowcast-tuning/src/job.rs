//! Runs of machines, the key by which cases find their nodes.

/// A run on a number of nodes of a machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// Name of the machine.
    pub system: String,
    /// Name of the run.
    pub run: String,
    /// Number of nodes of the run; each of its operations uses all of them.
    pub nodes: u32,
}
