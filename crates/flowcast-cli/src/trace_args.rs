//! Opening traces, the same for every command that reads one.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use flowcast::trace::recorded::form::RECORDING;
use flowcast::trace::{self, ReadOptions, SharedBytes, Trace};
use memmap2::Mmap;

/// Reads a trace of any known format.
pub fn open_trace(path: &Path) -> Result<Trace> {
    let path = &first_file(path);
    let mut maps = Vec::new();
    let bytes = map_into(&mut maps, path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut open_part = |name: &str| map_into(&mut maps, &beside(path, name));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let trace = trace::read(&path.display().to_string(), bytes, &mut open_part, ReadOptions { threads })?;
    maps.iter().for_each(|map| release(map));
    Ok(trace)
}

/// Gives back the memory that the text of a trace takes; where a message names a line of it, it is read again.
fn release(map: &Mmap) {
    // Sound: nobody writes to the map, so that its file still has what is dropped. It does no harm if it cannot be.
    #[cfg(unix)]
    #[allow(unsafe_code)]
    let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
}

/// The file to begin with: a recording is a folder, and one of its files stands for all.
pub fn first_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(RECORDING) } else { path.to_owned() }
}

/// A file that another names: relative to that one's folder, or to the current one.
fn beside(path: &Path, name: &str) -> PathBuf {
    let near = path.parent().unwrap_or(Path::new("")).join(name);
    if near.exists() { near } else { PathBuf::from(name) }
}

/// The file's bytes as a memory map; an empty file cannot be mapped and is read.
pub fn map(path: &Path) -> io::Result<SharedBytes> {
    map_into(&mut Vec::new(), path)
}

/// As [`map`], and notes the map.
fn map_into(maps: &mut Vec<Arc<Mmap>>, path: &Path) -> io::Result<SharedBytes> {
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 || !file.metadata()?.is_file() {
        return Ok(Arc::new(std::fs::read(path)?));
    }
    // Sound as long as nobody shortens the file meanwhile, which is the usual bargain of memory maps.
    #[allow(unsafe_code)]
    let map = Arc::new(unsafe { Mmap::map(&file)? });
    maps.push(map.clone());
    Ok(map)
}
