//! Files to which a long run appends each result, so that a killed run loses at most the result that it was
//! computing: `append` hands the text to the kernel before it returns. Each text has a checksum: a later run leaves out
//! what is incomplete or has changed, says so and continues. Until the first result there is no file, so that a run that
//! fails or is ended before it leaves none.

mod blocks;

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use flowcast_io::read_file;

use self::blocks::{Blocks, sealed};
use crate::terminal::{
    files::{Writer, write_whole},
    interrupt,
    output::say,
};

/// A file that a run appends to.
#[derive(Debug)]
pub(crate) struct GrowingFile {
    path: PathBuf,
    state: GrowingState,
}

#[derive(Debug)]
enum GrowingState {
    /// Nothing is appended yet: the file will begin with this.
    Head(String),
    /// The file exists, with what was appended so far.
    Open(File),
}

impl GrowingFile {
    /// Starts one. A file of an earlier run is in the way; `content` says what it holds, as in `the samples of an
    /// interrupted run`.
    pub(crate) fn start(path: &Path, content: &str, head: &str) -> Result<GrowingFile> {
        if path.exists() {
            bail!(
                "{} holds {content}: --resume goes on with them, or remove it",
                path.display()
            );
        }
        // A place that cannot be written to is told before the work begins.
        File::create_new(path)
            .and_then(|_| fs::remove_file(path))
            .with_context(|| cannot_write(path))?;
        Ok(GrowingFile {
            path: path.to_owned(),
            state: GrowingState::Head(head.to_owned()),
        })
    }

    /// Goes on with the file of an interrupted run, or starts one if there is none. `read` gives what the texts hold, the
    /// head before them; what is incomplete or has changed is not among them.
    pub(crate) fn resume<T: Default>(
        path: &Path,
        content: &str,
        head: &str,
        read: impl FnOnce(&str) -> Result<T>,
    ) -> Result<(GrowingFile, T)> {
        if !path.exists() {
            return Ok((GrowingFile::start(path, content, head)?, T::default()));
        }
        let file = locked(path, open(path))?;
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let blocks = blocks_of(path, &bytes)?;
        if blocks.whole.len() < 2 {
            drop(file);
            fs::remove_file(path).with_context(|| cannot_write(path))?;
            return Ok((GrowingFile::start(path, content, head)?, T::default()));
        }
        let held = read(&blocks.whole.concat())?;
        let file = if blocks.unspoilt + blocks.spoilt < bytes.len() {
            // The file is there, with all that is finished, at any moment.
            write_whole(path, |out| {
                blocks
                    .whole
                    .iter()
                    .try_for_each(|text| Ok(out.write_all(sealed(text).as_bytes())?))
            })?;
            locked(path, open(path))?
        } else {
            file.set_len(blocks.unspoilt as u64)
                .with_context(|| cannot_write(path))?;
            file
        };
        interrupt::keeps(path);
        Ok((
            GrowingFile {
                path: path.to_owned(),
                state: GrowingState::Open(file),
            },
            held,
        ))
    }

    /// Adds text; before the first, the head.
    pub(crate) fn append(&mut self, text: &str) -> Result<()> {
        let file = match &mut self.state {
            GrowingState::Open(file) => file,
            GrowingState::Head(head) => {
                let mut file = locked(&self.path, File::create_new(&self.path))?;
                file.write_all(sealed(head).as_bytes())
                    .with_context(|| cannot_write(&self.path))?;
                interrupt::keeps(&self.path);
                self.state = GrowingState::Open(file);
                return self.append(text);
            }
        };
        file.write_all(sealed(text).as_bytes())
            .with_context(|| cannot_write(&self.path))
    }

    /// Name of the file, whether it exists yet or not.
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
            GrowingState::Head(_) => Ok(()),
            GrowingState::Open(_) => fs::remove_file(&self.path)
                .with_context(|| format!("cannot remove {}", self.path.display())),
        }
    }

    /// Writes a whole result that is text.
    pub(crate) fn finish_text(&self, text: &str) -> Result<()> {
        self.finish(|out| Ok(out.write_all(text.as_bytes())?))
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        interrupt::keeps_no_more(&self.path);
    }
}

/// The texts of a file that grew, for those who only read it; one without checksums is taken as it stands.
pub(crate) fn read(path: &Path) -> Result<String> {
    let bytes = read_file(path).with_context(|| format!("cannot read {}", path.display()))?;
    if blocks::are_in(&bytes) {
        return Ok(blocks_of(path, &bytes)?.whole.concat());
    }
    let text = String::from_utf8(bytes).ok();
    text.with_context(|| {
        format!(
            "{}: found bytes that are not UTF-8, expected text",
            path.display()
        )
    })
}

