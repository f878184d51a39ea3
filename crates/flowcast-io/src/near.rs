//! Start of a file, and places of the files that it names.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Start of a file, long enough to recognise its format.
///
/// # Errors
/// The file cannot be read.
pub fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    const ENOUGH: u64 = 1 << 16;
    let mut beginning = Vec::new();
    File::open(path)?.take(ENOUGH).read_to_end(&mut beginning)?;
    Ok(beginning)
}

/// Path of a file that another file names. The name is relative to the folder of that file, or to a folder above it, in
/// which the tool that wrote the name was started; otherwise to the current folder.
pub(crate) fn beside(path: &Path, name: &str) -> PathBuf {
    let above = path.ancestors().skip(1).map(|folder| folder.join(name));
    above
        .into_iter()
        .find(|near| near.exists())
        .unwrap_or_else(|| PathBuf::from(name))
}
