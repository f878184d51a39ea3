//! The compiled form of a trace (`.fct`): the result of a reader, as bytes that can be memory-mapped.
//!
//! Little endian throughout. The header has 32 bytes: magic `FLOWCAST`, version, checksum (CRC-32) of everything after the
//! header, length of the tables, kind (1 program, 2 schedule, 3 program with loops), four bytes of zero. The tables follow
//! as JSON (names, classes, communicators: small compared with the rest), padded to eight bytes. After them, a program has
//! the streams of all ranks as 32-bit words; a schedule has the operations of all ranks; a program with loops has the
//! streams of each of its parts, once. Programs with loops are version 2, all others are version 1.

mod check;
mod folded;
mod program;
mod schedule;

use std::io::{self, Read, Write};

use serde::{Serialize, de::DeserializeOwned};

use super::{Trace, TraceError, program::SharedBytes, schedule::Schedule};

/// First bytes of a compiled trace.
pub const MAGIC: &[u8; 8] = b"FLOWCAST";

const VERSION: u32 = 1;
/// Version of programs with loops, which readers of the first version refuse.
const FOLDED_VERSION: u32 = 2;
const HEADER_BYTES: usize = 32;
const PROGRAM: u32 = 1;
const SCHEDULE: u32 = 2;
const FOLDED: u32 = 3;
const OTHER_CHECKSUM: &str =
    "found content that does not match the checksum: the file is cut off or damaged";

/// Returns the compiled form of a trace, as parts to be written one after another.
pub fn parts(trace: &Trace) -> Vec<Vec<u8>> {
    let mut parts = match trace {
        Trace::Program(program) => program::parts(program),
        Trace::Folded(folded) => folded::parts(folded),
        Trace::Schedule(schedule) => std::iter::once(schedule::tables(schedule))
            .chain(schedule.graphs.iter().map(schedule::part))
            .collect(),
    };
    let mut checksum = crc32fast::Hasher::new();
    parts.iter().for_each(|part| checksum.update(part));
    parts.insert(0, header(trace, parts[0].len(), checksum));
    parts
}

/// Writes the compiled form. For a schedule, only one rank of the compiled form is in memory at a time, because it is as
/// large as the schedule itself.
///
/// # Errors
/// Errors of `out`.
pub fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let Trace::Schedule(schedule) = trace else {
        return parts(trace).iter().try_for_each(|part| out.write_all(part));
    };
    let tables = schedule::tables(schedule);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&tables);
    schedule
        .graphs
        .iter()
        .for_each(|graph| checksum.update(&schedule::part(graph)));
    out.write_all(&header(trace, tables.len(), checksum))?;
    out.write_all(&tables)?;
    schedule
        .graphs
        .iter()
        .try_for_each(|graph| out.write_all(&schedule::part(graph)))
}

fn header(trace: &Trace, tables: usize, checksum: crc32fast::Hasher) -> Vec<u8> {
    let kind = match trace {
        Trace::Program(_) => PROGRAM,
        Trace::Folded(_) => FOLDED,
        Trace::Schedule(_) => SCHEDULE,
    };
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&version_of(kind).to_le_bytes());
    header.extend_from_slice(&checksum.finalize().to_le_bytes());
    header.extend_from_slice(&(tables as u64).to_le_bytes());
    header.extend_from_slice(&kind.to_le_bytes());
    header.resize(HEADER_BYTES, 0);
    header
}

const fn version_of(kind: u32) -> u32 {
    if kind == FOLDED {
        FOLDED_VERSION
    } else {
        VERSION
    }
}

/// Encodes tables for the file.
fn encode_tables(tables: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(tables).expect("tables contain numbers and names");
    bytes.resize(bytes.len().next_multiple_of(8), b' ');
    bytes
}

/// Reason why a compiled trace cannot be used.
struct Damage(String);

impl From<&str> for Damage {
    fn from(problem: &str) -> Damage {
        Damage(problem.to_owned())
    }
}

