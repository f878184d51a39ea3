//! A replay in the formats of other programs: Paraver and Perfetto, tables as CSV and Parquet.
//!
//! All writers stream: they hold no more data than the journal that they read. Equal replays give equal bytes; dates are
//! given by the caller.

pub mod paraver;
pub mod parquet;
pub mod perfetto;
pub mod tables;
mod text;

use std::collections::BTreeSet;

use flowcast_observers::journal::{ReplayJournal, Slice, nanos};
use flowcast_program::TraceRef;
use flowcast_replay::{
    outcome::Outcome,
    placement::Placement,
    timeline::{Activity, MessageSpan},
};
use flowcast_units::{Node, Rank};

/// A replay to be exported.
#[derive(Clone, Copy)]
pub struct Replayed<'a> {
    /// The program or schedule that was replayed.
    pub trace: TraceRef<'a>,
    /// Nodes of its ranks.
    pub placement: &'a Placement,
    /// End times and traffic of its ranks.
    pub outcome: &'a Outcome,
    /// Activities of its ranks.
    pub journal: &'a ReplayJournal<'a>,
}

impl Replayed<'_> {
    /// Returns the messages of each sender in the order of its sends.
    pub fn messages(&self) -> impl Iterator<Item = MessageSpan> {
        self.ranks()
            .flat_map(|rank| self.journal.sent(rank))
            .map(|(_, times)| times.span)
    }

    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        Rank::all(self.trace.ranks())
    }

    /// Nodes on which ranks ran, each once.
    fn nodes(&self) -> BTreeSet<Node> {
        self.ranks().map(|rank| self.placement.node(rank)).collect()
    }
}

/// Process number of a node. Numbers start at 1: process and thread 0 are the idle ones of an operating system.
fn pid(node: Node) -> u64 {
    u64::from(node.0) + 1
}

/// Thread number of a rank.
fn tid(rank: Rank) -> u64 {
    u64::from(rank.0) + 1
}

/// Name of a slice, for formats with named slices.
fn slice_name(slice: Slice) -> &'static str {
    match slice.segment.activity {
        Activity::Transfer if slice.is_sender => "own transfer",
        activity => activity.name(),
    }
}
