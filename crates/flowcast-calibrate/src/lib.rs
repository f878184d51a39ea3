//! From what concurrent messages and programs took to the parameters of a network.
//!
//! [`conflict_samples`] reads and writes what was measured, [`conflicts`] fits sharing models to it, [`dimemas`] finds
//! Dimemas' parameters from the regions of dedicated runs, [`narrowing`] one parameter of whatever is replayed.

pub mod conflict_samples;
pub mod conflicts;
mod descent;
pub mod dimemas;
pub mod narrowing;
pub mod recorded_regions;
