//! Opening traces, the same for every command that reads one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use flowcast::trace::read::Holds;
use flowcast::trace::{self, Program, ReadOptions, SharedBytes, Trace, compiled};
use flowcast_otf2::Otf2Error;
use memmap2::Mmap;

use crate::exit::EnvironmentLacks;
use crate::files::read_bytes;
use crate::progress::Progress;
use crate::rank_files;

/// Reads a trace of any known format; `-` is the standard input.
pub(crate) fn open_trace(path: &Path) -> Result<Trace> {
    let (given, path) = (path, &first_file(path)?);
    let mut maps = Maps::default();
    let bytes = maps.map(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_named = given != Path::new(STANDARD_INPUT);
    let name = if is_named { path.display().to_string() } else { INPUT_NAME.to_owned() };
    let options = ReadOptions { threads: threads() };
    let _progress = Progress::without_end(format!("reading {name}"));
    if (*bytes).as_ref().starts_with(flowcast_otf2::MAGIC) {
        return open_otf2(path, options);
    }
    if compiled::is_schedule((*bytes).as_ref()) {
        // Not by way of the map, whose pages count as this process's own while they are read.
        let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        return Ok(Trace::Schedule(compiled::read_schedule(&name, &mut file)?));
    }
    let plain = trace::read::unpacked(&name, bytes)?;
    let trace = if trace::read::is_part((*plain).as_ref()) {
        let mut open = |file: PathBuf| -> Result<(String, SharedBytes)> {
            let bytes = maps.map(&file).with_context(|| format!("cannot read {}", file.display()))?;
            Ok((file.display().to_string(), bytes))
        };
        let parts = rank_files::of_all_ranks(path)?.into_iter().map(&mut open).collect::<Result<Vec<_>>>()?;
        trace::read::read_parts(&name, parts, options)?
    } else {
        let mut open_part = |name: &str| maps.map(&beside(path, name));
        trace::read(&name, plain, &mut open_part, options)?
    };
    maps.finish();
    Ok(trace)
}

/// What an argument says that takes any trace.
pub(crate) fn trace_help() -> String {
    help(Holds::Any)
}

/// What an argument says that takes a trace and no GOAL schedule.
pub(crate) fn program_help() -> String {
    help(Holds::Program)
}

fn help(holds: Holds) -> String {
    let formats = trace::read::formats(holds).collect::<Vec<_>>().join(", ");
    format!("Trace: {formats}, or an OTF2 archive; plain, gzip or zstd; a folder with one; - for the standard input")
}

/// As many threads as there are processors.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Memory maps of texts, of which what was read is given back every so often: a trace of several gigabytes does not have to
/// fit into memory. Where a message names a line, it is read again.
#[derive(Default)]
struct Maps {
    maps: Arc<Mutex<Vec<Arc<Mmap>>>>,
    releasing: Option<(Sender<()>, JoinHandle<()>)>,
}

/// How often. What is still needed then is mapped again at little cost.
const EVERY: Duration = Duration::from_millis(50);

impl Maps {
    fn map(&mut self, path: &Path) -> io::Result<SharedBytes> {
        let Some(map) = map_file(path)? else { return Ok(Arc::new(std::fs::read(path)?)) };
        lock(&self.maps).push(map.clone());
        if self.releasing.is_none() {
            let (stop, stopped) = channel();
            let maps = self.maps.clone();
            let give_back = move || {
                while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    lock(&maps).iter().for_each(|map| release(map));
                }
            };
            self.releasing = Some((stop, std::thread::spawn(give_back)));
        }
        Ok(map)
    }

    /// Gives back all of it.
    fn finish(mut self) {
        self.stop();
        lock(&self.maps).iter().for_each(|map| release(map));
    }

    fn stop(&mut self) {
        if let Some((stop, releasing)) = self.releasing.take() {
            drop(stop);
            // It only gives memory back, and what it did not give back is given back now.
            let _ = releasing.join();
        }
    }
}

impl Drop for Maps {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock(maps: &Mutex<Vec<Arc<Mmap>>>) -> MutexGuard<'_, Vec<Arc<Mmap>>> {
    maps.lock().expect("nobody panics while he has it")
}

fn release(map: &Mmap) {
    // Sound: nobody writes to the map, so that its file still has what is dropped. It does no harm if it cannot be.
    #[cfg(unix)]
    #[allow(unsafe_code)]
    let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
}

fn open_otf2(path: &Path, options: ReadOptions) -> Result<Trace> {
    flowcast_otf2::read(path, options).map(Trace::Program).map_err(|error| match error {
        Otf2Error::NoLibrary | Otf2Error::OldLibrary(_) => {
            EnvironmentLacks(format!("{}: {error}", path.display())).into()
        }
        other => other.into(),
    })
}

/// The file to begin with: one of the files of a folder stands for all.
pub(crate) fn first_file(path: &Path) -> Result<PathBuf> {
    if path == Path::new(STANDARD_INPUT) {
        return standard_input();
    }
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    rank_files::first_of_folder(path)
}

/// The name for messages and the content of a pattern; `-` is the standard input.
pub(crate) fn read_pattern(path: &Path) -> Result<(String, Vec<u8>)> {
    let is_named = path != Path::new(STANDARD_INPUT);
    let name = if is_named { path.display().to_string() } else { INPUT_NAME.to_owned() };
    Ok((name, read_bytes(&first_file(path)?)?))
}

/// The standard input in messages.
const INPUT_NAME: &str = "standard input";

/// What stands for the standard input among file names.
const STANDARD_INPUT: &str = "-";

/// A file with all of the standard input, which has no name and goes away with this process.
fn standard_input() -> Result<PathBuf> {
    static SPOOLED: Mutex<Option<File>> = Mutex::new(None);
    let mut spooled = SPOOLED.lock().expect("nobody panics while he has it");
    if spooled.is_none() {
        let mut file = tempfile::tempfile().context("cannot make a temporary file for the standard input")?;
        io::copy(&mut io::stdin().lock(), &mut file).context("cannot read the standard input")?;
        *spooled = Some(file);
    }
    let descriptor = spooled.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    Ok(PathBuf::from(format!("/dev/fd/{descriptor}")))
}

/// A file that another names: relative to that one's folder, or to one above it, where the tool was started that wrote
/// the name; else to the current folder.
pub(crate) fn beside(path: &Path, name: &str) -> PathBuf {
    let above = path.ancestors().skip(1).map(|folder| folder.join(name));
    above.into_iter().find(|near| near.exists()).unwrap_or_else(|| PathBuf::from(name))
}

/// The file's bytes as a memory map; an empty file cannot be mapped and is read.
pub(crate) fn map(path: &Path) -> io::Result<SharedBytes> {
    match map_file(path)? {
        Some(map) => Ok(map),
        None => Ok(Arc::new(std::fs::read(path)?)),
    }
}

fn map_file(path: &Path) -> io::Result<Option<Arc<Mmap>>> {
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 || !file.metadata()?.is_file() {
        return Ok(None);
    }
    // Sound as long as nobody shortens the file meanwhile, which is the usual bargain of memory maps.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&file)? };
    Ok(Some(Arc::new(map)))
}

/// What the trace has that the replay does not model: said, never silent.
pub(crate) fn print_notes(program: &Program) {
    for ignored in program.ignored() {
        // A kind that says what becomes of it needs no more words.
        let left_out = if ignored.kind.contains(';') { "" } else { " left out of the replay" };
        eprintln!("flowcast: note: {} {}{left_out}", ignored.count, ignored.kind);
    }
}
