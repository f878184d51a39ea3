//! Collective operations of real machines: from what they took in runs to what others will take, and which algorithm is best.
//!
//! What an operation takes is what its algorithm's steps take ([`step_times`]) on the levels of the network that its ranks
//! span ([`allocations`], or [`hosts`] by the names of the nodes), times what such steps leave over ([`residuals`]). [`fit`]
//! finds the costs of the steps and what they leave over from measured operations ([`cases`]), and from runs that are
//! [`held_out`] how wide intervals have to be; [`predict`] tells the time of others with intervals.

pub mod allocations;
pub mod cases;
pub mod choose;
mod collective;
pub mod fit;
pub mod held_out;
pub mod hosts;
pub mod job;
mod labels;
pub mod library_rules;
mod memory;
pub mod network;
pub mod predict;
pub mod residuals;
pub mod step_times;
