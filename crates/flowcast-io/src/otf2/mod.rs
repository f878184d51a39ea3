//! OTF2 archives, read by the OTF2 library (Debian: `libopen-trace-format2-10`), which is loaded when an archive is read.
//!
//! The encoding of archives is not documented, so only the library can read them. Because it is loaded at run time, one
//! program works with and without the library, and nothing of it is needed for building. The content of an archive is passed
//! to [`flowcast::formats::otf2`], which interprets it. The unsafe code is in this module.

#![expect(unsafe_code, reason = "calls the C functions of the OTF2 library")]

mod anchor;
mod archive;
mod callbacks;
mod library;

use std::path::{Path, PathBuf};

use flowcast::{
    formats::otf2::Events,
    trace::{Program, ReadOptions, TraceError},
};
use thiserror::Error;

use archive::Archive;

/// First bytes of an anchor file (`.otf2`).
pub const MAGIC: &[u8] = b"\x03BOTF2";

/// Reasons why an archive could not be read.
#[derive(Debug, Error)]
pub enum Otf2Error {
    /// The library is not installed.
    #[error(
        "found no OTF2 library, expected libopen-trace-format2.so.10 (Debian: apt-get install libopen-trace-format2-10)"
    )]
    NoLibrary,
    /// The library is installed and lacks a function.
    #[error("found an OTF2 library without {0}, expected version 2.0 or later")]
    OldLibrary(&'static str),
    /// The library rejects the archive.
    #[error(
        "{path}: found an archive that cannot be read ({step}: {problem}), expected an OTF2 archive with its .def and .evt files beside it"
    )]
    Archive {
        /// The anchor file.
        path: PathBuf,
        /// Description of the failed step, such as `reading the definitions`.
        step: &'static str,
        /// Message of the library.
        problem: String,
    },
    /// The content of the archive is not a valid program.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Reads the archive of an anchor file.
///
/// # Errors
/// [`Otf2Error`].
pub fn read(anchor: &Path, options: ReadOptions) -> Result<Program, Otf2Error> {
    let library = library::library()?;
    let archive = Archive::open(library, anchor)?;
    let definitions = archive.definitions()?;
    let mut events = Events::new(&definitions);
    archive.events(&definitions, &mut events)?;
    Ok(events.program(&anchor.display().to_string(), options)?)
}

/// Checks that the library is installed.
///
/// # Errors
/// [`Otf2Error::NoLibrary`] or [`Otf2Error::OldLibrary`].
pub fn available() -> Result<(), Otf2Error> {
    library::library().map(|_| ())
}
