//! Recordings of two ranks, call by call.

use crate::read::recorded::{Clock, program};
use flowcast_program::{Program, ReadOptions};
use flowcast_recording::decode::{Header, Item, Members, RankFile, RecordedCall};
use flowcast_units::Rank;

/// Call: function, words after it, thread.
pub(super) type TestCall<'a> = (&'a str, &'a [i64], u32);

/// Builds the program of two ranks with one window, which has the number 0 at each rank and a communicator with the global
/// number 1.
pub(super) fn read(ranks: [&[TestCall<'_>]; 2]) -> Program {
    let files: Vec<RankFile> = (0..2)
        .map(Rank)
        .zip(ranks)
        .map(|(rank, calls)| file(rank, calls))
        .collect();
    program("two", &files, Clock::Wall, ReadOptions::default()).unwrap()
}

fn file(rank: Rank, calls: &[TestCall<'_>]) -> RankFile {
    let header = Header {
        rank,
        ranks: 2,
        ..Header::default()
    };
    let world = Members {
        own: vec![0, 1],
        remote: Vec::new(),
    };
    let communicators = vec![world.into()];
    let mut file = RankFile {
        header,
        communicators,
        windows: vec![0],
        ended: true,
        ..RankFile::default()
    };
    for (number, (function, words, thread)) in (0..).zip(calls) {
        file.functions.push((*function).to_owned());
        file.signatures
            .push([&[i64::from(number)], *words].concat());
        let begin = 1000 * u64::from(number);
        file.items.push(Item::Call(RecordedCall {
            thread: *thread,
            signature: number,
            begin,
            burst: 0,
            cpu: 0,
            time: 10,
        }));
    }
    file
}

/// Returns the descriptions of the ignored records.
pub(super) fn notes_of(program: &Program) -> Vec<String> {
    program.ignored().iter().map(ToString::to_string).collect()
}
