//! From samples to the parameters of a model.
//!
//! [`samples`] reads and writes what was measured, [`prtt`] says what a parametrised round trip measures, [`loggp`]
//! turns round trips into LogGP parameters with intervals, [`conflict_samples`] and [`conflicts`] do the same for messages
//! that are under way together, [`verdict`] says what is wrong with them, and [`plogp`] how many messages the older method
//! would need. [`dimemas`] finds Dimemas' parameters from regions of dedicated runs, [`narrowing`] one parameter of whatever is
//! replayed.

mod estimate;
pub mod loggp;
pub mod network;
pub mod plogp;
pub mod prtt;
pub mod samples;
pub mod verdict;
