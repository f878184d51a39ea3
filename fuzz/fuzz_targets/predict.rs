//! What all targets of traces do: read, then replay what could be read.

use std::sync::Arc;

use flowcast::model::builtin;
use flowcast::trace::read::OpenPart;
use flowcast::trace::{ReadOptions, read};
use flowcast::{Options, Outputs, Prepared};

/// Reads the start that makes the format known with the rest that the fuzzer chose, and replays.
pub fn predict(start: &[u8], rest: &[u8]) {
    predict_with([start, rest].concat(), &mut |_: &str| Err(std::io::ErrorKind::NotFound.into()));
}

/// The same for bytes that name other files.
pub fn predict_with(bytes: Vec<u8>, open: OpenPart<'_>) {
    let network = builtin::network("gige-tcp").expect("the network is built in");
    let Ok(trace) = read("t", Arc::new(bytes), open, ReadOptions::default()) else { return };
    let outputs = Outputs { view: true, explanation: true, journal: None };
    // Ranks may wait for each other; what counts is that nothing panics.
    let _ = Prepared::new(&trace, Some(&network), &Options::default()).and_then(|ready| ready.predict(outputs, &[]));
}
