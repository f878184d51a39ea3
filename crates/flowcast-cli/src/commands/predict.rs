//! `flowcast predict`: predicts a pattern of concurrent communications or a program's trace. The content of the input
//! decides.

mod comparison;
mod pattern;
mod question;
pub(crate) mod trace;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use flowcast::{
    Contention, IntervalOptions, model::network::Network, scheduler::policy::MessagePolicy,
};

use flowcast_terminal::{
    files::{Output, declare},
    network_args::{load_all, load_rails, parse_overrides},
    output::Format,
    progress::Progress,
    shares::{probability, seed},
    trace_args::{threads, trace_help},
};
use question::Question;
use trace::{NOISE_DRAWS, TraceArgs};

/// Predict the time of a program or a communication pattern
///
/// The content of the input decides whether it is a pattern or a trace. Several networks, models or mappings of one input
/// are compared; several traces run concurrently. An option that does not apply to the input is an error, which names the
/// inputs to which it applies.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast predict cg.S.4.dim --network gige-tcp
  flowcast predict cg.S.4.dim --network gige-tcp --network infiniband-2006 --model fair --model packet --report cg.html
  flowcast predict cg.S.4.dim --network 'mine/*.toml' --mapping fill --mapping round-robin
  flowcast predict cg.S.4.dim mg.S.4.dim --network cluster.cfg --mapping fill --mapping round-robin
  flowcast predict cg.S.4.dim --network gige-tcp --write paraver=cg.prv --write perfetto=cg.pftrace --write messages=cg.csv
  flowcast predict cg.S.4.dim --network gige-tcp --model independent --noise exponential:5us --seed 7
  flowcast predict cg.S.4.dim --network gige-tcp --model independent --scenarios what-if.toml
  flowcast predict cg.S.4.dim --rail eth0.toml --rail eth1.toml --scheduler stock
  flowcast predict halo.goal --goal-params 2000,500,700,1,65536 --json
  flowcast predict cg.S.4.dim --network gige-tcp --collectives openmpi --explain
  flowcast predict chain.pattern --network gige-lam --explain --report chain.svg
  flowcast predict racks.pattern --network ethernet-1g-10g --model closed-loop --set sharing.kappa=0.5 --json
  flowcast predict chain.pattern --network gige-lam --model packet --set sharing.congestion=cubic --set sharing.queue=100kB --replicates 21")]
pub(crate) struct Predict {
    #[arg(required = true, help = input_help())]
    inputs: Vec<PathBuf>,
    /// Built-in network (see `flowcast networks`), network file (TOML), Dimemas .cfg, or a pattern of names such as 'gige-*'
    /// or 'mine/*.toml'; several are compared (repeatable)
    #[arg(short, long, value_name = "NET")]
    network: Vec<String>,
    /// Traces: one of several networks that carry messages at the same time, given as for --network, or NAME=g,G,o,Lus with
    /// g, G per byte, o and L in microseconds (repeatable). The first determines which messages wait for their receiver, and
    /// the processor time of messages
    #[arg(long, value_name = "RAIL", conflicts_with = "network")]
    rail: Vec<String>,
    /// Replace a field of every network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Model of concurrent messages: independent, fair, degree-fair, flow-cuts, asymmetric, closed-loop, alpha-fair, packet,
    /// ib-penalty; traces: limits (Dimemas' links, buses, processors), loggops (GOAL); several are compared (repeatable)
    /// [default: the network decides, and the result gives the reason]
    #[arg(long, value_name = "MODEL")]
    model: Vec<String>,
    #[command(flatten)]
    trace: TraceArgs,
    /// Patterns: show for each interval the cause and the size of the cut of each flow. Traces: show the cost of
    /// communication for each rank and each place in the program: overhead, latency, bandwidth, conflicts, late senders and
    /// receivers
    #[arg(long)]
    explain: bool,
    /// Traces: write a self-contained page with the timeline, the messages and the limits of the program. Patterns: draw the
    /// flows over time, on a page, or as a picture if the name ends in .svg
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
    /// Probability that the interval of a prediction contains the measured time
    #[arg(long, value_name = "PROBABILITY", default_value = "0.90", value_parser = probability)]
    level: f64,
    /// Predict no interval: draw no networks and set the interval of the result to null
    #[arg(long, conflicts_with = "holdout")]
    no_interval: bool,
    /// Seed of the random numbers, at most 2^53, for networks that vary at random (--set machine.random.seed=N) and for
    /// --noise
    #[arg(long, value_name = "COUNT", value_parser = seed())]
    seed: Option<u64>,
    #[arg(long, value_name = "COUNT", help = replicates_help(), value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replicates: Option<u32>,
    /// Scheduler that chooses the rail of each message: earliest-delivery (long ones in pieces over several),
    /// whole-messages, stock (Open MPI's choice), or another scheduler of `flowcast rails simulate` [default:
    /// earliest-delivery]
    #[arg(long, value_name = "SCHEDULER", requires = "rail")]
    scheduler: Option<MessagePolicy>,
    /// Patterns: refuse more than two flows in one direction of a node under flow-cuts
    #[arg(long)]
    strict: bool,
    /// Case of the network's accuracy record whose errors are excluded from the interval, because it is the predicted one
    #[arg(long, value_name = "NAME")]
    holdout: Option<String>,
}

