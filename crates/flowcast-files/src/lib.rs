//! The files of traces, networks and mappings: which belong together, and how they are read.
//!
//! The library takes bytes; the command and the Python package are given names. Both find files here, so that a name means
//! the same to both. Nothing is printed, and nothing is written but networks that a user keeps by name ([`Store`]).

mod errors;
mod mappings;
mod near;
mod networks;
mod rank_files;
mod scenarios;
mod store;
mod traces;

use std::path::Path;
use std::{fs, io};

use flowcast::trace::SharedBytes;

pub use errors::{EnvironmentLacks, text_of};
pub use mappings::{read_collectives, read_mapping};
pub use near::beginning;
pub use networks::{LoadedNetwork, load_network, load_networks, parse_overrides};
pub use rank_files::first_of_folder;
pub use scenarios::{ScenarioDefaults, parse_scenarios, read_scenarios};
pub use store::{Kept, Store};
pub use traces::{Holding, is_pattern, open_trace, threads, whole_recording};

/// How the bytes of an input file come into memory.
pub trait Reader {
    /// A file's bytes.
    ///
    /// # Errors
    /// The file cannot be read.
    fn bytes(&mut self, path: &Path) -> io::Result<SharedBytes>;
}

/// A reader that reads files whole into memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Whole;

impl Reader for Whole {
    fn bytes(&mut self, path: &Path) -> io::Result<SharedBytes> {
        Ok(std::sync::Arc::new(fs::read(path)?))
    }
}
