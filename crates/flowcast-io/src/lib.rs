//! Files of traces, networks and mappings: finds files that belong together, and reads them.
//!
//! The library takes bytes, whereas the command and the Python package take names. Both find files by this crate, so that a
//! name means the same in both. Nothing is printed. The only files written are networks that a user stores by name
//! ([`Store`]).

mod errors;
mod mappings;
pub mod memory;
mod near;
mod networks;
pub mod otf2;
mod placement_request;
mod rank_files;
mod request;
mod scenarios;
mod store;
mod traces;

use std::{borrow::Cow, fs, io, os::unix::fs::FileTypeExt, path::Path};

use anyhow::{Context, Result};

use flowcast::{trace::SharedBytes, units::plain_text};

pub use errors::{EnvironmentLacks, text_of};
pub use mappings::{read_collectives, read_mapping, read_named_text};
pub use near::beginning;
pub use networks::{LoadedNetwork, load_network, load_networks, parse_overrides};
pub use placement_request::{PlacementRequest, probability};
pub use rank_files::first_of_folder;
pub use request::{
    IntervalRequest, PredictRequest, RankNodes, ReplayRequest, Request, ScenariosRequest,
    SensitivityRequest, collectives_help, loggops_parameters,
};
pub use scenarios::{ScenarioDefaults, parse_scenarios};
pub use store::{KeptNetwork, Store};
pub use traces::{
    InputKind, is_matrix, is_pattern, open_trace, open_trace_by, threads, whole_recording,
};

/// Method that loads the bytes of an input file.
pub trait Reader {
    /// Bytes of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn bytes(&mut self, path: &Path) -> io::Result<SharedBytes>;
}

/// Reader that loads whole files into memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct WholeFileReader;

impl Reader for WholeFileReader {
    fn bytes(&mut self, path: &Path) -> io::Result<SharedBytes> {
        Ok(std::sync::Arc::new(read_file(path)?))
    }
}

/// Bytes of a file. Devices are refused because they may have no end.
///
/// # Errors
/// The file cannot be read, or is a device.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "found a device, expected a file",
        ));
    }
    fs::read(path)
}

/// Folder of a file; `.` for a name without a folder.
pub fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Text of the error of a file that cannot be read.
pub fn cannot_read(path: &Path) -> impl Fn() -> String {
    move || format!("cannot read {}", path.display())
}

/// Text of the error of a file that cannot be written.
pub fn cannot_write(path: &Path) -> impl Fn() -> String {
    move || format!("cannot write {}", path.display())
}

/// Text of a file in any supported encoding and with any line ends.
///
/// # Errors
/// The bytes are not text.
pub fn file_text(path: &Path, bytes: Vec<u8>) -> Result<String> {
    let plain = match plain_text(&bytes) {
        Cow::Owned(text) => text,
        Cow::Borrowed(_) => bytes,
    };
    String::from_utf8(plain).ok().with_context(|| {
        format!(
            "{}: found bytes that are neither UTF-8 nor UTF-16 with a byte order mark, expected text",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_no_file() {
        for device in ["/dev/zero", "/dev/null"] {
            let refused = WholeFileReader.bytes(Path::new(device)).err().unwrap();
            assert_eq!(
                refused.to_string(),
                "found a device, expected a file",
                "{device}"
            );
        }
    }
}
