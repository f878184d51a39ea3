//! From samples to the parameters of a model.
//!
//! [`samples`] reads and writes what was measured, [`prtt`] says what a parametrised round trip measures, [`loggp`]
//! turns round trips into LogGP parameters with intervals, [`verdict`] says what is wrong with them, and [`plogp`] how
//! many messages the older method would need.

mod estimate;
pub mod loggp;
mod network;
pub mod plogp;
pub mod prtt;
pub mod samples;
pub mod verdict;
