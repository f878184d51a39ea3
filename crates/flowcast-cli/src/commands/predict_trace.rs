//! `flowcast predict` on a trace: when each rank ends, and where its time goes.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use comfy_table::Table;
use flowcast::model::machine::{Machine, Mapping};
use flowcast::model::network::Network;
use flowcast::model::sharing::model::Model;
use flowcast::place::mapping_file;
use flowcast::replay::costs::Rendezvous;
use flowcast::replay::explain::Explanation;
use flowcast::replay::influence::{Done, Unused, without_influence};
use flowcast::replay::journal::Journal;
use flowcast::replay::loggops::explain::explain;
use flowcast::replay::loggops::sends::Sends;
use flowcast::replay::loggops::ways::{Costs, Placed};
use flowcast::replay::loggops::{self, Form, Loggops};
use flowcast::replay::outcome::{Outcome, RankOutcome};
use flowcast::replay::placement::Placement;
use flowcast::replay::record::{Observer, Unobserved};
use flowcast::replay::{Engine, contention};
use flowcast::report::{NetworkView, Page};
use flowcast::trace::program::Program;
use flowcast::trace::schedule::Schedule;
use flowcast::trace::{Trace, TraceRef};
use flowcast::units::{Bytes, Rank, Rounded, Time, TimePerByte};
use serde_json::json;

use super::explain_trace;
use super::predict_pattern::PatternArgs;
use crate::collectives::CollectivesArgs;
use crate::files::read_text;
use crate::output::println_out;
use crate::provenance;
use crate::replay_files::OutputArgs;
use crate::replay_view::{schedule_view, view, write_page};
use crate::tables::table;
use crate::trace_args::{open_trace, print_notes};

/// Options that only a trace takes.
#[derive(Debug, Clone, Args)]
pub struct TraceArgs {
    /// Where ranks run: fill, round-robin, N-per-node, or a file (the node of each rank, an Open MPI rankfile, MPICH's
    /// host:n, Slurm's host list); once for each of several traces, or once for all
    #[arg(long, value_name = "MAP")]
    pub mapping: Vec<String>,
    /// Messages of at least this size wait for their receiver, whatever the trace says, such as 64KiB
    #[arg(long, value_name = "BYTES")]
    pub rendezvous_from: Option<Bytes>,
    /// LogGOPS with LogGOPSim's rules: L,o,g,G,S in nanoseconds (S in bytes)
    #[arg(long, value_name = "L,o,g,G,S")]
    pub goal_params: Option<String>,
    /// Write a self-contained page with timeline, messages and what limits the program
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub collectives: CollectivesArgs,
    #[command(flatten)]
    pub outputs: OutputArgs,
    /// How messages under way together share the network.
    #[arg(skip)]
    pub model: Option<String>,
    /// Whether to say what communication cost.
    #[arg(skip)]
    pub explain: bool,
}

impl TraceArgs {
    /// Whether any of them was given.
    pub fn is_given(&self) -> bool {
        !self.mapping.is_empty()
            || self.rendezvous_from.is_some()
            || self.goal_params.is_some()
            || self.collectives.collectives.is_some()
            || self.outputs.is_given()
    }
}

impl TraceArgs {
    /// The same with the options that patterns take as well.
    pub fn with_pattern_args(self, pattern: PatternArgs) -> TraceArgs {
        TraceArgs { model: pattern.model, explain: pattern.explain, ..self }
    }
}

