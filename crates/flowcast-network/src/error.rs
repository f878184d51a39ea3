//! Errors of network files.

use std::fmt;

use thiserror::Error;

use super::{algorithm::TableError, near};

/// Reason why a network file or an override was rejected.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The text is not a network file; the message names line, column and field.
    #[error("{}{}", .0.to_string().trim_end(), hint(.0))]
    Malformed(Box<toml::de::Error>),
    /// A file of an earlier schema is not valid TOML.
    #[error(transparent)]
    NotToml(#[from] Box<toml_edit::TomlError>),
    /// This version does not read the schema.
    #[error("schema: found `{found}`, expected `{newest}` or an earlier one")]
    Schema {
        /// Schema that was found.
        found: String,
        /// Schema that this version writes.
        newest: &'static str,
    },
    /// A value is out of range, two fields exclude each other, or one of two alternative fields is required and neither is
    /// given.
    #[error("{field}: {problem}")]
    Field {
        /// Dotted field name, as in `--set`.
        field: String,
        /// Value that was found, and the expected one.
        problem: String,
    },
    /// The section `topology` describes no valid network; the message names the field.
    #[error("{0}")]
    Topology(String),
    /// A table of algorithms is not usable.
    #[error(transparent)]
    Algorithms(#[from] TableError),
    /// No built-in network has this name; the second text suggests similar names.
    #[error("no network is named `{0}`{1}; `flowcast networks` lists all")]
    Unknown(String, String),
}

impl From<Box<toml::de::Error>> for NetworkError {
    fn from(error: Box<toml::de::Error>) -> NetworkError {
        NetworkError::Malformed(error)
    }
}

/// Suggests the intended field.
fn hint(error: &toml::de::Error) -> String {
    match error.to_string().contains("[[nic]]") {
        true => format!("; {}", near::ONE_INTERFACE),
        false => near::question_of_unknown(error.message()),
    }
}

pub(crate) fn field_error(field: &str, problem: String) -> NetworkError {
    NetworkError::Field {
        field: field.to_owned(),
        problem,
    }
}

pub(crate) fn refused(
    field: impl fmt::Display,
    found: impl fmt::Display,
    expected: &str,
) -> NetworkError {
    field_error(
        &field.to_string(),
        format!("found {found}, expected {expected}"),
    )
}
