//! Opening traces, the same for every command that reads one.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use flowcast::trace::{self, Program, ReadOptions, SharedBytes, Trace, TraceError, compiled};
use flowcast::units::Bytes;
use flowcast_otf2::Otf2Error;
use memmap2::Mmap;

use crate::exit::EnvironmentLacks;
use crate::input_maps::{self, release};
use crate::rank_files;

/// Reads a trace of any known format.
pub(crate) fn open_trace(path: &Path) -> Result<Trace> {
    let path = &first_file(path)?;
    let mut maps = Maps::default();
    let bytes = maps.map(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (name, options) = (path.display().to_string(), ReadOptions { threads: threads() });
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
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let first = rank_files::first_of_folder(path);
    if !first.exists() {
        bail!(
            "{}: found a folder without a recording, an OTF2 archive or files of ranks, expected one of them (of a SimGrid \
             trace, name the list of its files)",
            path.display()
        );
    }
    Ok(first)
}

/// A file that another names: relative to that one's folder, or to the current one.
fn beside(path: &Path, name: &str) -> PathBuf {
    let near = path.parent().unwrap_or(Path::new("")).join(name);
    if near.exists() { near } else { PathBuf::from(name) }
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
