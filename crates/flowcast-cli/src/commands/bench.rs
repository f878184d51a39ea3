//! `flowcast bench`: speed of replays on this machine.

mod flows;
mod packet;
mod sweep;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Result, bail};
use clap::Subcommand;
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
    network_args::NetworkArgs, output::Format, progress::Progress, trace_args::open_trace,
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
    Replay {
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
        /// Number of runs, whose median is printed; at most 100000
        #[arg(long, value_name = "COUNT", default_value_t = 11, value_parser = flowcast_terminal::shares::count::<u32>(..=100_000))]
        repetitions: u32,
        /// Include loading: measure from the text to the result
        #[arg(long)]
        with_load: bool,
        /// Number of threads, for many messages without contention, or a network with parts that share no link
        #[arg(long, value_name = "COUNT", default_value_t = 1)]
        threads: usize,
        /// Model of concurrent messages (see `flowcast predict --help`)
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// Machine-readable output
        #[arg(long)]
        json: bool,
    },
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
        /// Number of runs, whose median is printed; at most 100000
        #[arg(long, value_name = "COUNT", default_value_t = 11, value_parser = flowcast_terminal::shares::count::<u32>(..=100_000))]
        repetitions: u32,
        /// Machine-readable output
        #[arg(long)]
        json: bool,
    },
    /// Measure the speed of the packet model in packet-hops per second
    ///
    /// The result is the median of several runs.
    Packet {
        /// Pattern
        input: PathBuf,
        #[command(flatten)]
        network: NetworkArgs,
        /// Number of runs, whose median is printed; at most 100000
        #[arg(long, value_name = "COUNT", default_value_t = 11, value_parser = flowcast_terminal::shares::count::<u32>(..=100_000))]
        repetitions: u32,
        /// Simulate each packet, even if the state repeats exactly and whole periods could be skipped
        #[arg(long)]
        unfold: bool,
        /// Machine-readable output
        #[arg(long)]
        json: bool,
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
        /// Number of runs, whose median is printed; at most 100000
        #[arg(long, value_name = "COUNT", default_value_t = 11, value_parser = flowcast_terminal::shares::count::<u32>(..=100_000))]
        repetitions: u32,
        /// Machine-readable output
        #[arg(long)]
        json: bool,
    },
}

impl Bench {
    /// Measures and prints the result.
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Bench::Replay {
                input,
                network,
                overrides,
                goal_params,
                repetitions: runs,
                with_load,
                threads,
                model,
                json,
            } => {
                check_repetitions(runs)?;
                let network = network
                    .map(|network| NetworkArgs { network, overrides }.load())
                    .transpose()?;
                let trace = open_trace(&input)?;
                // Uses the engine for the trace alone. The speed of a network's engine depends on the network.
                let bare = if matches!(trace, Trace::Program(_)) {
                    Contention::Limits
                } else {
                    Contention::Loggops
                };
                let options = Options {
                    contention: model.as_deref().map_or(Ok(bare), Contention::named)?,
                    loggops: goal_params
                        .as_deref()
                        .map(|text| loggops_parameters(goal_numbers(text)?))
                        .transpose()?,
                    ..Options::default()
                };
                replay(
                    &input,
                    trace,
                    network.as_ref(),
                    &options,
                    Timing {
                        runs,
                        with_load,
                        threads,
                        json,
                    },
                )
            }
            Bench::Flows {
                input,
                network,
                model,
                repetitions: runs,
                json,
            } => {
                check_repetitions(runs)?;
                let network = network.load()?;
                let given = model.as_deref().map(Model::named).transpose()?;
                let model = given.unwrap_or(Model::from_network(&network));
                flows::run(&input, &network, model, runs, json)
            }
            Bench::Packet {
                input,
                network,
                repetitions: runs,
                unfold,
                json,
            } => {
                check_repetitions(runs)?;
                packet::run(&input, &network.load()?, unfold, runs, json)
            }
            Bench::Sweep {
                input,
                network,
                count,
                repetitions: runs,
                json,
            } => {
                check_repetitions(runs)?;
                let trace = open_trace(&input)?;
                sweep::run(
                    program_of(&trace, &input)?,
                    &network.load()?,
                    count,
                    runs,
                    json,
                )
            }
        }
    }
}

