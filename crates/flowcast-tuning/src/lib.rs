//! Collective operations on real machines: predicts their times from measured ones, and finds the best algorithm.
//!
//! The time of an operation is the time of its algorithm's steps ([`step_times`]) on the levels of the network that its
//! ranks span ([`allocations`], or [`hosts`] from the names of the nodes), multiplied by a residual factor ([`residuals`]).
//! [`fit`] derives the costs of the steps and the residuals from measured operations ([`cases`]). Runs that are [`held_out`]
//! determine the widths of intervals. [`predict`] predicts the times of other operations, with intervals.

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
