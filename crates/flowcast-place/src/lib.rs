//! Which rank should run on which node.

pub mod exhaustive;
pub mod mapping_file;
pub mod step_cost;
