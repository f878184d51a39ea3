//! `flowcast predict` on a trace: when each rank ends, and where its time goes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::{
    Contention, Error, Interval, IntervalOptions, Options, Outputs, Prediction, Prepared,
    PreparedProgram, RailPrediction, RailsPrediction,
    graph::noise::Noise,
    model::{
        machine::Mapping,
        network::{self, Network},
    },
    replay::{loggops::Loggops, outcome::Outcome, sweep::SetOutcome},
    report::Page,
    statements::{margin, marked_name, shown_time, stand_ins},
    table::{Document, Grouped, Record, Rows, figure, percent, rows},
    trace::{Program, Trace, program::Transfers},
    units::{Bytes, Rank, Rounded, Time, TimePerByte},
    why::{NoiseOptions, Noisy, parse_noise, scenarios},
};
use flowcast_io::{ScenarioDefaults, read_mapping, read_scenarios};

use super::{
    Asked,
    levels::{level_table, with_delays},
};
use crate::{
    collectives::{CollectivesArgs, note_formulas},
    commands::explain_trace,
    network_args::tell_rate_kind,
    replay_files::OutputArgs,
    terminal::{
        answers::give_answer,
        files::Batch,
        output::Counts,
        progress::Progress,
        provenance,
        tables::{Most, ROWS},
    },
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
struct TracePart<'a> {
    path: &'a Path,
    program: Program,
}

/// Opens the programs that run at once.
fn open_parts<'a>(asked: &'a Asked<'_>) -> Result<Vec<TracePart<'a>>> {
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
        parts.push(TracePart { path, program });
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
    let result = PredictionResult {
        noisy: args.noisy(&prepared, asked)?,
        interval,
        is_asked: !asked.args.no_interval,
        parts,
        prepared,
        prediction,
        network,
        further: &asked.further,
    };
    let document = result.document(args).titled(title);
    if let (Some(path), Some(view)) = (&asked.args.report, view) {
        let page = Page::about(&document, vec![view], provenance::of_this_run());
        files.write_text(path, &page.to_html()?)?;
    }
    files.commit()?;
    asked.args.format.print(&document)
}

/// All that is told of a prediction.
struct PredictionResult<'a> {
    /// The programs, if there are several.
    parts: Vec<TracePart<'a>>,
    prepared: Prepared<'a>,
    prediction: Prediction,
    network: Option<&'a Network>,
    /// The other rails.
    further: &'a [Network],
    interval: Option<Interval>,
    /// Whether an interval was to be predicted.
    is_asked: bool,
    noisy: Option<Noisy>,
}

