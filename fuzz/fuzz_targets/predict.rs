//! What all targets of traces do: read, then replay what could be read.

use std::sync::Arc;

use flowcast::model::builtin;
use flowcast::replay::costs::Rendezvous;
use flowcast::replay::loggops::{self, Loggops};
use flowcast::replay::placement::Placement;
use flowcast::replay::walk::Replay;
use flowcast::trace::read::OpenPart;
use flowcast::trace::{ReadOptions, Trace, read};

/// Reads the start that makes the format known with the rest that the fuzzer chose, and replays.
pub fn predict(start: &[u8], rest: &[u8]) {
    predict_with([start, rest].concat(), &mut |_: &str| Err(std::io::ErrorKind::NotFound.into()));
}

/// The same for bytes that name other files.
pub fn predict_with(bytes: Vec<u8>, open: OpenPart<'_>) {
    let network = builtin::network("gige-tcp").expect("the network is built in");
    match read("t", Arc::new(bytes), open, ReadOptions::default()) {
        Ok(Trace::Program(program)) => {
            let placement = Placement::new(&network.machine, None, program.ranks()).expect("one rank on each node");
            let replay = Replay::new(&program, &network, placement, Rendezvous::AsRecorded).expect("one kind of node");
            if let Ok((_, recorder)) = replay.record() {
                replay.critical_path(&recorder);
            }
        }
        Ok(Trace::Schedule(schedule)) => drop(loggops::run(&schedule, Loggops::from_network(&network))),
        Err(_) => {}
    }
}
