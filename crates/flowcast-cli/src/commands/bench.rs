//! `flowcast bench`: speed of replays on this machine.

mod flows;
mod packet;
mod sweep;

use std::{path::PathBuf, time::Instant};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use flowcast::{
    Contention, Options, PreparedProgram, PreparedSchedule,
    model::{network::Network, sharing::model::Model},
    table::Document,
    trace::{Program, Trace, schedule::Schedule},
    units::four_digits,
};

use flowcast_io::loggops_parameters;

use super::predict::trace::goal_numbers;
use flowcast_terminal::{
    network_args::{NetworkArgs, load, parse_overrides},
    output::Format,
    progress::Progress,
    trace_args::open_trace,
};

/// Measure the speed of replays on this machine
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Example:\n  flowcast generate halo --ranks 64 --iterations 4000 -o halo.dim\n  flowcast bench replay halo.dim --network gige-tcp\n  flowcast bench packet chain.pattern --network gige-lam --set sharing.congestion=cubic"
)]
pub(crate) enum Bench {
    /// Measure the speed of a replay in messages per second
    ///
    /// Loading is excluded. The result is the median of several runs.
    Replay(ReplayBench),
    /// Measure the speed of a fluid model in flows per second
    ///
    /// Reading is excluded. The result is the median of several runs.
    Flows {
        /// Pattern
        input: PathBuf,
        #[command(flatten)]
        network: NetworkArgs,
        /// Model of concurrent flows (see `flowcast predict --help`)
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        #[command(flatten)]
        timing: Timing,
    },
    /// Measure the speed of the packet model in packet-hops per second
    ///
    /// The result is the median of several runs.
    Packet {
        /// Pattern
        input: PathBuf,
        #[command(flatten)]
        network: NetworkArgs,
        /// Simulate each packet, even if the state repeats exactly and whole periods could be skipped
        #[arg(long)]
        unfold: bool,
        #[command(flatten)]
        timing: Timing,
    },
    /// Compare the cost of many what-ifs of a trace with one replay
    ///
    /// Both run in turn on one core. The result is the median of the ratios.
    Sweep {
        /// Trace
        input: PathBuf,
        #[command(flatten)]
        network: NetworkArgs,
        /// Number of what-ifs; at most 100000
        #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = flowcast_terminal::shares::count::<usize>(..=100_000))]
        count: usize,
        #[command(flatten)]
        timing: Timing,
    },
}

/// Number of runs and output format.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Timing {
    /// Number of runs, whose median is printed; 1 to 100000
    #[arg(long = "repetitions", value_name = "COUNT", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    #[command(flatten)]
    format: Format,
}

impl Bench {
    /// Measures and prints the result.
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Bench::Replay(replay) => replay.run(),
            Bench::Flows {
                input,
                network,
                model,
                timing,
            } => {
                let network = network.load()?;
                let given = model.as_deref().map(Model::named).transpose()?;
                let model = given.unwrap_or(Model::from_network(&network));
                flows::run(&input, &network, model, timing)
            }
            Bench::Packet {
                input,
                network,
                unfold,
                timing,
            } => packet::run(&input, &network.load()?, unfold, timing),
            Bench::Sweep {
                input,
                network,
                count,
                timing,
            } => {
                let Trace::Program(program) = open_trace(&input)? else {
                    bail!(
                        "{}: found a GOAL schedule, expected a trace",
                        input.display()
                    )
                };
                sweep::run(&program, &network.load()?, count, timing)
            }
        }
    }
}

/// A replay to measure.
#[derive(Debug, Args)]
pub(crate) struct ReplayBench {
    /// Trace
    input: PathBuf,
    /// Built-in network (see `flowcast networks`), network file (TOML) or Dimemas configuration (.cfg)
    #[arg(
        short,
        long,
        value_name = "NET",
        required_unless_present = "goal_params"
    )]
    network: Option<String>,
    /// Replace a field of the network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// GOAL schedules: L,o,g,G,S in nanoseconds (S in bytes) instead of a network
    #[arg(long, value_name = "L,o,g,G,S")]
    goal_params: Option<String>,
    /// Include loading: measure from the text to the result
    #[arg(long)]
    with_load: bool,
    /// Number of threads, for many messages without contention, or a network with parts that share no link
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    threads: usize,
    /// Model of concurrent messages (see `flowcast predict --help`)
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    #[command(flatten)]
    timing: Timing,
}

