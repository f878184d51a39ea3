//! `flowcast predict` on a trace: when each rank ends, and where its time goes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::{
    Contention, Error, IntervalOptions, Options, Outputs, Prepared, PreparedProgram,
    answers::{Application, PredictionAnswer},
    graph::noise::Noise,
    model::machine::Mapping,
    replay::loggops::Loggops,
    report::Page,
    trace::{Program, Trace},
    units::{Bytes, Time, TimePerByte},
    why::{NoiseOptions, Noisy, parse_noise, scenarios},
};
use flowcast_io::{ScenarioDefaults, read_mapping, read_scenarios};

use super::Asked;
use crate::{
    collectives::{CollectivesArgs, note_formulas},
    network_args::tell_rate_kind,
    replay_files::OutputArgs,
    terminal::{answers::give_answer, files::Batch, progress::Progress, provenance, tables::Most},
    trace_args::{
        Compute, Maps, flat, open_by, open_trace, print_notes_beside, refuse_cut, threads,
    },
};

/// How often the delays of `--noise` are drawn unless `--replicates` says.
pub(super) const NOISE_DRAWS: u32 = 200;

/// Options that only a trace takes.
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct TraceArgs {
    /// Where ranks run: fill, round-robin, N-per-node, or a file (the node of each rank, an Open MPI rankfile, MPICH's
    /// host:n, Slurm's host list); several to compare them; once for each of several traces, or once for all
    #[arg(long, value_name = "MAP")]
    pub mapping: Vec<String>,
    /// Messages of at least this size wait for their receiver, whatever the trace says, such as 64KiB
    #[arg(long, value_name = "SIZE")]
    pub rendezvous_from: Option<Bytes>,
    /// LogGOPS with LogGOPSim's rules: L,o,g,G,S in nanoseconds (S in bytes)
    #[arg(long, value_name = "L,o,g,G,S")]
    pub goal_params: Option<String>,
    #[command(flatten)]
    pub rows: Most,
    /// Delays that are drawn for each computation, and what the predicted time is then: exponential:MEAN,
    /// pareto:LEAST,EXPONENT, once:DELAY,RANK (one delay: the idle wave), or empirical (as the trace's own computations
    /// vary; empirical:RECORDING: as those of another)
    #[arg(long, value_name = "DISTRIBUTION")]
    pub noise: Option<String>,
    /// Named what-ifs (TOML): networks, slow nodes and links, noise, mappings, algorithms of collectives; one table
    #[arg(long, value_name = "FILE.toml")]
    pub scenarios: Option<PathBuf>,
    /// Predict what there is of a recording whose ranks did not all come to their end
    #[arg(long)]
    pub incomplete: bool,
    /// Which time the computations of a recording take [default: thread CPU time where wall time holds something else, such as
    /// ranks that take turns; else wall time]
    #[arg(long, value_enum)]
    pub compute: Option<Compute>,
    /// Walk each iteration of a compiled trace with loops, to compare
    #[arg(long)]
    pub unfold: bool,
    #[command(flatten)]
    pub collectives: CollectivesArgs,
    #[command(flatten)]
    pub outputs: OutputArgs,
}

impl TraceArgs {
    /// The trace; loops stay loops, which unfold where they cannot be jumped, or where they are to.
    pub(in crate::commands) fn open(&self, path: &Path) -> Result<Trace> {
        let folded = open_by(path, self.compute)?;
        let trace = if self.unfold { flat(folded)? } else { folded };
        if !self.incomplete {
            refuse_cut(&trace)?;
        }
        Ok(trace)
    }

    /// As the library takes them.
    pub(in crate::commands) fn options(
        &self,
        contention: Contention,
        mapping: Option<Mapping>,
    ) -> Result<Options> {
        let loggops = self.goal_params.as_deref().map(read_goal_params);
        Ok(Options {
            contention,
            mapping,
            rendezvous_from: self.rendezvous_from,
            collectives: self.collectives.read()?,
            loggops: loggops.transpose()?,
            threads: threads(),
            ..Options::default()
        })
    }

