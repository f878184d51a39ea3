//! Traces.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use flowcast::trace::compiled;
use flowcast_io::{WholeFileReader, first_of_folder, open_trace, whole_recording};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyTuple},
};

use crate::{table::rebuilder, work::run_in_background};

/// Kinds of omitted items, with their counts.
type TraceCounts = Vec<(String, u64)>;

/// Trace of a program, or a GOAL schedule.
#[pyclass(frozen, module = "flowcast_hpc", from_py_object)]
#[derive(Clone)]
pub(crate) struct Trace {
    pub trace: Arc<flowcast::trace::Trace>,
    /// File name without folders, which names the trace in results.
    pub file_name: String,
}

#[pymethods]
impl Trace {
    /// Reads a trace of any known format, or a folder that contains one.
    #[staticmethod]
    #[pyo3(signature = (path, incomplete=false))]
    fn open(py: Python<'_>, path: PathBuf, incomplete: bool) -> PyResult<Trace> {
        run_in_background(py, move || {
            let first = if path.is_dir() {
                first_of_folder(&path)?
            } else {
                path.clone()
            };
            let trace = open_trace(&first, &first.display().to_string(), &mut WholeFileReader)?;
            if !incomplete {
                whole_recording(&trace)?;
            }
            Ok(Trace {
                trace: Arc::new(trace),
                file_name: name_of(&path),
            })
        })
    }

    /// Reads a trace from the bytes of a single file, compiled or text.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, name: String, content: Vec<u8>) -> PyResult<Trace> {
        run_in_background(py, move || {
            let trace = flowcast::read_text(&name, content)?;
            Ok(Trace {
                trace: Arc::new(trace),
                file_name: name,
            })
        })
    }

    /// Name that the trace contains.
    #[getter]
    fn name(&self) -> &str {
        self.trace.name()
    }

    /// File name without folders.
    #[getter]
    fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Number of ranks of the program.
    #[getter]
    fn ranks(&self) -> usize {
        self.trace.ranks()
    }

    /// Number of point-to-point messages.
    #[getter]
    fn messages(&self) -> u64 {
        self.trace.messages()
    }

    /// Number of collectives, without those that were expanded into messages.
    #[getter]
    fn collectives(&self) -> u64 {
        self.trace.collectives()
    }

    /// Kinds of items in the trace that the replay does not model, with their counts.
    #[getter]
    fn ignored(&self) -> TraceCounts {
        self.trace
            .ignored()
            .iter()
            .map(|ignored| (ignored.kind.clone(), ignored.count))
            .collect()
    }

    /// Returns the compiled form (`.fct`).
    fn compiled<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let trace = self.trace.clone();
        let bytes = run_in_background(py, move || compiled_bytes(&trace))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Converts the trace to the format of another tool (`dim`, `goal` or `goal-bin`). Also returns the kinds of lost items
    /// with their counts.
    #[pyo3(signature = (to, collectives=None, strict=false))]
    fn converted<'py>(
        &self,
        py: Python<'py>,
        to: String,
        collectives: Option<String>,
        strict: bool,
    ) -> PyResult<(Bound<'py, PyBytes>, TraceCounts)> {
        let trace = self.trace.clone();
        let (bytes, losses) = run_in_background(py, move || {
            let collectives = collectives
                .map(|name| flowcast_io::read_collectives(&name, &mut WholeFileReader))
                .transpose()?;
            let conversion = flowcast::Conversion {
                form: to.parse()?,
                strict,
                collectives,
            };
            let mut bytes = Vec::new();
            let losses = conversion.write(&trace, &mut bytes)?;
            Ok((
                bytes,
                losses
                    .kinds()
                    .map(|(kind, count)| (kind.to_owned(), count))
                    .collect(),
            ))
        })?;
        Ok((PyBytes::new(py, &bytes), losses))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let content = slf.get().compiled(py)?;
        Ok((
            rebuilder(py, "trace")?,
            (slf.get().file_name.clone(), content).into_pyobject(py)?,
        ))
    }

    fn __repr__(&self) -> String {
        format!(
            "<Trace {}: {} ranks, {} messages>",
            self.trace.name(),
            self.trace.ranks(),
            self.trace.messages()
        )
    }
}

fn compiled_bytes(trace: &flowcast::trace::Trace) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    compiled::write(trace, &mut bytes).context("cannot write to memory")?;
    Ok(bytes)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
