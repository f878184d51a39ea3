//! Errors as Python's exceptions.

use std::{error::Error, io};

use flowcast_io::{EnvironmentLacks, text_of};
use pyo3::{prelude::*, types::PyType};

/// Returns the exception for an error: invalid input, or something that the machine lacks.
pub(crate) fn raised(py: Python<'_>, error: &anyhow::Error) -> PyErr {
    let name = match error.downcast_ref::<EnvironmentLacks>() {
        Some(_) => "MissingError",
        None if error.chain().any(is_missing_file) => "NoSuchFileError",
        None => "InputError",
    };
    let class = py
        .import("flowcast_hpc._errors")
        .and_then(|module| module.getattr(name));
    match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
        Ok(class) => PyErr::from_type(class, text_of(error)),
        Err(missing) => missing,
    }
}

fn is_missing_file(cause: &(dyn Error + 'static)) -> bool {
    cause
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}
