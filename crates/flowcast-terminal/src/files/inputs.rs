//! Which files were read, so that no output destroys an input.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};

use super::place::Identity;

/// The files that this run has read, also those that another file names: none of them is written over.
static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The standard input by a name that leads to the file which it is read from, if it is one.
pub(super) const STANDARD_INPUT: &str = "/dev/stdin";

/// Notes that a file is an input of this run.
pub fn note_read(path: &Path) {
    if let Ok(path) = fs::canonicalize(path) {
        READ.lock()
            .expect("nobody panics while it is held")
            .insert(path);
    }
}

pub(super) fn was_read(path: &Path) -> bool {
    let read = READ.lock().expect("nobody panics while it is held");
    let is_standard_input =
        || Identity::at(path).is_some_and(|own| Identity::at(STANDARD_INPUT.as_ref()) == Some(own));
    fs::canonicalize(path).is_ok_and(|path| read.contains(&path)) || is_standard_input()
}

/// Takes a file back, by its canonical path.
pub(super) fn forget(path: &Path) {
    READ.lock()
        .expect("nobody panics while it is held")
        .remove(path);
}
