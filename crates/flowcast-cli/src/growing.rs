//! Files to which a long run appends each result, so that a killed run loses at most the result that it was
//! computing: `append` hands the text to the kernel before it returns, and a later run truncates what is incomplete and
//! continues.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::files::{read_text, write_whole};

/// A file that a run appends to.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    file: File,
}

impl GrowingFile {
    /// Starts one. A file of an earlier run is in the way; `content` says what it holds, as in `the samples of an
    /// interrupted run`.
    pub fn start(path: &Path, content: &str, head: &str) -> Result<GrowingFile> {
        if path.exists() {
            bail!("{} holds {content}: --resume goes on with them, or remove it", path.display());
        }
        let file = File::create_new(path).with_context(|| cannot_write(path))?;
        let mut growing = GrowingFile { path: path.to_owned(), file };
        growing.append(head)?;
        Ok(growing)
    }

    /// Goes on behind the first `whole` bytes of one that is there; with none of them it starts over, at `head`.
    pub fn go_on(path: &Path, whole: usize, head: &str) -> Result<GrowingFile> {
        let file = OpenOptions::new().append(true).open(path).with_context(|| cannot_write(path))?;
        file.set_len(whole as u64).with_context(|| cannot_write(path))?;
        let mut growing = GrowingFile { path: path.to_owned(), file };
        if whole == 0 {
            growing.append(head)?;
        }
        Ok(growing)
    }

    /// Adds text.
    pub fn append(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes()).with_context(|| cannot_write(&self.path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the whole result to its place and removes this file.
    pub fn finish(&self, target: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> Result<()>) -> Result<()> {
        write_whole(target, write)?;
        fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// Removes it, for a run that failed before it had anything to keep.
    pub fn abandon(self) {
        // The error that ends the run is the one to report.
        let _ = fs::remove_file(&self.path);
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// What an earlier run left, if it left a file.
pub fn left(path: &Path) -> Result<Option<String>> {
    path.exists().then(|| read_text(path)).transpose()
}

/// `NAME.partial`, where the parts of a file grow until it can be written whole.
pub fn partial(target: &Path) -> PathBuf {
    beside(target, ".partial")
}

/// The path with a longer name.
pub fn beside(target: &Path, ending: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_is_cut_starts_over_and_gives_way_to_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.csv");
        let path = partial(&target);
        let read = || left(&path).unwrap();
        assert_eq!(read(), None);
        GrowingFile::start(&path, "the rows of an interrupted run", "head\n").unwrap().append("1\n2").unwrap();
        let message = GrowingFile::start(&path, "the rows of an interrupted run", "").unwrap_err().to_string();
        assert!(message.ends_with("holds the rows of an interrupted run: --resume goes on with them, or remove it"));
        GrowingFile::go_on(&path, "head\n1\n".len(), "head\n").unwrap().append("3\n").unwrap();
        assert_eq!(read().unwrap(), "head\n1\n3\n");
        let growing = GrowingFile::go_on(&path, 0, "other\n").unwrap();
        assert_eq!(read().unwrap(), "other\n");
        growing.finish(&target, |out| Ok(out.write_all(b"whole\n")?)).unwrap();
        assert_eq!((read(), read_text(&target).unwrap().as_str()), (None, "whole\n"));
    }
}
