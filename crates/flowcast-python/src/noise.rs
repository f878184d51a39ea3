//! Predicted times under random delays.

use std::ops::Range;

use anyhow::Result;
use flowcast::{
    Prepared,
    trace::Trace as AnyTrace,
    units::Time,
    why::{NoiseOptions, Noisy, parse_noise},
};
use flowcast_io::threads;
use pyo3::prelude::*;

use crate::{
    table::{Columns, Table, Values, escaped},
    traces::Trace,
};

/// Random delays: their distribution and the number of runs.
#[derive(Clone, FromPyObject, IntoPyObject)]
pub(crate) struct NoiseDraws(
    /// Distribution in the syntax of `--noise`.
    String,
    /// Trace whose computations determine the variation; the predicted trace if `None`.
    Option<Trace>,
    /// Number of runs, each with its own delays.
    usize,
    /// Seed of the random numbers.
    u64,
    /// End of each rank in each run, in nanoseconds, if the runs were computed elsewhere.
    Option<Vec<Vec<f64>>>,
);

impl NoiseDraws {
    /// Predicts the distribution of times.
    pub(crate) fn draw(&self, prepared: &Prepared<'_>, level: f64) -> Result<Noise> {
        let options = self.options(prepared, level, threads())?;
        let noisy = match &self.4 {
            Some(ends) => prepared.gathered_noise(
                &options,
                &ends
                    .iter()
                    .map(|ends: &Vec<f64>| ends.iter().copied().map(Time::from_nanos).collect())
                    .collect::<Vec<_>>(),
            )?,
            None => prepared.with_noise(&options)?,
        };
        Ok(Noise {
            distribution: self.0.clone(),
            noisy,
        })
    }

    /// Returns the ends of the ranks in some of the runs, computed on one thread.
    pub(crate) fn ends(
        &self,
        prepared: &Prepared<'_>,
        runs: Range<usize>,
    ) -> Result<Vec<Vec<f64>>> {
        let ends = prepared.ends_with_noise(&self.options(prepared, 0.9, 1)?, runs)?;
        Ok(ends
            .into_iter()
            .map(|run| run.into_iter().map(Time::as_nanos).collect())
            .collect())
    }

    fn options(&self, prepared: &Prepared<'_>, level: f64, threads: usize) -> Result<NoiseOptions> {
        let NoiseDraws(distribution, recorded, runs, seed, _) = self;
        let recorded = match recorded.as_ref().map(|trace| &*trace.trace) {
            Some(AnyTrace::Program(program)) => Some(program),
            _ => prepared.program(),
        };
        let noise = parse_noise(distribution, recorded)?;
        Ok(NoiseOptions {
            noise,
            runs: *runs,
            seed: *seed,
            level,
            threads,
        })
    }
}

/// Distribution of a predicted time under random delays of computations.
#[pyclass(frozen, module = "flowcast_hpc")]
pub(crate) struct Noise {
    distribution: String,
    noisy: Noisy,
}

impl Noise {
    /// Returns the requested distribution and the times under it.
    pub(crate) fn named(&self) -> (&str, &Noisy) {
        (&self.distribution, &self.noisy)
    }
}

fn seconds(times: &[Time]) -> Values {
    Values::floats(times.iter().map(|time| time.as_seconds()))
}

#[pymethods]
impl Noise {
    /// Requested distribution of the delays.
    #[getter]
    fn distribution(&self) -> &str {
        &self.distribution
    }

    /// Median of the runs, in seconds.
    #[getter]
    fn median_s(&self) -> f64 {
        self.noisy.quantile(0.5).as_seconds()
    }

    /// Ends of the interval that contains a run with the probability `level`, in seconds.
    #[getter]
    fn interval_s(&self) -> (f64, f64) {
        let [low, high] = self.noisy.interval().map(Time::as_seconds);
        (low, high)
    }

    /// Probability that the interval contains a run.
    #[getter]
    fn level(&self) -> f64 {
        self.noisy.level
    }

    /// `True` if delays cannot change the order of events.
    #[getter]
    fn exact(&self) -> bool {
        self.noisy.is_exact
    }

    /// End of each run, shortest first.
    #[getter]
    fn runs(&self) -> Table {
        Table::from_columns(Columns::default().with("makespan_s", seconds(&self.noisy.makespans)))
    }

    /// Mean delay of the end of each rank.
    #[getter]
    fn ranks(&self) -> Table {
        let numbers = Values::integers(0..self.noisy.later.len() as i64);
        Table::from_columns(
            Columns::default()
                .with("rank", numbers)
                .with("later_s", seconds(&self.noisy.later)),
        )
    }

    /// Distribution as formatted text.
    #[getter]
    fn text(&self) -> String {
        self.noisy.to_string()
    }

    /// Draws the runs as a histogram with matplotlib.
    #[pyo3(signature = (ax=None))]
    fn plot<'py>(
        slf: &Bound<'py, Self>,
        ax: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("flowcast_hpc._plot")?
            .call_method1("plot_noise", (slf, ax))
    }

    fn _repr_html_(&self) -> String {
        format!(
            "<p>with noise {}: {}</p>",
            escaped(&self.distribution),
            escaped(&self.text())
        )
    }

    fn __repr__(&self) -> String {
        format!("<Noise {}: {}>", self.distribution, self.noisy)
    }
}
