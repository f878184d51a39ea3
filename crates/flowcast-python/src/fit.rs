//! Fit of a network to measured round trips.

use std::{collections::BTreeMap, sync::Arc};

use flowcast::{
    fit::{
        loggp::{FitOptions, LogGpFit, interval},
        samples::PrttSamples,
    },
    units::Time,
};
use pyo3::prelude::*;

use crate::{networks::Network, work::run_in_background};

/// Symbol of a parameter, its value in microseconds (or microseconds per byte), and the ends of its interval.
type FitParameter = (&'static str, f64, Option<(f64, f64)>);

/// Fits LogGP to the text of samples. Returns the parameters, the network, and warnings.
#[pyfunction]
pub(crate) fn fit_round_trips(
    py: Python<'_>,
    text: String,
    name: String,
    level: f64,
    seed: u64,
    replicates: Option<usize>,
) -> PyResult<(Vec<FitParameter>, Network, Vec<String>)> {
    run_in_background(py, move || {
        let samples = PrttSamples::from_csv(&text)?;
        let defaults = FitOptions::default();
        let options = FitOptions {
            level,
            seed,
            replicates: replicates.unwrap_or(defaults.replicates),
            ..defaults
        };
        let fit = flowcast::fit(&samples, &options)?;
        let provenance = BTreeMap::from([
            ("flowcast".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("seed".to_owned(), seed.to_string()),
        ]);
        let network = Network::without_warnings(Arc::new(fit.to_network(&name, provenance)));
        let warnings = fit.warnings.iter().map(ToString::to_string).collect();
        Ok((parameters(&fit), network, warnings))
    })
}

fn parameters(fit: &LogGpFit) -> Vec<FitParameter> {
    let micros =
        |ends: (Time, Time)| interval(ends).map(|(low, high)| (low.as_micros(), high.as_micros()));
    let per_byte =
        interval(fit.intervals.gap_per_byte).map(|(low, high)| (low.as_micros(), high.as_micros()));
    vec![
        (
            "g_us",
            fit.parameters.gap.as_micros(),
            micros(fit.intervals.gap),
        ),
        (
            "G_us_per_B",
            fit.parameters.gap_per_byte.as_micros(),
            per_byte,
        ),
        (
            "o_us",
            fit.parameters.overhead.as_micros(),
            micros(fit.intervals.overhead),
        ),
        (
            "L_us",
            fit.parameters.latency.as_micros(),
            micros(fit.intervals.latency),
        ),
    ]
}
