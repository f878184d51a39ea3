//! Files that were read, so that no output overwrites an input.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};

use super::place::Identity;

/// Files that this run has read, those named by other files included. None of them is overwritten.
static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Name that leads to the file behind the standard input, if it is a file.
pub(super) const STANDARD_INPUT: &str = "/dev/stdin";

/// Registers a file as an input of this run.
pub fn note_read(path: &Path) {
    if let Ok(path) = fs::canonicalize(path) {
        READ.lock()
            .expect("no holder of the lock panics")
            .insert(path);
    }
}

pub(super) fn was_read(path: &Path) -> bool {
    let read = READ.lock().expect("no holder of the lock panics");
    let is_standard_input =
        || Identity::at(path).is_some_and(|own| Identity::at(STANDARD_INPUT.as_ref()) == Some(own));
    fs::canonicalize(path).is_ok_and(|path| read.contains(&path)) || is_standard_input()
}

/// Removes a file from the inputs, by its canonical path.
pub(super) fn forget(path: &Path) {
    READ.lock()
        .expect("no holder of the lock panics")
        .remove(path);
}
