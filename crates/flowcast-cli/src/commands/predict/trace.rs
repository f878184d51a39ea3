//! `flowcast predict` on a trace: when each rank ends, and where its time goes.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use flowcast::graph::noise::Noise;
use flowcast::model::machine::Mapping;
use flowcast::model::network::{Network, Progress};
use flowcast::replay::influence::Unused;
use flowcast::replay::inside::InsideTraffic;
use flowcast::replay::loggops::Loggops;
use flowcast::replay::outcome::Outcome;
use flowcast::report::Page;
use flowcast::trace::program::{IgnoredRecords, Transfers};
use flowcast::trace::{Program, Trace};
use flowcast::units::{Bytes, Rank, Rounded, Time, TimePerByte};
use flowcast::why::{NoiseOptions, Noisy, parse_noise, scenarios};
use flowcast::{
    Contention, Error, Interval, Loops, ModelChoice, Options, Outputs, Prediction, Prepared,
    no_margin,
};
use flowcast_io::{ScenarioDefaults, read_mapping, read_scenarios};
use serde_json::json;

use super::Asked;
use super::stand_ins::{marked_name, print_stand_ins, stand_in_sentences, stand_ins_json};
use crate::collectives::{CollectivesArgs, note_formulas};
use crate::commands::explain_trace;
use crate::network_args::{LoadedNetwork, load, tell_rate_kind};
use crate::replay_files::OutputArgs;
use crate::terminal::answers::give_answer;
use crate::terminal::files::Batch;
use crate::terminal::output::{Counts, Format, println_out, say};
use crate::terminal::provenance;
use crate::terminal::tables::{Most, USUAL_ROWS, table};
use crate::trace_args::{Maps, open_folded, open_trace, print_notes, refuse_cut, threads};
use flowcast::report::answer::Grouped;

/// Options that only a trace takes.
#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct TraceArgs {
    /// Where ranks run: fill, round-robin, N-per-node, or a file (the node of each rank, an Open MPI rankfile, MPICH's
    /// host:n, Slurm's host list); several to compare them; once for each of several traces, or once for all
    #[arg(long, value_name = "MAP", help_heading = "Program")]
    pub mapping: Vec<String>,
    /// Messages of at least this size wait for their receiver, whatever the trace says, such as 64KiB
    #[arg(long, value_name = "BYTES", help_heading = "Program")]
    pub rendezvous_from: Option<Bytes>,
    /// LogGOPS with LogGOPSim's rules: L,o,g,G,S in nanoseconds (S in bytes)
    #[arg(long, value_name = "L,o,g,G,S", help_heading = "Program")]
    pub goal_params: Option<String>,
    /// Ranks of which the table has a row, the slowest first if not all have one; or all
    #[arg(long, value_name = "COUNT", help_heading = "Output", default_value = USUAL_ROWS)]
    pub show_ranks: Most,
    /// Write a self-contained page with timeline, messages and what limits the program
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Delays that are drawn for each computation, and what the predicted time is then: exponential:MEAN,
    /// pareto:LEAST,EXPONENT, once:DELAY,RANK (one delay: the idle wave), or empirical (as the trace's own computations
    /// vary; empirical:RECORDING: as those of another)
    #[arg(long, value_name = "DISTRIBUTION", help_heading = "Program")]
    pub noise: Option<String>,
    /// How often delays are drawn, with --seed as the start of the random numbers
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 200,
        help_heading = "Program"
    )]
    pub noise_runs: usize,
    /// Named what-ifs (TOML): networks, slow nodes and links, noise, mappings, algorithms of collectives; one table
    #[arg(long, value_name = "FILE.toml", help_heading = "Program")]
    pub scenarios: Option<PathBuf>,
    /// Predict what there is of a recording whose ranks did not all come to their end
    #[arg(long)]
    pub incomplete: bool,
    /// Walk each iteration of a compiled trace with loops, to compare
    #[arg(long, help_heading = "Program")]
    pub unfold: bool,
    #[command(flatten)]
    pub collectives: CollectivesArgs,
    #[command(flatten)]
    pub outputs: OutputArgs,
}