/// Predicts and prints; `asked` names the fields that were set on the command line.
pub fn run(input: &Path, network: Option<&Network>, asked: &[String], options: &TraceArgs, json: bool) -> Result<()> {
    let trace = open_trace(input)?;
    let ranks = trace.ranks();
    let (Prediction { outcome, explanation, unused }, program) = match trace {
        Trace::Schedule(schedule) => (predict_schedule((schedule, input), network, options)?, None),
        Trace::Program(program) => (predict_program(&program, network, asked, options)?, Some(program)),
    };
    let program = program.as_ref();
    if json {
        let mut document = to_json(program, &outcome, &unused);
        if let Some(explanation) = &explanation {
            document["explanation"] = explain_trace::document(explanation);
        }
        println_out!("{document}");
    } else {
        let on = network.map_or(String::new(), |network| format!(" on {}", network.name));
        println_out!("predicted time{on}: {}", Rounded(outcome.makespan()));
        println_out!("{ranks} ranks, {} messages, {} bytes", outcome.messages, outcome.bytes.0);
        print_ranks(program, &outcome);
        print_unused(&unused);
        explanation.iter().for_each(explain_trace::print);
    }
    Ok(())
}

/// A schedule takes the cost of single messages from a network, and where it is placed what its nodes are like.
fn unused_by_schedules(network: Option<&Network>, costs: Costs<'_>, options: &TraceArgs) -> Vec<Unused> {
    let Some(network) = network else { return Vec::new() };
    let mut list = Vec::new();
    if options.goal_params.is_some() {
        let unused = |parameter: &str| Unused { parameter: parameter.to_owned(), reason: "--goal-params instead" };
        list.push(unused("point_to_point"));
        // A model shares the bandwidth of the interfaces.
        list.extend(options.model.is_none().then(|| unused("nic")));
    }
    let has_influence = match costs.placed {
        Some(placed) => !contention::is_needed(network, placed.placement),
        None => network.machine.is_default(),
    };
    if !has_influence {
        let reason = match costs.placed {
            Some(_) => "but for its nodes: limits are not part of LogGOPSim's rules",
            None => "not part of LogGOPSim's rules",
        };
        list.push(Unused { parameter: "machine".to_owned(), reason });
    }
    list
}

/// One line that names the parameters that played no part.
pub fn print_unused(unused: &[Unused]) {
    if unused.is_empty() {
        return;
    }
    let names: Vec<String> = unused.iter().map(|one| format!("{} ({})", one.parameter, one.reason)).collect();
    println_out!("no influence: {}", names.join(", "));
}

/// The same for machines.
pub fn unused_json(unused: &[Unused]) -> serde_json::Value {
    unused.iter().map(|one| json!({"parameter": one.parameter, "reason": one.reason})).collect()
}

fn predict_schedule(
    (schedule, input): (Schedule, &Path),
    network: Option<&Network>,
    options: &TraceArgs,
) -> Result<Prediction> {
    if options.collectives.collectives.is_some() {
        bail!("found a GOAL schedule, which has no collectives, expected another trace for --collectives");
    }
    let mut parameters = parameters(options.goal_params.as_deref(), network)?;
    if let Some(from) = options.rendezvous_from {
        parameters.eager_up_to = Some(Bytes(from.0.saturating_sub(1)));
    }
    let default = Machine::default();
    let machine = network.map_or(&default, |network| &network.machine);
    let mapping = one_mapping(options)?;
    // Nodes matter only to those who ask for them.
    let is_placed = mapping.is_some() || options.model.is_some();
    let machine = if is_placed { machine } else { &default };
    let placement = Placement::new(machine, mapping.as_ref(), schedule.ranks())?;
    let sharing = match (options.model.as_deref().map(Model::named).transpose()?, network) {
        (Some(model), Some(network)) => Some((network, model)),
        (Some(_), None) => bail!("--model: found no network, expected --network NET"),
        (None, _) => None,
    };
    let costs = Costs { parameters, placed: is_placed.then_some(Placed { placement: &placement, sharing }) };
    let unused = unused_by_schedules(network, costs, options);
    let replay = ScheduleReplay { name: schedule.name.clone(), form: Form::of(schedule, costs), costs, input };
    let sends = replay.form.sends();
    let report = |path: &PathBuf| write_report(schedule_page(&replay, &sends, network)?, path);
    let reported = options.report.as_ref().map(report).transpose()?;
    let explained = options.explain.then(|| explain(&sends, costs, |explainer| replay.run(explainer))).transpose()?;
    let (explained, explanation) = explained.unzip();
    let outcome = match reported.or(explained) {
        _ if options.outputs.is_given() => {
            let trace = TraceRef::Schedule { name: &replay.name, ranks: sends.ranks() };
            let journal = Journal::of_schedule(&sends, options.outputs.keeps());
            options.outputs.write((trace, journal), &placement, |journal| replay.run(journal))?
        }
        Some(outcome) => outcome,
        None => replay.run(&mut Unobserved)?,
    };
    Ok(Prediction { outcome, explanation, unused })
}

