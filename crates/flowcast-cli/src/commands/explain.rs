//! `flowcast explain`: background of a prediction: the algorithms of a trace's collectives, and the parts of the predicted
//! time.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use flowcast::{
    statements::of_trace,
    table::{Document, Grouped, Value, rows, shown},
    trace::{
        ReadOptions, Trace,
        expand::{Expanded, NonBlocking, Use, expand},
    },
};

use super::trace_question::TraceQuestion;
use flowcast_io::{ReplayRequest, Request, collectives_help};

use flowcast_terminal::{
    collectives,
    network_args::{load, parse_overrides},
    output::Format,
    trace_args::{open_trace, program_help, threads},
};

/// Show the components of a predicted time and what limits it
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  flowcast explain collectives is.dim --collectives mpich\n  flowcast explain path lu.dim --network gige-tcp\n  flowcast explain gradient lu.dim --network gige-tcp --model independent\n  flowcast explain slack lu.dim --network gige-tcp --model independent"
)]
pub(crate) enum Explain {
    Collectives(Collectives),
    /// Show the critical path, the chain of events that ends last
    ///
    /// Lists the causes and ranks on which its time is spent, and ranks the changes that would help most.
    #[command(after_help = "Examples:
  flowcast explain path lu.dim --network gige-tcp
  flowcast explain path lu.dim --network gige-tcp --model independent --json")]
    Path(TraceQuestion<ReplayRequest>),
    /// Rank the costs that the predicted time depends on most
    ///
    /// One backward pass over the events of a replay covers the computation of each rank, latency and time per byte of each
    /// pair, overheads and collectives. The ten most promising changes are replayed.
    #[command(after_help = "Examples:
  flowcast explain gradient lu.dim --network gige-tcp --model independent
  flowcast explain gradient is.dim --network gige-tcp --collectives openmpi --report is.html")]
    Gradient(TraceQuestion<ReplayRequest>),
    /// Show the slack of each rank, message and computation
    ///
    /// Slack is the longest delay that does not postpone the end of the program. Ranks with slack could run slower, and messages
    /// with slack could use a slower network.
    #[command(after_help = "Examples:
  flowcast explain slack lu.dim --network gige-tcp --model independent
  flowcast explain slack lu.dim --network gige-tcp --json")]
    Slack(TraceQuestion<ReplayRequest>),
}

impl Explain {
    /// Answers the question.
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Explain::Collectives(question) => question.run(),
            Explain::Path(question) => question.ask(Request::Path),
            Explain::Gradient(question) => question.ask(Request::Gradient),
            Explain::Slack(question) => question.ask(Request::Slack),
        }
    }
}

/// Show the algorithm of each collective of a trace
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast explain collectives is.dim
  flowcast explain collectives is.dim --collectives algorithm:ours.toml --json")]
pub(crate) struct Collectives {
    #[arg(help = program_help())]
    input: PathBuf,
    /// Network whose file may contain a table of algorithms
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Replace a field of the network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "network")]
    overrides: Vec<String>,
    #[arg(
        long = "collectives", value_name = "HOW", default_value = "algorithm",
        help = collectives_help("`formula` has no algorithms to explain")
    )]
    how: String,
    #[command(flatten)]
    format: Format,
}

impl Collectives {
    /// Explains the collectives. Without `--collectives`, the network's table is used; without a table, the library of the
    /// recording, or Open MPI.
    fn run(self) -> Result<()> {
        let overrides = parse_overrides(&self.overrides)?;
        let network = self
            .network
            .as_deref()
            .map(|name| load(name, &overrides))
            .transpose()?;
        let trace = open_trace(&self.input)?;
        let Trace::Program(program) = &trace else {
            bail!(
                "{}: found a GOAL schedule, which has no collectives, expected a trace",
                self.input.display()
            );
        };
        let how = collectives::named(&self.how)?;
        let Some(table) = how.table(program, network.as_ref()) else {
            bail!(
                "{}: found no algorithms to explain, because the collectives are evaluated by a formula, expected --collectives \
                 openmpi, mpich or algorithm",
                self.input.display()
            );
        };
        let expanded = expand(
            program,
            &table,
            NonBlocking::Expanded,
            ReadOptions { threads: threads() },
        )?;
        let source = how.source(program, network.as_ref());
        let answer = document(&expanded).line(source);
        self.format.print(&answer.noted(of_trace(&trace, None)))
    }
}

fn document(expanded: &Expanded) -> Document {
    let uses = rows(&expanded.uses)
        .column("operation", "operation", |used| used.op.name())
        .column("ranks", "ranks", |used| used.extent.ranks)
        .column("bytes", "bytes", |used| Grouped(used.extent.bytes.0))
        .field("total_bytes", |used| used.extent.total)
        .column("algorithm", "algorithm", algorithm)
        .field("stages", |used| {
            let stages = used.stages.iter();
            stages
                .map(|(op, choice)| [op.name().to_owned(), choice.to_string()])
                .collect::<Value>()
        })
        .column("count", "count", |used| Grouped(used.count))
        .field("immediate", |used| used.non_blocking)
        .column("messages", "messages", |used| Grouped(used.messages))
        .column("message_bytes", "bytes sent", |used| Grouped(used.bytes.0));
    let immediate: u64 = expanded.uses.iter().map(|used| used.non_blocking).sum();
    let kept = expanded.kept;
    Document::new("collectives")
        .table("uses", uses)
        .field("kept_by_formula", kept)
        .lines(
            (immediate > 0)
                .then(|| format!("immediate: {immediate}; their messages move in the background")),
        )
        .lines(
            (kept > 0).then(|| {
                format!("{kept} keep their formula: their communicator names a rank twice")
            }),
        )
}

fn algorithm(used: &Use) -> Value {
    let Some(choice) = used.choice.map(|choice| choice.to_string()) else {
        return shown(Value::Absent, "nothing to send");
    };
    let stages = used.stages.iter();
    let stages: Vec<String> = stages
        .map(|(op, choice)| format!("{} {choice}", op.name()))
        .collect();
    if stages.is_empty() {
        return choice.into();
    }
    let text = format!("{choice} ({})", stages.join(", "));
    shown(choice, text)
}
