//! Reads text files, and writes result files atomically: a reader sees the whole file or none.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::NamedTempFile;

/// Reads a file.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a text file.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_bytes(path)?)
        .ok()
        .with_context(|| format!("{}: found bytes that are not UTF-8, expected text", path.display()))
}

/// Writes a file under a temporary name beside its place and renames it there when it is whole.
pub(crate) fn write_whole(path: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> Result<()>) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let cannot = || format!("cannot write {}", path.display());
    let file = NamedTempFile::new_in(folder).with_context(cannot)?;
    let mut out = BufWriter::with_capacity(1 << 18, file.as_file());
    write(&mut out)?;
    out.flush().with_context(cannot)?;
    drop(out);
    let temporary = file.into_temp_path();
    set_usual_mode(&temporary)?;
    temporary.persist(path).with_context(cannot)
}

/// Writes a text file in the same way.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    write_whole(path, |out| Ok(out.write_all(text.as_bytes())?))
}

/// Temporary files are private; results are not.
fn set_usual_mode(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}
