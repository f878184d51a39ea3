//! Questions about one replay of a trace: `flowcast explain path`, `explain gradient`, `explain slack`, `sensitivity`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use flowcast::formats::read::TraceContents;
use flowcast_io::{ReplayRequest, Request, SensitivityRequest};

use flowcast_terminal::{
    answers::give_answer,
    files::{Output, declare},
    network_args::NetworkArgs,
    output::Format,
    tables::RowLimit,
    trace_args::{input_help, open_trace},
};

/// Plot the predicted time against one network field or cost
///
/// Prints the curve, its slopes, and the values at which the time grows by 1, 2, 5 and 10 %. The costs may be limited to a
/// rank, pair, link or size. The curve is exact without contention between messages (--model independent).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter nic.latency --range 0us..1ms
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter nic.bandwidth --range 10MB/s..10GB/s --report lu.html
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter 'compute[rank=2]' --range 0.5..2
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter 'latency[pair=0-3,size>=1KiB]' --range 0us..1ms
  flowcast sensitivity lu.dim --network gige-tcp --parameter machine.nodes.*.speed --range 0.5..4 --json")]
pub(crate) struct Sensitivity {
    #[command(flatten)]
    question: TraceQuestion<SensitivityRequest>,
}

impl Sensitivity {
    /// Predicts over the range and prints the curve.
    pub(crate) fn run(self) -> Result<()> {
        self.question.ask(Request::Sensitivity)
    }
}

/// Options of a question about one replay.
pub(crate) trait ReplayQuestion: Args {
    /// Kinds of traces to which the question applies.
    const HOLDS: TraceContents;
}

impl ReplayQuestion for ReplayRequest {
    const HOLDS: TraceContents = TraceContents::Program;
}

impl ReplayQuestion for SensitivityRequest {
    const HOLDS: TraceContents = TraceContents::Any;
}

/// Question about a trace on a network, with the destination of its answer.
#[derive(Debug, Args)]
pub(crate) struct TraceQuestion<R: ReplayQuestion> {
    #[arg(help = input_help(R::HOLDS))]
    input: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    request: R,
    #[command(flatten)]
    rows: RowLimit,
    /// Write the result as a self-contained page, and as FILE.json
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl<R: ReplayQuestion> TraceQuestion<R> {
    /// Answers the question and prints the answer.
    pub(super) fn ask(self, request: fn(R) -> Request) -> Result<()> {
        let inputs = [self.input.as_path(), self.network.network.as_ref()];
        declare(
            inputs,
            self.report.iter().map(|path| Output {
                option: "--report",
                path,
                endings: &["html"],
            }),
        )?;
        let (network, request) = (self.network.load()?, request(self.request));
        give_answer(
            &request,
            || open_trace(&self.input),
            Some(&network),
            self.report.as_deref(),
            self.format,
            self.rows,
        )
    }
}
