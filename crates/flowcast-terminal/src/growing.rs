//! Files to which a long run appends each result. A killed run loses at most the result that it was computing, because
//! `append` passes the text to the kernel before it returns. A later run trusts the texts up to the first that is
//! incomplete, changed, missing or repeated, and reports the number of bytes that it leaves out. The file is created with
//! the first result, so that a run that fails earlier leaves no file.

mod blocks;

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use flowcast_io::{cannot_read, cannot_write, read_file};

use self::blocks::{Blocks, Chain};
use crate::{
    files::{Writer, write_text, write_whole},
    interrupt, say,
};

/// File to which a run appends.
#[derive(Debug)]
pub struct GrowingFile {
    path: PathBuf,
    state: GrowingState,
}

#[derive(Debug)]
enum GrowingState {
    /// Nothing has been appended yet. The file will start with this text.
    Head(String),
    /// The file exists. The checksum covers its content.
    Open(File, Chain),
}

impl GrowingFile {
    /// Starts a new file. Fails if a file of an earlier run exists; `content` describes it, as in
    /// `the samples of an interrupted run`.
    pub fn start(path: &Path, content: &str, head: &str) -> Result<GrowingFile> {
        if path.exists() {
            bail!(
                "{} contains {content}: continue with --resume, or remove the file",
                path.display()
            );
        }
        // Reports a place that cannot be written before the work starts.
        File::create_new(path)
            .and_then(|_| fs::remove_file(path))
            .with_context(cannot_write(path))?;
        Ok(GrowingFile {
            path: path.to_owned(),
            state: GrowingState::Head(head.to_owned()),
        })
    }

    /// Resumes the file of an interrupted run, or starts a new one if there is none. `read` gets the head and the intact
    /// texts.
    pub fn resume<T: Default>(
        path: &Path,
        content: &str,
        head: &str,
        read: impl FnOnce(&str) -> Result<T>,
    ) -> Result<(GrowingFile, T)> {
        if !path.exists() {
            return Ok((GrowingFile::start(path, content, head)?, T::default()));
        }
        let file = locked(path, open(path))?;
        let bytes = fs::read(path).with_context(cannot_read(path))?;
        let blocks = blocks_of(path, &bytes)?;
        if blocks.texts.len() < 2 {
            drop(file);
            fs::remove_file(path).with_context(cannot_write(path))?;
            return Ok((GrowingFile::start(path, content, head)?, T::default()));
        }
        let held = read(&blocks.texts.concat())?;
        file.set_len(blocks.bytes as u64)
            .with_context(cannot_write(path))?;
        interrupt::keeps(path);
        Ok((
            GrowingFile {
                path: path.to_owned(),
                state: GrowingState::Open(file, blocks.chain),
            },
            held,
        ))
    }

    /// Appends text. Writes the head before the first text.
    pub fn append(&mut self, text: &str) -> Result<()> {
        if let GrowingState::Head(head) = &self.state {
            let (mut file, mut chain) = (
                locked(&self.path, File::create_new(&self.path))?,
                Chain::default(),
            );
            file.write_all(chain.seal(head).as_bytes())
                .with_context(cannot_write(&self.path))?;
            interrupt::keeps(&self.path);
            self.state = GrowingState::Open(file, chain);
        }
        if let GrowingState::Open(file, chain) = &mut self.state {
            file.write_all(chain.seal(text).as_bytes())
                .with_context(cannot_write(&self.path))?;
        }
        Ok(())
    }

    /// Name of the file, which may not exist yet.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the complete result: the path of this file without `.partial`.
    pub fn target(&self) -> PathBuf {
        self.path.with_extension("")
    }

    /// Writes the complete result to its place, the name without `.partial`, and removes this file.
    pub fn finish(&self, write: impl FnOnce(&mut Writer<'_>) -> Result<()>) -> Result<()> {
        write_whole(&self.target(), write)?;
        match self.state {
            GrowingState::Head(_) => Ok(()),
            GrowingState::Open(..) => fs::remove_file(&self.path)
                .with_context(|| format!("cannot remove {}", self.path.display())),
        }
    }

    /// Writes a complete result that is text.
    pub fn finish_text(&self, text: &str) -> Result<()> {
        self.finish(|out| Ok(out.write_all(text.as_bytes())?))
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        interrupt::unregister(&self.path);
    }
}

/// Writes the file to which a run would have appended these texts.
pub fn write<'a>(path: &Path, texts: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut chain = Chain::default();
    write_text(
        path,
        &texts.map(|text| chain.seal(text)).collect::<String>(),
    )
}