/// A schedule that can be replayed as often as something is asked for.
struct ScheduleReplay<'a> {
    name: String,
    form: Form,
    costs: Costs<'a>,
    input: &'a Path,
}

impl ScheduleReplay<'_> {
    fn run<O: Observer>(&self, observer: &mut O) -> Result<Outcome> {
        if let Some(outcome) = self.form.observed(self.costs, observer)? {
            return Ok(outcome);
        }
        // It does not come to its end: what is at fault is told by the schedule itself, which is read again.
        match open_trace(self.input)? {
            Trace::Schedule(schedule) => Ok(loggops::run(&schedule, self.costs.parameters)?),
            Trace::Program(_) => {
                bail!("{}: found a trace, expected the schedule that was there before", self.input.display())
            }
        }
    }
}

/// What the option says, else what the network gives.
pub fn parameters(goal_params: Option<&str>, network: Option<&Network>) -> Result<Loggops> {
    match (goal_params, network) {
        (Some(text), _) => read_goal_params(text),
        (None, Some(network)) => Ok(Loggops::from_network(network)),
        (None, None) => bail!("found neither --network nor --goal-params, expected one of them"),
    }
}

/// A prediction, what stands behind it if that was asked for, and what played no part in it.
struct Prediction {
    outcome: Outcome,
    explanation: Option<Explanation>,
    unused: Vec<Unused>,
}

fn predict_program(
    program: &Program,
    network: Option<&Network>,
    asked: &[String],
    options: &TraceArgs,
) -> Result<Prediction> {
    if options.goal_params.is_some() {
        bail!("--goal-params: found a trace that is not a GOAL schedule, expected one (use --network)");
    }
    let Some(network) = network else { bail!("found no network, expected --network NET") };
    let mapping = one_mapping(options)?;
    print_notes(program);
    let expanded = options.collectives.apply(program, Some(network))?;
    let program = expanded.as_ref().unwrap_or(program);
    let placement = Placement::of_program(&network.machine, mapping.as_ref(), program)?;
    let rendezvous = Rendezvous::of(network, options.rendezvous_from);
    let places = placement.clone();
    let replay = match options.model.as_deref().map(Model::named).transpose()? {
        Some(model) => Engine::sharing(program, network, placement, rendezvous, model)?,
        None => Engine::new(program, network, placement, rendezvous)?,
    };
    let report = |path: &PathBuf| write_report(program_page(program, network, &replay)?, path);
    let reported = options.report.as_ref().map(report).transpose()?;
    let explained = options.explain.then(|| replay.explain()).transpose()?;
    let (explained, explanation) = explained.unzip();
    let outcome = match reported.or(explained) {
        _ if options.outputs.is_given() => {
            let journal = Journal::new(program, options.outputs.keeps());
            let replayed = (TraceRef::Program(program), journal);
            options.outputs.write(replayed, &places, |journal| Ok(replay.observed(journal)?))?
        }
        Some(outcome) => outcome,
        None => replay.run()?,
    };
    let is_shared = options.model.is_some();
    let done = Done { program, network, placement: &places, rendezvous, is_shared, outcome: &outcome };
    let unused = without_influence(&done, asked);
    Ok(Prediction { outcome, explanation, unused })
}

