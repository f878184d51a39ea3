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
    let bytes = map(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut open_part = |name: &str| map(&beside(path, name));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(trace::read(&path.display().to_string(), bytes, &mut open_part, ReadOptions { threads })?)
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
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 || !file.metadata()?.is_file() {
        return Ok(Arc::new(std::fs::read(path)?));
    }
    // Sound as long as nobody shortens the file meanwhile, which is the usual bargain of memory maps.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&file)? };
    Ok(Arc::new(map))
}
