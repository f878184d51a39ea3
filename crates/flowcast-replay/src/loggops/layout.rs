//! A schedule in the memory layout for its replay. The other layout is dropped, so that only one occupies memory.

use super::{costs::LogGopsCosts, plain, prepared::PreparedOperations, queues, sends::Sends};
use crate::{SimulateError, observer::Observer, outcome::Outcome};
use flowcast_program::schedule::Schedule;

/// A schedule in one of its two layouts.
// Only one of them exists at a time.
#[allow(clippy::large_enum_variant)]
pub enum Layout {
    /// Layout of the fast engine.
    Prepared(PreparedOperations),
    /// The schedule as it was read, for schedules that the fast engine cannot replay.
    Graphs(Schedule),
}

impl Layout {
    /// Chooses the layout that messages with these costs need.
    pub fn new(schedule: Schedule, costs: LogGopsCosts<'_>) -> Layout {
        if !costs.are_plain() {
            return Layout::Graphs(schedule);
        }
        match PreparedOperations::instead_of(schedule) {
            Ok(prepared) => Layout::Prepared(prepared),
            Err(schedule) => Layout::Graphs(schedule),
        }
    }

    /// Messages of the schedule, which observers need to know.
    pub fn sends(&self) -> Sends<'_> {
        match self {
            Layout::Prepared(prepared) => Sends::of_prepared(prepared),
            Layout::Graphs(schedule) => Sends::from_schedule(schedule),
        }
    }

    /// Replays the schedule and reports its events to an observer, as [`super::placed`] does. Returns `None` if the replay
    /// does not reach its end and only the dropped layout could explain why.
    ///
    /// # Errors
    /// The same as for [`super::placed`].
    pub fn observed<O: Observer>(
        &self,
        costs: LogGopsCosts<'_>,
        observer: &mut O,
    ) -> Result<Option<Outcome>, SimulateError> {
        match self {
            Layout::Prepared(prepared) => Ok(queues::attempt(prepared, costs.parameters, observer)),
            Layout::Graphs(schedule) => plain::run(schedule, costs, observer).map(Some),
        }
    }
}