impl PredictionResult<'_> {
    /// The share of each of several programs in the result.
    fn outcomes(&self) -> Vec<(&TracePart<'_>, Outcome)> {
        let programs: Vec<&Program> = self.parts.iter().map(|part| &part.program).collect();
        let outcomes = flowcast::split(&self.prediction.outcome, &programs);
        self.parts.iter().zip(outcomes).collect()
    }

    fn document(&self, args: &TraceArgs) -> Document {
        let Prediction {
            model,
            outcome,
            unused,
            explanation,
            loops,
            ..
        } = &self.prediction;
        let no_influence = rows(unused)
            .field("parameter", |one| &one.parameter)
            .field("reason", |one| one.reason);
        let loop_fields = loops.as_ref().map(|loops| {
            Record::new()
                .field("iterations", loops.iterations)
                .field("walked", loops.walked)
                .field("tick_s", loops.tick)
        });
        let document = match self.parts[..] {
            [] => Document::new("replay").schema("flowcast/replay/1"),
            _ => Document::new("applications"),
        };
        let mut document = document
            .field("margin", self.margin())
            .fields(prediction_fields(
                &self.prediction,
                self.network,
                self.interval.as_ref(),
            ))
            .field("no_influence", no_influence)
            .known("noise", self.noisy.as_ref().map(Noisy::document))
            .known("loops", loop_fields);
        if let Some(rails) = &self.prediction.rails {
            document = document.field("scheduler", rails.policy.to_string());
        }
        let time = shown_time(outcome.makespan(), self.interval.as_ref());
        let names: Vec<String> = self.networks().map(marked_name).collect();
        let on = match &names[..] {
            [] => String::new(),
            names => format!(" on {}", names.join(" and ")),
        };
        if self.parts.is_empty() {
            let names: Vec<&str> = self.networks().map(|one| one.name.as_str()).collect();
            document = document
                .field("network", (!names.is_empty()).then(|| names.join(" and ")))
                .line(format!(
                    "predicted time{on}: {time} by model {}",
                    model.name()
                ))
                .line(communication(outcome));
            if let (Some(noisy), Some(noise)) = (&self.noisy, &args.noise) {
                document = document.line(format!("with noise {noise}: {noisy}"));
            }
            let (program, collectives) = (self.prepared.program(), self.prepared.collectives());
            document = document
                .fields(outcome_fields(program, outcome))
                .lines(counts(
                    program,
                    collectives,
                    outcome,
                    self.prediction.transfers,
                ));
            document = self.with_statements(document);
            if let Some(rails) = &self.prediction.rails {
                document = document.table("rails", rail_table(rails));
            }
            document = document.shown(rank_table(program, outcome, args.rows));
        } else {
            document = document.line(format!(
                "{} programs at once{on}: {time} by model {}",
                self.parts.len(),
                model.name()
            ));
            let mut applications = Vec::new();
            for (TracePart { path, program }, outcome) in self.outcomes() {
                let (time, collectives) = (outcome.makespan(), program.collectives());
                let application = Record::new()
                    .field("trace", path.display().to_string())
                    .field("makespan_s", time)
                    .fields(outcome_fields(Some(program), &outcome));
                applications.push(application);
                document = document
                    .line(format!(
                        "{}: predicted time {}",
                        path.display(),
                        Rounded(time)
                    ))
                    .lines(counts(
                        Some(program),
                        collectives,
                        &outcome,
                        program.transfers(),
                    ))
                    .shown(rank_table(Some(program), &outcome, args.rows));
            }
            document = self.with_statements(document.field("applications", applications));
        }
        match explanation {
            Some(explanation) => {
                let has_levels = self
                    .network
                    .is_some_and(|network| network.topology.is_some());
                if has_levels && !outcome.loads.is_empty() {
                    let loads: Vec<_> = outcome
                        .loads
                        .iter()
                        .cloned()
                        .map(|load| (1, load))
                        .collect();
                    document = document.table("levels", level_table(&loads, false));
                    if let Some(program) = self.prepared.program() {
                        document = with_delays(document, program, outcome, args.rows);
                    }
                }
                explain_trace::explained(document, explanation)
            }
            None => document,
        }
    }

    /// With the sentences below the answer, in the order in which they are read.
    fn with_statements(&self, document: Document) -> Document {
        document
            .line(self.margin())
            .lines(self.prediction.sentences())
            .noted(&self.prediction.notes)
    }

    fn margin(&self) -> String {
        margin(self.networks(), self.interval.as_ref(), self.is_asked)
    }

    /// The network, or all rails.
    fn networks(&self) -> impl Iterator<Item = &Network> {
        self.network.into_iter().chain(self.further)
    }
}

/// What each rail carried.
fn rail_table(rails: &RailsPrediction) -> Rows<&RailPrediction> {
    rows(&rails.rails)
        .column("name", "rail", |rail| &rail.name)
        .column("model", "model", |rail| rail.model)
        .column("messages", "messages and pieces", |rail| {
            rail.traffic.messages
        })
        .column("bytes", "bytes", |rail| rail.traffic.bytes)
        .column("share", "share", |rail| percent(rails.share(rail), 1))
}

/// The part of the ranks' time that is not the program's own computation.
fn communication(outcome: &Outcome) -> String {
    let share = SetOutcome::from(outcome).communication_share();
    format!(
        "communication takes {:.1} % of the ranks' time",
        100.0 * share
    )
}

