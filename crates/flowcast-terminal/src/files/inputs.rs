//! Which files were read, so that no output destroys an input.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The files that this run has read, also those that another file names: none of them is written over.
static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Notes that a file is an input of this run.
pub fn note_read(path: &Path) {
    if let Ok(path) = fs::canonicalize(path) {
        READ.lock().expect("nobody panics while it is held").insert(path);
    }
}

pub(super) fn was_read(path: &Path) -> bool {
    let read = READ.lock().expect("nobody panics while it is held");
    fs::canonicalize(path).is_ok_and(|path| read.contains(&path))
}

/// Takes a file back, by its canonical path.
pub(super) fn forget(path: &Path) {
    READ.lock().expect("nobody panics while it is held").remove(path);
}
