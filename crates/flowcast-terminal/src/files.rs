//! Reads text files, and is the one place that writes result files.
//!
//! A command says before it begins what it is going to write ([`declare`]): no output is an input or another output, and
//! what cannot be written is refused at once. Then it writes ([`Batch`], [`write_whole`]): a reader sees all files of a
//! batch whole, or none of them. Files are written under temporary names beside their places, synchronised and renamed. A
//! symbolic link stays and its target is replaced; the mode of a file that is replaced is kept. What is no regular file (a
//! pipe, a device, /dev/stdout) is written to as it is.

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
use flowcast_io::{file_text, read_file};
use tempfile::{NamedTempFile, TempPath};

pub use self::{
    declare::{Output, declare},
    inputs::note_read,
};
use self::{
    inputs::was_read,
    place::{Place, folder_of},
};
use crate::{input_maps, interrupt};

/// Reads the value of `--write KIND=FILE`, whose kinds have names.
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

/// Reads a whole file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    note_read(path);
    read_file(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a text file.
pub fn read_text(path: &Path) -> Result<String> {
    file_text(path, read_bytes(path)?)
}

/// Reads a text file and takes it apart; an error of its content names the file.
pub fn read_parsed<T, E>(path: &Path, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T>
where
    Result<T, E>: Context<T, E>,
{
    parse(&read_text(path)?).with_context(|| path.display().to_string())
}

/// Reads a text file that this run may write over: a result of an earlier run, or a file that is rewritten in its place.
pub fn read_own_text(path: &Path) -> Result<String> {
    file_text(
        path,
        fs::read(path).with_context(|| format!("cannot read {}", path.display()))?,
    )
}

/// Writes a file under a temporary name and renames it when it is whole and synced.
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

/// Writes a text file over what this run has read of it: a file that the user wants rewritten.
pub fn rewrite_text(path: &Path, text: &str) -> Result<()> {
    if let Ok(own) = fs::canonicalize(path) {
        inputs::forget(&own);
    }
    write_text(path, text)
}

/// Writes a text file that nobody but this user may read.
pub(crate) fn write_private_text(path: &Path, text: &str) -> Result<()> {
    let mut batch = Batch::new();
    batch.mode = Some(0o600);
    batch.write_text(path, text)?;
    batch.commit()
}

/// Where a file's content goes.
pub(crate) type Writer<'a> = BufWriter<Content<'a>>;

/// The content of a file on its way to the system, and why that did not take it: what writes the content may say so in
/// other words.
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

/// Files that appear together. Without [`Batch::commit`] nothing stays of them, nor after a signal.
#[derive(Debug, Default)]
pub struct Batch {
    files: Vec<(TempPath, PathBuf)>,
    /// New folders, removed again unless they are filled.
    folders: Vec<PathBuf>,
    /// The mode of all files, if it is not the usual one.
    mode: Option<u32>,
}

impl Batch {
    /// A batch that would write nothing yet.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Makes a folder, unless it is there.
    pub fn folder(&mut self, path: &Path) -> Result<()> {
        let mut temporary = interrupt::temporary();
        match fs::create_dir(path) {
            Ok(()) => {
                temporary.push(path.to_owned());
                self.folders.push(path.to_owned());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot make {}", path.display()));
            }
        }
        Ok(())
    }

    /// Writes a file, which gets its name with the others.
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
                "{}: found an input of this run, expected another file to write",
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

    /// Writes a text file, which gets its name with the others.
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
            file.persist(&place)
                .with_context(|| format!("cannot write {}", place.display()))?;
        }
        self.folders.clear();
        drop(temporary);
        for folder in folders {
            // The names are in the folder already; not every file system can synchronise one.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }

    /// A signal finds nothing of this batch any more.
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
            // It may hold what somebody else has put there.
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
    // What is left in the buffer is not tried once more.
    let (content, _) = out.into_parts();
    Err(content.refused.map_or(error, Into::into))
}

/// A file beside the place, with this mode, or else that of what is there, or that of any new file.
fn temporary_for(place: &Path, mode: Option<u32>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let file = builder
        .permissions(Permissions::from_mode(mode.unwrap_or(0o666)))
        .tempfile_in(folder_of(place))?;
    if let (None, Ok(metadata)) = (mode, fs::metadata(place)) {
        // Whose rights a program takes on is not a file's content to keep.
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
    fn descriptors_special_modes_and_loops_of_links_are_not_kept_as_they_were() {
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
    fn that_the_system_refused_is_told_whatever_words_a_writer_has_for_it() {
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
    fn what_was_read_is_not_written_over() {
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