/// What can be gone on with; what cannot is told.
fn blocks_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<Blocks<'a>> {
    if !blocks::are_in(bytes) {
        bail!(
            "{}: found a file without checksums, expected one that this version has written",
            path.display()
        );
    }
    let blocks = blocks::read(bytes);
    if !blocks.begins && !blocks.whole.is_empty() {
        bail!(
            "{}: found a beginning that was changed, expected that of an interrupted run",
            path.display()
        );
    }
    if blocks.spoilt > 0 {
        let (path, spoilt) = (path.display(), blocks.spoilt);
        say!("flowcast: note: {path}: left out {spoilt} bytes that are incomplete or were changed");
    }
    Ok(blocks)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

/// The file for this run alone, until it ends in whatever way.
fn locked(path: &Path, file: io::Result<File>) -> Result<File> {
    let file = file.with_context(|| cannot_write(path))?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(BETWEEN_TRIES),
            // Not every file system knows locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    bail!(
        "{}: found another run that writes it, expected none",
        path.display()
    )
}

/// A process that is being started holds the locks of the one that starts it until it runs its own program.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

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
    use crate::terminal::files::read_text;

    #[test]
    fn only_one_run_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = partial(&folder.path().join("x.csv"));
        let mut first = GrowingFile::start(&path, "rows", "head\n").unwrap();
        first.append("1\n").unwrap();
        assert!(
            resumed(&path)
                .unwrap_err()
                .to_string()
                .contains("found another run that writes it")
        );
        drop(first);
        assert!(resumed(&path).is_ok());
    }

    fn resumed(path: &Path) -> Result<(GrowingFile, String)> {
        GrowingFile::resume(path, "rows", "head\n", |text| Ok(text.to_owned()))
    }

    #[test]
    fn it_grows_is_gone_on_with_and_gives_way_to_the_whole() {
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
            "holds the rows of an interrupted run: --resume goes on with them, or remove it"
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

    /// The file as a run has left it, and how many texts are whole in its first so many bytes.
    fn left(path: &Path) -> (Vec<u8>, impl Fn(usize) -> usize) {
        let texts = ["head\n", "1,0.5\n", "2,0.25\n3,0.125\n", "4,1\n"];
        let mut growing = GrowingFile::start(path, "rows", texts[0]).unwrap();
        texts[1..]
            .iter()
            .for_each(|text| growing.append(text).unwrap());
        let ends: Vec<usize> = (1..=4)
            .map(|count| texts[..count].iter().map(|text| sealed(text).len()).sum())
            .collect();
        (fs::read(path).unwrap(), move |bytes| {
            ends.iter().filter(|end| **end <= bytes).count()
        })
    }

    #[test]
    fn wherever_a_run_is_killed_all_that_was_finished_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = partial(&folder.path().join("x"));
        let (bytes, whole_in) = left(&path);
        let rows = ["", "1,0.5\n", "2,0.25\n3,0.125\n", "4,1\n"];
        for killed_at in 0..=bytes.len() {
            fs::write(&path, &bytes[..killed_at]).unwrap();
            let (mut growing, found) = resumed(&path).unwrap();
            let whole = whole_in(killed_at);
            let expected = if whole < 2 {
                String::new()
            } else {
                format!("head\n{}", rows[..whole].concat())
            };
            assert_eq!(found, expected, "killed at {killed_at}");
            growing.append("5,2\n").unwrap();
            assert!(read(&path).unwrap().ends_with("5,2\n"));
        }
    }

    #[test]
    fn a_flipped_bit_takes_no_other_text_with_it_and_enters_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = partial(&folder.path().join("x"));
        let (bytes, whole_in) = left(&path);
        let rows = ["1,0.5\n", "2,0.25\n3,0.125\n", "4,1\n"];
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            let Some(spoilt) = whole_in(bit / 8).checked_sub(1) else {
                // A digit of a checksum may become its capital.
                assert!(
                    resumed(&path).map_or(true, |(_, found)| found
                        == format!("head\n{}", rows.concat())),
                    "{bit}"
                );
                assert!(fs::read(&path).unwrap().len() >= bytes.len());
                continue;
            };
            let (mut growing, found) = resumed(&path).unwrap();
            let others: String = (0..3)
                .filter(|row| *row != spoilt)
                .map(|row| rows[row])
                .collect();
            let is_whole = found == format!("head\n{}", rows.concat());
            assert!(
                found == format!("head\n{others}")
                    || is_whole && bytes[bit / 8].is_ascii_hexdigit(),
                "{bit}: {found}"
            );
            growing.append("5,2\n").unwrap();
            drop(growing);
            assert_eq!(resumed(&path).unwrap().1, found + "5,2\n");
        }
    }

    #[test]
    fn a_file_without_checksums_can_be_read_and_is_not_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.journal");
        fs::write(&path, "head\n1\n").unwrap();
        assert_eq!(read(&path).unwrap(), "head\n1\n");
        assert!(resumed(&path).unwrap_err().to_string().ends_with(
            "x.journal: found a file without checksums, expected one that this version has written"
        ));
    }

    #[test]
    fn a_run_without_a_result_leaves_no_file_and_may_end_whole() {
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
