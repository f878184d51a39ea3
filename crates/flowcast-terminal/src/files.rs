//! Reads text files. All result files are written by this module.
//!
//! A command declares its outputs before it starts ([`declare`]): an output must not be an input or another output, and
//! outputs that cannot be written are refused early. It then writes them ([`Batch`], [`write_whole`]): a reader sees all
//! files of a batch complete, or none of them. Files are written under temporary names beside their places, synchronised and
//! renamed. A symbolic link remains and its target is replaced. A replaced file keeps its mode. Anything but a regular file
//! (a pipe, a device, /dev/stdout) is written to directly.

mod declare;
pub mod inputs;
mod place;

use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use flowcast_io::{cannot_read, cannot_write, file_text, folder_of, read_file};
use tempfile::{NamedTempFile, TempPath};

pub use self::{
    declare::{Output, declare},
    inputs::note_read,
};
use self::{inputs::was_read, place::Place};
use crate::{input_maps, interrupt};

/// Parses the value of `--write KIND=FILE`. `kinds` lists the kinds with their names.
pub fn kind_and_file<K: Copy>(text: &str, kinds: &[(&str, K)]) -> Result<(K, PathBuf), String> {
    let (name, path) = text.split_once('=').unwrap_or_default();
    match kinds.iter().find(|(kind, _)| *kind == name) {
        Some((_, kind)) if !path.is_empty() => Ok((*kind, path.into())),
        _ => {
            let forms: Vec<String> = kinds
                .iter()
                .map(|(kind, _)| format!("{kind}=FILE"))
                .collect();
            Err(format!("expected {}", forms.join(", ")))
        }
    }
}

/// Reads a whole file and registers it as an input.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    note_read(path);
    read_file(path).with_context(cannot_read(path))
}

/// Reads a text file and registers it as an input.
pub fn read_text(path: &Path) -> Result<String> {
    file_text(path, read_bytes(path)?)
}

/// Reads a text file and parses it. Errors of the content name the file.
pub fn read_parsed<T, E>(path: &Path, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T>
where
    Result<T, E>: Context<T, E>,
{
    parse(&read_text(path)?).with_context(|| path.display().to_string())
}

/// Reads a text file that this run may overwrite: a result of an earlier run, or a file that is rewritten in place.
pub fn read_own_text(path: &Path) -> Result<String> {
    file_text(path, fs::read(path).with_context(cannot_read(path))?)
}

/// Writes a file under a temporary name and renames it when it is complete and synced.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut Writer<'_>) -> Result<()>) -> Result<()> {
    let mut batch = Batch::new();
    batch.write(path, write)?;
    batch.commit()
}

/// Writes one text file.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let mut batch = Batch::new();
    batch.write_text(path, text)?;
    batch.commit()
}

/// Overwrites a text file that this run may have read, because the user requested it.
pub fn rewrite_text(path: &Path, text: &str) -> Result<()> {
    if let Ok(own) = fs::canonicalize(path) {
        inputs::forget(&own);
    }
    write_text(path, text)
}

/// Writes a text file that only this user may read.
pub(crate) fn write_private_text(path: &Path, text: &str) -> Result<()> {
    let mut batch = Batch::new();
    batch.mode = Some(0o600);
    batch.write_text(path, text)?;
    batch.commit()
}

/// Destination of a file's content.
pub(crate) type Writer<'a> = BufWriter<Content<'a>>;

/// Content of a file that is being written. It keeps the system's reason for a refused write, because the code that writes
/// the content may report another error.
#[derive(Debug)]
pub struct Content<'a> {
    file: &'a File,
    refused: Option<io::Error>,
}

impl Write for Content<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        if let Some(code) = written.as_ref().err().and_then(io::Error::raw_os_error) {
            self.refused = Some(io::Error::from_raw_os_error(code));
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Files that appear at the same time. Without [`Batch::commit`], none of them remains, not even after a signal.
#[derive(Debug, Default)]
pub struct Batch {
    files: Vec<(TempPath, PathBuf)>,
    /// New folders. They are removed again if the batch is not committed.
    folders: Vec<PathBuf>,
    /// Mode of all files, if it differs from the default.
    mode: Option<u32>,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Creates a folder unless it exists.
    pub fn folder(&mut self, path: &Path) -> Result<()> {
        let mut temporary = interrupt::temporary();
        match fs::create_dir(path) {
            Ok(()) => {
                temporary.push(path.to_owned());
                self.folders.push(path.to_owned());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot create {}", path.display()));
            }
        }
        Ok(())
    }

