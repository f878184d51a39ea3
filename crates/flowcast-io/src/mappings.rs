//! Mappings and tables of collectives, by name.

use std::path::Path;

use anyhow::{Context, Result};
use flowcast::{
    Collectives,
    model::{algorithm::AlgorithmTable, machine::Mapping},
};
use flowcast_place as place;
use flowcast_place::mapping_file;

use crate::{Reader, cannot_read, file_text};

/// Mapping by name: `fill`, `round-robin`, `N-per-node`, or a file.
///
/// # Errors
/// A file that does not exist or is not a mapping.
pub fn read_mapping(text: &str, reader: &mut dyn Reader) -> Result<Mapping> {
    match place::rule(text) {
        Some(rule) => Ok(rule),
        None => {
            let file = read_named_text(Path::new(text), reader).with_context(|| {
                format!(
                    "--mapping: found `{text}`, expected fill, round-robin, N-per-node or a file"
                )
            })?;
            Ok(mapping_file::read(text, &file, &mut Vec::new())?)
        }
    }
}

/// Evaluation of collectives by name: a name of [`Collectives::named`], or `algorithm:FILE`.
///
/// # Errors
/// An unknown name; a file that cannot be read or is not a table of algorithms.
pub fn read_collectives(how: &str, reader: &mut dyn Reader) -> Result<Collectives> {
    match Collectives::named().into_iter().find(|way| way.name == how) {
        Some(way) => Ok(way.collectives),
        None => Ok(Collectives::Table(read_table(how, reader)?)),
    }
}

fn read_table(option: &str, reader: &mut dyn Reader) -> Result<AlgorithmTable> {
    let file = option.strip_prefix("algorithm:").with_context(|| {
        let names = Collectives::named().map(|way| way.name).join(", ");
        format!("--collectives: found `{option}`, expected {names} or algorithm:FILE")
    })?;
    AlgorithmTable::from_toml(&read_named_text(Path::new(file), reader)?)
        .with_context(|| file.to_owned())
}

/// Text of a file that is given by name.
///
/// # Errors
/// The file cannot be read, or is not text.
pub fn read_named_text(path: &Path, reader: &mut dyn Reader) -> Result<String> {
    let bytes = reader.bytes(path).with_context(cannot_read(path))?;
    file_text(path, (*bytes).as_ref().to_vec())
}
