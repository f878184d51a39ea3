//! Programs made by hand: from a text, from the records of each rank, from a file, or from one collective operation.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use flowcast::{
    model::{dimemas_cfg::DimemasConfig, network::Network, sharing::model::Model},
    replay::{ReplayEngine, costs::Rendezvous, placement::Placement},
    trace::{Program, Trace, TraceError},
    units::CollectiveOp,
};

/// Path of a file in this repository.
pub(crate) fn file(path: impl AsRef<Path>) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Reads a trace that names no other files.
pub(crate) fn read_text(text: impl Into<Vec<u8>>) -> Result<Trace, TraceError> {
    flowcast::read_text("trace", text)
}

/// The program in a trace that is a program.
pub(crate) fn as_program(trace: Trace) -> Program {
    match trace {
        Trace::Program(program) => program,
        _ => panic!("expected a program"),
    }
}

/// The program of a trace given as text or bytes.
pub(crate) fn program_of(text: impl Into<Vec<u8>>) -> Program {
    as_program(read_text(text).unwrap())
}

/// The trace in a file of this repository.
pub(crate) fn bundled(path: impl AsRef<Path>) -> Trace {
    read_text(fs::read(file(path)).unwrap()).unwrap()
}

/// The program in a file of this repository.
pub(crate) fn program_at(path: impl AsRef<Path>) -> Program {
    as_program(bundled(path))
}

/// The network of a Dimemas configuration in a folder of this repository, with the files beside it that it names.
pub(crate) fn network_at(folder: &str, name: &str) -> Network {
    let mut open = |name: &str| fs::read(file(folder).join(name));
    let bytes = open(name).unwrap();
    DimemasConfig::read(&bytes, &mut open).unwrap().network
}

/// A replay on a shared network, with the network's own placement, on `threads` threads.
pub(crate) fn shared_engine<'a>(
    program: &'a Program,
    network: &Network,
    model: Model,
    threads: usize,
) -> ReplayEngine<'a> {
    let placement = Placement::of_program(&network.machine, None, program).unwrap();
    let rendezvous = Rendezvous::from_network(network, None);
    ReplayEngine::sharing(program, network, placement, rendezvous, model)
        .unwrap()
        .on_threads(threads)
}

/// All ranks, as the members of a communicator.
pub(crate) fn all(ranks: usize) -> Vec<u32> {
    (0..ranks as u32).collect()
}

/// A Dimemas trace. Communicators are counted from 1. Each rank has its own node. Its records are separated by spaces and
/// omit the rank: `3:1:-1:80:7:1:0` is the record `3:RANK:0:1:-1:80:7:1:0`.
pub(crate) fn dim(communicators: &[Vec<u32>], ranks: &[impl AsRef<str>]) -> String {
    let mut text = dim_head(ranks.len(), communicators);
    for (rank, records) in ranks.iter().enumerate() {
        for record in records.as_ref().split_whitespace() {
            let (kind, rest) = record.split_once(':').unwrap();
            writeln!(text, "{kind}:{rank}:0:{rest}").unwrap();
        }
    }
    text
}

/// Records of ranks that begin with a computation of zero duration.
pub(crate) fn begun(ranks: &[impl AsRef<str>]) -> Vec<String> {
    let ranks = ranks.iter();
    ranks
        .map(|records| format!("1:0.0 {}", records.as_ref()))
        .collect()
}

/// First lines of a Dimemas trace, with `ranks` ranks, each on its own node, and with communicators, counted from 1.
pub(crate) fn dim_head(ranks: usize, communicators: &[Vec<u32>]) -> String {
    let nodes = vec!["1"; ranks].join(",");
    let count = communicators.len();
    let mut text = format!("#DIMEMAS:\"t\":0:{ranks}({nodes}),{count}\n");
    for (id, members) in (1..).zip(communicators) {
        write!(text, "d:1:{id}:{}", members.len()).unwrap();
        for member in members {
            write!(text, ":{member}").unwrap();
        }
        text.push('\n');
    }
    text
}

/// One collective operation of all ranks with root 0, and the bytes that each rank sends and receives.
pub(crate) fn collective(op: CollectiveOp, ranks: u32, (sent, received): (u64, u64)) -> Program {
    let records = |rank| {
        let root = u32::from(rank == 0);
        format!("1:0.0 10:{}:1:{root}:0:{sent}:{received}:1", op as u8)
    };
    let records: Vec<String> = (0..ranks).map(records).collect();
    program_of(dim(&[all(ranks as usize)], &records))
}
