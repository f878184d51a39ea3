//! DUMPI traces (SST), in the text form from `dumpi2ascii`. Each call has a line at its start, one for each argument, and
//! one at its end. The trace has a file for each rank, or one file with all ranks one after the other.
//!
//! Each rank numbers its own communicators, groups and requests. The members of a communicator follow from the calls that
//! made it. The binary form is not supported.

mod call;
mod lines;
mod types;

use super::{
    calls::{self, RankCalls},
    parts::TracePart,
    scan::{ScanInput, bytes_of},
};
use call::DumpiCalls;
use flowcast_program::{ReadOptions, TraceError, program::Program};
use lines::LineReader;
use std::collections::BTreeMap;

/// Returns `true` if the text is such a trace.
pub(super) fn recognises(text: &[u8]) -> bool {
    let head = &text[..text.len().min(4096)];
    head.starts_with(b"MPI_")
        && lines::is_entering(head.split(|byte| *byte == b'\n').next().unwrap_or(head))
        || head.starts_with(b"version=")
            && memchr::memmem::find(head, lines::ENTERING.as_bytes()).is_some()
}

/// Reads the trace.
pub(super) fn read(
    name: &str,
    parts: &[TracePart],
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let mut sections = Vec::new();
    for (name, bytes) in parts {
        let input = ScanInput {
            name,
            text: bytes_of(bytes),
        };
        for (start, end) in lines::sections(input.text) {
            let mut calls = DumpiCalls::new(types::sizes(&input.text[start..end]));
            let mut reader = LineReader::new(input, start, end);
            while let Some(record) = reader.next()? {
                let at = record.at;
                calls
                    .call(&record)
                    .map_err(|fault| input.refuse(at, fault))?;
            }
            calls.unfinished += u64::from(reader.is_unfinished);
            sections.push((input, start, calls));
        }
    }
    let count = sections.len();
    let mut ranks: Vec<Option<RankCalls>> = vec![None; count];
    let (mut unfinished, mut unsized_types) = (0, BTreeMap::new());
    for (number, (input, start, calls)) in sections.into_iter().enumerate() {
        if calls.world_size.is_some_and(|size| size != count as i64) {
            let found = format!("{count} ranks");
            let expected = format!(
                "{}: a file or a section for each rank",
                calls.world_size.unwrap_or(0)
            );
            return Err(input.fault(start, found, expected));
        }
        let rank = calls
            .rank
            .and_then(|rank| usize::try_from(rank).ok())
            .unwrap_or(number);
        if ranks.get(rank).is_none_or(Option::is_some) {
            return Err(input.fault(
                start,
                format!("rank {rank} again"),
                format!("each rank below {count} once"),
            ));
        }
        unfinished += calls.unfinished;
        for (described, uses) in calls.types.unknown {
            *unsized_types.entry(described).or_default() += uses;
        }
        ranks[rank] = Some(calls.out);
    }
    let unsized_types = unsized_types.into_iter().map(|(described, count)| {
        let kind = format!(
            "uses of {described}, whose size is not in the trace; an element counts as one byte"
        );
        (kind, count)
    });
    let unfinished = [("calls that did not return".to_owned(), unfinished)];
    calls::program(
        name,
        ranks.into_iter().map(Option::unwrap_or_default).collect(),
        unfinished.into_iter().chain(unsized_types),
        options,
    )
}
