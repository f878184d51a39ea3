//! Opening of traces: a file, compressed or not, a folder, or the files of all ranks by the name of one of them.

use std::{
    collections::HashSet,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

use crate::otf2::Otf2Error;
use anyhow::{Context, Result, anyhow, bail};
use flowcast::{
    formats::read::{self, Clock, Unpacking},
    model::cluster::pattern::Pattern,
    recording::format::RECORDING_MAGIC,
    trace::{ReadOptions, SharedBytes, Trace, TraceError, compiled},
    units::Bytes,
};

use crate::{
    EnvironmentLacks, Reader, cannot_read,
    near::{beginning, beside},
    rank_files,
};

/// Kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// Concurrent communications, one flow or chain per line.
    Pattern,
    /// Trace or schedule of a program.
    Trace,
}

/// Reads a trace of any known format. `name` is its name in messages. A folder is read by its first file
/// ([`first_of_folder`](crate::first_of_folder)). FLOWCAST_MAX_UNPACKED limits the uncompressed size of its files.
///
/// # Errors
/// A trace that cannot be read or is damaged; [`EnvironmentLacks`] if the library that reads it is missing.
pub fn open_trace(path: &Path, name: &str, reader: &mut dyn Reader) -> Result<Trace> {
    open_trace_by(path, name, reader, None)
}

/// Reads a trace like [`open_trace`]. `clock` selects the clock for the computations of a recording.
///
/// # Errors
/// The errors of [`open_trace`], and a clock for a trace that is not a recording.
pub fn open_trace_by(
    path: &Path,
    name: &str,
    reader: &mut dyn Reader,
    clock: Option<Clock>,
) -> Result<Trace> {
    let options = ReadOptions { threads: threads() };
    let bytes = reader.bytes(path).with_context(cannot_read(path))?;
    let content = (*bytes).as_ref();
    let is_recording = content.starts_with(RECORDING_MAGIC.as_bytes());
    if clock.is_some() && !is_recording {
        bail!("--compute: found {name}, expected a recording: only recordings have both clocks");
    }
    if content.starts_with(crate::otf2::MAGIC) {
        return open_otf2(path, options);
    }
    if compiled::is_schedule(content) {
        // Schedules are not mapped, because the pages of a map count as this process's own while they are read.
        let mut file = File::open(path).with_context(cannot_read(path))?;
        return Ok(Trace::Schedule(compiled::read_schedule(name, &mut file)?));
    }
    let mut unpacking = unpacking()?;
    let plain = unpacked(&mut unpacking, name, bytes)?;
    if read::is_part((*plain).as_ref()) {
        let parts = rank_files::of_all_ranks(path)?
            .into_iter()
            .map(|file| {
                let bytes = reader.bytes(&file).with_context(cannot_read(&file))?;
                let name = file.display().to_string();
                let plain = unpacked(&mut unpacking, &name, bytes)?;
                Ok((name, plain))
            })
            .collect::<Result<Vec<_>>>()?;
        return Ok(read::read_parts(name, parts, options)?);
    }
    let mut opened = HashSet::new();
    let mut open = |part: &str| {
        let file = beside(path, part);
        let known = fs::metadata(&file)?;
        if !opened.insert((known.dev(), known.ino())) {
            return Err(io::Error::other(
                "found the file a second time, expected each file once",
            ));
        }
        unpacked(&mut unpacking, part, reader.bytes(&file)?).map_err(io::Error::other)
    };
    if clock.is_some() {
        let text = (*plain).as_ref();
        let program = read::read_recording(name, text, &mut open, (options, clock))?;
        return Ok(Trace::Program(program));
    }
    Ok(flowcast::formats::read(name, plain, &mut open, options)?)
}

/// Kind of an input, from its content. A malformed pattern is recognised by its ending, so that the error refers to its
/// first line.
///
/// # Errors
/// The file cannot be read.
pub fn is_pattern(path: &Path) -> Result<InputKind> {
    let start = beginning(path).with_context(cannot_read(path))?;
    let is_named = path
        .extension()
        .is_some_and(|ending| ending == "pattern" || ending == "steps");
    let is_one = Pattern::is_pattern(&start) || is_named;
    Ok(if is_one {
        InputKind::Pattern
    } else {
        InputKind::Trace
    })
}

/// `true` if the first line shows that a file is a matrix of bytes between ranks.
///
/// # Errors
/// The file cannot be read.
pub fn is_matrix(path: &Path) -> Result<bool> {
    let start = beginning(path).with_context(cannot_read(path))?;
    Ok(flowcast_place::matrix_file::is_matrix(&start))
}

/// Refuses an incomplete recording.
///
/// # Errors
/// Ranks that were not recorded to their end, or a program that failed.
pub fn whole_recording(trace: &Trace) -> Result<()> {
    let ignored = trace.ignored();
    if let Some(cut) = ignored.iter().find(|ignored| ignored.kind == read::CUT) {
        bail!(
            "found {} of {} ranks that were not recorded to their end, expected complete recordings: the program, its \
             disk or its machine failed (--incomplete predicts the recorded part)",
            cut.count,
            trace.ranks()
        );
    }
    if ignored.iter().any(|ignored| ignored.kind == read::FAILED) {
        bail!(
            "found the recording of a program that failed, expected one of a program that ended with code 0 (--incomplete \
             predicts the part before the failure)"
        );
    }
    Ok(())
}

/// Number of threads: the number of processors.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Environment variable that sets the limit on the uncompressed size of a trace's files.
const MOST_UNPACKED: &str = "FLOWCAST_MAX_UNPACKED";

/// Decompression within the limit of the environment, if it is set.
fn unpacking() -> Result<Unpacking> {
    let given = std::env::var(MOST_UNPACKED).ok();
    let most = given
        .map(|text| Bytes::parse(&text).with_context(|| format!("{MOST_UNPACKED}={text}")))
        .transpose()?;
    Ok(Unpacking::within(most))
}

/// Uncompressed content of a file.
fn unpacked(unpacking: &mut Unpacking, name: &str, bytes: SharedBytes) -> Result<SharedBytes> {
    unpacking.unpack(name, bytes).map_err(|error| match error {
        TraceError::TooLarge { .. } => {
            anyhow!("{error}; if this size is intended, raise the limit: {MOST_UNPACKED}=8GB")
        }
        other => other.into(),
    })
}

fn open_otf2(path: &Path, options: ReadOptions) -> Result<Trace> {
    crate::otf2::read(path, options)
        .map(Trace::Program)
        .map_err(|error| match error {
            Otf2Error::NoLibrary | Otf2Error::OldLibrary(_) => {
                EnvironmentLacks(format!("{}: {error}", path.display())).into()
            }
            other => other.into(),
        })
}
