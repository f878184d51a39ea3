//! Traces in the forms of other tools, each in one file.

use std::{
    borrow::Cow,
    io::{self, Write},
    str::FromStr,
};

use flowcast_formats::{
    convert,
    convert::{Dialect, Losses},
};
use flowcast_network::network::Network;
use flowcast_program::{
    Program, ReadOptions, Trace, TraceError,
    expand::{NonBlocking, expand},
};
use thiserror::Error;

use crate::{Collectives, options::of_library};

/// A form that a trace can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceForm {
    /// Dimemas' text (`.dim`), read by Dimemas itself.
    Dim,
    /// LogGOPSim's schedules as text (GOAL).
    Goal,
    /// LogGOPSim's schedules in its binary form.
    GoalBinary,
    /// SimGrid's time-independent actions, a file for each rank.
    TimeIndependent,
    /// Paraver's trace of a replay.
    Paraver,
}

use TraceForm::*;

/// Form and options of a trace that is written for another tool.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The form of the file or files.
    pub form: TraceForm,
    /// `true` for Dimemas' own records only, without those that Flowcast adds.
    pub strict: bool,
    /// Way in which collectives become messages; without it they stay collectives if the form has them.
    pub collectives: Option<Collectives>,
}

/// Reason why a trace cannot be written.
#[derive(Debug, Error)]
pub enum ConversionError {
    /// Unknown form, or a form that is not a single file.
    #[error("found the format `{0}`, expected dim, goal or goal-bin")]
    Form(String),
    /// Schedules have no sequence of calls.
    #[error(
        "found a GOAL schedule, which is a graph and not a sequence of calls, expected --format goal or goal-bin"
    )]
    Schedule,
    /// The collectives expand to more messages than a program can hold.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Error of the writer.
    #[error(transparent)]
    Write(#[from] io::Error),
}

impl FromStr for TraceForm {
    type Err = ConversionError;

    /// Parses the name of a form that is a single file.
    fn from_str(name: &str) -> Result<TraceForm, ConversionError> {
        match name {
            "dim" => Ok(Dim),
            "goal" => Ok(Goal),
            "goal-bin" => Ok(GoalBinary),
            other => Err(ConversionError::Form(other.to_owned())),
        }
    }
}

impl Conversion {
    /// Writes a trace as one file, and counts what the form cannot express. Forms of several files are not supported.
    ///
    /// # Errors
    /// [`ConversionError`].
    pub fn write(&self, trace: &Trace, out: &mut dyn Write) -> Result<Losses, ConversionError> {
        match (&*trace.unfolded()?, self.form) {
            (Trace::Folded(_), _) => unreachable!("it has no loops any more"),
            (Trace::Program(program), _) => {
                let (program, lost) = self.prepared(Cow::Borrowed(program), None, 1)?;
                Ok(lost.and(self.write_prepared(&program, out)?))
            }
            (Trace::Schedule(schedule), Goal) => {
                convert::schedule(schedule, out)?;
                Ok(Losses::default())
            }
            (Trace::Schedule(schedule), GoalBinary) => Ok(convert::goal_binary(schedule, out)?),
            (Trace::Schedule(_), _) => Err(ConversionError::Schedule),
        }
    }

    /// Writes a program that [`Conversion::prepared`] returned.
    ///
    /// # Errors
    /// [`ConversionError::Write`], [`ConversionError::Form`].
    pub fn write_prepared(
        &self,
        program: &Program,
        out: &mut dyn Write,
    ) -> Result<Losses, ConversionError> {
        match self.form {
            Dim => {
                let dialect = if self.strict {
                    Dialect::Dimemas
                } else {
                    Dialect::Own
                };
                Ok(convert::dim(program, dialect, out)?)
            }
            Goal => Ok(convert::goal(program, out)?),
            GoalBinary => {
                let (schedule, losses) = convert::as_schedule(program);
                Ok(losses.and(convert::goal_binary(&schedule, out)?))
            }
            TimeIndependent => Err(ConversionError::Form("ti".to_owned())),
            Paraver => Err(ConversionError::Form("prv".to_owned())),
        }
    }

    /// Behaviour of [`Conversion::prepared`] without [`Conversion::collectives`], for help texts.
    pub const WITHOUT_COLLECTIVES: &str = "by default they stay collectives; the default of `flowcast predict` \
         applies for goal and goal-bin, which have only messages, and for ti if its collectives cannot express the sizes";

    /// Returns the program with its collectives in the way that the form requires, and the losses.
    ///
    /// # Errors
    /// [`ConversionError::Trace`].
    pub fn prepared<'a>(
        &self,
        program: Cow<'a, Program>,
        network: Option<&Network>,
        threads: usize,
    ) -> Result<(Cow<'a, Program>, Losses), ConversionError> {
        let needs_messages = match self.form {
            Goal | GoalBinary => true,
            TimeIndependent => self.collectives.is_some() || convert::needs_messages(&program),
            Dim | Paraver => self.collectives.is_some(),
        };
        let is_ti = self.form == TimeIndependent;
        let blocking = if is_ti {
            convert::with_blocking_collectives(&program)
        } else {
            None
        };
        let (program, losses) = match blocking {
            Some((program, losses)) => (Cow::Owned(program), losses),
            None => (program, Losses::default()),
        };
        if !needs_messages {
            return Ok((program, losses));
        }
        let how = self.collectives.as_ref().unwrap_or(&Collectives::Automatic);
        let table = match (how.table(&program, network), self.form) {
            (Some(table), _) => table,
            (None, Dim | Paraver) => return Ok((program, losses)),
            (None, _) => of_library(&program),
        };
        // A .dim has no other way to express work that runs beside a rank.
        let immediate = if self.form == Dim {
            NonBlocking::Kept
        } else {
            NonBlocking::Expanded
        };
        let expanded = expand(&program, &table, immediate, ReadOptions { threads })?.program;
        Ok((Cow::Owned(expanded), losses))
    }
}
