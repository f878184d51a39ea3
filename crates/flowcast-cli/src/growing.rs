//! Files to which a long run appends each result, so that a killed run loses at most the result that it was
//! computing: `append` hands the text to the kernel before it returns, and a later run truncates what is incomplete and
//! continues. Until the first result there is no file, so that a run that fails or is ended before it leaves none.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::files::{Writer, read_own_text, write_whole};
use crate::interrupt;

/// A file that a run appends to.
#[derive(Debug)]
pub(crate) struct GrowingFile {
    path: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing is appended yet: the file will begin with this.
    Head(String),
    /// The file exists.
    Open(File),
}

impl GrowingFile {
    /// Starts one. A file of an earlier run is in the way; `content` says what it holds, as in `the samples of an
    /// interrupted run`.
    pub(crate) fn start(path: &Path, content: &str, head: &str) -> Result<GrowingFile> {
        if path.exists() {
            bail!("{} holds {content}: --resume goes on with them, or remove it", path.display());
        }
        // A place that cannot be written to is told before the work begins.
        File::create_new(path).and_then(|_| fs::remove_file(path)).with_context(|| cannot_write(path))?;
        Ok(GrowingFile { path: path.to_owned(), state: State::Head(head.to_owned()) })
    }

    /// Goes on with the file of an interrupted run, or starts one if there is none. `read` gives what the text holds and
    /// how many of its bytes are whole: the rest is cut off, and with none of them the file starts over, at `head`.
    pub(crate) fn resume<T: Default>(
        path: &Path,
        content: &str,
        head: &str,
        read: impl FnOnce(&str) -> Result<(T, usize)>,
    ) -> Result<(GrowingFile, T)> {
        if !path.exists() {
            return Ok((GrowingFile::start(path, content, head)?, T::default()));
        }
        let file = locked(path, OpenOptions::new().append(true).open(path))?;
        let (held, whole) = read(&read_own_text(path)?)?;
        if whole == 0 {
            drop(file);
            fs::remove_file(path).with_context(|| cannot_write(path))?;
            return Ok((GrowingFile::start(path, content, head)?, held));
        }
        file.set_len(whole as u64).with_context(|| cannot_write(path))?;
        interrupt::keeps(path);
        Ok((GrowingFile { path: path.to_owned(), state: State::Open(file) }, held))
    }

    /// Adds text; before the first, the head.
    pub(crate) fn append(&mut self, text: &str) -> Result<()> {
        let file = match &mut self.state {
            State::Open(file) => file,
            State::Head(head) => {
                let mut file = locked(&self.path, File::create_new(&self.path))?;
                file.write_all(head.as_bytes()).with_context(|| cannot_write(&self.path))?;
                interrupt::keeps(&self.path);
                self.state = State::Open(file);
                return self.append(text);
            }
        };
        file.write_all(text.as_bytes()).with_context(|| cannot_write(&self.path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name without `.partial`.
    pub(crate) fn target(&self) -> PathBuf {
        self.path.with_extension("")
    }

    /// Writes the whole result to its place, the name without `.partial`, and removes this file.
    pub(crate) fn finish(&self, write: impl FnOnce(&mut Writer<'_>) -> Result<()>) -> Result<()> {
        write_whole(&self.target(), write)?;
        match self.state {
            State::Head(_) => Ok(()),
            State::Open(_) => {
                fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
            }
        }
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        interrupt::keeps_no_more(&self.path);
    }
}

/// The file for this run alone, until it ends in whatever way.
fn locked(path: &Path, file: io::Result<File>) -> Result<File> {
    let file = file.with_context(|| cannot_write(path))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => bail!("{}: found another run that writes it, expected none", path.display()),
        // Not every file system knows locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// `NAME.partial`, where the parts of a file grow until it can be written whole.
pub(crate) fn partial(target: &Path) -> PathBuf {
    beside(target, ".partial")
}

/// The path with a longer name.
pub(crate) fn beside(target: &Path, ending: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::read_text;

    #[test]
    fn only_one_run_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = partial(&folder.path().join("x.csv"));
        let resume = || GrowingFile::resume(&path, "rows", "head\n", |text| Ok(((), text.len())));
        let mut first = GrowingFile::start(&path, "rows", "head\n").unwrap();
        first.append("1\n").unwrap();
        assert!(resume().unwrap_err().to_string().contains("found another run that writes it"));
        drop(first);
        assert!(resume().is_ok());
    }

    #[test]
    fn it_grows_is_cut_starts_over_and_gives_way_to_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.csv");
        let path = partial(&target);
        let read = || read_text(&path).unwrap();
        GrowingFile::start(&path, "the rows of an interrupted run", "head\n").unwrap().append("1\n2").unwrap();
        let message = GrowingFile::start(&path, "the rows of an interrupted run", "").unwrap_err().to_string();
        assert!(message.ends_with("holds the rows of an interrupted run: --resume goes on with them, or remove it"));
        let resume = |head: &str, whole: usize| {
            GrowingFile::resume(&path, "rows", head, |text| Ok((text.to_owned(), whole))).unwrap()
        };
        let (mut growing, found) = resume("head\n", "head\n1\n".len());
        assert_eq!(found, "head\n1\n2");
        growing.append("3\n").unwrap();
        assert_eq!(read(), "head\n1\n3\n");
        drop(growing);
        let (mut growing, _) = resume("other\n", 0);
        assert!(!path.exists());
        growing.append("1\n").unwrap();
        assert_eq!(read(), "other\n1\n");
        growing.finish(|out| Ok(out.write_all(b"whole\n")?)).unwrap();
        drop(growing);
        assert_eq!((path.exists(), read_text(&target).unwrap().as_str()), (false, "whole\n"));
        assert_eq!(resume("head\n", 0).1, "");
    }

    #[test]
    fn a_run_without_a_result_leaves_no_file_and_may_end_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.csv");
        let start = || GrowingFile::start(&partial(&target), "rows", "head\n");
        drop(start().unwrap());
        assert!(!partial(&target).exists());
        start().unwrap().finish(|out| Ok(out.write_all(b"head\n")?)).unwrap();
        assert_eq!((partial(&target).exists(), read_text(&target).unwrap().as_str()), (false, "head\n"));
        let nowhere = GrowingFile::start(&folder.path().join("none/x"), "rows", "").unwrap_err().to_string();
        assert!(nowhere.starts_with("cannot write"), "{nowhere}");
    }
}
