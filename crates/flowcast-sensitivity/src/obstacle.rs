//! Why there is no exact curve.

use thiserror::Error;

/// Why a makespan is no convex, piecewise linear function of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Obstacle {
    /// A cost is no linear function of it.
    #[error("a cost is no linear function of it")]
    NotLinear,
    /// It decides which sends wait for their receivers.
    #[error("it decides which messages wait for their receiver")]
    Rendezvous,
    /// It decides where ranks run, or by which routes messages go.
    #[error("it decides where ranks run")]
    Placement,
    /// Files and locks, which are served in the order of time.
    #[error("one-sided communication and files are served in the order of time")]
    Accesses,
    /// Ranks progress messages in MPI calls alone, so that who answers whom depends on when they call.
    #[error("ranks answer one another in MPI calls alone, in the order of time")]
    Progress,
    /// Computation on accelerators, whose time the walk does not tell apart.
    #[error("the program computes on accelerators")]
    Accelerators,
    /// Processors spend on messages what a table by size says.
    #[error("the network has overheads by size")]
    Overheads,
    /// Ranks of a collective give different sizes, and the last to come decides.
    #[error("the rank that comes last decides the sizes of a collective")]
    Sizes,
}