/// Reads the texts of a growing file without resuming it. A file without checksums is read as it is.
pub fn read(path: &Path) -> Result<String> {
    let bytes = read_file(path).with_context(cannot_read(path))?;
    if blocks::beginnings(&bytes) > 0 {
        return Ok(blocks_of(path, &bytes)?.texts.concat());
    }
    let text = String::from_utf8(bytes).ok();
    text.with_context(|| {
        format!(
            "{}: found bytes that are not UTF-8, expected text",
            path.display()
        )
    })
}

/// Intact blocks from the start of a file. Prints a note if bytes are left out.
fn blocks_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<Blocks<'a>> {
    let name = path.display();
    let beginnings = blocks::beginnings(bytes);
    if beginnings == 0 {
        bail!("{name}: found a file without checksums, expected a file of this version");
    }
    let blocks = blocks::read(bytes);
    if blocks.texts.is_empty() && beginnings > 1 {
        bail!("{name}: found a changed beginning, expected the beginning of an interrupted run");
    }
    let left_out = bytes.len() - blocks.bytes;
    if left_out > 0 {
        say!(
            "flowcast: note: {name}: ignored the last {left_out} bytes, from the first part that is incomplete, changed, \
             missing or repeated"
        );
    }
    Ok(blocks)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

/// Locks the file for this run. The lock ends with the process.
fn locked(path: &Path, file: io::Result<File>) -> Result<File> {
    let file = file.with_context(cannot_write(path))?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(BETWEEN_TRIES),
            // Some file systems do not support locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    bail!(
        "{}: found another run that writes this file, expected none",
        path.display()
    )
}

/// Number of attempts to lock a file. A child process holds the locks of its parent until it executes its own program.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// `NAME.partial`: file that grows until the result can be written as a whole.
pub fn partial(target: &Path) -> PathBuf {
    beside(target, ".partial")
}

