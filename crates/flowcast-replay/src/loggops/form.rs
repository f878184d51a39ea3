//! A schedule in the form in which it is replayed: the other one is given up, so that the memory of one is enough.

use super::prepared::Prepared;
use super::sends::Sends;
use super::ways::{Costs, Ways};
use super::{plain, queues};
use crate::SimulateError;
use crate::outcome::Outcome;
use crate::record::Observer;
use flowcast_trace::schedule::Schedule;

/// A schedule in one of its two forms.
// There is one of them at a time.
#[allow(clippy::large_enum_variant)]
pub enum Form {
    /// Laid out for the fast engine.
    Prepared(Prepared),
    /// As it was read, for what that engine leaves out.
    Graphs(Schedule),
}

impl Form {
    /// The form that messages of such costs call for.
    pub fn of(schedule: Schedule, costs: Costs<'_>) -> Form {
        if !costs.are_plain() {
            return Form::Graphs(schedule);
        }
        match Prepared::instead_of(schedule) {
            Ok(prepared) => Form::Prepared(prepared),
            Err(schedule) => Form::Graphs(schedule),
        }
    }

    /// What those who watch have to know of it.
    pub fn sends(&self) -> Sends<'_> {
        match self {
            Form::Prepared(prepared) => Sends::of_prepared(prepared),
            Form::Graphs(schedule) => Sends::of(schedule),
        }
    }

    /// Runs and tells an observer what happens, as [`super::placed`] does; `None` if what was given up would be needed to
    /// say why it does not come to its end.
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
