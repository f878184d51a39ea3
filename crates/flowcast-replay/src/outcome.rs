//! What a replay gives: the times of the ranks and of the whole.

use std::io;

use flowcast_network::sharing::link_loads::{ClassLoad, LinkLoads};
use flowcast_program::{program::Program, slot::Slot};
use flowcast_units::{Bytes, Rank, Time};
use thiserror::Error;

/// Where one rank's time goes: `compute + overhead + blocked = end`, exactly.
///
/// | time | class |
/// |---|---|
/// | the program's own computation, on a processor or an accelerator | compute |
/// | a processor handles a message: LogGP's `o`, Dimemas' start-up, the bytes that LogGOPSim has a receiver copy, the start-up of a collective or of an access | overhead |
/// | waiting for a message, a receiver, the end of a collective, an access, the rank's own interface, a processor or its switch to the rank | blocked |
///
/// The engines book computation and overhead where they happen; a rank that does neither is blocked. What several
/// processors of one rank do at the same time counts once: as computation if one of them computes, else as overhead.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankOutcome {
    /// When its last record was done.
    pub end: Time,
    /// Time in the program's own computation.
    pub compute: Time,
    /// Time in which the rank neither computes nor handles messages.
    pub blocked: Time,
    /// Processor time spent on messages.
    pub overhead: Time,
}

impl RankOutcome {
    /// Of a rank that ends at `end`; the sums of its computations and overheads may differ from it by rounding.
    pub fn new(end: Time, compute: Time, overhead: Time) -> RankOutcome {
        // Multiples of the distance between numbers of the size of `end`: their sums and differences are exact.
        let on_grid = |time: Time| (end + time) - end;
        let compute = on_grid(compute).min(end);
        let overhead = on_grid(overhead).min(end - compute);
        RankOutcome {
            end,
            compute,
            blocked: end - compute - overhead,
            overhead,
        }
    }

    /// Time in communication: all that is not the program's own computation.
    pub fn communication(&self) -> Time {
        self.end - self.compute
    }
}

/// What a replay gives: the times of all ranks, and how much they sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Times of each rank, by rank.
    pub ranks: Vec<RankOutcome>,
    /// Number of point-to-point messages, those of expanded collectives included.
    pub messages: u64,
    /// Bytes of these messages together.
    pub bytes: Bytes,
    /// How often something had to wait for what the machine limits.
    pub waits: Waits,
    /// How loaded the links of each class were, if that was noted; headers do not count.
    pub loads: Vec<ClassLoad>,
    /// What sharing the links of each class cost messages, if that was noted; those that cost nothing are left out.
    pub delays: Vec<LevelDelay>,
    /// The messages that lost most to others, the worst first; of many the first hundred.
    pub delayed: Vec<DelayedMessage>,
    /// What each of several rails carried; empty where there is one network.
    pub rails: Vec<RailTraffic>,
}

/// What a rail carried between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RailTraffic {
    /// Messages and pieces of messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// What sharing the links of a class with others cost messages.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelDelay {
    /// The class, such as `node` or `global`.
    pub class: String,
    /// How many messages lost more at such a link than at any other.
    pub messages: u64,
    /// By how much messages took longer than alone while such a link limited them, all together.
    pub lost: Time,
    /// The link that cost most; the first of several.
    pub worst: String,
    /// What that link alone cost, a part of `lost`.
    pub lost_there: Time,
}

/// A message that lost time to others.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayedMessage {
    /// Its slot; from the number of messages on, a one-sided transfer.
    pub slot: Slot,
    /// By how much it took longer than alone.
    pub lost: Time,
    /// The link at which it lost most.
    pub link: String,
}

/// How often something had to wait for each thing that a machine limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Messages for links of nodes.
    pub links: u64,
    /// Messages and collectives for buses between nodes.
    pub buses: u64,
    /// Messages for links inside a node.
    pub intra_links: u64,
    /// Messages for buses inside a node.
    pub intra_buses: u64,
    /// Messages for links of sites.
    pub wide_area_links: u64,
    /// Messages for dedicated connections.
    pub connections: u64,
    /// Ranks for a processor.
    pub processors: u64,
    /// Times that a rank lost its processor at the end of a quantum, or to a rank of a smaller number.
    pub preemptions: u64,
}

/// More than formats count in 64 bits, one of which is the sign.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum Uncounted {
    /// A time in nanoseconds.
    #[error("found a replay of {0}, expected less than 73 years: nanoseconds are read up to 2^61")]
    Nanos(Time),
    /// The bytes of all messages.
    #[error("found messages of 2^63 bytes or more together, expected fewer")]
    Bytes,
}

impl From<Uncounted> for io::Error {
    fn from(error: Uncounted) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}

impl Outcome {
    /// The result of a program's replay; `ranks` may have the streams of non-blocking collectives behind them.
    pub fn new(program: &Program, ranks: impl Iterator<Item = RankOutcome>) -> Outcome {
        Outcome {
            ranks: ranks.take(program.ranks()).collect(),
            messages: u64::from(program.messages()),
            bytes: program.bytes(),
            waits: Waits::default(),
            loads: Vec::new(),
            delays: Vec::new(),
            delayed: Vec::new(),
            rails: Vec::new(),
        }
    }

    /// The same with what links have carried, if that was noted.
    pub(crate) fn with_loads(mut self, loads: Option<&LinkLoads>) -> Outcome {
        if let Some(loads) = loads {
            self.loads = loads.by_class(self.makespan());
        }
        self
    }

    /// Whether formats that count nanoseconds and bytes hold it.
    ///
    /// # Errors
    /// [`Uncounted`].
    pub fn in_nanos(&self) -> Result<(), Uncounted> {
        self.in_bytes()?;
        match self.makespan() {
            end if end.as_nanos() < (1u64 << 61) as f64 => Ok(()),
            end => Err(Uncounted::Nanos(end)),
        }
    }

    /// Whether formats that count bytes hold it.
    ///
    /// # Errors
    /// [`Uncounted::Bytes`].
    pub fn in_bytes(&self) -> Result<(), Uncounted> {
        match self.bytes.0 <= i64::MAX as u64 {
            true => Ok(()),
            false => Err(Uncounted::Bytes),
        }
    }

    /// When the last rank ended.
    pub fn makespan(&self) -> Time {
        self.ranks
            .iter()
            .map(|rank| rank.end)
            .max()
            .unwrap_or_default()
    }

    /// The rank that ended last, the first of them if several did; `None` without ranks.
    pub fn slowest(&self) -> Option<Rank> {
        let last = self.makespan();
        self.ranks
            .iter()
            .position(|rank| rank.end == last)
            .map(|rank| Rank(rank as u32))
    }
}

/// A time that is no finite number, and what it is the result of: a parameter of the network, or one that was set, is too large or
/// too small.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "found a predicted time that is no finite number, expected one: look for a value that is too large or too small in {0}"
)]
pub struct NotFiniteTime(pub String);

/// Refuses times that are no numbers; `of` says what they are the result of.
///
/// # Errors
/// [`NotFiniteTime`].
pub fn finite_times(
    times: impl IntoIterator<Item = Time>,
    of: impl FnOnce() -> String,
) -> Result<(), NotFiniteTime> {
    // So that a mean of them is a number, too.
    let sum: Time = times.into_iter().sum();
    if sum.as_nanos().is_finite() {
        Ok(())
    } else {
        Err(NotFiniteTime(of()))
    }
}
