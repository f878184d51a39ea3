//! Why a network is refused.

use std::fmt;

use thiserror::Error;

use super::{algorithm::TableError, near};

/// Why a network file or an override was refused.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The text is not a network file; the message names line, column and field.
    #[error("{}{}", .0.to_string().trim_end(), hint(.0))]
    Malformed(Box<toml::de::Error>),
    /// The text of a file of an earlier schema is no TOML.
    #[error(transparent)]
    NotToml(#[from] Box<toml_edit::TomlError>),
    /// A schema that this version does not read.
    #[error("schema: found `{found}`, expected `{newest}` or an earlier one")]
    Schema {
        /// What stands there.
        found: String,
        /// The one that this version writes.
        newest: &'static str,
    },
    /// A value that is out of range, two fields that exclude each other, or none of two of which one is needed.
    #[error("{field}: {problem}")]
    Field {
        /// Dotted name, as in `--set`.
        field: String,
        /// What was found and what was expected.
        problem: String,
    },
    /// The section `topology` makes no network; the message names the field.
    #[error("{0}")]
    Topology(String),
    /// A table of algorithms that cannot be followed.
    #[error(transparent)]
    Algorithms(#[from] TableError),
    /// No built-in network of that name; the second text suggests those that are near.
    #[error("no network is named `{0}`{1}; `flowcast networks` lists all")]
    Unknown(String, String),
}

impl From<Box<toml::de::Error>> for NetworkError {
    fn from(error: Box<toml::de::Error>) -> NetworkError {
        NetworkError::Malformed(error)
    }
}

/// What may have been meant.
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