impl TraceArgs {
    /// Reads a trace; a recording of which a part is missing only if that is asked for.
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

    /// Whether any of them was given.
    pub(in crate::commands) fn is_given(&self) -> bool {
        !self.mapping.is_empty()
            || self.rendezvous_from.is_some()
            || self.goal_params.is_some()
            || self.noise.is_some()
            || self.scenarios.is_some()
            || self.collectives.collectives.is_some()
            || self.outputs.is_given()
    }

    /// How delays are drawn.
    fn noise(&self, noise: Noise, asked: &Asked) -> NoiseOptions {
        let (seed, level) = (asked.seed, asked.level);
        NoiseOptions {
            noise,
            runs: self.noise_runs,
            seed,
            level,
            threads: threads(),
        }
    }

    /// What the predicted time is under the delays that were asked for.
    fn noisy(&self, prepared: &Prepared<'_>, asked: &Asked) -> Result<Option<Noisy>> {
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

    /// As the library takes them.
    pub(in crate::commands) fn options(
        &self,
        contention: Contention,
        mapping: Option<Mapping>,
    ) -> Result<Options> {
        Ok(Options {
            contention,
            mapping,
            rendezvous_from: self.rendezvous_from,
            collectives: self.collectives.read()?,
            loggops: self
                .goal_params
                .as_deref()
                .map(read_goal_params)
                .transpose()?,
            threads: threads(),
        })
    }
}

/// Predicts each scenario of the file and prints one table.
pub(in crate::commands) fn run_scenarios(
    input: &Path,
    file: &Path,
    named: &[String],
    asked: &Asked,
    args: &TraceArgs,
) -> Result<()> {
    if args.outputs.is_given()
        || asked.explain
        || args.noise.is_some()
        || named.len() > 1
        || args.mapping.len() > 1
    {
        bail!(
            "--scenarios: found --explain, --noise, files to write or several networks, expected these in the file"
        );
    }
    let mapping = args
        .mapping
        .first()
        .map(|mapping| parse_mapping(mapping))
        .transpose()?;
    let options = args.options(asked.model()?, mapping)?;
    let noise = args.noise(Noise::Exponential(Time::ZERO), asked);
    let network = named
        .first()
        .map(|name| load(name, &asked.overrides))
        .transpose()?
        .map(LoadedNetwork::announced);
    let defaults = ScenarioDefaults {
        network: network.as_ref(),
        overrides: &asked.overrides,
        options: &options,
        noise: &noise,
    };
    let all = read_scenarios(file, &defaults, &mut Maps::default())?;
    let answer = scenarios(&args.open(input)?, &all)?;
    give_answer(
        &answer,
        args.report.as_deref(),
        Format { json: asked.json },
        (args.show_ranks, "--show-ranks"),
    )
}

/// Predicts and prints.
pub(in crate::commands) fn run(
    input: &Path,
    network: Option<&Network>,
    asked: &Asked,
    args: &TraceArgs,
) -> Result<()> {
    let mapping = args
        .mapping
        .first()
        .map(|mapping| parse_mapping(mapping))
        .transpose()?;
    let options = args.options(asked.model()?, mapping)?;
    let trace = args.open(input)?;
    let name = trace.name().to_owned();
    let prepared = Prepared::consuming(trace, network, &options)?;
    tell_rate_kind(&asked.fields, prepared.model().name());
    print_notes(prepared.ignored());
    note_formulas(prepared.collectives_by_formula());
    let journal = args.outputs.is_given().then(|| args.outputs.keeps());
    let outputs = Outputs {
        view: args.report.is_some(),
        explanation: asked.explain,
        journal,
    };
    let mut files = Batch::new();
    let predicted = prepared.predict_and_export(outputs, &asked.fields, |replayed| {
        args.outputs.write(replayed, &mut files)
    });
    let prediction = match predicted {
        Ok(prediction) => prediction,
        Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
            // What is at fault is told by the schedule itself, which was given up and is read again.
            Prepared::new(&open_trace(input)?, network, &options)?
                .predict(Outputs::default(), &asked.fields)?
        }
        Err(error) => return Err(error),
    };
    let Prediction {
        model,
        outcome,
        view,
        explanation,
        unused,
        transfers,
        inside,
        notes,
        loops,
    } = prediction;
    let ranks = outcome.ranks.len();
    if let (Some(path), Some(view)) = (&args.report, view) {
        let on = network
            .map(|network| format!(" on {}", network.name))
            .filter(|_| prepared.program().is_some());
        let subtitle = format!(
            "{ranks} ranks, {} messages{}",
            Grouped(outcome.messages),
            on.unwrap_or_default()
        );
        let notes = [
            notes.clone(),
            stand_in_sentences(network.map_or(&[][..], std::slice::from_ref)),
        ]
        .concat();
        let (networks, provenance) = (vec![view], provenance::of_this_run());
        let page = Page {
            title: name,
            subtitle,
            notes,
            networks,
            provenance,
        };
        files.write_text(path, &page.to_html())?;
    }
    files.commit()?;
    let interval = prepared.interval(&outcome, &asked.interval())?;
    let noisy = args.noisy(&prepared, asked)?;
    let program = prepared.program();
    if asked.json {
        let mut document = json!({
            "schema": "flowcast/replay/1",
            "network": network.map(|network| &network.name),
            "makespan_s": outcome.makespan().as_seconds(),
            "messages": outcome.messages,
            "bytes": outcome.bytes.0,
            "ranks": ranks_json(program, &outcome),
            "no_influence": unused_json(&unused),
        });
        add_model(&mut document, &model, &notes);
        add_transfers(&mut document, transfers);
        add_inside(&mut document, inside.as_ref());
        document["stand_ins"] = network.map(stand_ins_json).into();
        add_interval(&mut document, interval.as_ref());
        if let Some(noisy) = &noisy {
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
        if let Some(explanation) = &explanation {
            document["explanation"] = explain_trace::document(explanation);
        }
        println_out!("{document}");
    } else {
        let on = network.map_or(String::new(), |network| {
            format!(" on {}", marked_name(network))
        });
        println_out!("{model}");
        loops.iter().for_each(|loops| println_out!("{loops}"));
        let time = interval.as_ref().map_or_else(
            || Rounded(outcome.makespan()).to_string(),
            Interval::to_string,
        );
        println_out!("predicted time{on}: {time}");
        println_out!("{}", margin(network, interval.as_ref()));
        print_stand_ins(network.map_or(&[], std::slice::from_ref));
        if let (Some(noisy), Some(noise)) = (&noisy, &args.noise) {
            println_out!("with noise {noise}: {noisy}");
        }
        print_counts(program, prepared.collectives(), &outcome);
        print_transfers(transfers);
        print_ranks(program, &outcome, args.show_ranks);
        print_unused(&unused);
        explanation.iter().for_each(explain_trace::print);
        print_assumptions(&notes, prepared.ignored());
    }
    Ok(())
}

/// What was assumed, on standard error; the notes before that, on what is left out, have been printed.
pub(in crate::commands) fn print_assumptions(notes: &[String], left_out: &[IgnoredRecords]) {
    notes
        .iter()
        .skip(left_out.len())
        .for_each(|note| say!("flowcast: note: {note}"));
}

/// The model of a prediction, why, and what it leaves out.
pub(in crate::commands) fn add_model(
    document: &mut serde_json::Value,
    model: &ModelChoice,
    notes: &[String],
) {
    document["model"] = model.name().into();
    document["model_reason"] = model.reason.as_str().into();
    document["collectives"] = model.collectives.into();
    document["leaves_out"] = model.leaves_out().into();
    document["progress"] = model.progress.map(Progress::name).into();
    document["uncontended"] = model.is_uncontended.into();
    document["notes"] = notes.into();
}

/// What happened inside nodes, and who says what it costs; null where nothing did.
pub(in crate::commands) fn add_inside(
    document: &mut serde_json::Value,
    inside: Option<&InsideTraffic>,
) {
    document["inside_nodes"] = inside
        .map(|InsideTraffic { source, messages, bytes, time }| {
            json!({"source": source.name(), "messages": messages, "bytes": bytes.0, "time_s": time.as_seconds()})
        })
        .into();
}

/// The margin of a prediction; null where none is known.
pub(in crate::commands) fn add_interval(
    document: &mut serde_json::Value,
    interval: Option<&Interval>,
) {
    document["interval_s"] = interval
        .map(|interval| [interval.low.as_seconds(), interval.high.as_seconds()])
        .into();
    document["interval_level"] = interval.map(|interval| interval.level).into();
    document["interval_covers"] = interval.map(|interval| interval.covers.as_str()).into();
}

/// What the margin covers, or that there is none.
pub(in crate::commands) fn margin(
    network: Option<&Network>,
    interval: Option<&Interval>,
) -> String {
    match (network, interval) {
        (_, Some(interval)) => format!("margin: {}", interval.covers),
        (Some(network), None) => no_margin(network).to_owned(),
        (None, None) => "no margin known: parameters are given as numbers".to_owned(),
    }
}

/// One line that names the parameters that played no part.
pub(in crate::commands) fn print_unused(unused: &[Unused]) {
    if unused.is_empty() {
        return;
    }
    let names: Vec<String> = unused
        .iter()
        .map(|one| format!("{} ({})", one.parameter, one.reason))
        .collect();
    println_out!("no influence: {}", names.join(", "));
}

/// The same for machines.
pub(in crate::commands) fn unused_json(unused: &[Unused]) -> serde_json::Value {
    unused
        .iter()
        .map(|one| json!({"parameter": one.parameter, "reason": one.reason}))
        .collect()
}

/// `L,o,g,G,S` as LogGOPSim takes them.
pub(in crate::commands) fn read_goal_params(text: &str) -> Result<Loggops> {
    let wrong =
        || format!("--goal-params: found `{text}`, expected five numbers of at least 0: L,o,g,G,S");
    let number = |text: &str| {
        text.trim()
            .parse::<f64>()
            .ok()
            .filter(|value| *value >= 0.0 && value.is_finite())
    };
    let numbers: Option<Vec<f64>> = text.split(',').map(number).collect();
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

/// By rank; the threads of a task are ranks, and say so.
pub(in crate::commands) fn ranks_json(
    program: Option<&Program>,
    outcome: &Outcome,
) -> Vec<serde_json::Value> {
    let threaded = program.filter(|program| program.has_threads());
    let ranks = outcome.ranks.iter().enumerate().map(|(rank, times)| {
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
        row
    });
    ranks.collect()
}

/// What was replayed.
pub(in crate::commands) fn print_counts(
    program: Option<&Program>,
    collectives: u64,
    outcome: &Outcome,
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
}

/// The transfers of one-sided communication, if there are any.
pub(in crate::commands) fn print_transfers(transfers: Transfers) {
    if transfers.count > 0 {
        println_out!(
            "{} one-sided transfers, {} bytes",
            Grouped(transfers.count),
            Grouped(transfers.bytes.0)
        );
    }
}

/// The same for machines; no field where there are none.
pub(in crate::commands) fn add_transfers(document: &mut serde_json::Value, transfers: Transfers) {
    if transfers.count > 0 {
        document["one_sided"] = json!({"transfers": transfers.count, "bytes": transfers.bytes.0});
    }
}

/// The ranks, at most so many, the slowest first where not all have a row.
pub(in crate::commands) fn print_ranks(program: Option<&Program>, outcome: &Outcome, show: Most) {
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
    println_out!("{}", show.shown(&table, rows.len(), "--show-ranks"));
}
