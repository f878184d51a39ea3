//! What a replay gives: the times of the ranks and of the whole.

use flowcast_trace::program::Program;
use flowcast_units::{Bytes, Rank, Time};

/// One rank's share of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankOutcome {
    /// When its last record was done.
    pub end: Time,
    /// Time in the program's own computation.
    pub compute: Time,
    /// Time spent waiting for others.
    pub blocked: Time,
    /// Processor time spent on messages.
    pub overhead: Time,
}

impl RankOutcome {
    /// Time in communication: all that is not the program's own computation.
    pub fn communication(&self) -> Time {
        self.end - self.compute
    }
}

/// A replay's result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// By rank.
    pub ranks: Vec<RankOutcome>,
    /// Point-to-point messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// How often something had to wait for what the machine limits.
    pub waits: Waits,
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

impl Outcome {
    /// The result of a program's replay; `ranks` may have the streams of non-blocking collectives behind them.
    pub fn of(program: &Program, ranks: impl Iterator<Item = RankOutcome>) -> Outcome {
        Outcome {
            ranks: ranks.take(program.ranks()).collect(),
            messages: u64::from(program.messages()),
            bytes: program.bytes(),
            waits: Waits::default(),
        }
    }

    /// When the last rank ended.
    pub fn makespan(&self) -> Time {
        self.ranks.iter().map(|rank| rank.end).fold(Time::ZERO, Time::max)
    }

    /// The rank that ended last, the first of them if several did; `None` without ranks.
    pub fn slowest(&self) -> Option<Rank> {
        let last = self.makespan();
        self.ranks.iter().position(|rank| rank.end == last).map(|rank| Rank(rank as u32))
    }
}
