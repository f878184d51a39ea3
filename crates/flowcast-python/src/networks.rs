//! Networks.

use std::sync::Arc;

use anyhow::Context;
use flowcast::{model::builtin, study::grid::full_name};
use flowcast_io::{WholeFileReader, load_network};
use pyo3::prelude::*;

use crate::{errors::raised, table::rebuilder};

/// Network with its machine and the parameters of its models.
#[pyclass(frozen, module = "flowcast_hpc", from_py_object)]
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub network: Arc<flowcast::model::network::Network>,
    /// Warnings about settings of the file that are not modelled.
    #[pyo3(get)]
    warnings: Vec<String>,
}

/// Value of a field: text with its unit, or a number in base units.
#[derive(Debug, Clone, FromPyObject)]
pub(crate) enum Value {
    Text(String),
    Number(f64),
}

#[pymethods]
impl Network {
    /// Reads a built-in network, a network file or a Dimemas configuration.
    #[staticmethod]
    fn load(py: Python<'_>, name: &str) -> PyResult<Network> {
        let loaded =
            load_network(name, &[], &mut WholeFileReader).map_err(|error| raised(py, &error))?;
        Ok(Network {
            network: Arc::new(loaded.network),
            warnings: loaded.warnings,
        })
    }

    /// Reads a network from the text of a network file.
    #[staticmethod]
    fn from_toml(py: Python<'_>, text: &str) -> PyResult<Network> {
        let read = flowcast::model::network::Network::from_toml(text, &[]).context("network");
        let network = read.map_err(|error| raised(py, &error))?;
        Ok(Network::without_warnings(Arc::new(network)))
    }

    /// Reads a network from the fields of a network file in JSON.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Network> {
        Network::from_toml(py, &toml_of(py, "network", text)?)
    }

    /// Returns the text of the network file.
    fn to_toml(&self) -> String {
        self.network.to_toml()
    }

    /// Returns the fields of the network file in JSON.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.network.to_table())
            .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
    }

    /// Returns the network with some fields replaced.
    fn replaced(&self, py: Python<'_>, values: Vec<(String, Value)>) -> PyResult<Network> {
        let overrides: Vec<(String, String)> = values
            .iter()
            .map(|(key, value)| (full_name(key), self.text_of(key, value)))
            .collect();
        let network = self
            .network
            .with_overrides(&overrides)
            .map_err(|error| raised(py, &error.into()))?;
        Ok(Network {
            network: Arc::new(network),
            warnings: self.warnings.clone(),
        })
    }

    /// Returns the values of a field as texts with their unit.
    pub(crate) fn texts_of(&self, key: &str, values: Vec<Value>) -> Vec<String> {
        values
            .iter()
            .map(|value| self.text_of(key, value))
            .collect()
    }

    /// Name of the network in its file.
    #[getter]
    fn name(&self) -> &str {
        &self.network.name
    }

    /// Description of the network in one line.
    #[getter]
    fn title(&self) -> &str {
        &self.network.title
    }

    /// Source of the numbers.
    #[getter]
    fn source(&self) -> &str {
        &self.network.source
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((rebuilder(slf.py(), "network")?, (slf.get().to_toml(),)))
    }

    fn __eq__(&self, other: &Network) -> bool {
        self.network == other.network
    }

    fn __repr__(&self) -> String {
        format!("<Network {}: {}>", self.network.name, self.network.title)
    }
}

impl Network {
    /// Creates a network without warnings.
    pub(crate) fn without_warnings(network: Arc<flowcast::model::network::Network>) -> Network {
        Network {
            network,
            warnings: Vec::new(),
        }
    }

    /// Returns the text of a value. A number gets the base unit of its field, the first unit that the network accepts.
    fn text_of(&self, key: &str, value: &Value) -> String {
        // Zero is accepted without a unit as well.
        const UNITS: [&str; 5] = ["s", "B/s", "s/B", "B", ""];
        let number = match value {
            Value::Text(text) => return text.clone(),
            Value::Number(number) => number,
        };
        let key = full_name(key);
        UNITS
            .iter()
            .map(|unit: &&str| format!("{number}{unit}"))
            .find(|text: &String| {
                self.network
                    .with_overrides(&[(key.clone(), text.clone())])
                    .is_ok()
            })
            .unwrap_or_else(|| number.to_string())
    }
}

/// Converts a JSON object to TOML.
#[pyfunction]
pub(crate) fn toml_of(py: Python<'_>, name: &str, json: &str) -> PyResult<String> {
    let text = || {
        Ok(toml::to_string(&serde_json::from_str::<toml::Table>(
            json,
        )?)?)
    };
    text().map_err(|error: anyhow::Error| raised(py, &error.context(name.to_owned())))
}

/// Returns the names of the built-in networks.
#[pyfunction]
pub(crate) fn built_in_networks() -> Vec<&'static str> {
    builtin::NETWORKS.iter().map(|(name, _)| *name).collect()
}
