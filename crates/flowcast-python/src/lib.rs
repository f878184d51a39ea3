//! Native part of the Python package `flowcast`, which calls the crate `flowcast` and returns its results to Python.
//!
//! The convenient interface is in `python/src/flowcast_hpc`. This module contains the work that must be fast or give the same
//! results as the command. Work runs without Python's lock, on its own thread, so that an interrupt ends the wait
//! immediately (`work`). Errors are `flowcast.InputError`, or `flowcast.MissingError` for what the machine lacks (`errors`).

mod answers;
mod errors;
mod fit;
mod networks;
mod noise;
mod options;
mod place;
mod predict;
mod rails;
mod study;
mod table;
mod traces;
mod validation;
mod work;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: flowcast_io::memory::HugePages = flowcast_io::memory::HugePages;

/// Native part of flowcast.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::answers::{Answer, ask};
    #[pymodule_export]
    use super::fit::fit_round_trips;
    #[pymodule_export]
    use super::networks::{Network, built_in_networks, toml_of};
    #[pymodule_export]
    use super::noise::Noise;
    #[pymodule_export]
    use super::options::Options;
    #[pymodule_export]
    use super::place::{Placing, TimeSearch};
    #[pymodule_export]
    use super::predict::{
        PatternPrediction, Prediction, file_text, is_matrix, is_pattern, noise_ends, predict,
        predict_pattern,
    };
    #[pymodule_export]
    use super::rails::simulate_rails;
    #[pymodule_export]
    use super::study::Study;
    #[pymodule_export]
    use super::table::{Column, Table};
    #[pymodule_export]
    use super::traces::Trace;
    #[pymodule_export]
    use super::validation::{predicted_times, recorded_times, validation_table};

    /// Version of the package, such as `0.3.0`.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
