//! A trace prepared for replay, and all outputs of a replay.

use std::borrow::Cow;

use flowcast_network::network::Network;
use flowcast_observers::{explain::Explanation, inside::InsideTraffic, journal::JournalContents};
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

/// A trace prepared for replay.
// Few of them exist at a time, so the difference in size does not matter.
#[allow(clippy::large_enum_variant)]
pub enum Prepared<'a> {
    /// A program: a sequence of instructions for each rank.
    Program(PreparedProgram<'a>),
    /// A program with loops and without contention between messages.
    Folded(PreparedFolded<'a>),
    /// A GOAL schedule: a graph of operations for each rank.
    Schedule(PreparedSchedule<'a>),
}

/// Requested outputs of a replay, in addition to the times of the ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outputs {
    /// Data of the report page: the timeline, the messages, and the limits of the program.
    pub view: bool,
    /// Cost of communication by cause, for each rank and each place in the program.
    pub explanation: bool,
    /// Data for files of other tools ([`Prepared::predict_and_export`]).
    pub journal: Option<JournalContents>,
}

impl Outputs {
    /// Data that a journal has to keep for all outputs; `None` if no output needs a journal.
    pub(crate) fn kept(&self) -> Option<JournalContents> {
        match (self.journal, self.view) {
            (Some(keeps), view) => Some(JournalContents {
                timeline: keeps.timeline || view,
                ..keeps
            }),
            (None, true) => Some(JournalContents::TIMELINE),
            (None, false) => None,
        }
    }
}

/// Predicted time of a program, and the requested outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The model, the reason for it, and the effects that it leaves out.
    pub model: ModelChoice,
    /// Times of the ranks; [`Outcome::makespan`] is the end of the last rank.
    pub outcome: Outcome,
    /// Data of the report page, if requested.
    pub view: Option<NetworkView>,
    /// Cost of communication, if requested.
    pub explanation: Option<Explanation>,
    /// Parameters of the network without influence.
    pub unused: Vec<Unused>,
    /// Transfers of one-sided communication, which are not messages.
    pub transfers: Transfers,
    /// Traffic between ranks of one node; `None` if there is none.
    pub inside: Option<InsideTraffic>,
    /// Sentences on the ignored records of the trace, as [`Prepared::ignored`] counts them, then on the reliability of the
    /// network's values ([`statements`](crate::statements)), then on assumptions beyond trace, network and options.
    pub notes: Vec<String>,
    /// Statistics of the walk over the program's loops, if they were not unrolled.
    pub loops: Option<Loops>,
    /// Traffic of each network, if there are several.
    pub rails: Option<RailsPrediction>,
}

impl Prediction {
    /// Sentences on the model, its rules and the effects that it leaves out, and on parameters without influence.
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

    /// Adds the interval to the report page.
    pub fn with_interval(&mut self, interval: Option<&Interval>) {
        if let Some(view) = &mut self.view {
            view.interval = interval.cloned();
        }
    }
}

impl<'a> Prepared<'a> {
    /// Prepares a trace and leaves it unchanged.
    ///
    /// # Errors
    /// [`Error::NoNetwork`]; [`Error::Option`] if an option does not fit the trace; otherwise the errors of
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

    /// Prepares a trace and consumes it, so that memory never has two complete forms of it. If the ranks of a schedule wait
    /// for each other, the replay ends with [`Error::Stopped`].
    ///
    /// # Errors
    /// Errors of [`Prepared::new`].
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

    /// The model that the contention option selects.
    pub fn model(&self) -> &ModelChoice {
        match self {
            Prepared::Program(prepared) => prepared.model(),
            Prepared::Folded(prepared) => prepared.model(),
            Prepared::Schedule(prepared) => prepared.model(),
        }
    }

    /// The replayed program; `None` for a schedule. For a program with loops, the first part; each part has all ranks.
    pub fn program(&self) -> Option<&Program> {
        let (first, _) = self.pieces().into_iter().next()?;
        Some(first.program())
    }

    /// The replayed programs, each with its number of repetitions; empty for a schedule.
    fn pieces(&self) -> Vec<(&PreparedProgram<'a>, u64)> {
        match self {
            Prepared::Program(prepared) => vec![(prepared, 1)],
            Prepared::Folded(prepared) => prepared.pieces(),
            Prepared::Schedule(_) => Vec::new(),
        }
    }

    /// Number of collectives that are carried out by formula, each counted once regardless of its number of ranks.
    pub fn collectives(&self) -> u64 {
        sum(&self.pieces(), |program| program.program().collectives())
    }

    /// Number of collectives that keep their formula although messages were requested.
    pub fn collectives_by_formula(&self) -> u64 {
        sum(&self.pieces(), PreparedProgram::collectives_by_formula)
    }

    /// Records that the reader found and the replay ignores.
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

    /// Replays once for all requested outputs. `asked` are the names of the network's fields that the caller set.
    ///
    /// # Errors
    /// Errors of the replay.
    pub fn predict(&self, outputs: Outputs, asked: &[String]) -> Result<Prediction, Error> {
        self.predict_and_export(outputs, asked, |_| Ok(()))
    }

    /// Replays once for all requested outputs. The journal requested by [`Outputs::journal`] goes to `export`, to be written
    /// for other tools.
    ///
    /// # Errors
    /// Errors of the replay and of `export`.
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
