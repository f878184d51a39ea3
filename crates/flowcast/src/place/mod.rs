//! Which rank should run on which node.

pub mod exhaustive;
pub mod step_cost;
