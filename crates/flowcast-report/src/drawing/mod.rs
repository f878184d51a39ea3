//! Contents of the page for a replay: the time of each rank by activity, the activities over time, and the messages. One
//! pass over the journal makes them small enough for a browser.

mod lanes;
mod traffic;

pub(crate) use lanes::{LaneInterval, LaneShares, Lanes, whole_nanos};
pub use lanes::{MAX_CELLS, MAX_INTERVALS};
pub(crate) use traffic::DrawnTraffic;
pub use traffic::MAX_MESSAGES;

use super::export::Replayed;
use flowcast_observers::journal::call_tallies::{CallKind, CallTally};
use flowcast_program::slot::Slot;
use flowcast_replay::{
    outcome::{Outcome, RankOutcome},
    timeline::{Activity, MessageSpan, Segment},
};
use flowcast_units::{Node, Rank, Time};

/// Times by activity, in the order of [`Activity::ALL`].
pub(crate) type Times = [Time; Activity::ALL.len()];

/// Drawing data of a replay.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawing {
    /// Node of each rank.
    pub(crate) nodes: Vec<Node>,
    /// Times of each rank. Computation and overhead are those of the outcome, and the waits add up to its blocked time.
    pub(crate) times: Vec<Times>,
    pub(crate) lanes: Lanes,
    pub(crate) traffic: DrawnTraffic,
    /// Calls with their names.
    pub(crate) calls: Vec<(String, CallTally)>,
}

impl Drawing {
    /// Builds the drawing of a replay whose journal kept a timeline.
    pub fn new(replayed: Replayed<'_>) -> Drawing {
        let Replayed {
            placement,
            outcome,
            journal,
            ..
        } = replayed;
        let nodes = replayed.ranks().map(|rank| placement.node(rank)).collect();
        let mut drawing = Drawing::assemble(
            outcome,
            nodes,
            |rank| journal.segments(rank),
            |visit| journal.each_message(visit),
        );
        drawing
            .traffic
            .name_calls(|slot| call_name(journal.send_kind(slot)));
        let calls = journal.call_tallies().into_iter();
        drawing.calls = calls
            .map(|(kind, tally)| (call_name(kind), tally))
            .collect();
        drawing
    }

    /// Builds a drawing from the segments of each rank and from all messages in a fixed order.
    pub(crate) fn assemble(
        outcome: &Outcome,
        nodes: Vec<Node>,
        segments: impl Fn(Rank) -> Vec<Segment>,
        each_message: impl FnOnce(&mut dyn FnMut(Slot, MessageSpan)),
    ) -> Drawing {
        let mut times = Vec::with_capacity(outcome.ranks.len());
        let ranks = (0..).map(Rank).zip(&outcome.ranks).map(|(rank, ended)| {
            let segments = segments(rank);
            times.push(times_of(&segments, ended));
            segments
        });
        let lanes = Lanes::new(outcome, ranks);
        let mut traffic = DrawnTraffic::new(outcome);
        each_message(&mut |slot, span| traffic.add(slot, span));
        traffic.finish();
        Drawing {
            nodes,
            times,
            lanes,
            traffic,
            calls: Vec::new(),
        }
    }

    /// Total time of all ranks in an activity.
    pub(crate) fn time_in(&self, activity: Activity) -> Time {
        self.times
            .iter()
            .map(|times| times[activity as usize])
            .sum()
    }
}

/// Sums the segments by activity. The rest of the blocked time is waiting for a processor.
fn times_of(segments: &[Segment], outcome: &RankOutcome) -> Times {
    let mut times = Times::default();
    for segment in segments {
        times[segment.activity as usize] += segment.end - segment.start;
    }
    times[Activity::Compute as usize] = outcome.compute;
    times[Activity::Overhead as usize] = outcome.overhead;
    times[Activity::ProcessorWait as usize] = Time::ZERO;
    let known: Time = times.iter().copied().sum();
    // Sums in another order differ by less than any displayed digit.
    let rest = outcome.end - known;
    let is_rounding = rest < outcome.end * 1e-12;
    times[Activity::ProcessorWait as usize] = if is_rounding { Time::ZERO } else { rest };
    times
}

/// Name of a kind of call in tables.
fn call_name(kind: CallKind) -> String {
    match kind {
        CallKind::Function(function) => format!("MPI_{}", function.name()),
        CallKind::Within(op, function) => format!("{} ({})", op.name(), function.name()),
        CallKind::Access(name) => format!("MPI_{name}"),
    }
}
