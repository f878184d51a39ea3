//! Result of a replay: the times of the ranks and of the whole program.

use std::io;

use flowcast_network::sharing::link_loads::{ClassLoad, LinkLoads};
use flowcast_program::{program::Program, slot::Slot};
use flowcast_units::{Bytes, Rank, Time};
use thiserror::Error;

/// Parts of one rank's time: `compute + overhead + blocked = end`, exactly.
///
/// | time | class |
/// |---|---|
/// | the program's own computation, on a processor or an accelerator | compute |
/// | a processor handles a message: LogGP's `o`, Dimemas' start-up, the bytes that LogGOPSim has a receiver copy, the start-up of a collective or of an access | overhead |
/// | waiting for a message, a receiver, the end of a collective, an access, the rank's own interface, a processor or its switch to the rank | blocked |
///
/// The engines record computation and overhead where they happen; a rank that does neither is blocked. If several processors
/// of one rank are busy at the same time, the time counts once: as computation if one of them computes, otherwise as
/// overhead.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankOutcome {
    /// End of its last record.
    pub end: Time,
    /// Time in the program's own computation.
    pub compute: Time,
    /// Time in which the rank neither computes nor handles messages.
    pub blocked: Time,
    /// Processor time spent on messages.
    pub overhead: Time,
}

impl RankOutcome {
    /// The outcome of a rank that ends at `end`. The sums of its computations and overheads may differ from `end` by
    /// rounding.
    pub fn new(end: Time, compute: Time, overhead: Time) -> RankOutcome {
        // Rounds to multiples of the spacing of floating-point numbers near `end`: their sums and differences are exact.
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

    /// Time in communication: everything except the program's own computation.
    pub fn communication(&self) -> Time {
        self.end - self.compute
    }
}

/// Result of a replay: the times of all ranks, and the amount of data that they sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Times of each rank, indexed by rank.
    pub ranks: Vec<RankOutcome>,
    /// Number of point-to-point messages, including those of expanded collectives.
    pub messages: u64,
    /// Sum of the sizes of these messages.
    pub bytes: Bytes,
    /// Number of waits for limited resources of the machine.
    pub waits: Waits,
    /// Load of the links of each class, without headers; empty if it was not recorded.
    pub loads: Vec<ClassLoad>,
    /// Time that messages lost on the links of each class by sharing them; empty if it was not recorded. Classes without
    /// loss are left out.
    pub delays: Vec<LevelDelay>,
    /// The messages that lost the most time to other messages, the worst first; at most one hundred.
    pub delayed: Vec<DelayedMessage>,
    /// Traffic of each of several rails; empty with a single network.
    pub rails: Vec<RailTraffic>,
}

/// Traffic of a rail between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RailTraffic {
    /// Number of messages and pieces of messages.
    pub messages: u64,
    /// Sum of their sizes.
    pub bytes: Bytes,
}

/// Time that messages lost by sharing the links of a class with others.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelDelay {
    /// The class, such as `node` or `global`.
    pub class: String,
    /// Number of messages that lost more at such a link than at any other.
    pub messages: u64,
    /// Sum, over all messages, of the delay while such a link limited them, compared with the same message alone.
    pub lost: Time,
    /// The link with the largest loss; the first of several equal ones.
    pub worst: String,
    /// Time lost at that link alone, a part of `lost`.
    pub lost_there: Time,
}

/// A message that lost time to other messages.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayedMessage {
    /// Its slot. Numbers from the number of messages upwards are one-sided transfers.
    pub slot: Slot,
    /// Delay, compared with the same message alone.
    pub lost: Time,
    /// The link with the largest loss of this message.
    pub link: String,
}

/// Number of waits for each limited resource of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Waits of messages for links of nodes.
    pub links: u64,
    /// Waits of messages and collectives for buses between nodes.
    pub buses: u64,
    /// Waits of messages for links inside a node.
    pub intra_links: u64,
    /// Waits of messages for buses inside a node.
    pub intra_buses: u64,
    /// Waits of messages for links of sites.
    pub wide_area_links: u64,
    /// Waits of messages for dedicated connections.
    pub connections: u64,
    /// Waits of ranks for a processor.
    pub processors: u64,
    /// Number of times that a rank lost its processor at the end of a quantum, or to a rank with a smaller number.
    pub preemptions: u64,
}

/// A value that does not fit into the 64 bits of a file format, one of which is the sign.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum ValueTooLarge {
    /// A time in nanoseconds.
    #[error(
        "found a replay of {0}, expected less than 73 years: the format holds up to 2^61 nanoseconds"
    )]
    Nanos(Time),
    /// The sum of the sizes of all messages.
    #[error("found messages of 2^63 bytes or more in total, expected fewer")]
    Bytes,
}

impl From<ValueTooLarge> for io::Error {
    fn from(error: ValueTooLarge) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}

impl Outcome {
    /// The result of a program's replay. The streams of non-blocking collectives may follow the ranks in `ranks`; they are
    /// ignored.
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

    /// Adds the loads of the links to the outcome, if they were recorded.
    pub(crate) fn with_loads(mut self, loads: Option<&LinkLoads>) -> Outcome {
        if let Some(loads) = loads {
            self.loads = loads.by_class(self.makespan());
        }
        self
    }

    /// Checks that the time and the bytes fit into formats that count nanoseconds and bytes.
    ///
    /// # Errors
    /// [`ValueTooLarge`] if one of them is too large.
    pub fn in_nanos(&self) -> Result<(), ValueTooLarge> {
        self.in_bytes()?;
        match self.makespan() {
            end if end.as_nanos() < (1u64 << 61) as f64 => Ok(()),
            end => Err(ValueTooLarge::Nanos(end)),
        }
    }

    /// Checks that the bytes fit into formats that count bytes.
    ///
    /// # Errors
    /// [`ValueTooLarge::Bytes`] if there are 2^63 or more.
    pub fn in_bytes(&self) -> Result<(), ValueTooLarge> {
        match self.bytes.0 <= i64::MAX as u64 {
            true => Ok(()),
            false => Err(ValueTooLarge::Bytes),
        }
    }

    /// Time at which the last rank ended; 0 without ranks.
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

/// A predicted time that is not a finite number, with the description of its source: a parameter of the network or of the
/// caller is too large or too small.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "found a predicted time that is not a finite number, expected a finite one: \
     look for a value that is too large or too small in {0}"
)]
pub struct NotFiniteTime(pub String);

/// Checks that all times are finite; `of` describes their source for the error.
///
/// # Errors
/// [`NotFiniteTime`] if the sum of the times is not finite.
pub fn finite_times(
    times: impl IntoIterator<Item = Time>,
    of: impl FnOnce() -> String,
) -> Result<(), NotFiniteTime> {
    // The sum is checked, so that the mean of the times is finite, too.
    let sum: Time = times.into_iter().sum();
    if sum.as_nanos().is_finite() {
        Ok(())
    } else {
        Err(NotFiniteTime(of()))
    }
}
