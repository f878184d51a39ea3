//! What a file begins with, and where the files are that it names.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// What a file begins with, as much as shows its format.
///
/// # Errors
/// The file cannot be read.
pub fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    const ENOUGH: u64 = 1 << 16;
    let mut beginning = Vec::new();
    File::open(path)?.take(ENOUGH).read_to_end(&mut beginning)?;
    Ok(beginning)
}

/// A file that another names: relative to that one's folder, or to one above it, where the tool was started that wrote
/// the name; else to the current folder.
pub(crate) fn beside(path: &Path, name: &str) -> PathBuf {
    let above = path.ancestors().skip(1).map(|folder| folder.join(name));
    above
        .into_iter()
        .find(|near| near.exists())
        .unwrap_or_else(|| PathBuf::from(name))
}
