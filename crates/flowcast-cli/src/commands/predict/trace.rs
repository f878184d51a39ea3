//! `flowcast predict` on a trace: when each rank ends, and where its time goes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::{
    Contention, Error, Interval, Loops, Options, Outputs, Prediction, Prepared, PreparedProgram,
    graph::noise::Noise,
    model::{
        machine::Mapping,
        network::{Network, Progress},
    },
    no_margin,
    replay::{inside::InsideTraffic, loggops::Loggops, outcome::Outcome},
    table::{Grouped, result},
    trace::{
        Program, Trace,
        program::{IgnoredRecords, Transfers},
    },
    units::{Bytes, Rank, Rounded, Time, TimePerByte},
    why::{NoiseOptions, Noisy, parse_noise, scenarios},
};
use flowcast_io::{ScenarioDefaults, read_mapping, read_scenarios};
use serde_json::{Value, json};

use super::{
    Asked,
    stand_ins::{marked_name, print_stand_ins, stand_ins_json},
};
use crate::{
    collectives::{CollectivesArgs, note_formulas},
    commands::explain_trace,
    network_args::tell_rate_kind,
    replay_files::OutputArgs,
    terminal::{
        answers::give_answer,
        files::Batch,
        output::{Counts, Format, println_out, say},
        tables::{Most, ROWS, table},
    },
    trace_args::{Maps, open_folded, open_trace, print_notes, refuse_cut, threads},
};

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
        let trace = if self.unfold {
            open_trace(path)?
        } else {
            open_folded(path)?
        };
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
        self.options(asked.model(), mapping.transpose()?)
    }

    /// How delays are drawn.
    fn noise(&self, noise: Noise, asked: &Asked<'_>) -> NoiseOptions {
        NoiseOptions {
            noise,
            runs: asked.args.seeds.map_or(200, |seeds| seeds as usize),
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
    let answer = scenarios(&args.open(&asked.args.inputs[0])?, &all)?;
    give_answer(
        &answer,
        asked.args.report.as_deref(),
        Format {
            json: asked.args.json,
        },
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
    print_notes(prepared.ignored());
    note_formulas(prepared.collectives_by_formula());
    let outputs = Outputs {
        view: asked.args.report.is_some(),
        explanation: asked.args.explain,
        journal: args.outputs.is_given().then(|| args.outputs.keeps()),
    };
    let mut files = Batch::new();
    let predicted = prepared.predict_and_export(outputs, &asked.fields(), |replayed| {
        args.outputs.write(replayed, &mut files)
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
    if let (Some(path), Some(view)) = (&asked.args.report, prediction.view.take()) {
        let what = if parts.is_empty() {
            let Outcome {
                ranks, messages, ..
            } = &prediction.outcome;
            format!("{} ranks, {} messages", ranks.len(), Grouped(*messages))
        } else {
            format!("{} programs at once", parts.len())
        };
        let on = network
            .filter(|_| prepared.program().is_some())
            .map_or(String::new(), |network| format!(" on {}", network.name));
        let page = asked.page(title, what + &on, &prediction.notes, vec![view]);
        files.write_text(path, &page)?;
    }
    files.commit()?;
    let result = PredictionResult {
        interval: prepared.interval(&prediction.outcome, &asked.interval())?,
        noisy: args.noisy(&prepared, asked)?,
        parts,
        prepared,
        prediction,
        network,
    };
    if asked.args.json {
        println_out!("{}", result.document());
    } else {
        result.print(args);
    }
    Ok(())
}

/// All that is told of a prediction.
struct PredictionResult<'a> {
    /// The programs, if there are several.
    parts: Vec<TracePart<'a>>,
    prepared: Prepared<'a>,
    prediction: Prediction,
    network: Option<&'a Network>,
    interval: Option<Interval>,
    noisy: Option<Noisy>,
}

impl PredictionResult<'_> {
    /// The share of each of several programs in the result.
    fn outcomes(&self) -> Vec<(&TracePart<'_>, Outcome)> {
        let programs: Vec<&Program> = self.parts.iter().map(|part| &part.program).collect();
        let outcomes = flowcast::split(&self.prediction.outcome, &programs);
        self.parts.iter().zip(outcomes).collect()
    }

    fn document(&self) -> Value {
        let Prediction {
            outcome,
            unused,
            explanation,
            loops,
            ..
        } = &self.prediction;
        let mut document =
            prediction_document(&self.prediction, self.network, self.interval.as_ref());
        document["no_influence"] = unused
            .iter()
            .map(|one| json!({"parameter": one.parameter, "reason": one.reason}))
            .collect();
        let mut applications = Vec::new();
        for (part, outcome) in self.outcomes() {
            let mut application = json!({
                "trace": part.path.display().to_string(),
                "makespan_s": outcome.makespan().as_seconds(),
            });
            add_outcome(&mut application, Some(&part.program), &outcome);
            applications.push(application);
        }
        if applications.is_empty() {
            document["schema"] = "flowcast/replay/1".into();
            document["network"] = self.network.map(|network| network.name.as_str()).into();
            add_outcome(&mut document, self.prepared.program(), outcome);
        } else {
            document["applications"] = applications.into();
            document = result("applications", document);
        }
        if let Some(noisy) = &self.noisy {
            document["noise"] = noisy.document();
        }
        if let Some(Loops {
            iterations,
            walked,
            tick,
        }) = loops
        {
            document["loops"] =
                json!({"iterations": iterations, "walked": walked, "tick_s": tick.as_seconds()});
        }
        if let Some(explanation) = explanation {
            document["explanation"] = explain_trace::document(explanation);
        }
        document
    }

    fn print(&self, args: &TraceArgs) {
        let Prediction {
            model,
            outcome,
            unused,
            explanation,
            notes,
            loops,
            ..
        } = &self.prediction;
        println_out!("{model}");
        loops.iter().for_each(|loops| println_out!("{loops}"));
        let on = self.network.map_or(String::new(), |network| {
            format!(" on {}", marked_name(network))
        });
        if self.parts.is_empty() {
            let time = self.interval.as_ref().map_or_else(
                || Rounded(outcome.makespan()).to_string(),
                Interval::to_string,
            );
            println_out!("predicted time{on}: {time}");
            self.print_margin();
            if let (Some(noisy), Some(noise)) = (&self.noisy, &args.noise) {
                println_out!("with noise {noise}: {noisy}");
            }
            let (program, collectives) = (self.prepared.program(), self.prepared.collectives());
            print_counts(program, collectives, outcome, self.prediction.transfers);
            print_ranks(program, outcome, args.rows);
        } else {
            println_out!("{} programs at once{on}", self.parts.len());
            for (TracePart { path, program }, outcome) in self.outcomes() {
                let time = Rounded(outcome.makespan());
                println_out!("{}: predicted time {time}", path.display());
                let collectives = program.collectives();
                print_counts(Some(program), collectives, &outcome, program.transfers());
                print_ranks(Some(program), &outcome, args.rows);
            }
            self.print_margin();
        }
        if !unused.is_empty() {
            let names: Vec<String> = unused
                .iter()
                .map(|one| format!("{} ({})", one.parameter, one.reason))
                .collect();
            println_out!("no influence: {}", names.join(", "));
        }
        explanation.iter().for_each(explain_trace::print);
        print_assumptions(notes, self.prepared.ignored());
    }

    fn print_margin(&self) {
        println_out!("{}", margin(self.network, self.interval.as_ref()));
        print_stand_ins(self.network.map_or(&[], std::slice::from_ref));
    }
}

/// What was assumed, on standard error; the notes before that, on what is left out, have been printed.
pub(super) fn print_assumptions(notes: &[String], left_out: &[IgnoredRecords]) {
    notes
        .iter()
        .skip(left_out.len())
        .for_each(|note| say!("flowcast: note: {note}"));
}

/// What all documents say of a prediction: its model, what it leaves out, what happened inside nodes, its margin.
pub(super) fn prediction_document(
    prediction: &Prediction,
    network: Option<&Network>,
    interval: Option<&Interval>,
) -> Value {
    let Prediction {
        model,
        outcome,
        transfers,
        inside,
        notes,
        ..
    } = prediction;
    let inside_nodes = inside.map(|InsideTraffic { source, messages, bytes, time }| {
        json!({"source": source.name(), "messages": messages, "bytes": bytes.0, "time_s": time.as_seconds()})
    });
    let mut document = json!({
        "makespan_s": outcome.makespan().as_seconds(),
        "model": model.name(),
        "model_reason": model.reason,
        "collectives": model.collectives,
        "leaves_out": model.leaves_out(),
        "progress": model.progress.map(Progress::name),
        "uncontended": model.is_uncontended,
        "notes": notes,
        "inside_nodes": inside_nodes,
        "stand_ins": network.map(stand_ins_json),
    });
    if transfers.count > 0 {
        document["one_sided"] = json!({"transfers": transfers.count, "bytes": transfers.bytes.0});
    }
    add_interval(&mut document, interval);
    document
}

/// The margin of a prediction; null where none is known.
pub(in crate::commands) fn add_interval(document: &mut Value, interval: Option<&Interval>) {
    document["interval_s"] = interval
        .map(|interval| [interval.low.as_seconds(), interval.high.as_seconds()])
        .into();
    document["interval_level"] = interval.map(|interval| interval.level).into();
    document["interval_covers"] = interval.map(|interval| interval.covers.as_str()).into();
}

/// What the margin covers, or that there is none.
pub(super) fn margin(network: Option<&Network>, interval: Option<&Interval>) -> String {
    match (network, interval) {
        (_, Some(interval)) => format!("margin: {}", interval.covers),
        (Some(network), None) => no_margin(network).to_owned(),
        (None, None) => "no margin known: parameters are given as numbers".to_owned(),
    }
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

/// What was sent, and the ranks; the threads of a task are ranks, and say so.
fn add_outcome(document: &mut Value, program: Option<&Program>, outcome: &Outcome) {
    let threaded = program.filter(|program| program.has_threads());
    let mut ranks = Vec::new();
    for (rank, times) in outcome.ranks.iter().enumerate() {
        let mut row = json!({
            "rank": rank,
            "end_s": times.end.as_seconds(),
            "compute_s": times.compute.as_seconds(),
            "blocked_s": times.blocked.as_seconds(),
            "overhead_s": times.overhead.as_seconds(),
        });
        if let Some(program) = threaded {
            row["task"] = json!(program.task(Rank(rank as u32)));
            row["thread"] = json!(program.thread(Rank(rank as u32)));
        }
        ranks.push(row);
    }
    document["messages"] = outcome.messages.into();
    document["bytes"] = outcome.bytes.0.into();
    document["ranks"] = ranks.into();
}

/// What was replayed, and the transfers of one-sided communication, if there are any.
fn print_counts(
    program: Option<&Program>,
    collectives: u64,
    outcome: &Outcome,
    transfers: Transfers,
) {
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
    println_out!("{counts}, {} bytes{threads}", Grouped(outcome.bytes.0));
    if transfers.count > 0 {
        println_out!(
            "{} one-sided transfers, {} bytes",
            Grouped(transfers.count),
            Grouped(transfers.bytes.0)
        );
    }
}

/// The ranks, at most so many, the slowest first where not all have a row.
fn print_ranks(program: Option<&Program>, outcome: &Outcome, show: Most) {
    let mut rows: Vec<usize> = (0..outcome.ranks.len()).collect();
    if show.of(&rows).len() < rows.len() {
        rows.sort_by_key(|rank| (std::cmp::Reverse(outcome.ranks[*rank].end), *rank));
    }
    let threaded = program.filter(|program| program.has_threads());
    let first = if threaded.is_some() {
        ">task.thread"
    } else {
        ">rank"
    };
    let mut table = table(&[first, ">end", ">compute", ">blocked", ">overhead"]);
    for rank in show.of(&rows).iter().copied() {
        let place = Rank(rank as u32);
        let name = threaded.map_or(place.to_string(), |program| {
            format!("{}.{}", program.task(place), program.thread(place))
        });
        let times = &outcome.ranks[rank];
        let cells = [times.end, times.compute, times.blocked, times.overhead]
            .map(|time| Rounded(time).to_string());
        table.add_row(std::iter::once(name).chain(cells));
    }
    println_out!("{}", show.shown(&table, rows.len(), ROWS));
}