/// The mapping of the one trace.
fn one_mapping(options: &TraceArgs) -> Result<Option<Mapping>> {
    match &options.mapping[..] {
        [] => Ok(None),
        [mapping] => Ok(Some(parse_mapping(mapping)?)),
        _ => bail!("--mapping: found {} of them, expected one, as there is one trace", options.mapping.len()),
    }
}

fn program_page(program: &Program, network: &Network, replay: &Engine<'_>) -> Result<Page> {
    let subtitle = format!("{} ranks, {} messages on {}", program.ranks(), program.messages(), network.name);
    Ok(page(program.name.clone(), subtitle, view(program, network, replay)?))
}

fn schedule_page(replay: &ScheduleReplay<'_>, sends: &Sends<'_>, network: Option<&Network>) -> Result<Page> {
    let subtitle = format!("{} ranks, {} messages", sends.ranks(), sends.count());
    let recording = loggops::record(sends, replay.costs, |recorder| replay.run(recorder))?;
    Ok(page(replay.name.clone(), subtitle, schedule_view(recording, network, replay.costs.parameters)))
}

fn page(title: String, subtitle: String, view: NetworkView) -> Page {
    Page { title, subtitle, networks: vec![view], provenance: provenance::of_this_run() }
}

fn write_report(page: Page, path: &Path) -> Result<Outcome> {
    write_page(&page, path)?;
    Ok(page.networks.into_iter().map(|view| view.outcome).next().unwrap_or_default())
}

/// `L,o,g,G,S` as LogGOPSim takes them.
fn read_goal_params(text: &str) -> Result<Loggops> {
    let wrong = || format!("--goal-params: found `{text}`, expected five numbers of at least 0: L,o,g,G,S");
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| *value >= 0.0 && value.is_finite());
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

pub fn parse_mapping(text: &str) -> Result<Mapping> {
    match mapping_file::rule(text) {
        Some(rule) => Ok(rule),
        None => Ok(mapping_file::read(text, &read_text(Path::new(text))?, &[])?.mapping),
    }
}

fn to_json(program: Option<&Program>, outcome: &Outcome, unused: &[Unused]) -> serde_json::Value {
    json!({
        "schema": "flowcast/replay/1",
        "makespan_s": outcome.makespan().as_seconds(),
        "messages": outcome.messages,
        "bytes": outcome.bytes.0,
        "ranks": ranks_json(program, outcome),
        "no_influence": unused_json(unused),
    })
}

/// By rank; the threads of a task are ranks, and say so.
pub fn ranks_json(program: Option<&Program>, outcome: &Outcome) -> Vec<serde_json::Value> {
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

/// More ranks than this are summed up: slowest, fastest and the middle.
const ROWS: usize = 32;

/// The ranks, at most so many.
pub fn print_ranks(program: Option<&Program>, outcome: &Outcome) {
    let mut rows: Vec<usize> = (0..outcome.ranks.len()).collect();
    if rows.len() > ROWS {
        rows.sort_by_key(|rank| (std::cmp::Reverse(outcome.ranks[*rank].end), *rank));
        println_out!("the {ROWS} slowest ranks (all of them with --json):");
        rows.truncate(ROWS);
    }
    let threaded = program.filter(|program| program.has_threads());
    let first = if threaded.is_some() { ">task.thread" } else { ">rank" };
    let mut table = table(&[first, ">end", ">compute", ">blocked", ">overhead"]);
    for rank in rows {
        let place = Rank(rank as u32);
        let name =
            threaded.map_or(place.to_string(), |program| format!("{}.{}", program.task(place), program.thread(place)));
        add_row(&mut table, name, &outcome.ranks[rank]);
    }
    println_out!("{table}");
}

fn add_row(table: &mut Table, name: String, times: &RankOutcome) {
    let cells = [times.end, times.compute, times.blocked, times.overhead].map(|time| Rounded(time).to_string());
    table.add_row(std::iter::once(name).chain(cells));
}