    /// Writes a file under a temporary name. `Batch::commit` gives it its name.
    pub fn write(
        &mut self,
        path: &Path,
        write: impl FnOnce(&mut Writer<'_>) -> Result<()>,
    ) -> Result<()> {
        let cannot = || format!("cannot write {}", path.display());
        let place = match Place::at(path)? {
            Place::Stream(stream) => return fill(&stream, write).with_context(cannot),
            Place::File(place) => place,
        };
        if was_read(&place) {
            bail!(
                "{}: found an input of this run, expected another output file",
                path.display()
            );
        }
        let mut temporary = interrupt::temporary();
        let (file, path) = temporary_for(&place, self.mode)
            .with_context(cannot)?
            .into_parts();
        temporary.push(path.to_path_buf());
        drop(temporary);
        self.files.push((path, place));
        fill(&file, write).with_context(cannot)?;
        file.sync_all().with_context(cannot)
    }

    /// Writes a text file under a temporary name. `Batch::commit` gives it its name.
    pub fn write_text(&mut self, path: &Path, text: &str) -> Result<()> {
        self.write(path, |out| Ok(out.write_all(text.as_bytes())?))
    }

    /// Gives all files their names.
    pub fn commit(mut self) -> Result<()> {
        input_maps::verify()?;
        let mut temporary = interrupt::temporary();
        self.forget(&mut temporary);
        let mut folders = BTreeSet::new();
        for (file, place) in self.files.drain(..) {
            folders.insert(folder_of(&place).to_owned());
            file.persist(&place).with_context(cannot_write(&place))?;
        }
        self.folders.clear();
        drop(temporary);
        for folder in folders {
            // The names are already in the folder. Some file systems cannot synchronise folders.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }

    /// Removes this batch from the list of files that a signal deletes.
    fn forget(&self, temporary: &mut Vec<PathBuf>) {
        let files = self.files.iter().map(|(file, _)| &**file);
        let own: BTreeSet<&Path> = files
            .chain(self.folders.iter().map(PathBuf::as_path))
            .collect();
        temporary.retain(|known| !own.contains(known.as_path()));
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.files.is_empty() && self.folders.is_empty() {
            return;
        }
        let mut temporary = interrupt::temporary();
        self.forget(&mut temporary);
        self.files.clear();
        for folder in self.folders.drain(..) {
            // The folder may contain files of another process.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn fill(file: &File, write: impl FnOnce(&mut Writer<'_>) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::with_capacity(
        1 << 18,
        Content {
            file,
            refused: None,
        },
    );
    let Err(error) = write(&mut out).and_then(|()| Ok(out.flush()?)) else {
        return Ok(());
    };
    // The content of the buffer is not written again.
    let (content, _) = out.into_parts();
    Err(content.refused.map_or(error, Into::into))
}

/// Creates a temporary file beside the place. Its mode is `mode`, or the mode of the existing file, or the default of new
/// files.
fn temporary_for(place: &Path, mode: Option<u32>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let file = builder
        .permissions(Permissions::from_mode(mode.unwrap_or(0o666)))
        .tempfile_in(folder_of(place))?;
    if let (None, Ok(metadata)) = (mode, fs::metadata(place)) {
        // Bits such as set-user-ID are not kept: they are not part of a file's content.
        file.as_file().set_permissions(Permissions::from_mode(
            metadata.permissions().mode() & 0o777,
        ))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn links_and_modes_stay_and_new_files_follow_the_umask() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, plain, new] =
            ["file", "link", "plain", "new"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_text(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            (fs::read_to_string(&file).unwrap().as_str(), mode(&file)),
            ("new", 0o640)
        );
        fs::write(&plain, "").unwrap();
        write_text(&new, "").unwrap();
        assert_eq!(mode(&new), mode(&plain));
    }

    #[test]
    fn descriptors_are_truncated_special_modes_dropped_and_loops_of_links_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [file, one, other] = ["file", "one", "other"].map(|name| folder.path().join(name));
        fs::write(&file, "longer than what comes").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
        let open = File::open(&file).unwrap();
        write_text(
            Path::new(&format!(
                "/proc/self/fd/{}",
                std::os::fd::AsRawFd::as_raw_fd(&open)
            )),
            "new",
        )
        .unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
        write_text(&file, "newer").unwrap();
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o7777,
            0o755
        );
        std::os::unix::fs::symlink("other", &one).unwrap();
        std::os::unix::fs::symlink("one", &other).unwrap();
        assert!(write_text(&one, "x").is_err());
        assert!(fs::symlink_metadata(&one).unwrap().is_symlink());
    }

    #[test]
    fn a_batch_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut batch = Batch::new();
        batch.folder(&folder.path().join("ranks")).unwrap();
        batch
            .write(&folder.path().join("ranks/0"), |out| {
                Ok(out.write_all(b"0")?)
            })
            .unwrap();
        let failed = batch
            .write(&folder.path().join("list"), |_| bail!("no more"))
            .unwrap_err();
        assert!(format!("{failed:#}").ends_with("list: no more"));
        drop(batch);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_refusal_by_the_system_is_reported_even_if_the_writer_returns_another_error() {
        for words in [
            io::Error::other("no more"),
            io::Error::new(io::ErrorKind::InvalidInput, "is not written"),
        ] {
            let refused = write_whole(Path::new("/dev/full"), |out| {
                out.write_all(b"x")?;
                out.flush().map_err(|_| words.into())
            });
            let refused = refused.unwrap_err();
            assert_eq!(
                refused.downcast_ref::<io::Error>().unwrap().kind(),
                io::ErrorKind::StorageFull,
                "{refused:#}"
            );
        }
    }

    #[test]
    fn an_input_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("x"), folder.path().join("soft"));
        fs::write(&file, "input").unwrap();
        std::os::unix::fs::symlink("x", &link).unwrap();
        assert_eq!(read_text(&file).unwrap(), "input");
        assert!(
            write_text(&link, "output")
                .unwrap_err()
                .to_string()
                .contains("found an input of this run")
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "input");
    }

    #[test]
    fn a_pipe_is_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        write_text(&pipe, "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
