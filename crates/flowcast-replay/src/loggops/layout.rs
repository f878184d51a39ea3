//! A schedule laid out as it is replayed; the other layout is dropped, so that only one takes memory.

use super::{costs::LogGopsCosts, plain, prepared::PreparedOperations, queues, sends::Sends};
use crate::{SimulateError, observer::Observer, outcome::Outcome};
use flowcast_program::schedule::Schedule;

/// A schedule in one of its two layouts.
// There is one of them at a time.
#[allow(clippy::large_enum_variant)]
pub enum Layout {
    /// Laid out for the fast engine.
    Prepared(PreparedOperations),
    /// As it was read, for schedules that the fast engine cannot replay.
    Graphs(Schedule),
}

impl Layout {
    /// The layout that messages of these costs need.
    pub fn new(schedule: Schedule, costs: LogGopsCosts<'_>) -> Layout {
        if !costs.are_plain() {
            return Layout::Graphs(schedule);
        }
        match PreparedOperations::instead_of(schedule) {
            Ok(prepared) => Layout::Prepared(prepared),
            Err(schedule) => Layout::Graphs(schedule),
        }
    }

    /// Its messages, which observers have to know.
    pub fn sends(&self) -> Sends<'_> {
        match self {
            Layout::Prepared(prepared) => Sends::of_prepared(prepared),
            Layout::Graphs(schedule) => Sends::from_schedule(schedule),
        }
    }

    /// Replays and notifies an observer, as [`super::placed`] does; `None` if the replay does not come to its end and the
    /// dropped layout would be needed to say why.
    ///
    /// # Errors
    /// As [`super::placed`].
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
