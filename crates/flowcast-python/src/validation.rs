//! Measured and predicted times of a recorded run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, anyhow};
use flowcast::{
    Recorded,
    formats::read::{Clock, recorded_files},
    recording::{decode::RankFile, format::RECORDING},
    report::validation::app::{AppValidation, QuantityRow},
    trace::{ReadOptions, SharedBytes, recorded_times::measured, run_times::RunTimes},
    units::Time,
};
use pyo3::prelude::*;

use crate::{
    errors::raised,
    networks::Network,
    options::Options,
    table::{Columns, Table, Values},
    work::run_in_background,
};

/// Times of a run, in nanoseconds: total, communication and computation by rank, calls, regions.
type ValidationTimes = (
    f64,
    Vec<f64>,
    Vec<f64>,
    BTreeMap<String, f64>,
    BTreeMap<String, f64>,
);

fn times_of(times: RunTimes) -> ValidationTimes {
    let RunTimes {
        total,
        communication,
        computation,
        calls,
        regions,
    } = times.map(Time::as_nanos);
    (total, communication, computation, calls, regions)
}

fn of_times((total, communication, computation, calls, regions): ValidationTimes) -> RunTimes {
    let nanos = RunTimes {
        total,
        communication,
        computation,
        calls,
        regions,
    };
    nanos.map(Time::from_nanos)
}

fn open(folder: &Path, threads: usize) -> Result<Vec<RankFile>> {
    let read = |path: &Path| std::fs::read(path).map(|bytes| Arc::new(bytes) as SharedBytes);
    let path = folder.join(RECORDING);
    let text = read(&path).with_context(flowcast_io::cannot_read(&path))?;
    let text = (*text).as_ref();
    Ok(recorded_files(
        &path.display().to_string(),
        text,
        &mut |name: &str| read(&folder.join(name)),
        ReadOptions { threads },
    )?)
}

/// Returns the measured times of a recorded run.
#[pyfunction]
pub(crate) fn recorded_times(py: Python<'_>, recording: PathBuf) -> PyResult<ValidationTimes> {
    run_in_background(py, move || {
        Ok(times_of(measured(&open(
            &recording,
            flowcast_io::threads(),
        )?)))
    })
}

/// Predicts the times of a recorded run on a network, on one thread. Computations take their thread CPU time or wall time.
#[pyfunction]
pub(crate) fn predicted_times(
    py: Python<'_>,
    recording: PathBuf,
    network: Network,
    options: Options,
    wall: bool,
) -> PyResult<ValidationTimes> {
    run_in_background(py, move || {
        let clock = if wall { Clock::Wall } else { Clock::ThreadCpu };
        let (network, options) = (
            &*network.network,
            flowcast::Options {
                threads: 1,
                ..options.options
            },
        );
        let recorded = Recorded::new(&open(&recording, 1)?, clock, options.mapping.clone(), 1)?;
        let (expanded, _) = recorded.expanded(&options.collectives, network, 1)?;
        let mut times = expanded.run_times(network, &options, 0)?;
        Ok(times_of(times.remove(0)))
    })
}

/// Returns a table of measured and predicted times, with a row for each quantity and predictor. `predicted` has the times
/// of each recording for each predictor.
#[pyfunction]
pub(crate) fn validation_table(
    py: Python<'_>,
    predictors: Vec<String>,
    runs: Vec<ValidationTimes>,
    predicted: Vec<Vec<ValidationTimes>>,
) -> PyResult<Table> {
    let ranks: Vec<usize> = runs
        .iter()
        .map(|(_, communication, ..)| communication.len())
        .collect();
    if let Some(other) = ranks.iter().find(|other| **other != ranks[0]) {
        let error = anyhow!(
            "recordings: found {} and {other} ranks, expected runs of one program",
            ranks[0]
        );
        return Err(raised(py, &error));
    }
    let (runs_of, expected) = (predicted.len(), predictors.len());
    if runs_of != expected {
        let error =
            anyhow!("predicted: found the times of {runs_of} predictors, expected {expected}");
        return Err(raised(py, &error));
    }
    let runs: Vec<RunTimes> = runs.into_iter().map(of_times).collect();
    let validation = AppValidation {
        recorded: runs.clone(),
        runs,
        predictors,
        predicted: predicted
            .into_iter()
            .map(|of_one| of_one.into_iter().map(of_times).collect())
            .collect(),
        ..AppValidation::default()
    };
    let rows = validation
        .rows()
        .map_err(|error| raised(py, &error.into()))?;
    let cells: Vec<(&QuantityRow, usize)> = rows
        .iter()
        .flat_map(|row| (0..validation.predictors.len()).map(move |at| (row, at)))
        .collect();
    let floats = |of: fn(&QuantityRow, usize) -> f64| {
        Values::floats(cells.iter().map(|(row, at)| of(row, *at)))
    };
    Ok(Table::from_columns(
        Columns::default()
            .with(
                "quantity",
                Values::texts(cells.iter().map(|(row, _)| row.quantity.name())),
            )
            .with(
                "name",
                Values::texts(cells.iter().map(|(row, _)| row.name.as_str())),
            )
            .with("measured_s", floats(|row, _| row.measured.as_seconds()))
            .with(
                "low_s",
                floats(|row, _| row.interval.map_or(f64::NAN, |(low, _)| low.as_seconds())),
            )
            .with(
                "high_s",
                floats(|row, _| row.interval.map_or(f64::NAN, |(_, high)| high.as_seconds())),
            )
            .with(
                "prediction",
                Values::texts(
                    cells
                        .iter()
                        .map(|(_, at)| validation.predictors[*at].as_str()),
                ),
            )
            .with(
                "predicted_s",
                floats(|row, at| row.predicted[at].as_seconds()),
            )
            .with("error", floats(|row, at| row.error(at).unwrap_or(f64::NAN))),
    ))
}
