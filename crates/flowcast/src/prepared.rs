//! A trace made ready to be replayed, and everything that one replay can give.

use std::borrow::Cow;

use flowcast_network::network::Network;
use flowcast_observers::{explain::Explanation, inside::InsideTraffic, journal::Keeps};
use flowcast_program::{
    Program, Trace,
    program::{IgnoredRecords, Transfers},
};
use flowcast_replay::outcome::Outcome;
use flowcast_report::{NetworkView, export::Replayed};
use flowcast_sensitivity::influence::Unused;

use crate::{
    Error, Interval, ModelChoice, Options, RailsPrediction,
    folded::{Loops, PreparedFolded, sum},
    program::PreparedProgram,
    schedule::PreparedSchedule,
};

/// A trace made ready to be replayed.
// There are few of them at a time, so the difference in size does not matter.
#[allow(clippy::large_enum_variant)]
pub enum Prepared<'a> {
    /// A program: a sequence of instructions for each rank.
    Program(PreparedProgram<'a>),
    /// A program with loops, whose messages do not disturb one another.
    Folded(PreparedFolded<'a>),
    /// A GOAL schedule: a graph of operations for each rank.
    Schedule(PreparedSchedule<'a>),
}

/// What one replay is to give beside the times of the ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outputs {
    /// What the report page shows: the timeline, the messages, and what limits the program.
    pub view: bool,
    /// What communication cost, by cause, for each rank and each place in the program.
    pub explanation: bool,
    /// What files for other tools need ([`Prepared::predict_and_export`]).
    pub journal: Option<Keeps>,
}

impl Outputs {
    /// What a journal keeps for all of it; none if nobody needs one.
    pub(crate) fn kept(&self) -> Option<Keeps> {
        match (self.journal, self.view) {
            (Some(keeps), view) => Some(Keeps {
                timeline: keeps.timeline || view,
                ..keeps
            }),
            (None, true) => Some(Keeps::TIMELINE),
            (None, false) => None,
        }
    }
}

/// How long a program takes, and what was asked for beside.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The model, why it was used, and what it leaves out.
    pub model: ModelChoice,
    /// The times of the ranks; [`Outcome::makespan`] is when the last one ends.
    pub outcome: Outcome,
    /// What the report page shows, if it was asked for.
    pub view: Option<NetworkView>,
    /// What communication cost, if it was asked for.
    pub explanation: Option<Explanation>,
    /// Parameters of the network that played no part.
    pub unused: Vec<Unused>,
    /// The transfers of one-sided communication, which are no messages.
    pub transfers: Transfers,
    /// What happened between ranks of one node; none if nothing did.
    pub inside: Option<InsideTraffic>,
    /// What of the trace is left out, as [`Prepared::ignored`] counts it, then how sure the network's values are
    /// ([`statements`](crate::statements)), then what was assumed beyond trace, network and options; a sentence each.
    pub notes: Vec<String>,
    /// How the loops of the program were walked, if they were not unrolled.
    pub loops: Option<Loops>,
    /// What each of several networks carried.
    pub rails: Option<RailsPrediction>,
}

impl Prediction {
    /// Sentences on the model with its rules and what it leaves out, and on parameters without influence.
    pub fn sentences(&self) -> Vec<String> {
        let mut all = self.model.sentences();
        all.extend(self.rails.as_ref().map(ToString::to_string));
        all.extend(self.loops.as_ref().map(ToString::to_string));
        let unused = self.unused.iter();
        let unused: Vec<String> = unused
            .map(|one| format!("{} ({})", one.parameter, one.reason))
            .collect();
        all.extend((!unused.is_empty()).then(|| format!("no influence: {}", unused.join(", "))));
        all
    }

    /// Shows the interval on the report page.
    pub fn with_interval(&mut self, interval: Option<&Interval>) {
        if let Some(view) = &mut self.view {
            view.interval = interval.cloned();
        }
    }
}

