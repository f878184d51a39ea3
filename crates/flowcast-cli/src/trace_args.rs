//! Opening traces, the same for every command that reads one.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use flowcast::trace::{self, Program, ReadOptions, SharedBytes, Trace, compiled};
use flowcast_otf2::Otf2Error;
use memmap2::Mmap;

use crate::exit::EnvironmentLacks;
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