fn check_repetitions(runs: u32) -> Result<()> {
    if runs == 0 {
        bail!("--repetitions: found 0, expected at least 1");
    }
    Ok(())
}

fn program_of<'a>(trace: &'a Trace, input: &Path) -> Result<&'a Program> {
    match trace {
        Trace::Program(program) => Ok(program),
        _ => bail!(
            "{}: found a GOAL schedule, expected a trace",
            input.display()
        ),
    }
}

/// Number of runs, the measured part, threads and output format.
#[derive(Clone, Copy)]
struct Timing {
    runs: u32,
    with_load: bool,
    threads: usize,
    json: bool,
}

fn replay(
    input: &Path,
    trace: Trace,
    network: Option<&Network>,
    options: &Options,
    timing: Timing,
) -> Result<()> {
    match trace {
        Trace::Schedule(schedule) => replay_schedule(input, schedule, network, options, timing),
        Trace::Program(program) => replay_program(input, program, network, options, timing),
        Trace::Folded(folded) => replay_program(input, folded.unfold()?, network, options, timing),
    }
}

fn replay_program(
    input: &Path,
    mut program: Program,
    network: Option<&Network>,
    options: &Options,
    timing: Timing,
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
    let seconds = timed(timing.runs, || {
        if timing.with_load
            && let Trace::Program(again) = open_trace(input)?
        {
            program = again;
        }
        Ok(PreparedProgram::new(&program, network, options)?
            .engine()?
            .on_threads(timing.threads)
            .run()?)
    })?;
    let each = program.compiled_bytes() as f64 / f64::from(program.messages().max(1));
    let tail = format!(", {each:.1} bytes per message, model {model}");
    print_replay(seconds, u64::from(program.messages()), model, tail, timing)
}

/// Measures replays of a schedule. Its preparation belongs to loading, like the matching of a trace.
fn replay_schedule(
    input: &Path,
    schedule: Schedule,
    network: Option<&Network>,
    options: &Options,
    timing: Timing,
) -> Result<()> {
    let messages = schedule.messages();
    let mut prepared = PreparedSchedule::consuming(schedule, network, options)?;
    let seconds = timed(timing.runs, || {
        if timing.with_load
            && let Trace::Schedule(again) = open_trace(input)?
        {
            prepared = PreparedSchedule::consuming(again, network, options)?;
        }
        Ok(prepared.run()?)
    })?;
    let model = prepared.model().name();
    print_replay(seconds, messages, model, format!(", model {model}"), timing)
}

fn print_replay(
    seconds: Vec<f64>,
    messages: u64,
    model: &str,
    tail: String,
    Timing { json, .. }: Timing,
) -> Result<()> {
    let document = Document::new("bench-replay")
        .field("model", model)
        .field("messages", messages);
    print_rates("messages", messages, seconds, document, &tail, json)
}

/// Time of each run, in seconds.
pub(super) fn timed<T>(runs: u32, mut run: impl FnMut() -> Result<T>) -> Result<Vec<f64>> {
    let mut seconds = Vec::new();
    let progress = Progress::counted("measuring", "runs", u64::from(runs));
    for _ in 0..runs {
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
    json: bool,
) -> Result<()> {
    seconds.sort_by(f64::total_cmp);
    let runs = seconds.len();
    let [slow, middle, fast] = [runs - 1, runs / 2, 0].map(|run| count as f64 / seconds[run]);
    let field = name.replace('-', "_");
    let text = [slow, middle, fast].map(|rate| four_digits(rate / 1e6));
    Format { json }.print(
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
