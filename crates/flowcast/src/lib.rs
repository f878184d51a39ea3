//! Predicts the communication time of message-passing programs on existing or planned networks.
//!
//! ```
//! // Rank 0 computes for a millisecond and sends 64 KiB to rank 1.
//! let text = "#DIMEMAS:\"example\":1,0:2(1,1),1\nd:1:1:2:0:1\n\
//!             1:0:0:0.001\n2:0:0:1:-1:65536:7:1:0\n3:1:0:0:-1:65536:7:1:0\n";
//! let trace = flowcast::read_text("example.dim", text)?;
//! let network = flowcast::model::builtin::network("gige-tcp")?;
//! let prediction = flowcast::predict(&trace, &network, &flowcast::Options::default())?;
//! assert_eq!(prediction.outcome.messages, 1);
//! assert!(prediction.outcome.makespan().as_micros() > 1500.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! There are two levels.
//!
//! - The **high level** is this page: [`predict`](predict()) and [`sweep`](sweep()) for traces, [`predict_pattern`] for
//!   patterns of concurrent messages, [`Case`] for either, and [`fit`](fit()) for a network from measured round trips. It
//!   takes a [`Trace`], a [`Network`] and [`Options`], and chooses the engine. [`Prepared::interval`] and
//!   [`pattern_intervals`] return the margin of a prediction, [`sensitivity`](sensitivity()) its dependence on a field.
//! - The **low level** is for callers with their own observer or network, or with a prepared trace that they keep between
//!   replays: [`Prepared`], and the crates below it, which this crate re-exports as modules: [`units`], [`recording`],
//!   [`model`], [`packet`], [`flows`], [`fit`](mod@fit), [`scheduler`], [`trace`], [`replay`], [`calibrate`], [`report`].
//!
//! This crate uses no clock, socket, path, environment variable or global state: callers pass bytes and get values. Equal
//! inputs give equal results, for any number of threads.

pub mod answers;
pub mod calibrate;
mod case;
mod choice;
mod conversion;
mod error;
mod folded;
mod interval;
pub mod models_page;
mod options;
mod pattern;
mod prepared;
mod program;
mod rail_advice;
mod rails;
mod recorded;
pub mod samples_page;
mod schedule;
mod sensitivity;
pub mod statements;
pub mod study;
mod sweep;
pub mod why;

use std::{io, sync::Arc};

use flowcast_fit::{
    error::FitError,
    loggp::{FitOptions, LogGpFit, fit_loggp},
    samples::PrttSamples,
};

pub use case::{Case, CaseDetails, CaseResult, Input};
pub use choice::ModelChoice;
pub use conversion::{Conversion, ConversionError, TraceForm};
pub use error::Error;
pub use flowcast_fit as fit;
pub use flowcast_formats::{self as formats, convert, read_text};
pub use flowcast_graph as graph;
pub use flowcast_hpl as hpl;
pub use flowcast_network as model;
pub use flowcast_observers as observers;
pub use flowcast_program as trace;
pub use flowcast_recording as recording;
pub use flowcast_replay as replay;
pub use flowcast_report as report;
pub use flowcast_report::standing::Interval;
pub use flowcast_scheduler as scheduler;
pub use flowcast_statistics as statistics;
pub use flowcast_table as table;
pub use flowcast_traffic::{flows, packet};
pub use flowcast_units as units;
pub use folded::{Loops, PreparedFolded};
pub use interval::{IntervalOptions, PatternIntervals, matters, may_vary, pattern_intervals};
pub use options::{
    Collectives, CollectivesExpansion, CollectivesWay, Contention, MOST_MESSAGES, NamedCollectives,
    Options,
};
pub use pattern::{PatternPrediction, durations_of_steps, predict_pattern, predict_steps};
pub use prepared::{Outputs, Prediction, Prepared};
pub use program::{PreparedProgram, split};
pub use rail_advice::{AdvisedRails, RailAdvice, advise_rails};
pub use rails::{RailPrediction, RailsOptions, RailsPrediction};
pub use recorded::{Recorded, RecordingPrediction};
pub use schedule::PreparedSchedule;
pub use sensitivity::{Inexact, Parameter, Sensitivity, sensitivity};
pub use sweep::sweep;
pub use why::changes::{Change, changes};

use model::network::Network;
use trace::{ReadOptions, SharedBytes, Trace, TraceError};

/// Reads a trace of any form, in one or several files. `first` is the name of the main file (for a recording
/// [`recording::format::RECORDING`]). `open` returns the bytes of a file by its name.
///
/// ```no_run
/// use flowcast::recording::format::RECORDING;
/// let folder = std::path::Path::new("prog.rec");
/// let trace = flowcast::read_files(RECORDING, |file| std::fs::read(folder.join(file)))?;
/// # Ok::<(), flowcast::trace::TraceError>(())
/// ```
///
/// # Errors
/// [`TraceError`] with file and line, the text found and the text expected, or the reason why a file cannot be read.
pub fn read_files(
    first: &str,
    mut open: impl FnMut(&str) -> io::Result<Vec<u8>>,
) -> Result<Trace, TraceError> {
    let bytes = open(first).map_err(|error| TraceError::Part {
        place: "trace".to_owned(),
        file: first.to_owned(),
        error,
    })?;
    flowcast_formats::read(
        first,
        Arc::new(bytes),
        &mut |file: &str| Ok(Arc::new(open(file)?) as SharedBytes),
        ReadOptions::default(),
    )
}

/// Predicts the time that a trace takes on a network.
///
/// # Errors
/// [`Error::Option`] for options that do not fit the trace, [`Error::Replay`] for ranks that wait for each other and
/// mappings that do not fit, [`Error::Sharing`] for a network that lacks what the model needs.
pub fn predict(trace: &Trace, network: &Network, options: &Options) -> Result<Prediction, Error> {
    Prepared::new(trace, Some(network), options)?.predict(Outputs::default(), &[])
}

/// Fits LogGP to measured round trips (Lichei, chapter 3). [`LogGpFit::to_network`] turns the fit into a network file.
///
/// # Errors
/// Too few samples, or samples that no LogGP parameters explain.
pub fn fit(samples: &PrttSamples, options: &FitOptions) -> Result<LogGpFit, FitError> {
    fit_loggp(samples, options)
}