    /// As the library takes them where there is one model and one mapping.
    fn options_of_one(&self, asked: &Asked<'_>) -> Result<Options> {
        let mapping = self.mapping.first().map(|mapping| parse_mapping(mapping));
        Ok(Options {
            rails: asked.rails(),
            ..self.options(asked.model(), mapping.transpose()?)?
        })
    }

    /// How delays are drawn.
    fn noise(&self, noise: Noise, asked: &Asked<'_>) -> NoiseOptions {
        NoiseOptions {
            noise,
            runs: asked.args.replicates.unwrap_or(NOISE_DRAWS) as usize,
            seed: asked.args.seed.unwrap_or(1),
            level: asked.args.level,
            threads: threads(),
        }
    }

    /// What the predicted time is under the delays that were asked for.
    fn noisy(&self, prepared: &Prepared<'_>, asked: &Asked<'_>) -> Result<Option<Noisy>> {
        let Some(text) = &self.noise else {
            return Ok(None);
        };
        let other = text
            .strip_prefix("empirical:")
            .map(|path| open_trace(Path::new(path)))
            .transpose()?;
        let recorded = match &other {
            Some(Trace::Program(program)) => Some(program),
            _ => prepared.program(),
        };
        Ok(Some(prepared.with_noise(
            &self.noise(parse_noise(text, recorded)?, asked),
        )?))
    }
}

/// Predicts each scenario of the file and prints one table.
pub(super) fn run_scenarios(asked: &Asked<'_>, file: &Path) -> Result<()> {
    let args = &asked.args.trace;
    let defaults = ScenarioDefaults {
        network: asked.networks.first(),
        overrides: &asked.overrides,
        options: &args.options_of_one(asked)?,
        noise: &args.noise(Noise::Exponential(Time::ZERO), asked),
    };
    let all = read_scenarios(file, &defaults, &mut Maps::default())?;
    let interval = asked.interval().map(|asked| IntervalOptions {
        threads: 1,
        ..asked
    });
    let trace = args.open(&asked.args.inputs[0])?;
    let progress = Progress::without_end("predicting");
    let answer = scenarios(&trace, &all, interval.as_ref())?;
    drop(progress);
    give_answer(
        &answer,
        asked.args.report.as_deref(),
        asked.args.format,
        args.rows,
    )
}

/// A program among several that run at once.
struct TracePart {
    name: String,
    program: Program,
}

impl TracePart {
    fn application(&self) -> Application<'_> {
        let TracePart { name, program } = self;
        Application { name, program }
    }
}

/// Opens the programs that run at once.
fn open_parts(asked: &Asked<'_>) -> Result<Vec<TracePart>> {
    let args = &asked.args.trace;
    let mut parts = Vec::new();
    for path in &asked.args.inputs {
        let program = match args.open(path)? {
            Trace::Program(program) => program,
            Trace::Folded(folded) => folded.unfold()?,
            Trace::Schedule(_) => bail!(
                "{}: found a GOAL schedule, expected another trace beside others",
                path.display()
            ),
        };
        let name = path.display().to_string();
        parts.push(TracePart { name, program });
    }
    Ok(parts)
}

/// The programs made ready to run at once, each where its mapping says.
fn together<'a>(asked: &'a Asked<'_>, programs: &[&Program]) -> Result<Prepared<'a>> {
    let args = &asked.args.trace;
    let network = asked.networks.first().ok_or(Error::NoNetwork)?;
    let (given, traces) = (args.mapping.len(), programs.len());
    if given > 1 && given != traces {
        bail!("--mapping: found {given} of them, expected one, or one for each of {traces} traces");
    }
    let mappings = args
        .mapping
        .iter()
        .map(|text: &String| parse_mapping(text).with_context(|| format!("--mapping {text}")))
        .collect::<Result<Vec<_>>>()?;
    let options = args.options(asked.model(), None)?;
    Ok(Prepared::Program(PreparedProgram::together(
        programs, &mappings, network, &options,
    )?))
}

