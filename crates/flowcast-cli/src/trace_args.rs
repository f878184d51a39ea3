//! Opening traces, the same for every command that reads one.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use flowcast::trace::{self, ReadOptions, SharedBytes, Trace, compiled};
use flowcast_otf2::Otf2Error;
use memmap2::Mmap;

use crate::exit::EnvironmentLacks;
use crate::rank_files;

/// Reads a trace of any known format.
pub fn open_trace(path: &Path) -> Result<Trace> {
    let path = &first_file(path);
    let mut maps = Vec::new();
    let bytes = map_into(&mut maps, path).with_context(|| format!("cannot read {}", path.display()))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (name, options) = (path.display().to_string(), ReadOptions { threads });
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
            let bytes = map_into(&mut maps, &file).with_context(|| format!("cannot read {}", file.display()))?;
            Ok((file.display().to_string(), bytes))
        };
        let parts = rank_files::of_all_ranks(path)?.into_iter().map(&mut open).collect::<Result<Vec<_>>>()?;
        trace::read::read_parts(&name, parts, options)?
    } else {
        let mut open_part = |name: &str| map_into(&mut maps, &beside(path, name));
        trace::read(&name, plain, &mut open_part, options)?
    };
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

fn open_otf2(path: &Path, options: ReadOptions) -> Result<Trace> {
    flowcast_otf2::read(path, options).map(Trace::Program).map_err(|error| match error {
        Otf2Error::NoLibrary | Otf2Error::OldLibrary(_) => {
            EnvironmentLacks(format!("{}: {error}", path.display())).into()
        }
        other => other.into(),
    })
}

/// The file to begin with: one of the files of a folder stands for all.
pub fn first_file(path: &Path) -> PathBuf {
    if path.is_dir() { rank_files::first_of_folder(path) } else { path.to_owned() }
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
