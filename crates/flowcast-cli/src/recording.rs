//! Recordings as folders: finding the recorder, reading what it wrote.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flowcast::trace::ReadOptions;
use flowcast::trace::read::recorded_files;
use flowcast::trace::recorded::decode::RankFile;
use flowcast::trace::recorded::form;

use crate::trace_args::map;

/// The file name of the library that is loaded into programs.
pub const RECORDER: &str = "libflowcast_record.so";
/// Names another place of it.
pub const RECORDER_VARIABLE: &str = "FLOWCAST_RECORDER";

/// The recorder: where the user says, else beside this program, else where packages put it.
pub fn find_recorder(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = given.map(PathBuf::from).or_else(|| env::var_os(RECORDER_VARIABLE).map(PathBuf::from)) {
        return fs::canonicalize(path).ok();
    }
    let own = fs::canonicalize(env::current_exe().ok()?).ok()?;
    let folder = own.parent()?;
    let places = [folder.to_owned(), folder.join("deps"), folder.join("../lib/flowcast"), folder.join("../lib")];
    places.into_iter().find_map(|place| fs::canonicalize(place.join(RECORDER)).ok())
}

/// The ranks of a recording.
pub fn open_recording(folder: &Path) -> Result<Vec<RankFile>> {
    let path = folder.join(form::RECORDING);
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut open = |name: &str| map(&folder.join(name));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(recorded_files(&path.display().to_string(), &text, &mut open, ReadOptions { threads })?)
}