/// Question of the command line, with its inputs.
pub(super) struct PredictQuestion<'a> {
    /// Parsed command line of `flowcast predict`.
    pub args: &'a Predict,
    /// Fields of the network that are set, with their values.
    pub overrides: Vec<(String, String)>,
    /// Networks in the given order. With several rails, only the first one.
    pub networks: Vec<Network>,
    /// The other rails.
    pub further: Vec<Network>,
    /// Models in the given order.
    pub models: Vec<Contention>,
}

impl PredictQuestion<'_> {
    /// Names of the fields of the network that are set.
    pub(super) fn fields(&self) -> Vec<String> {
        self.overrides.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Options of intervals, unless intervals are turned off.
    pub(super) fn interval(&self) -> Option<IntervalOptions<'_>> {
        (!self.args.no_interval).then(|| IntervalOptions {
            level: self.args.level,
            held_out: self.args.holdout.as_deref(),
            threads: threads(),
            ..IntervalOptions::default()
        })
    }

    /// Computes an interval if one is requested, and shows that it does.
    pub(super) fn with_progress<T, E: Into<anyhow::Error>>(
        &self,
        predict: impl FnOnce(&IntervalOptions<'_>) -> Result<Option<T>, E>,
    ) -> Result<Option<T>> {
        let Some(options) = self.interval() else {
            return Ok(None);
        };
        let _progress = Progress::without_end("predicting the margin");
        predict(&options).map_err(Into::into)
    }

    /// Predicts the input and prints the result.
    fn predict(&self) -> Result<()> {
        let question = Question::from_inputs(self)?;
        question.refuse_others(self)?;
        let (inputs, scenarios) = (&self.args.inputs, &self.args.trace.scenarios);
        match (question, scenarios) {
            (Question::Pattern | Question::Patterns, _) => pattern::run(self, &inputs[0]),
            (Question::Scenarios, Some(file)) => trace::run_scenarios(self, file),
            (Question::Comparison, _) => comparison::of_trace(self),
            _ => trace::run(self),
        }
    }
}

impl Predict {
    /// Predicts and prints.
    pub(crate) fn run(self) -> Result<()> {
        self.declare()?;
        let mut overrides = parse_overrides(&self.overrides)?;
        overrides.extend(
            self.seed
                .map(|seed| ("machine.random.seed".to_owned(), seed.to_string())),
        );
        let mut networks = load_all(&self.network, &overrides)?;
        networks.extend(load_rails(&self.rail, &overrides)?);
        let further = if self.rail.is_empty() {
            Vec::new()
        } else {
            networks.split_off(1)
        };
        let models = self
            .model
            .iter()
            .map(|name| Contention::named(name).with_context(|| format!("--model {name}")));
        let asked = PredictQuestion {
            models: models.collect::<Result<_>>()?,
            networks,
            further,
            overrides,
            args: &self,
        };
        asked.predict()
    }

    /// Refuses output files that are inputs or cannot be written.
    fn declare(&self) -> Result<()> {
        let named = self
            .network
            .iter()
            .chain(&self.rail)
            .chain(&self.trace.mapping)
            .map(Path::new);
        let beside = self.trace.outputs.beside_paraver();
        let mut outputs = self.trace.outputs.declared(&beside);
        outputs.extend(Output::each("--report", &self.report));
        declare(
            self.inputs.iter().map(PathBuf::as_path).chain(named),
            outputs,
        )
    }
}

fn replicates_help() -> String {
    format!(
        "Number of runs with other random numbers, at most 100000. Patterns under the model packet: runs with random starts \
         and host times; the result has medians and the range of nine of ten runs. Traces: draws of the delays of --noise \
         [default: {NOISE_DRAWS}]"
    )
}

fn input_help() -> String {
    format!(
        "Pattern of concurrent messages, or a trace. {}. Several traces run on the machine at the same time",
        trace_help()
    )
}
