//! Opening traces, the same for every command that reads one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use flowcast::trace::read::Holds;
use flowcast::trace::{self, Program, ReadOptions, SharedBytes, Trace, TraceError, compiled};
use flowcast::units::Bytes;
use flowcast_otf2::Otf2Error;
use memmap2::Mmap;

use crate::exit::EnvironmentLacks;
use crate::files::read_bytes;
use crate::input_maps::{self, release};
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
    let plain = unpacked(&name, bytes)?;
    let trace = if trace::read::is_part((*plain).as_ref()) {
        let mut open = |file: PathBuf| -> Result<(String, SharedBytes)> {
            let bytes = maps.map(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.display().to_string();
            let plain = unpacked(&name, bytes)?;
            Ok((name, plain))
        };
        let parts = rank_files::of_all_ranks(path)?.into_iter().map(&mut open).collect::<Result<Vec<_>>>()?;
        trace::read::read_parts(&name, parts, options)?
    } else {
        let mut open_part = |name: &str| {
            let bytes = maps.map(&beside(path, name))?;
            unpacked(name, bytes).map_err(io::Error::other)
        };
        trace::read(&name, plain, &mut open_part, options)?
    };
    maps.finish();
    input_maps::verify()?;
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

/// Raises, or lowers, what a packed file is unpacked to.
const MOST_UNPACKED: &str = "FLOWCAST_MAX_UNPACKED";

/// The content of a packed file.
fn unpacked(name: &str, bytes: SharedBytes) -> Result<SharedBytes> {
    let usual = trace::read::usual_limit(Bytes((*bytes).as_ref().len() as u64));
    let given = std::env::var(MOST_UNPACKED).ok();
    let most = given.map(|text| Bytes::parse(&text).with_context(|| format!("{MOST_UNPACKED}={text}"))).transpose()?;
    trace::read::unpacked_within(name, bytes, most.unwrap_or(usual)).map_err(|error| match error {
        TraceError::TooLarge { .. } => anyhow!("{error}; if it is meant, raise the limit: {MOST_UNPACKED}=8GB"),
        other => other.into(),
    })
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
        let Some(map) = input_maps::map(path)? else { return Ok(Arc::new(std::fs::read(path)?)) };
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

/// Refuses a recording of which a part is missing.
pub(crate) fn refuse_cut(program: &Program) -> Result<()> {
    match program.ignored().iter().find(|ignored| ignored.kind == trace::read::CUT) {
        Some(cut) => bail!(
            "found {} of {} ranks that were not recorded to their end, expected whole ones: the program, its disk or its \
             machine failed (--incomplete predicts what there is)",
            cut.count,
            program.ranks()
        ),
        None => Ok(()),
    }
}

/// What the trace has that the replay does not model: said, never silent.
pub(crate) fn print_notes(program: &Program) {
    for ignored in program.ignored() {
        // A kind that says what becomes of it needs no more words.
        let left_out = if ignored.kind.contains(';') { "" } else { " left out of the replay" };
        eprintln!("flowcast: note: {} {}{left_out}", ignored.count, ignored.kind);
    }
}
