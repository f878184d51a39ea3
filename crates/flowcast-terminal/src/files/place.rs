//! What a path leads to: a regular file, or something that is written to as it is.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// As many links are followed as the kernel follows.
const MOST_LINKS: usize = 40;

/// Where content goes.
#[derive(Debug)]
pub(super) enum Place {
    /// A pipe, a device, or an open descriptor under /proc or /dev.
    Stream(File),
    /// A regular file that is there or will be; all links are followed.
    File(PathBuf),
}

impl Place {
    /// Where a path leads.
    pub(super) fn at(path: &Path) -> Result<Place> {
        let cannot = || format!("cannot write {}", path.display());
        let place = followed(path);
        if is_descriptor(&place) {
            return Ok(Place::Stream(descriptor(&place).with_context(cannot)?));
        }
        match fs::metadata(&place) {
            Ok(metadata) if metadata.is_dir() => {
                bail!(
                    "cannot write {}: found a folder, expected the name of a file",
                    path.display()
                )
            }
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                Err(error).with_context(cannot)
            }
            Ok(metadata) if !metadata.is_file() => Ok(Place::Stream(
                OpenOptions::new()
                    .append(true)
                    .open(&place)
                    .with_context(cannot)?,
            )),
            _ => Ok(Place::File(place)),
        }
    }
}

/// What makes two names one file: device and inode of a regular file, or the place where none is yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identity {
    Inode(u64, u64),
    Absent(PathBuf),
}

impl Identity {
    /// `None` for what is no regular file, or in no folder.
    pub(super) fn at(path: &Path) -> Option<Identity> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {
                Some(Identity::Inode(metadata.dev(), metadata.ino()))
            }
            Ok(_) => None,
            Err(_) => {
                let place = followed(path);
                Some(Identity::Absent(
                    fs::canonicalize(folder_of(&place))
                        .ok()?
                        .join(place.file_name()?),
                ))
            }
        }
    }
}

/// The folder that a file is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// The path behind all symbolic links of its last part, also of links to nothing; the name of an open descriptor is no link
/// to follow.
pub(super) fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) if !is_descriptor(&path) => path = folder_of(&path).join(target),
            _ => break,
        }
    }
    path
}

/// Whether it is `/proc/PROCESS/fd/N`, by whatever name.
pub(super) fn is_descriptor(path: &Path) -> bool {
    fs::canonicalize(folder_of(path))
        .is_ok_and(|folder| folder.starts_with("/proc") && folder.ends_with("fd"))
}

/// The standard streams go on where they are; others are opened anew, files empty.
fn descriptor(path: &Path) -> io::Result<File> {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("1") => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
        Some("2") => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        _ if fs::metadata(path)?.is_file() => {
            OpenOptions::new().write(true).truncate(true).open(path)
        }
        _ => OpenOptions::new().append(true).open(path),
    }
}
