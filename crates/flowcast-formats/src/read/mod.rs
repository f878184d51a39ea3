//! Readers: one module for each format. `FORMATS` selects the reader of a file by its content.

pub(super) mod calls;
mod chakra;
mod cursor;
mod dim;
mod dumpi;
mod fault;
mod goal;
pub mod goal_binary;
mod known_lines;
mod liballprof;
mod paraver;
mod parts;
mod recorded;
mod scan;
mod simgrid;
mod unknown;

use std::{io, sync::Arc};

use flowcast_program::{
    ReadOptions, Trace, TraceError, compiled,
    program::{IgnoredRecords, Program, SharedBytes},
    schedule::Schedule,
};
use scan::bytes_of;

pub use parts::{OpenPart, TracePart, Unpacking, listed, unpacked};
pub use recorded::{
    CUT, Clock, FAILED, PROVENANCE, SHARED_PROCESSORS, disturbance, disturbed_by,
    files as recorded_files, program as recorded_program, read as read_recording,
    region_names as recorded_regions, shared_processors,
};

/// Format: its name in messages, a test for its content, and its reader.
struct TraceFormat {
    name: &'static str,
    recognises: fn(&[u8]) -> bool,
    read: FormatReader,
}

/// Reader of a format. The variants differ in the files that the reader needs.
enum FormatReader {
    /// Only the file itself, which contains graphs of operations.
    Schedule(fn(&str, &[u8]) -> Result<Schedule, TraceError>),
    /// Only the first file.
    Alone(fn(&str, SharedBytes, ReadOptions) -> Result<Trace, TraceError>),
    /// The first file and the files that it names.
    Opening(fn(&str, SharedBytes, OpenPart<'_>, ReadOptions) -> Result<Trace, TraceError>),
    /// A file for each rank, in the order of the ranks.
    PerRank(fn(&str, &[TracePart], ReadOptions) -> Result<Program, TraceError>),
}

const FORMATS: &[TraceFormat] = &[
    TraceFormat {
        name: "a Dimemas trace (#DIMEMAS:)",
        recognises: |text| text.starts_with(b"#DIMEMAS:"),
        read: FormatReader::Alone(|name, bytes, options| {
            dim::read(name, bytes, options).map(Trace::Program)
        }),
    },
    TraceFormat {
        name: "a compiled trace (.fct)",
        recognises: |bytes| bytes.starts_with(compiled::MAGIC),
        read: FormatReader::Alone(|name, bytes, _| compiled::read(name, bytes)),
    },
    TraceFormat {
        name: "a Paraver trace (#Paraver)",
        recognises: |text| text.starts_with(paraver::MAGIC),
        read: FormatReader::Alone(|name, bytes, options| {
            paraver::read(name, bytes, options).map(Trace::Program)
        }),
    },
    TraceFormat {
        name: "a recording (of `flowcast record`)",
        recognises: recorded::recognises,
        read: FormatReader::Opening(|name, bytes, open, options| {
            recorded::read(name, bytes_of(&bytes), open, (options, None)).map(Trace::Program)
        }),
    },
    TraceFormat {
        name: "a GOAL schedule (num_ranks)",
        recognises: goal::recognises,
        read: FormatReader::Schedule(goal::read),
    },
    TraceFormat {
        name: "a binary GOAL schedule (of LogGOPSim's txt2bin)",
        recognises: goal_binary::recognises,
        read: FormatReader::Schedule(goal_binary::read),
    },
    TraceFormat {
        name: "a liballprof trace",
        recognises: liballprof::recognises,
        read: FormatReader::PerRank(liballprof::read),
    },
    TraceFormat {
        name: "a DUMPI trace (text)",
        recognises: dumpi::recognises,
        read: FormatReader::PerRank(dumpi::read),
    },
    TraceFormat {
        name: "a Chakra trace",
        recognises: chakra::recognises,
        read: FormatReader::PerRank(chakra::read),
    },
    TraceFormat {
        name: "a SimGrid time-independent trace",
        recognises: simgrid::recognises,
        read: FormatReader::Alone(|name, bytes, options| {
            simgrid::read(name, &[(name.to_owned(), bytes)], options).map(Trace::Program)
        }),
    },
    TraceFormat {
        name: "a SimGrid deployment (XML) with the files of a trace",
        recognises: parts::is_deployment,
        read: FormatReader::Opening(read_list),
    },
    TraceFormat {
        name: "a list of the files of a trace",
        recognises: parts::is_list,
        read: FormatReader::Opening(read_list),
    },
];

/// Reads a trace of any supported format; `name` is used only in messages.
///
/// # Errors
/// [`TraceError`], with the line, the found content and the expected content.
pub fn read(
    name: &str,
    bytes: SharedBytes,
    open: OpenPart<'_>,
    options: ReadOptions,
) -> Result<Trace, TraceError> {
    let bytes = unpacked(name, bytes)?;
    match format_of(bytes_of(&bytes)).map(|format| &format.read) {
        Some(FormatReader::Schedule(read)) => read(name, bytes_of(&bytes)).map(Trace::Schedule),
        Some(FormatReader::Alone(read)) => read(name, bytes, options),
        Some(FormatReader::Opening(read)) => read(name, bytes, open, options),
        Some(FormatReader::PerRank(read)) => {
            read(name, &[(name.to_owned(), bytes)], options).map(Trace::Program)
        }
        None => Err(unrecognised(name, bytes_of(&bytes))),
    }
}

/// Reads a trace that consists of one text, such as a Dimemas `.dim` or a GOAL schedule, plain or compressed; `name` is used
/// in errors. Traces with several files, such as recordings, are read with [`read()`].
///
/// # Errors
/// Same errors as [`read()`].
pub fn read_text(name: &str, text: impl Into<Vec<u8>>) -> Result<Trace, TraceError> {
    read(
        name,
        Arc::new(text.into()),
        &mut |_: &str| Err(io::ErrorKind::NotFound.into()),
        ReadOptions::default(),
    )
}

/// Contents of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceContents {
    /// Programs or graphs of operations.
    Any,
    /// Only programs, without the formats of GOAL schedules.
    Program,
}

/// Returns the supported formats, as named in messages.
///
/// ```
/// use flowcast_formats::read::{TraceContents, formats};
///
/// assert!(formats(TraceContents::Program).any(|format| format == "a Chakra trace"));
/// assert!(formats(TraceContents::Any).count() > formats(TraceContents::Program).count());
/// ```
pub fn formats(holds: TraceContents) -> impl Iterator<Item = &'static str> {
    FORMATS
        .iter()
        .filter(move |format| {
            holds == TraceContents::Any || !matches!(format.read, FormatReader::Schedule(_))
        })
        .map(|format| format.name)
}

