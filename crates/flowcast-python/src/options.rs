//! Options of a replay, read from a JSON request.

use anyhow::{Context, Result};
use flowcast::{RailsOptions, scheduler::policy::MessagePolicy};
use flowcast_io::{RankNodes, ReplayRequest, WholeFileReader};
use pyo3::{prelude::*, types::PyTuple};

use crate::{errors::raised, networks::Network, table::rebuilder};

/// Options of a prediction.
#[pyclass(frozen, module = "flowcast_hpc._native", from_py_object)]
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub options: flowcast::Options,
    /// Name of the mapping in results.
    pub mapping: Option<String>,
    given: OptionArguments,
}

/// Arguments from which the options were created, in order.
type OptionArguments = (String, Option<String>, Vec<Network>, Option<String>);

#[pymethods]
impl Options {
    /// Creates options from a JSON request for a replay.
    #[new]
    #[pyo3(signature = (request, mapping_name=None, rails=vec![], scheduler=None))]
    fn new(
        py: Python<'_>,
        request: String,
        mapping_name: Option<String>,
        rails: Vec<Network>,
        scheduler: Option<String>,
    ) -> PyResult<Options> {
        read((request, mapping_name, rails, scheduler)).map_err(|error| raised(py, &error))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let given = slf.get().given.clone().into_pyobject(slf.py())?;
        Ok((rebuilder(slf.py(), "options")?, given))
    }
}

fn read(given: OptionArguments) -> Result<Options> {
    let (json, mapping_name, rails, scheduler) = &given;
    let request = ReplayRequest::from_json(json)?;
    let policy = scheduler.as_ref().map(|name| {
        name.parse::<MessagePolicy>()
            .with_context(|| format!("--scheduler {name}"))
    });
    let options = flowcast::Options {
        rails: RailsOptions {
            further: rails.iter().map(|rail| (*rail.network).clone()).collect(),
            policy: policy.transpose()?.unwrap_or_default(),
        },
        ..request.options(&mut WholeFileReader)?
    };
    let name = match request.mapping {
        Some(RankNodes::Named(name)) => Some(name),
        Some(RankNodes::Listed(_)) => Some("nodes".to_owned()),
        None => None,
    };
    Ok(Options {
        options,
        mapping: mapping_name.clone().or(name),
        given,
    })
}
