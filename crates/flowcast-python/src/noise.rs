//! Predicted times under random delays.

use anyhow::Result;
use flowcast::trace::Trace as AnyTrace;
use flowcast::why::{NoiseOptions, Noisy, parse_noise};
use flowcast::{Prepared, units::Time};
use flowcast_files::threads;
use pyo3::prelude::*;

use crate::table::{Columns, Table, Values, escaped};
use crate::traces::Trace;

/// Which delays, and how they are drawn.
#[derive(FromPyObject)]
pub(crate) struct Asked(
    /// The distribution, as `--noise` takes it.
    String,
    /// The trace whose computations give the variation; that which is predicted if none.
    Option<Trace>,
    /// How often they are drawn.
    usize,
    /// Start of the random numbers.
    u64,
);

impl Asked {
    /// Draws the delays.
    pub(crate) fn draw(&self, prepared: &Prepared<'_>, level: f64) -> Result<Noise> {
        let Asked(distribution, recorded, runs, seed) = self;
        let recorded = match recorded.as_ref().map(|trace| &*trace.trace) {
            Some(AnyTrace::Program(program)) => Some(program),
            _ => prepared.program(),
        };
        let noise = parse_noise(distribution, recorded)?;
        let options = NoiseOptions { noise, runs: *runs, seed: *seed, level, threads: threads() };
        Ok(Noise { distribution: distribution.clone(), noisy: prepared.with_noise(&options)? })
    }
}

/// The distribution of a predicted time under random delays of computations.
#[pyclass(frozen, module = "flowcast")]
pub(crate) struct Noise {
    distribution: String,
    noisy: Noisy,
}

fn seconds(times: &[Time]) -> Values {
    Values::Floats(times.iter().map(|time| time.as_seconds()).collect())
}

#[pymethods]
impl Noise {
    /// What was asked for.
    #[getter]
    fn distribution(&self) -> &str {
        &self.distribution
    }

    /// The median of the runs, in seconds.
    #[getter]
    fn median_s(&self) -> f64 {
        self.noisy.quantile(0.5).as_seconds()
    }

    /// The ends of the interval that holds a run with the probability that was asked for, in seconds.
    #[getter]
    fn interval_s(&self) -> (f64, f64) {
        let [low, high] = self.noisy.interval().map(Time::as_seconds);
        (low, high)
    }

    /// That probability.
    #[getter]
    fn level(&self) -> f64 {
        self.noisy.level
    }

    /// Whether delays cannot change the order of events.
    #[getter]
    fn exact(&self) -> bool {
        self.noisy.is_exact
    }

    /// The end of each run, shortest first.
    #[getter]
    fn runs(&self) -> Table {
        Table::of(Columns::default().with("makespan_s", seconds(&self.noisy.makespans)))
    }

    /// By how much later each rank ends on average.
    #[getter]
    fn ranks(&self) -> Table {
        let numbers = Values::Integers((0..self.noisy.later.len() as i64).collect());
        Table::of(Columns::default().with("rank", numbers).with("later_s", seconds(&self.noisy.later)))
    }

    /// The distribution as people read it.
    #[getter]
    fn text(&self) -> String {
        self.noisy.to_string()
    }

    /// Draws the runs as a histogram with matplotlib.
    #[pyo3(signature = (ax=None))]
    fn plot<'py>(slf: &Bound<'py, Self>, ax: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("flowcast._plot")?.call_method1("plot_noise", (slf, ax))
    }

    fn _repr_html_(&self) -> String {
        format!("<p>with noise {}: {}</p>", escaped(&self.distribution), escaped(&self.text()))
    }

    fn __repr__(&self) -> String {
        format!("<Noise {}: {}>", self.distribution, self.noisy)
    }
}
