//! Target of a path: a regular file, or something that is written to directly.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use flowcast_io::{cannot_write, folder_of};

/// Maximum number of links that are followed, as in the kernel.
const MOST_LINKS: usize = 40;

/// Destination of written content: a stream or a regular file.
#[derive(Debug)]
pub(super) enum Place {
    /// A pipe, a device, or an open descriptor under /proc or /dev.
    Stream(File),
    /// A regular file that exists or will be created. All links are resolved.
    File(PathBuf),
}

impl Place {
    /// Target of a path.
    pub(super) fn at(path: &Path) -> Result<Place> {
        let place = followed(path);
        if is_descriptor(&place) {
            let stream = descriptor(&place).with_context(cannot_write(path))?;
            return Ok(Place::Stream(stream));
        }
        match fs::metadata(&place) {
            Ok(metadata) if metadata.is_dir() => {
                bail!(
                    "cannot write {}: found a folder, expected the name of a file",
                    path.display()
                )
            }
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                Err(error).with_context(cannot_write(path))
            }
            Ok(metadata) if !metadata.is_file() => Ok(Place::Stream(
                OpenOptions::new()
                    .append(true)
                    .open(&place)
                    .with_context(cannot_write(path))?,
            )),
            _ => Ok(Place::File(place)),
        }
    }
}

/// Identity of a file, equal for all of its names: device and inode of a regular file, or the place of a file that does not
/// exist yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identity {
    Inode(u64, u64),
    Absent(PathBuf),
}

impl Identity {
    /// `None` for anything but a regular file, or if the folder does not exist.
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

/// Path after all symbolic links of its last part are followed, links to missing files included. The name of an open
/// descriptor is not followed.
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

/// `true` for `/proc/PROCESS/fd/N`, under any name.
pub(super) fn is_descriptor(path: &Path) -> bool {
    fs::canonicalize(folder_of(path))
        .is_ok_and(|folder| folder.starts_with("/proc") && folder.ends_with("fd"))
}

/// Opens a descriptor. Output to the standard streams continues at their positions. Others are opened again, and files are
/// truncated.
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