/// What all documents say of a prediction: its model, what it leaves out, what happened inside nodes, its margin.
pub(super) fn prediction_fields(
    prediction: &Prediction,
    network: Option<&Network>,
    interval: Option<&Interval>,
) -> Record {
    let Prediction {
        model,
        outcome,
        transfers,
        inside,
        ..
    } = prediction;
    let inside_nodes = inside.map(|inside| {
        Record::new()
            .field("source", inside.source.name())
            .field("messages", inside.messages)
            .field("bytes", inside.bytes)
            .field("time_s", inside.time)
    });
    let one_sided = (transfers.count > 0).then(|| {
        Record::new()
            .field("transfers", transfers.count)
            .field("bytes", transfers.bytes)
    });
    interval_fields(interval)
        .field("makespan_s", outcome.makespan())
        .field("model", model.name())
        .field("model_reason", &model.reason)
        .field("collectives", model.collectives)
        .field("leaves_out", model.leaves_out())
        .field("progress", model.progress.map(network::Progress::name))
        .field("uncontended", model.is_uncontended)
        .field("inside_nodes", inside_nodes)
        .field("stand_ins", network.map(stand_ins))
        .known("one_sided", one_sided)
}

/// The margin of a prediction; null where none is known.
pub(super) fn interval_fields(interval: Option<&Interval>) -> Record {
    Record::new()
        .field("interval_s", interval.map(|of| (of.low, of.high)))
        .field("interval_level", interval.map(|of| of.level))
        .field("interval_covers", interval.map(|of| &of.covers))
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

/// What was sent, and the ranks.
fn outcome_fields(program: Option<&Program>, outcome: &Outcome) -> Record {
    Record::new()
        .field("messages", outcome.messages)
        .field("bytes", outcome.bytes)
        .field("ranks", ranks_in(program, outcome, 0..outcome.ranks.len()))
}

/// What was replayed, and the transfers of one-sided communication, if there are any.
fn counts(
    program: Option<&Program>,
    collectives: u64,
    outcome: &Outcome,
    transfers: Transfers,
) -> Vec<String> {
    let streams = outcome.ranks.len();
    let ranks = program.map_or(streams, |program| program.threads_of_tasks().len());
    let counts = Counts {
        ranks,
        messages: outcome.messages,
        collectives,
    };
    let threads = if streams == ranks {
        String::new()
    } else {
        format!(", {} threads", Grouped(streams as u64))
    };
    let mut lines = vec![format!(
        "{counts}, {} bytes{threads}",
        Grouped(outcome.bytes.0)
    )];
    if transfers.count > 0 {
        lines.push(format!(
            "{} one-sided transfers, {} bytes",
            Grouped(transfers.count),
            Grouped(transfers.bytes.0)
        ));
    }
    lines
}

/// The ranks, at most so many, the slowest first where not all have a row.
fn rank_table(program: Option<&Program>, outcome: &Outcome, show: Most) -> Rows<usize> {
    let mut ranks: Vec<usize> = (0..outcome.ranks.len()).collect();
    if show.rows() < ranks.len() {
        ranks.sort_by_key(|rank| (std::cmp::Reverse(outcome.ranks[*rank].end), *rank));
    }
    ranks_in(program, outcome, ranks).most(show.rows(), ROWS)
}

/// Ranks in an order; the threads of a task are ranks, and say so.
fn ranks_in(
    program: Option<&Program>,
    outcome: &Outcome,
    order: impl IntoIterator<Item = usize>,
) -> Rows<usize> {
    let (ranks, stream) = (rows(order), |rank| Rank(rank as u32));
    let ranks = match program.filter(|program| program.has_threads()) {
        None => ranks.column("rank", "rank", |rank| rank),
        Some(program) => ranks
            .field("rank", |rank| rank)
            .field("task", |rank| program.task(stream(rank)))
            .field("thread", |rank| program.thread(stream(rank)))
            .cell("task.thread", |rank| {
                let rank = stream(rank);
                figure(format!("{}.{}", program.task(rank), program.thread(rank)))
            }),
    };
    ranks
        .column("end_s", "end", |rank| outcome.ranks[rank].end)
        .column("compute_s", "compute", |rank| outcome.ranks[rank].compute)
        .column("blocked_s", "blocked", |rank| outcome.ranks[rank].blocked)
        .column("overhead_s", "overhead", |rank| {
            outcome.ranks[rank].overhead
        })
}
