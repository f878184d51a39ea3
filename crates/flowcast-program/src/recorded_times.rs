//! Times of a recorded run.
//!
//! Each rank has its own clock, so a span is measured on one rank and never between ranks. The times include the overhead of
//! the recorder, 50 to 150 ns per call.

use crate::run_times::{OpenRegions, RunTimes};
use flowcast_recording::{
    decode::{Item, RankFile, RecordedCall},
    table::MpiFunction,
};
use flowcast_units::Time;

/// Returns the measured times of the run.
pub fn measured(files: &[RankFile]) -> RunTimes {
    let mut times = RunTimes::of_ranks(files.len());
    for (rank, file) in files.iter().enumerate() {
        let span = of_rank(file, &mut times);
        times.total = times.total.max(span.whole);
        times.communication[rank] = span.communication;
        times.computation[rank] = if has_threads(file) {
            worked_by(file)
        } else {
            span.whole - span.communication
        };
    }
    times
}

/// Processor time between MPI's calls, indexed by rank: thread CPU time, which does not grow while ranks take turns on a
/// processor.
pub fn worked(files: &[RankFile]) -> Vec<Time> {
    files.iter().map(worked_by).collect()
}

/// Processor time of a rank between MPI's calls.
pub fn worked_by(file: &RankFile) -> Time {
    let range = between(file);
    // The time before `MPI_Finalize` still belongs to the program.
    let calls = file.items[range.start..]
        .iter()
        .take(range.len() + 1)
        .map(|item| match item {
            Item::Call(call) => call.cpu.min(call.burst),
            Item::Polls(polls) => polls.burst,
            Item::Off(_) => 0,
        });
    nanos(calls.sum())
}

/// `true` if several threads of the rank call MPI. The time between two calls of one thread is then not the rank's time
/// between calls.
pub fn has_threads(file: &RankFile) -> bool {
    file.items
        .iter()
        .any(|item| matches!(item, Item::Call(call) if call.thread > 0))
}

struct RecordedSpan {
    whole: Time,
    communication: Time,
}

/// Range of the items after `MPI_Init` and before `MPI_Finalize`.
fn between(file: &RankFile) -> std::ops::Range<usize> {
    let mut kinds = file.items.iter().map(|item| match item {
        Item::Call(call) => kind(file, call),
        _ => "",
    });
    let first = kinds
        .clone()
        .position(|kind| kind == "init")
        .map_or(0, |at| at + 1);
    let last = kinds
        .rposition(|kind| kind == "finalize")
        .unwrap_or(file.items.len());
    first..last.max(first)
}

fn kind(file: &RankFile, call: &RecordedCall) -> &'static str {
    MpiFunction::named(name(file, call)).map_or("other", |function| function.kind.as_str())
}

fn name<'a>(file: &'a RankFile, call: &RecordedCall) -> &'a str {
    &file.functions[file.signatures[call.signature as usize][0] as usize]
}

fn of_rank(file: &RankFile, times: &mut RunTimes) -> RecordedSpan {
    let range = between(file);
    let begin = file.items[..range.start]
        .iter()
        .rev()
        .find_map(end_of)
        .unwrap_or(0);
    let end = file
        .items
        .get(range.end)
        .and_then(|item| match item {
            Item::Call(call) => Some(call.begin),
            _ => None,
        })
        .or_else(|| file.items[range.clone()].iter().rev().find_map(end_of))
        .unwrap_or(begin);
    let names: Vec<String> = file.functions.iter().map(|name| mpi_name(name)).collect();
    let mut regions = OpenRegions::default();
    let mut communication = 0;
    for item in &file.items[range] {
        match item {
            Item::Call(call) => {
                communication += call.time;
                let function = file.signatures[call.signature as usize][0];
                times.add_call(&names[function as usize], nanos(call.time));
                mark(&mut regions, file, call, kind(file, call));
            }
            Item::Polls(polls) => {
                communication += polls.time;
                times.add_call(&names[polls.function as usize], nanos(polls.time));
            }
            Item::Off(_) => {}
        }
    }
    regions
        .sums()
        .iter()
        .for_each(|(name, time)| times.add_region(name, *time));
    RecordedSpan {
        whole: nanos(end.saturating_sub(begin)),
        communication: nanos(communication),
    }
}

fn end_of(item: &Item) -> Option<u64> {
    match item {
        Item::Call(call) => Some(call.begin.saturating_add(call.time)),
        _ => None,
    }
}

fn mark(regions: &mut OpenRegions, file: &RankFile, call: &RecordedCall, kind: &str) {
    let words = &file.signatures[call.signature as usize];
    if kind != "pcontrol" || words.len() < 3 {
        return;
    }
    if words[1] > 0 {
        regions.begin(
            &flowcast_recording::region_name(file, words),
            nanos(call.begin),
        );
    } else {
        regions.end(nanos(call.begin));
    }
}

/// MPI name of a function; the form for large counts has the same name.
fn mpi_name(function: &str) -> String {
    format!("MPI_{}", function.strip_suffix("_c").unwrap_or(function))
}

fn nanos(nanos: u64) -> Time {
    Time::from_nanos(nanos as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(signature: u32, begin: u64, burst: u64, time: u64) -> Item {
        Item::Call(RecordedCall {
            thread: 0,
            signature,
            begin,
            burst,
            cpu: burst / 2,
            time,
        })
    }

    /// Init at 0..100, region "a" from 110, Send at 130..150, Bcast at 160..200, end of the region at 210, Finalize at 230.
    fn file() -> RankFile {
        let functions = ["Init", "Pcontrol", "Send", "Bcast", "Finalize"]
            .map(String::from)
            .to_vec();
        let signatures = vec![
            vec![0],
            vec![1, 1, 1],
            vec![2, 0, 1, 7, 8],
            vec![3, 0, 0, 4, 0],
            vec![1, -1, 1],
            vec![4],
        ];
        let items = vec![
            call(0, 0, 0, 100),
            call(1, 110, 10, 0),
            call(2, 130, 20, 20),
            call(3, 160, 10, 40),
            call(4, 210, 10, 0),
            call(5, 230, 20, 500),
        ];
        RankFile {
            functions,
            signatures,
            items,
            names: vec!["a".into()],
            ended: true,
            ..RankFile::default()
        }
    }

    #[test]
    fn times_between_init_and_finalize_are_divided_by_call_and_region() {
        let mut slow = file();
        slow.items.insert(4, call(2, 210, 0, 1000));
        for item in &mut slow.items[5..] {
            if let Item::Call(call) = item {
                call.begin += 1000;
            }
        }
        let times = measured(&[file(), slow]);
        assert_eq!(times.total, nanos(1130));
        assert_eq!(times.communication, [nanos(60), nanos(1060)]);
        assert_eq!(times.computation, [nanos(70), nanos(70)]);
        assert_eq!(times.calls["MPI_Send"], nanos(1040));
        assert_eq!(times.calls["MPI_Bcast"], nanos(80));
        assert_eq!(times.regions["a"], nanos(1100));
        assert_eq!(worked(&[file()]), [nanos(35)]);
    }

    #[test]
    fn a_rank_that_was_killed_counts_to_its_last_call() {
        let mut cut = file();
        cut.items.truncate(4);
        assert_eq!(measured(&[cut]).total, nanos(100));
    }
}
