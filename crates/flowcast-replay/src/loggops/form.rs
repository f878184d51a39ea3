//! A schedule in the format in which it is replayed; the other one is dropped, so that only one takes memory.

use super::prepared::Prepared;
use super::sends::Sends;
use super::ways::{Costs, Ways};
use super::{plain, queues};
use crate::SimulateError;
use crate::observer::Observer;
use crate::outcome::Outcome;
use flowcast_trace::schedule::Schedule;

/// A schedule in one of its two formats.
// There is one of them at a time.
#[allow(clippy::large_enum_variant)]
pub enum Form {
    /// Laid out for the fast engine.
    Prepared(Prepared),
    /// As it was read, for schedules that the fast engine cannot replay.
    Graphs(Schedule),
}

impl Form {
    /// The format that messages of these costs need.
    pub fn of(schedule: Schedule, costs: Costs<'_>) -> Form {
        if !costs.are_plain() {
            return Form::Graphs(schedule);
        }
        match Prepared::instead_of(schedule) {
            Ok(prepared) => Form::Prepared(prepared),
            Err(schedule) => Form::Graphs(schedule),
        }
    }

    /// Its messages, which observers have to know.
    pub fn sends(&self) -> Sends<'_> {
        match self {
            Form::Prepared(prepared) => Sends::of_prepared(prepared),
            Form::Graphs(schedule) => Sends::of(schedule),
        }
    }

    /// Replays and notifies an observer, as [`super::placed`] does; `None` if the replay does not come to its end and the
    /// dropped format would be needed to say why.
    ///
    /// # Errors
    /// As [`super::placed`].
    pub fn observed<O: Observer>(&self, costs: Costs<'_>, observer: &mut O) -> Result<Option<Outcome>, SimulateError> {
        match self {
            Form::Prepared(prepared) => Ok(queues::attempt(prepared, costs.parameters, observer)),
            Form::Graphs(schedule) if costs.are_plain() => {
                plain::observed(schedule, costs.parameters, observer).map(Some)
            }
            Form::Graphs(schedule) => plain::on(schedule, Ways::new(schedule, costs)?, observer).map(Some),
        }
    }
}