/// Reads a compiled trace; the streams of a program stay in place.
///
/// # Errors
/// [`TraceError::Damaged`] if the version, the length, the checksum or the content is invalid.
pub fn read(name: &str, bytes: SharedBytes) -> Result<Trace, TraceError> {
    read_checked(&bytes).map_err(|Damage(problem)| TraceError::damaged(name, problem))
}

fn read_checked(bytes: &SharedBytes) -> Result<Trace, Damage> {
    let file = (**bytes).as_ref();
    if file.len() < HEADER_BYTES {
        return Err("found an incomplete header, expected 32 bytes".into());
    }
    let (version, kind) = (u32_at(file, 8), u32_at(file, 24));
    if version != version_of(kind) {
        return Err(Damage(format!(
            "found version {version} of the compiled format, expected {}: compile the trace again",
            version_of(kind)
        )));
    }
    if crc32fast::hash(&file[HEADER_BYTES..]) != u32_at(file, 12) {
        return Err(OTHER_CHECKSUM.into());
    }
    let length = u64_at(file, 16);
    let end = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_add(HEADER_BYTES));
    let end = end
        .filter(|end| *end <= file.len() && end.is_multiple_of(8))
        .ok_or("found tables longer than the file")?;
    let tables = &file[HEADER_BYTES..end];
    match kind {
        PROGRAM => {
            whole(bytes, program::read(bytes, decode_tables(tables)?, end)?).map(Trace::Program)
        }
        FOLDED => {
            whole(bytes, folded::read(bytes, decode_tables(tables)?, end)?).map(Trace::Folded)
        }
        SCHEDULE => Ok(Trace::Schedule(schedule::read(
            &mut &file[end..],
            decode_tables(tables)?,
        )?)),
        kind => Err(Damage(format!(
            "found a trace of kind {kind}, expected {PROGRAM}, {SCHEDULE} or {FOLDED}"
        ))),
    }
}

/// Returns the result if it was read up to the end of the file.
fn whole<T>(bytes: &SharedBytes, (read, end): (T, usize)) -> Result<T, Damage> {
    if end == (**bytes).as_ref().len() {
        Ok(read)
    } else {
        Err("found bytes after the last stream".into())
    }
}

/// `true` if this is the beginning of a compiled schedule, which [`read_schedule`] reads piece by piece.
pub fn is_schedule(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
        && bytes.get(8..12) == Some(&VERSION.to_le_bytes()[..])
        && bytes.get(24) == Some(&(SCHEDULE as u8))
}

/// Reads a compiled schedule from its beginning, without all of its bytes in memory at the same time.
///
/// # Errors
/// Errors of [`read`].
pub fn read_schedule(name: &str, input: &mut dyn Read) -> Result<Schedule, TraceError> {
    schedule_from(input).map_err(|Damage(problem)| TraceError::damaged(name, problem))
}

fn schedule_from(input: &mut dyn Read) -> Result<Schedule, Damage> {
    let mut header = [0; HEADER_BYTES];
    input.read_exact(&mut header).map_err(unreadable)?;
    let mut input = Checked {
        input,
        hasher: crc32fast::Hasher::new(),
    };
    let length = u64_at(&header, 16);
    let mut tables = Vec::new();
    input
        .by_ref()
        .take(length)
        .read_to_end(&mut tables)
        .map_err(unreadable)?;
    let checksum = u32_at(&header, 12);
    let found = if tables.len() as u64 == length {
        decode_tables(&tables).and_then(|tables| schedule::read(&mut input, tables))
    } else {
        Err("found tables longer than the file".into())
    };
    // Damaged content comes with a wrong checksum, which is the error to report first.
    std::io::copy(&mut input, &mut std::io::sink()).map_err(unreadable)?;
    if input.hasher.finalize() == checksum {
        found
    } else {
        Err(OTHER_CHECKSUM.into())
    }
}

fn unreadable(error: std::io::Error) -> Damage {
    Damage(error.to_string())
}

/// Reader that computes the checksum of its input.
struct Checked<'a> {
    input: &'a mut dyn Read,
    hasher: crc32fast::Hasher,
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}

fn decode_tables<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Damage> {
    serde_json::from_slice(bytes)
        .map_err(|error| Damage(format!("found tables that cannot be read ({error})")))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
