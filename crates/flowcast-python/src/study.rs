//! Sweeps, whole or in parts.

use std::sync::Arc;

use anyhow::Context;
use flowcast::study::{
    Lines, Names,
    grid::{ParameterGrid, full_name},
    rows::Form,
};
use pyo3::prelude::*;

use crate::{
    errors::raised,
    networks::{Network, Value},
    options::Options,
    table::Table,
    traces::Trace,
    work::run_in_background,
};

/// Predictions of one trace on all networks of a grid.
#[pyclass(frozen, module = "flowcast_hpc._native")]
pub(crate) struct Study {
    study: Arc<flowcast::study::Study>,
}

/// Values of a field: a list, or a text in the syntax of the command.
#[derive(FromPyObject)]
enum StudyValues {
    Text(String),
    List(Vec<Value>),
}

#[pymethods]
impl Study {
    #[new]
    #[pyo3(signature = (trace, networks, grid, options, level=None))]
    fn new(
        py: Python<'_>,
        trace: Trace,
        networks: Vec<Network>,
        grid: Vec<(String, StudyValues)>,
        options: Vec<Options>,
        level: Option<f64>,
    ) -> PyResult<Study> {
        let texts: Vec<String> = grid
            .into_iter()
            .map(|(key, values): (String, StudyValues)| {
                let values = match values {
                    StudyValues::Text(text) => text,
                    // Without a network there is no study, which the grid says.
                    StudyValues::List(list) => networks
                        .first()
                        .map_or(String::new(), |first| first.texts_of(&key, list).join(",")),
                };
                format!("{}={values}", full_name(&key))
            })
            .collect();
        let networks: Vec<_> = networks
            .iter()
            .map(|network| network.network.as_ref().clone())
            .collect();
        let mappings: Vec<String> = options
            .iter()
            .filter_map(|one| one.mapping.clone())
            .collect();
        let grid = ParameterGrid::new(&networks, &mappings, &texts).context("grid");
        let grid = grid.map_err(|error| raised(py, &error))?;
        let study = run_in_background(py, move || {
            let names = Names {
                trace: Some(&trace.file_name),
                mappings: &mappings,
            };
            let options = options.into_iter().map(|one| one.options).collect();
            let study = flowcast::study::Study::new(&trace.trace, networks, grid, options, names)?;
            Ok(match level {
                Some(level) => study.with_intervals(level),
                None => study,
            })
        })?;
        Ok(Study {
            study: Arc::new(study),
        })
    }

    /// Number of combinations of values.
    #[getter]
    fn sets(&self) -> usize {
        self.study.grid().len()
    }

    /// Name of the model on the unchanged network.
    #[getter]
    fn model(&self) -> &'static str {
        self.study.models()[0].name()
    }

    /// Returns the joined lines of the sets `start..end`. `threads` defaults to the number of processors.
    #[pyo3(signature = (start, end, threads=None, json=false))]
    fn lines(
        &self,
        py: Python<'_>,
        start: usize,
        end: usize,
        threads: Option<usize>,
        json: bool,
    ) -> PyResult<String> {
        let form = if json { Form::JsonLines } else { Form::Csv };
        let study = self.study.clone();
        let threads = threads.unwrap_or_else(flowcast_io::threads).max(1);
        run_in_background(py, move || {
            let sets: Vec<usize> = (start..end.min(study.grid().len())).collect();
            let mut all: Lines = Vec::with_capacity(sets.len());
            study.run(&sets, form, threads, |lines| {
                all.extend(lines);
                anyhow::Ok(())
            })?;
            all.sort_by_key(|(set, _)| *set);
            Ok(all.into_iter().map(|(_, line)| line).collect())
        })
    }

    /// Returns the table of lines from [`Study::lines`].
    fn table(&self, py: Python<'_>, lines: &str) -> PyResult<Table> {
        Table::of_csv(&format!("{}{lines}", self.study.header(Form::Csv)))
            .map_err(|error| raised(py, &error))
    }
}
