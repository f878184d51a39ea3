//! Recorder that is part of this program, for users who have only installed the command.
//!
//! It is unpacked into the user's cache, where the next run finds it. The folder must belong to the user, and no
//! other user may write to it, because its content is loaded into the user's programs. Otherwise the recorder is unpacked
//! into a temporary folder for this run.

use std::{
    env,
    fs::{self, DirBuilder, Permissions},
    io::Write,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use flowcast::study::fingerprint;
use tempfile::{NamedTempFile, TempDir};

/// Content of the library's file. Empty in builds without it (`build.rs`).
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libflowcast_record.so"));

/// `true` if this program contains a recorder.
pub(crate) fn is_here() -> bool {
    !LIBRARY.is_empty()
}

/// Unpacks the recorder. If a folder is returned, it must live as long as the recorder is used.
pub(crate) fn unpack() -> Result<(PathBuf, Option<TempDir>)> {
    let cached = cache_folder().map(|folder| unpack_into(&folder, LIBRARY));
    if let Some(Ok(path)) = cached {
        return Ok((path, None));
    }
    let cannot =
        "cannot unpack the recorder: expected a writable temporary folder, or --recorder FILE.so";
    let folder = tempfile::Builder::new()
        .prefix("flowcast-")
        .tempdir()
        .context(cannot)?;
    Ok((
        unpack_into(folder.path(), LIBRARY).context(cannot)?,
        Some(folder),
    ))
}

/// Folder according to the XDG base directory specification, which ignores paths that are not absolute. A path with blanks
/// or colons is not used, because the dynamic linker sees them as the end of a path.
fn cache_folder() -> Option<PathBuf> {
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let is_one_word = !caches.to_str()?.contains([' ', ':']);
    is_one_word.then(|| caches.join("flowcast"))
}

fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Writes the library into a private folder, unless it is already there and undamaged. Its name contains a fingerprint of
/// its content.
fn unpack_into(folder: &Path, library: &[u8]) -> Result<PathBuf> {
    make_private(folder).with_context(|| format!("cannot use {}", folder.display()))?;
    let path = folder.join(format!("libflowcast_record-{}.so", fingerprint(library)));
    if !is_whole(&path, library) {
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(library)?;
        file.as_file()
            .set_permissions(Permissions::from_mode(0o755))?;
        file.persist(&path)?;
        ensure!(
            is_whole(&path, library),
            "{}: the content differs from what was written",
            path.display()
        );
    }
    Ok(path)
}

fn is_whole(path: &Path, library: &[u8]) -> bool {
    fs::read(path).is_ok_and(|found| found == library)
}

fn make_private(folder: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    ensure!(found.is_dir(), "found something other than a folder");
    ensure!(
        found.uid() == rustix::process::geteuid().as_raw(),
        "found a folder of another user, expected a folder of this user"
    );
    ensure!(
        found.mode() & 0o022 == 0,
        "found a folder that other users may write to, expected a private one"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_unpacked_once_and_again_if_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("a/flowcast");
        let path = unpack_into(&cache, b"library").unwrap();
        let first = fs::metadata(&path).unwrap();
        assert_eq!(first.mode() & 0o777, 0o755);
        assert_eq!(
            fs::metadata(unpack_into(&cache, b"library").unwrap())
                .unwrap()
                .ino(),
            first.ino()
        );
        fs::write(&path, b"changed").unwrap();
        assert_eq!(unpack_into(&cache, b"library").unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"library");
        assert_ne!(unpack_into(&cache, b"another").unwrap(), path);
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_that_others_may_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        assert!(
            format!("{:#}", unpack_into(&open, b"library").unwrap_err())
                .contains("other users may write")
        );
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(
            format!("{:#}", unpack_into(&link, b"library").unwrap_err()).contains("other than a")
        );
    }
}