impl<'a> Prepared<'a> {
    /// Of a trace that remains as it is.
    ///
    /// # Errors
    /// [`Error::NoNetwork`]; [`Error::Option`] if an option does not go with the trace; else as
    /// [`PreparedProgram::new`] and [`PreparedSchedule::new`].
    pub fn new(
        trace: &'a Trace,
        network: Option<&'a Network>,
        options: &Options,
    ) -> Result<Prepared<'a>, Error> {
        Ok(match trace {
            Trace::Program(program) => Prepared::Program(PreparedProgram::prepare(
                Cow::Borrowed(program),
                network,
                options,
            )?),
            Trace::Folded(folded) => {
                PreparedFolded::prepare(Cow::Borrowed(folded), network, options)?
            }
            Trace::Schedule(schedule) => {
                Prepared::Schedule(PreparedSchedule::new(schedule, network, options)?)
            }
        })
    }

    /// Of a trace that is given up, so that the memory of one form of it is enough. Where the ranks of a schedule wait for
    /// each other, the replay ends with [`Error::Stopped`].
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub fn consuming(
        trace: Trace,
        network: Option<&'a Network>,
        options: &Options,
    ) -> Result<Prepared<'a>, Error> {
        Ok(match trace {
            Trace::Program(program) => Prepared::Program(PreparedProgram::prepare(
                Cow::Owned(program),
                network,
                options,
            )?),
            Trace::Folded(folded) => PreparedFolded::prepare(Cow::Owned(folded), network, options)?,
            Trace::Schedule(schedule) => {
                Prepared::Schedule(PreparedSchedule::consuming(schedule, network, options)?)
            }
        })
    }

    /// The model that the contention calls for.
    pub fn model(&self) -> &ModelChoice {
        match self {
            Prepared::Program(prepared) => prepared.model(),
            Prepared::Folded(prepared) => prepared.model(),
            Prepared::Schedule(prepared) => prepared.model(),
        }
    }

    /// What is replayed, unless it is a schedule; of a program with loops the part that comes first, which has all ranks.
    pub fn program(&self) -> Option<&Program> {
        let (first, _) = self.pieces().into_iter().next()?;
        Some(first.program())
    }

    /// The programs that are replayed, each with how often; none of a schedule.
    fn pieces(&self) -> Vec<(&PreparedProgram<'a>, u64)> {
        match self {
            Prepared::Program(prepared) => vec![(prepared, 1)],
            Prepared::Folded(prepared) => prepared.pieces(),
            Prepared::Schedule(_) => Vec::new(),
        }
    }

    /// Number of collectives that are carried out by formula, each counted once however many ranks take part.
    pub fn collectives(&self) -> u64 {
        sum(&self.pieces(), |program| program.program().collectives())
    }

    /// Collectives that keep their formula although messages were asked for.
    pub fn collectives_by_formula(&self) -> u64 {
        sum(&self.pieces(), PreparedProgram::collectives_by_formula)
    }

    /// What the reader found and the replay leaves out.
    pub fn ignored(&self) -> &[IgnoredRecords] {
        match self {
            Prepared::Program(prepared) => prepared.program().ignored(),
            Prepared::Folded(prepared) => prepared.ignored(),
            Prepared::Schedule(_) => &[],
        }
    }

    /// The sentences of [`Prediction::notes`].
    pub fn notes(&self) -> Vec<String> {
        match self {
            Prepared::Program(prepared) => prepared.notes(),
            Prepared::Folded(prepared) => prepared.notes(),
            Prepared::Schedule(prepared) => prepared.notes(),
        }
    }

    /// Replays once for all that is asked for; `asked` are the names of the network's fields that the caller set.
    ///
    /// # Errors
    /// Those of the replay.
    pub fn predict(&self, outputs: Outputs, asked: &[String]) -> Result<Prediction, Error> {
        self.predict_and_export(outputs, asked, |_| Ok(()))
    }

    /// The same; the journal that [`Outputs::journal`] asks for goes to `export`, to be written for other tools.
    ///
    /// # Errors
    /// Those of the replay and of `export`.
    pub fn predict_and_export<E: From<Error>>(
        &self,
        outputs: Outputs,
        asked: &[String],
        export: impl FnOnce(Replayed<'_>) -> Result<(), E>,
    ) -> Result<Prediction, E> {
        match self {
            Prepared::Program(prepared) => prepared.predict(outputs, asked, export),
            Prepared::Folded(prepared) => prepared.predict(outputs, asked, export),
            Prepared::Schedule(prepared) => prepared.predict(outputs, export),
        }
    }
}
