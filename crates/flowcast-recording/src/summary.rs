//! Summaries of recordings: calls and bytes of each function, and time in computation and in calls.

use std::collections::BTreeMap;

use flowcast_units::Rank;

use super::{
    RecordingError,
    decode::{Item, RankFile},
    format::{self, RECORDING_MAGIC},
    table::MpiFunction,
};

/// Calls of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls {
    /// Number of calls, including unsuccessful tests and probes.
    pub calls: u64,
    /// Number of these calls that are tests and probes that found nothing.
    pub unsuccessful: u64,
    /// Bytes sent by these calls.
    pub bytes: u64,
    /// Total time in these calls, in ns.
    pub nanos: u64,
    /// `true` if a replay ignores these calls.
    pub left_out: bool,
}

/// Summary of one rank or of several ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Calls, keyed by the function's name with `MPI_`.
    pub functions: BTreeMap<String, Calls>,
    /// Total computation of all ranks, in ns.
    pub burst: u64,
    /// Thread CPU time of this computation, in ns.
    pub cpu: u64,
    /// Size of the files, in bytes.
    pub file_bytes: u64,
    /// Number of ranks that finished.
    pub ended: u32,
    /// Number of ranks that used up their size budget.
    pub stopped: u32,
}

/// Summarises one rank: its calls of each function, its computation and the size of its file.
pub fn summarize(file: &RankFile) -> Summary {
    let mut functions = vec![Calls::default(); file.functions.len()];
    let (burst, cpu) = computation(file);
    let mut summary = Summary {
        burst,
        cpu,
        file_bytes: file.bytes,
        ended: u32::from(file.ended),
        stopped: u32::from(file.stopped),
        ..Summary::default()
    };
    let kinds = file.functions.iter().map(|name| MpiFunction::named(name));
    let kinds: Vec<_> = kinds.collect();
    for item in &file.items {
        match item {
            Item::Call(call) => {
                let words = &file.signatures[call.signature as usize];
                let calls = &mut functions[words[0] as usize];
                calls.calls += 1;
                calls.nanos += call.time;
                let function = kinds[words[0] as usize];
                calls.bytes += function.map_or(0, |function| bytes_sent(function, words));
                calls.left_out |= function.is_none_or(|function| function.is_left_out(words));
            }
            Item::Polls(polls) => {
                let calls = &mut functions[polls.function as usize];
                calls.calls += polls.count;
                calls.unsuccessful += polls.count;
                calls.nanos += polls.time;
            }
            Item::Off(_) => {}
        }
    }
    for (name, calls) in file.functions.iter().zip(functions) {
        summary.functions.insert(format!("MPI_{name}"), calls);
    }
    summary
}

/// Returns the computation of a rank, in ns: wall time and thread CPU time.
pub fn computation(file: &RankFile) -> (u64, u64) {
    let times = file.items.iter().map(|item| match item {
        Item::Call(call) => (call.burst, call.cpu),
        Item::Polls(polls) => (polls.burst, polls.burst),
        Item::Off(_) => (0, 0),
    });
    times.fold((0, 0), |(wall, cpu), (burst, own)| {
        (wall + burst, cpu + own)
    })
}

impl Summary {
    /// Adds the counts of another rank or of several ranks.
    pub fn add(&mut self, other: &Summary) {
        for (name, calls) in &other.functions {
            let sum = self.functions.entry(name.clone()).or_default();
            sum.calls += calls.calls;
            sum.unsuccessful += calls.unsuccessful;
            sum.bytes += calls.bytes;
            sum.nanos += calls.nanos;
            sum.left_out |= calls.left_out;
        }
        self.burst += other.burst;
        self.cpu += other.cpu;
        self.file_bytes += other.file_bytes;
        self.ended += other.ended;
        self.stopped += other.stopped;
    }

    /// Returns the number of calls of all functions together.
    pub fn calls(&self) -> u64 {
        self.functions.values().map(|calls| calls.calls).sum()
    }
}

/// Returns the bytes that a call hands over: the size of a message, this rank's contribution to a collective, or all bytes
/// of an operation on a file.
pub fn bytes_sent(function: &MpiFunction, words: &[i64]) -> u64 {
    let word = |index: usize| {
        words
            .get(index)
            .and_then(|word| u64::try_from(*word).ok())
            .unwrap_or(0)
    };
    match function.kind.as_str() {
        "send" | "ssend" | "isend" | "issend" | "sendrecv" => word(4),
        "rma" | "irma" => word(3),
        "io" | "iio" => word(2),
        _ if function.is_between_neighbours() => {
            neighbours(words).0.iter().map(|(_, bytes)| *bytes).sum()
        }
        _ if is_collective(function) && !function.kind.ends_with("-init") => word(3),
        _ => 0,
    }
}

/// Returns the neighbours in a collective between neighbours: the ranks that this rank sends to, with the bytes for each,
/// and the ranks that it receives from.
///
/// ```
/// use flowcast_recording::summary::neighbours;
///
/// // Function, communicator, two destinations with bytes, a source.
/// let words = [0, 0, 2, 1, 80, 3, 40, 1];
/// assert_eq!(neighbours(&words), (vec![(1, 80), (3, 40)], &[1][..]));
/// ```
pub fn neighbours(words: &[i64]) -> (Vec<(i64, u64)>, &[i64]) {
    let [_, _, count, rest @ ..] = words else {
        return (Vec::new(), &[]);
    };
    let count = usize::try_from(*count).unwrap_or(0).min(rest.len() / 2);
    let (destinations, sources) = rest.split_at(2 * count);
    (
        destinations
            .chunks_exact(2)
            .map(|pair| (pair[0], u64::try_from(pair[1]).unwrap_or(0)))
            .collect(),
        sources,
    )
}

/// Returns `true` for a collective operation on data, also if it is non-blocking or persistent.
pub fn is_collective(function: &MpiFunction) -> bool {
    super::operation(&function.name).is_some()
}

/// Returns the name of a rank's file.
pub fn rank_file(rank: Rank) -> String {
    format!("rank-{rank:05}")
}

/// Returns the number of ranks of a recording, from the text of its file `recording`.
///
/// # Errors
/// The text is not the content of a file `recording`.
pub fn ranks(name: &str, text: &[u8]) -> Result<u32, RecordingError> {
    let text = String::from_utf8_lossy(text);
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("ranks "))
        .unwrap_or_default();
    let ranks = value
        .parse()
        .ok()
        .filter(|ranks| (1..=1 << 24).contains(ranks));
    if !text.starts_with(RECORDING_MAGIC) {
        let found = text
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(40)
            .collect();
        return Err(RecordingError::At {
            place: format!("{name}:1"),
            found,
            expected: format::RECORDING_MAGIC.to_owned(),
        });
    }
    ranks.ok_or_else(|| RecordingError::At {
        place: name.to_owned(),
        found: format!("`{value}` ranks"),
        expected: "a number from 1 to 16777216 after `ranks`".to_owned(),
    })
}
