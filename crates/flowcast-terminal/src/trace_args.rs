//! Opening of traces, the same for every command that reads one.

use std::{
    borrow::Cow,
    fs::File,
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::ValueEnum;
use flowcast::{
    formats::read::{Clock, TraceContents},
    trace::{SharedBytes, Trace, program::IgnoredRecords},
};
use flowcast_io::Reader;
pub use flowcast_io::{threads, whole_recording as refuse_cut};
use memmap2::Mmap;

use crate::{
    files::read_bytes,
    input_maps::{self, release},
    output::{Format, print_notes},
    progress::Progress,
};

/// Reads a trace of any known format and expands its loops. `-` is the standard input.
pub fn open_trace(path: &Path) -> Result<Trace> {
    flat(open_by(path, None)?)
}

/// Reads a trace of any known format and keeps its loops.
pub fn open_folded(path: &Path) -> Result<Trace> {
    open_by(path, None)
}

/// The trace with its loops expanded.
pub fn flat(trace: Trace) -> Result<Trace> {
    match trace.unfolded()? {
        Cow::Owned(flat) => Ok(flat),
        Cow::Borrowed(_) => Ok(trace),
    }
}

/// Clock for the computations of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compute {
    /// CPU time of the thread between two calls
    Cpu,
    /// Wall time between two calls
    Wall,
}

impl From<Compute> for Clock {
    fn from(compute: Compute) -> Clock {
        match compute {
            Compute::Cpu => Clock::ThreadCpu,
            Compute::Wall => Clock::Wall,
        }
    }
}

/// Reads a trace and keeps its loops. `compute` selects the clock for the computations of a recording.
pub fn open_by(path: &Path, compute: Option<Compute>) -> Result<Trace> {
    let (name, path) = named(path)?;
    let mut maps = Maps::default();
    let _progress = Progress::without_end(format!("reading {name}"));
    let trace = flowcast_io::open_trace_by(&path, &name, &mut maps, compute.map(Clock::from))?;
    maps.finish();
    input_maps::verify()?;
    Ok(trace)
}

/// Help of an argument that accepts any trace.
pub fn trace_help() -> String {
    input_help(TraceContents::Any)
}

/// Help of an argument that accepts a trace but no GOAL schedule.
pub fn program_help() -> String {
    input_help(TraceContents::Program)
}

/// Help of an argument that accepts traces of some formats.
pub fn input_help(holds: TraceContents) -> String {
    let formats = flowcast::formats::read::formats(holds)
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "Trace: {formats}, or an OTF2 archive; plain or compressed (gzip, zstd), or a folder that contains one; - for the standard input"
    )
}

/// Memory maps of texts. Pages that were read are released periodically, so that a trace of several gigabytes need not fit
/// into memory. If a message quotes a line, the line is read again.
#[derive(Default)]
pub struct Maps {
    maps: Arc<Mutex<Vec<Arc<Mmap>>>>,
    releasing: Option<(Sender<()>, JoinHandle<()>)>,
}

/// Period of the release. Pages that are still needed are mapped again at low cost.
const EVERY: Duration = Duration::from_millis(50);

impl Reader for Maps {
    fn bytes(&mut self, path: &Path) -> io::Result<SharedBytes> {
        let Some(map) = input_maps::map(path)? else {
            return Ok(Arc::new(flowcast_io::read_file(path)?));
        };
        lock(&self.maps).push(map.clone());
        if self.releasing.is_none() {
            let (stop, stopped) = channel();
            let maps = self.maps.clone();
            self.releasing = Some((
                stop,
                std::thread::spawn(move || {
                    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                        lock(&maps).iter().for_each(|map| release(map));
                    }
                }),
            ));
        }
        Ok(map)
    }
}

impl Maps {
    /// Stops the periodic release, then releases all remaining pages.
    fn finish(mut self) {
        self.stop();
        lock(&self.maps).iter().for_each(|map| release(map));
    }

    fn stop(&mut self) {
        if let Some((stop, releasing)) = self.releasing.take() {
            drop(stop);
            // The thread only releases memory, and the remaining pages are released now.
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
    maps.lock().expect("no holder of the lock panics")
}

/// File to open first: one file of a folder represents all.
pub fn first_file(path: &Path) -> Result<PathBuf> {
    if path == Path::new(STANDARD_INPUT) {
        return standard_input();
    }
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    flowcast_io::first_of_folder(path)
}

/// Name for messages, and content of a pattern. `-` is the standard input.
pub fn read_pattern(path: &Path) -> Result<(String, Vec<u8>)> {
    let (name, first) = named(path)?;
    Ok((name, read_bytes(&first)?))
}

/// Name for messages, and the file to open first.
fn named(path: &Path) -> Result<(String, PathBuf)> {
    let first = first_file(path)?;
    let name = if path == Path::new(STANDARD_INPUT) {
        "standard input".to_owned()
    } else {
        first.display().to_string()
    };
    Ok((name, first))
}

/// File name that stands for the standard input.
const STANDARD_INPUT: &str = "-";

/// Unnamed file with the whole standard input. It disappears with this process.
fn standard_input() -> Result<PathBuf> {
    static SPOOLED: Mutex<Option<File>> = Mutex::new(None);
    let mut spooled = SPOOLED.lock().expect("no holder of the lock panics");
    if spooled.is_none() {
        let mut file = tempfile::tempfile()
            .context("cannot create a temporary file for the standard input")?;
        io::copy(&mut io::stdin().lock(), &mut file).context("cannot read the standard input")?;
        *spooled = Some(file);
    }
    let descriptor = spooled.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    Ok(PathBuf::from(format!("/dev/fd/{descriptor}")))
}

/// Prints notes on records that the replay does not model if the result is JSON. In text, they follow the result.
pub fn print_notes_beside(format: Format, ignored: &[IgnoredRecords]) {
    if format.json {
        print_notes(ignored);
    }
}

/// Parses an option that names the rule or the file of a mapping.
pub fn parse_mapping(text: &str) -> Result<flowcast::model::machine::Mapping> {
    flowcast_io::read_mapping(text, &mut Maps::default())
}