impl ReplayBench {
    fn run(&self) -> Result<()> {
        let network = match &self.network {
            Some(network) => Some(load(network, &parse_overrides(&self.overrides)?)?),
            None => None,
        };
        let trace = open_trace(&self.input)?;
        // Uses the engine for the trace alone. The speed of a network's engine depends on the network.
        let bare = if matches!(trace, Trace::Program(_)) {
            Contention::Limits
        } else {
            Contention::Loggops
        };
        let options = Options {
            contention: self.model.as_deref().map_or(Ok(bare), Contention::named)?,
            loggops: self
                .goal_params
                .as_deref()
                .map(|text| loggops_parameters(goal_numbers(text)?))
                .transpose()?,
            ..Options::default()
        };
        match trace {
            Trace::Schedule(schedule) => self.schedule(schedule, network.as_ref(), &options),
            Trace::Program(program) => self.program(program, network.as_ref(), &options),
            Trace::Folded(folded) => self.program(folded.unfold()?, network.as_ref(), &options),
        }
    }

    fn program(
        &self,
        mut program: Program,
        network: Option<&Network>,
        options: &Options,
    ) -> Result<()> {
        let Some(network) = network else {
            bail!("--goal-params: found a trace, expected a GOAL schedule (use --network)")
        };
        let prepared = PreparedProgram::new(&program, network, options)?;
        let is_free = options.contention == Contention::Limits && prepared.engine()?.is_free();
        // If nothing is limited, the contention-free walk runs.
        let model = if is_free {
            Model::Independent.name()
        } else {
            prepared.model().name()
        };
        drop(prepared);
        let seconds = timed(self.timing, || {
            if self.with_load
                && let Trace::Program(again) = open_trace(&self.input)?
            {
                program = again;
            }
            Ok(PreparedProgram::new(&program, network, options)?
                .engine()?
                .on_threads(self.threads)
                .run()?)
        })?;
        let each = program.compiled_bytes() as f64 / f64::from(program.messages().max(1));
        let tail = format!(", {each:.1} bytes per message, model {model}");
        self.print(seconds, u64::from(program.messages()), model, &tail)
    }

    /// Measures replays of a schedule. Its preparation belongs to loading, like the matching of a trace.
    fn schedule(
        &self,
        schedule: Schedule,
        network: Option<&Network>,
        options: &Options,
    ) -> Result<()> {
        let messages = schedule.messages();
        let mut prepared = PreparedSchedule::consuming(schedule, network, options)?;
        let seconds = timed(self.timing, || {
            if self.with_load
                && let Trace::Schedule(again) = open_trace(&self.input)?
            {
                prepared = PreparedSchedule::consuming(again, network, options)?;
            }
            Ok(prepared.run()?)
        })?;
        let model = prepared.model().name();
        self.print(seconds, messages, model, &format!(", model {model}"))
    }

    fn print(&self, seconds: Vec<f64>, messages: u64, model: &str, tail: &str) -> Result<()> {
        let document = Document::new("bench-replay")
            .field("model", model)
            .field("messages", messages);
        print_rates("messages", messages, seconds, document, tail, self.timing)
    }
}

/// Time of each run, in seconds.
pub(super) fn timed<T>(timing: Timing, mut run: impl FnMut() -> Result<T>) -> Result<Vec<f64>> {
    let mut seconds = Vec::new();
    let progress = Progress::counted("measuring", "runs", u64::from(timing.runs));
    for _ in 0..timing.runs {
        let begin = Instant::now();
        std::hint::black_box(run()?);
        seconds.push(begin.elapsed().as_secs_f64());
        progress.add(1);
    }
    Ok(seconds)
}

/// Prints the rate of counted items, such as `messages`, per second: the median of the runs, the slowest and the fastest.
pub(super) fn print_rates(
    name: &'static str,
    count: u64,
    mut seconds: Vec<f64>,
    document: Document,
    tail: &str,
    timing: Timing,
) -> Result<()> {
    seconds.sort_by(f64::total_cmp);
    let runs = seconds.len();
    let [slow, middle, fast] = [runs - 1, runs / 2, 0].map(|run| count as f64 / seconds[run]);
    let field = name.replace('-', "_");
    let text = [slow, middle, fast].map(|rate| four_digits(rate / 1e6));
    timing.format.print(
        &document
            .field("runs", runs)
            .field(format!("{field}_per_s"), middle)
            .field(format!("{field}_per_s_min"), slow)
            .field(format!("{field}_per_s_max"), fast)
            .line(format!(
                "{} million {name}/s (median of {runs}; {} to {}){tail}",
                text[1], text[0], text[2]
            )),
    )
}
