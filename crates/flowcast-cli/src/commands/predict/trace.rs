//! `flowcast predict` for a trace: finish times of the ranks, and their times by activity.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    Collectives, Contention, Error, Options, Outputs, Prepared, PreparedProgram, RailsOptions,
    answers::{ConcurrentProgram, PredictionAnswer},
    model::machine::Mapping,
    report::Page,
    trace::{Program, Trace},
    units::Bytes,
    why::{NoiseOptions, Noisy, parse_noise},
};
use flowcast_io::{
    IntervalRequest, RankNodes, ReplayRequest, Request, ScenariosRequest, collectives_help,
    read_named_text,
};

use super::PredictQuestion;
use flowcast_terminal::{
    answers::give_answer,
    collectives::note_formulas,
    files::Batch,
    network_args::print_rate_kind,
    provenance,
    replay_files::OutputArgs,
    tables::RowLimit,
    trace_args::{
        Compute, Maps, flat, open_by, open_trace, parse_mapping, print_notes_beside, refuse_cut,
        threads,
    },
};

/// Default number of draws for the delays of `--noise`.
pub(super) const NOISE_DRAWS: u32 = 200;

/// Options for traces only.
#[derive(Debug, Clone, Args)]
pub(super) struct TraceArgs {
    /// Mapping of ranks to nodes: fill, round-robin, N-per-node, or a file (the node of each rank, an Open MPI rankfile,
    /// MPICH's host:n, Slurm's host list); several are compared; with several traces, one for all or one for each
    #[arg(long, value_name = "MAP")]
    pub mapping: Vec<String>,
    /// Smallest rendezvous message, such as 64KiB; replaces the trace's marks
    #[arg(long, value_name = "SIZE")]
    pub rendezvous_from: Option<Bytes>,
    /// Parameters of LogGOPS with LogGOPSim's rules: L,o,g,G,S in nanoseconds (S in bytes)
    #[arg(long, value_name = "L,o,g,G,S")]
    pub goal_params: Option<String>,
    #[command(flatten)]
    pub rows: RowLimit,
    /// Draw delays of computations and report the predicted time under them: exponential:MEAN, pareto:LEAST,EXPONENT,
    /// once:DELAY,RANK (a single delay: the idle wave), empirical (as the trace's own computations vary) or
    /// empirical:RECORDING (as those of RECORDING vary)
    #[arg(long, value_name = "DISTRIBUTION")]
    pub noise: Option<String>,
    /// Compare named what-ifs (TOML) in one table: networks, slow nodes and links, noise, mappings, algorithms of
    /// collectives
    #[arg(long, value_name = "FILE.toml")]
    pub scenarios: Option<PathBuf>,
    /// Predict the available part of a recording in which some ranks did not finish
    #[arg(long)]
    pub incomplete: bool,
    /// Clock for the computations of a recording [default: thread CPU time where wall time includes other work, as
    /// with ranks that take turns; else wall time]
    #[arg(long, value_enum)]
    pub compute: Option<Compute>,
    /// Replay each iteration of a compiled trace instead of its loops, for comparison
    #[arg(long)]
    pub unfold: bool,
    #[arg(long, value_name = "HOW", help = collectives_help(&Collectives::automatic_help()))]
    pub collectives: Option<String>,
    #[command(flatten)]
    pub outputs: OutputArgs,
}

impl TraceArgs {
    /// Opens the trace and keeps its loops. They are expanded later if they cannot be skipped, or here if requested.
    pub(super) fn open(&self, path: &Path) -> Result<Trace> {
        let folded = open_by(path, self.compute)?;
        let trace = if self.unfold { flat(folded)? } else { folded };
        if !self.incomplete {
            refuse_cut(&trace)?;
        }
        Ok(trace)
    }

    /// Request for a replay with the first mapping.
    fn replay(&self, model: Option<&String>) -> Result<ReplayRequest> {
        let numbers = self.goal_params.as_deref().map(goal_numbers);
        Ok(ReplayRequest {
            model: model.cloned(),
            mapping: self.mapping.first().cloned().map(RankNodes::from),
            rendezvous_from: self.rendezvous_from,
            collectives: self.collectives.clone(),
            goal_params: numbers.transpose()?,
        })
    }

    /// Options of a replay with a model and a mapping.
    pub(super) fn options(
        &self,
        contention: Contention,
        mapping: Option<Mapping>,
    ) -> Result<Options> {
        let request = ReplayRequest {
            mapping: None,
            ..self.replay(None)?
        };
        Ok(Options {
            contention,
            mapping,
            ..request.options(&mut Maps::default())?
        })
    }

    /// Options of a replay with one model and one mapping.
    fn options_of_one(&self, asked: &PredictQuestion<'_>) -> Result<Options> {
        let request = self.replay(asked.args.model.first())?;
        Ok(Options {
            rails: RailsOptions {
                further: asked.further.clone(),
                policy: asked.args.scheduler.unwrap_or_default(),
            },
            ..request.options(&mut Maps::default())?
        })
    }