/// Predicts one trace, or several that run at once, and prints.
pub(super) fn run(asked: &Asked<'_>) -> Result<()> {
    let (args, network) = (&asked.args.trace, asked.networks.first());
    let mut parts = Vec::new();
    let (title, prepared) = if let [input] = &asked.args.inputs[..] {
        let options = args.options_of_one(asked)?;
        let trace = args.open(input)?;
        let name = trace.name().to_owned();
        (name, Prepared::consuming(trace, network, &options)?)
    } else {
        parts = open_parts(asked)?;
        let programs: Vec<&Program> = parts.iter().map(|part| &part.program).collect();
        let names: Vec<&str> = programs.iter().map(|one| one.name.as_str()).collect();
        (names.join(", "), together(asked, &programs)?)
    };
    tell_rate_kind(&asked.fields(), prepared.model().name());
    print_notes_beside(asked.args.format, prepared.ignored());
    note_formulas(prepared.collectives_by_formula());
    let outputs = Outputs {
        view: asked.args.report.is_some(),
        explanation: asked.args.explain,
        journal: args.outputs.is_given().then(|| args.outputs.keeps()),
    };
    let mut files = Batch::new();
    let notes = prepared.notes();
    let predicted = prepared.predict_and_export(outputs, &asked.fields(), |replayed| {
        args.outputs.write(replayed, &notes, &mut files)
    });
    let mut prediction = match predicted {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
            // What is at fault is told by the schedule itself, which was given up and is read again.
            let trace = open_trace(&asked.args.inputs[0])?;
            Prepared::new(&trace, network, &args.options_of_one(asked)?)?
                .predict(Outputs::default(), &asked.fields())?
        }
        predicted => predicted?,
    };
    let interval = asked.with_draws(|options| prepared.interval(&prediction.outcome, options))?;
    prediction.with_interval(interval.as_ref());
    let view = prediction.view.take();
    let noisy = args.noisy(&prepared, asked)?;
    let answer = PredictionAnswer {
        applications: parts.iter().map(TracePart::application).collect(),
        prepared: &prepared,
        prediction: &prediction,
        networks: network.into_iter().chain(&asked.further).collect(),
        interval: interval.as_ref(),
        has_interval: !asked.args.no_interval,
        noise: args.noise.as_deref().zip(noisy.as_ref()),
        most_rows: args.rows.rows(),
    };
    let document = answer.document().titled(title);
    if let (Some(path), Some(view)) = (&asked.args.report, view) {
        let page = Page::about(&document, vec![view], provenance::of_this_run());
        files.write_text(path, &page.to_html()?)?;
    }
    files.commit()?;
    asked.args.format.print(&document)
}

/// `L,o,g,G,S` as LogGOPSim takes them.
pub(in crate::commands) fn read_goal_params(text: &str) -> Result<Loggops> {
    let wrong =
        || format!("--goal-params: found `{text}`, expected five numbers of at least 0: L,o,g,G,S");
    let numbers: Option<Vec<f64>> = text
        .split(',')
        .map(|text: &str| {
            text.trim()
                .parse::<f64>()
                .ok()
                .filter(|value| *value >= 0.0 && value.is_finite())
        })
        .collect();
    match numbers.as_deref() {
        Some([latency, overhead, gap, per_byte, eager]) => Ok(Loggops {
            latency: Time::from_nanos(*latency),
            overhead: Time::from_nanos(*overhead),
            gap: Time::from_nanos(*gap),
            gap_per_byte: TimePerByte::from_nanos(*per_byte),
            eager_up_to: Some(Bytes(*eager as u64)),
        }),
        _ => bail!(wrong()),
    }
}

/// The rule or the file of a mapping that an option names.
pub(crate) fn parse_mapping(text: &str) -> Result<Mapping> {
    read_mapping(text, &mut Maps::default())
}