/// Returns `true` if a file contains the operations of one rank, in a format with a file for each rank.
pub fn is_part(text: &[u8]) -> bool {
    format_of(text).is_some_and(|format| matches!(format.read, FormatReader::PerRank(_)))
}

/// Reads a trace with a file for each rank, in the order of the ranks. The first file determines the format.
///
/// # Errors
/// [`TraceError`], the same as for [`read`].
pub fn read_parts(
    name: &str,
    parts: Vec<TracePart>,
    options: ReadOptions,
) -> Result<Trace, TraceError> {
    let mut unpacking = Unpacking::default();
    let parts: Vec<TracePart> = parts
        .into_iter()
        .map(|(name, bytes)| unpacking.unpack(&name, bytes).map(|bytes| (name, bytes)))
        .collect::<Result<_, _>>()?;
    let first = parts.first().map_or(&[][..], |(_, bytes)| bytes_of(bytes));
    match format_of(first).map(|format| &format.read) {
        Some(FormatReader::PerRank(read)) => read(name, &parts, options).map(Trace::Program),
        _ => Err(unrecognised(name, first)),
    }
}

/// Reads the files of a list: the files of ranks, or the parts of a SimGrid trace.
fn read_list(
    name: &str,
    bytes: SharedBytes,
    open: OpenPart<'_>,
    options: ReadOptions,
) -> Result<Trace, TraceError> {
    let parts = parts::named(name, bytes_of(&bytes), open)?;
    if parts
        .first()
        .is_some_and(|(_, bytes)| is_part(bytes_of(bytes)))
    {
        read_parts(name, parts, options)
    } else {
        simgrid::read(name, &parts, options).map(Trace::Program)
    }
}

fn format_of(text: &[u8]) -> Option<&'static TraceFormat> {
    FORMATS.iter().find(|format| (format.recognises)(text))
}

/// Returns records that the replay leaves out, by kind, without kinds that do not occur.
fn ignored<K: Into<String>>(
    counts: impl IntoIterator<Item = (K, u64)>,
) -> impl Iterator<Item = IgnoredRecords> {
    let some = counts.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(kind, count)| IgnoredRecords {
        kind: kind.into(),
        count,
    })
}

/// Joins names as in `a, b or c`.
fn either(names: &[&str]) -> String {
    let (last, others) = names.split_last().expect("there are formats");
    format!("{} or {last}", others.join(", "))
}

fn unrecognised(name: &str, text: &[u8]) -> TraceError {
    TraceError::Unknown {
        name: name.to_owned(),
        found: unknown::described(text),
        expected: either(&formats(TraceContents::Any).collect::<Vec<_>>()),
    }
}
