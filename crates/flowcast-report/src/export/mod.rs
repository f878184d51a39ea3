//! A replay in the formats of other programs: Paraver, Perfetto and Chrome, tables as CSV and Parquet.
//!
//! All writers stream: they hold no more than the journal that they read. Equal replays give equal bytes; dates come
//! from the caller.

pub mod chrome;
pub mod paraver;
pub mod parquet;
pub mod perfetto;
pub mod tables;

use flowcast_replay::journal::{Journal, Slice};
use flowcast_replay::outcome::Outcome;
use flowcast_replay::placement::Placement;
use flowcast_replay::timeline::Activity;
use flowcast_trace::TraceRef;
use flowcast_units::{Rank, Time};

/// A replay, to be written.
#[derive(Clone, Copy)]
pub struct Replayed<'a> {
    /// What was replayed.
    pub trace: TraceRef<'a>,
    /// Where its ranks ran.
    pub placement: &'a Placement,
    /// When they ended.
    pub outcome: &'a Outcome,
    /// What they did meanwhile.
    pub journal: &'a Journal<'a>,
}

impl Replayed<'_> {
    fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.trace.ranks() as u32).map(Rank)
    }
}

/// Whole nanoseconds.
fn nanos(time: Time) -> u64 {
    time.as_nanos().round() as u64
}

/// What a slice is called where slices have names.
fn slice_name(slice: Slice) -> &'static str {
    match slice.segment.activity {
        Activity::Transfer if slice.is_sender => "own transfer",
        activity => activity.name(),
    }
}