/// Path with `ending` appended to its name.
pub fn beside(target: &Path, ending: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::read_text;

    #[test]
    fn only_one_run_writes_a_growing_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = partial(&folder.path().join("x.csv"));
        let mut first = GrowingFile::start(&path, "rows", "head\n").unwrap();
        first.append("1\n").unwrap();
        assert!(
            resumed(&path)
                .unwrap_err()
                .to_string()
                .contains("found another run that writes this file")
        );
        drop(first);
        assert!(resumed(&path).is_ok());
    }

    fn resumed(path: &Path) -> Result<(GrowingFile, String)> {
        GrowingFile::resume(path, "rows", "head\n", |text| Ok(text.to_owned()))
    }

    #[test]
    fn a_growing_file_is_resumed_and_replaced_by_the_complete_result() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.csv");
        let path = partial(&target);
        GrowingFile::start(&path, "the rows of an interrupted run", "head\n")
            .unwrap()
            .append("1\n")
            .unwrap();
        let message = GrowingFile::start(&path, "the rows of an interrupted run", "")
            .unwrap_err()
            .to_string();
        assert!(message.ends_with(
            "contains the rows of an interrupted run: continue with --resume, or remove the file"
        ));
        let (mut growing, found) = resumed(&path).unwrap();
        assert_eq!(found, "head\n1\n");
        growing.append("3\n").unwrap();
        assert_eq!(read(&path).unwrap(), "head\n1\n3\n");
        growing
            .finish(|out| Ok(out.write_all(b"whole\n")?))
            .unwrap();
        drop(growing);
        assert_eq!(
            (path.exists(), read_text(&target).unwrap().as_str()),
            (false, "whole\n")
        );
        assert_eq!(resumed(&path).unwrap().1, "");
    }

    const TEXTS: [&str; 5] = ["head\n", "1,0.5\n", "2,0.25\n3,0.125\n", "1,0.5\n", "4,1\n"];

    /// Parts of a file after a run, each with its line.
    fn left(path: &Path) -> Vec<Vec<u8>> {
        let mut growing = GrowingFile::start(path, "rows", TEXTS[0]).unwrap();
        let texts = TEXTS[1..].iter();
        texts.for_each(|text| growing.append(text).unwrap());
        let other = path.with_extension("whole");
        write(&other, TEXTS.into_iter()).unwrap();
        assert_eq!(fs::read(&other).unwrap(), fs::read(path).unwrap());
        let mut chain = Chain::default();
        let parts: Vec<Vec<u8>> = TEXTS.map(|text| chain.seal(text).into_bytes()).to_vec();
        assert_eq!(fs::read(path).unwrap(), parts.concat());
        parts
    }

    /// Resumes a file with these bytes. The run is refused, or finds texts without a gap from the first on and can append to
    /// them.
    fn goes_on_or_refuses(path: &Path, bytes: &[u8]) -> Option<usize> {
        fs::write(path, bytes).unwrap();
        let Ok((mut growing, found)) = resumed(path) else {
            assert_eq!(fs::read(path).unwrap(), bytes);
            return None;
        };
        let found_texts = (1..=TEXTS.len()).find(|count| found == TEXTS[..*count].concat());
        let count = match found.as_str() {
            "" => 0,
            text => found_texts.unwrap_or_else(|| panic!("found {text}")),
        };
        growing.append("5,2\n").unwrap();
        drop(growing);
        let head = if count == 0 { TEXTS[0] } else { "" };
        assert_eq!(resumed(path).unwrap().1, format!("{head}{found}5,2\n"));
        Some(count)
    }

    #[test]
    fn a_run_killed_at_any_byte_keeps_all_finished_texts() {
        let folder = tempfile::tempdir().unwrap();
        let path = partial(&folder.path().join("x"));
        let parts = left(&path);
        let bytes = parts.concat();
        for killed_at in 0..=bytes.len() {
            let finished =
                (0..=parts.len()).rfind(|count| parts[..*count].concat().len() <= killed_at);
            let expected = finished.filter(|count| *count > 1).unwrap_or(0);
            assert_eq!(
                goes_on_or_refuses(&path, &bytes[..killed_at]),
                Some(expected)
            );
        }
    }

    #[test]
    fn no_text_after_a_changed_bit_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = partial(&folder.path().join("x"));
        let bytes = left(&path).concat();
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            goes_on_or_refuses(&path, &flipped);
        }
    }

    #[test]
    fn no_text_after_a_removed_repeated_moved_or_foreign_one_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = partial(&folder.path().join("x"));
        let parts = left(&path);
        let foreign = Chain::default().seal("2,0.75\n").into_bytes();
        for first in 0..parts.len() {
            let [mut removed, mut repeated, mut mixed] = [(); 3].map(|()| parts.clone());
            removed.remove(first);
            repeated.insert(first, parts[first].clone());
            mixed.insert(first, foreign.clone());
            for changed in [removed, repeated, mixed] {
                let trusted = goes_on_or_refuses(&path, &changed.concat());
                assert!(
                    trusted.is_none_or(|count| count <= first + 1),
                    "{first}: {trusted:?}"
                );
            }
            for second in 0..first {
                let mut moved = parts.clone();
                moved.swap(first, second);
                let trusted = goes_on_or_refuses(&path, &moved.concat());
                assert!(
                    trusted.is_none_or(|count| count <= second),
                    "{first}, {second}"
                );
            }
        }
    }

    #[test]
    fn a_file_without_checksums_can_be_read_but_not_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        fs::write(&path, "head\n1\n").unwrap();
        assert_eq!(read(&path).unwrap(), "head\n1\n");
        assert!(resumed(&path).unwrap_err().to_string().ends_with(
            "x.journal: found a file without checksums, expected a file of this version"
        ));
    }

    #[test]
    fn a_run_without_texts_leaves_no_partial_file_and_can_finish() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x.csv");
        let start = || GrowingFile::start(&partial(&target), "rows", "head\n");
        drop(start().unwrap());
        assert!(!partial(&target).exists());
        start()
            .unwrap()
            .finish(|out| Ok(out.write_all(b"head\n")?))
            .unwrap();
        assert_eq!(
            (
                partial(&target).exists(),
                read_text(&target).unwrap().as_str()
            ),
            (false, "head\n")
        );
        let nowhere = GrowingFile::start(&folder.path().join("none/x"), "rows", "")
            .unwrap_err()
            .to_string();
        assert!(nowhere.starts_with("cannot write"), "{nowhere}");
    }
}
