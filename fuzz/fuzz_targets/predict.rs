//! Common part of all trace targets: read, then replay valid programs, also with collectives as messages.

#![allow(dead_code, reason = "each target uses a part of it")]

use std::sync::Arc;

use flowcast::model::builtin;
use flowcast::model::sharing::model::Model;
use flowcast::convert::{self, Dialect, Losses, WriterTables};
use flowcast::formats::read::OpenPart;
use flowcast::formats::read;
use flowcast::trace::{Program, ReadOptions, Trace};
use flowcast::units::Rank;
use flowcast::{Collectives, Contention, Options, Outputs, Prepared};

/// Reads the start that identifies the format, followed by the bytes of the fuzzer, and replays.
pub fn predict(start: &[u8], rest: &[u8]) {
    predict_with([start, rest].concat(), &mut |_: &str| Err(std::io::ErrorKind::NotFound.into()));
}

/// The same for bytes that name other files.
pub fn predict_with(bytes: Vec<u8>, open: OpenPart<'_>) {
    if let Ok(trace) = read("t", Arc::new(bytes), open, ReadOptions::default()) {
        replay(&trace);
    }
}

/// Bytes of a program that is unrolled here.
const MOST_UNFOLDED: u64 = 1 << 16;

/// Replays on a network, with collectives by formula and as messages.
pub fn replay(trace: &Trace) {
    let network = builtin::network("gige-tcp").expect("the network is built in");
    if let Trace::Folded(folded) = trace {
        // A few bytes can request more iterations than the time allows.
        if folded.unfolded_bytes() > MOST_UNFOLDED {
            return;
        }
        let options = Options { contention: Contention::Shared(Model::Independent), ..Options::default() };
        let _ = flowcast::predict(trace, &network, &options);
    }
    for collectives in [Collectives::Formula, Collectives::OpenMpi, Collectives::Mpich] {
        let options = Options { collectives, ..Options::default() };
        let outputs = Outputs { view: true, explanation: true, journal: None };
        // Ranks may wait for each other, but nothing may panic.
        let _ = Prepared::new(trace, Some(&network), &options).and_then(|ready| ready.predict(outputs, &[]));
    }
}

/// Writes a program in the formats of other tools.
pub fn convert(program: &Program) {
    let mut out = Vec::new();
    let _ = convert::goal(program, &mut out);
    let _ = convert::dim(program, Dialect::Own, &mut out);
    let tables = WriterTables::new(program);
    for rank in Rank::all(program.ranks()) {
        let _ = convert::ti_rank(&tables, rank, &mut Losses::default(), &mut out);
    }
}
