//! `flowcast explain path`, `explain gradient`, `explain slack`: what the events of one replay say.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use flowcast::{
    Error, Options,
    model::network::Network,
    table::Document,
    trace::Trace,
    why::{gradient, path, slack},
};

use crate::{
    network_args::NetworkArgs,
    replay_args::ReplayArgs,
    terminal::{
        answers::give_answer,
        files::{Output, declare},
        output::Format,
        progress::Progress,
        tables::Most,
    },
    trace_args::{open_trace, program_help},
};

/// Show what the chain of events that ends last spends its time on
///
/// Also ranks the changes that would help most.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast explain path lu.dim --network gige-tcp
  flowcast explain path lu.dim --network gige-tcp --model independent --json")]
pub(crate) struct Path {
    #[command(flatten)]
    question: EventQuestion,
}

/// Rank the costs that the predicted time depends on most
///
/// One pass back over the events of a replay covers the computing of each rank, latency and time per byte of each pair,
/// overheads and collectives. The ten most promising changes are replayed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast explain gradient lu.dim --network gige-tcp --model independent
  flowcast explain gradient is.dim --network gige-tcp --collectives openmpi --report is.html")]
pub(crate) struct Gradient {
    #[command(flatten)]
    question: EventQuestion,
}

/// Show how late each rank, message and computation may be
///
/// The end does not move: some ranks could run slower, some messages go over a slower network.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast explain slack lu.dim --network gige-tcp --model independent
  flowcast explain slack lu.dim --network gige-tcp --json")]
pub(crate) struct Slack {
    #[command(flatten)]
    question: EventQuestion,
}

impl Path {
    /// Replays once for the path, and once for each change.
    pub(crate) fn run(self) -> Result<()> {
        self.question.ask(path)
    }
}

impl Gradient {
    /// Replays, goes back, and replays the changes.
    pub(crate) fn run(self) -> Result<()> {
        self.question.ask(gradient)
    }
}

impl Slack {
    /// Replays and goes back.
    pub(crate) fn run(self) -> Result<()> {
        self.question.ask(slack)
    }
}

/// What is asked about one replay.
#[derive(Debug, Args)]
struct EventQuestion {
    #[arg(help = program_help())]
    input: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    replay: ReplayArgs,
    #[command(flatten)]
    rows: Most,
    /// Write a self-contained page, and the JSON beside it
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl EventQuestion {
    fn ask(self, answer: fn(&Trace, &Network, &Options) -> Result<Document, Error>) -> Result<()> {
        let inputs = [self.input.as_path(), self.network.network.as_ref()];
        declare(
            inputs,
            self.report.iter().map(|path| Output {
                option: "--report",
                path,
                endings: &["html"],
            }),
        )?;
        let (network, options) = (self.network.load()?, self.replay.options()?);
        let trace = open_trace(&self.input)?;
        let progress = Progress::without_end(format!("following {}", trace.name()));
        let answer = answer(&trace, &network, &options)?;
        drop(progress);
        give_answer(&answer, self.report.as_deref(), self.format, self.rows)
    }
}