    /// Predicted time under the requested delays.
    fn noisy(&self, prepared: &Prepared<'_>, asked: &PredictQuestion<'_>) -> Result<Option<Noisy>> {
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
        let options = NoiseOptions {
            noise: parse_noise(text, recorded)?,
            runs: asked.args.replicates.unwrap_or(NOISE_DRAWS) as usize,
            seed: asked.args.seed.unwrap_or(1),
            level: asked.args.level,
            threads: threads(),
        };
        Ok(Some(prepared.with_noise(&options)?))
    }
}

/// Predicts each scenario of the file and prints one table.
pub(super) fn run_scenarios(asked: &PredictQuestion<'_>, file: &Path) -> Result<()> {
    let (args, predict) = (&asked.args.trace, asked.args);
    let interval = IntervalRequest {
        level: predict.level,
        holdout: predict.holdout.clone(),
    };
    let request = Request::Scenarios(ScenariosRequest {
        replay: args.replay(predict.model.first())?,
        name: file.display().to_string(),
        text: read_named_text(file, &mut Maps::default())?,
        overrides: asked.overrides.clone(),
        interval: (!predict.no_interval).then_some(interval),
        level: predict.level,
        replicates: predict.replicates.unwrap_or(NOISE_DRAWS) as usize,
        seed: predict.seed.unwrap_or(1),
    });
    give_answer(
        &request,
        || args.open(&predict.inputs[0]),
        asked.networks.first(),
        predict.report.as_deref(),
        predict.format,
        args.rows,
    )
}

/// One of several concurrent programs.
struct TracePart {
    name: String,
    program: Program,
}

/// Opens the concurrent programs.
fn open_parts(asked: &PredictQuestion<'_>) -> Result<Vec<TracePart>> {
    let args = &asked.args.trace;
    let mut parts = Vec::new();
    for path in &asked.args.inputs {
        let program = match args.open(path)? {
            Trace::Program(program) => program,
            Trace::Folded(folded) => folded.unfold()?,
            Trace::Schedule(_) => bail!(
                "{}: found a GOAL schedule among several traces, expected another format",
                path.display()
            ),
        };
        let name = path.display().to_string();
        parts.push(TracePart { name, program });
    }
    Ok(parts)
}

/// Prepares the programs to run concurrently, each with its mapping.
fn together<'a>(asked: &'a PredictQuestion<'_>, programs: &[&Program]) -> Result<Prepared<'a>> {
    let args = &asked.args.trace;
    let network = asked.networks.first().ok_or(Error::NoNetwork)?;
    let (given, traces) = (args.mapping.len(), programs.len());
    ensure!(
        given <= 1 || given == traces,
        "--mapping: found {given} mappings, expected one, or one for each of {traces} traces"
    );
    let mappings = args
        .mapping
        .iter()
        .map(|text| parse_mapping(text).with_context(|| format!("--mapping {text}")))
        .collect::<Result<Vec<_>>>()?;
    let model = asked.models.first().copied().unwrap_or_default();
    let options = args.options(model, None)?;
    Ok(Prepared::Program(PreparedProgram::together(
        programs, &mappings, network, &options,
    )?))
}

/// Predicts one trace or several concurrent ones, and prints the result.
pub(super) fn run(asked: &PredictQuestion<'_>) -> Result<()> {
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
    print_rate_kind(&asked.fields(), prepared.model().name());
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
            // The cause is found from the schedule itself. It was consumed, so it is read again.
            let trace = open_trace(&asked.args.inputs[0])?;
            Prepared::new(&trace, network, &args.options_of_one(asked)?)?
                .predict(Outputs::default(), &asked.fields())?
        }
        predicted => predicted?,
    };
    let interval =
        asked.with_progress(|options| prepared.interval(&prediction.outcome, options))?;
    prediction.with_interval(interval.as_ref());
    let view = prediction.view.take();
    let noisy = args.noisy(&prepared, asked)?;
    let applications = parts
        .iter()
        .map(|TracePart { name, program }| ConcurrentProgram { name, program });
    let answer = PredictionAnswer {
        applications: applications.collect(),
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

/// Parses the numbers of `L,o,g,G,S`.
pub(crate) fn goal_numbers(text: &str) -> Result<[f64; 5]> {
    let numbers = text.split(',').map(|number| number.trim().parse());
    let numbers: Result<Vec<f64>, _> = numbers.collect();
    let numbers = numbers.ok().and_then(|numbers| numbers.try_into().ok());
    numbers.with_context(|| {
        format!("--goal-params: found `{text}`, expected five numbers of at least 0: L,o,g,G,S")
    })
}
