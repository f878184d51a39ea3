//! `flowcast explain path`: what a predicted time is spent on along the chain of events that ends last, and what would
//! shorten it.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use flowcast::replay::critical_path::{CriticalPath, Share};
use flowcast::trace::Trace;
use flowcast::units::{Rank, Rounded, Time};
use flowcast::{Change, PreparedProgram, changes};
use serde::Serialize;
use serde_json::Value;

use crate::network_args::NetworkArgs;
use crate::replay_args::ReplayArgs;
use crate::trace_args::{open_trace, print_notes, program_help};
use flowcast_terminal::output::{Format, Seconds, Shown, println_out, show};
use flowcast_terminal::quantities::Grouped;
use flowcast_terminal::tables::{Most, USUAL_ROWS, cells, table};

/// What the predicted time is spent on along the chain of events that ends last, and which changes would help most
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast explain path lu.dim --network gige-tcp
  flowcast explain path lu.dim --network gige-tcp --model independent --json")]
pub(crate) struct Path {
    #[arg(help = program_help())]
    input: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    replay: ReplayArgs,
    /// Ranks of which the table has a row, the one with most of the path first; or all
    #[arg(long, value_name = "COUNT", help_heading = "Output", default_value = USUAL_ROWS)]
    show_ranks: Most,
    #[command(flatten)]
    format: Format,
}

impl Path {
    /// Replays once for the path, and once for each change.
    pub(crate) fn run(self) -> Result<()> {
        let network = self.network.load()?;
        let options = self.replay.options()?;
        let trace = open_trace(&self.input)?;
        let Trace::Program(program) = &trace else {
            bail!(
                "{}: found a GOAL schedule, expected a trace (of a schedule: predict --report)",
                self.input.display()
            );
        };
        print_notes(program.ignored());
        let prepared = PreparedProgram::new(program, &network, &options)?;
        let (outcome, path) = prepared.critical_path()?;
        let makespan = outcome.makespan();
        let changes = changes(&trace, &network, &options)?;
        let explained = Explained {
            network: network.name.clone(),
            model: prepared.model().name(),
            makespan_s: Seconds(makespan),
            messages: path.counts.messages,
            bytes: path.counts.bytes.0,
            overheads: path.counts.overheads,
            gaps: path.counts.gaps,
            collectives: path.counts.collectives,
            shares: path.shares().iter().map(ShareRow::of).collect(),
            ranks: path.ranks().into_iter().map(|(rank, time)| RankRow::of(rank, time, makespan)).collect(),
            changes: changes.iter().map(|change| change.document(makespan)).collect(),
            rows: changes.iter().map(|change| row(change, makespan)).collect(),
            lines: lines(&path, &changes, prepared.model()),
            shown: self.show_ranks,
        };
        show(&explained, self.format)
    }
}

/// The path, the counts along it, and what would shorten it.
#[derive(Serialize)]
struct Explained {
    network: String,
    model: &'static str,
    makespan_s: Seconds,
    messages: u64,
    bytes: u64,
    overheads: u64,
    gaps: u64,
    collectives: u64,
    shares: Vec<ShareRow>,
    ranks: Vec<RankRow>,
    changes: Vec<Value>,
    #[serde(skip)]
    rows: Vec<[String; 5]>,
    #[serde(skip)]
    lines: Vec<String>,
    #[serde(skip)]
    shown: Most,
}

#[derive(Serialize)]
struct ShareRow {
    limit: &'static str,
    time_s: Seconds,
    fraction: f64,
}

#[derive(Serialize)]
struct RankRow {
    rank: u32,
    time_s: Seconds,
    fraction: f64,
}

impl ShareRow {
    fn of(share: &Share) -> ShareRow {
        ShareRow { limit: share.limit.name(), time_s: Seconds(share.time), fraction: share.fraction }
    }
}

impl RankRow {
    fn of(rank: Rank, time: Time, makespan: Time) -> RankRow {
        RankRow { rank: rank.0, time_s: Seconds(time), fraction: time.as_nanos() / makespan.as_nanos() }
    }
}

/// The answer in words, the model, and where the time goes.
fn lines(path: &CriticalPath, changes: &[Change], model: &impl std::fmt::Display) -> Vec<String> {
    let best = changes.first().map_or("no change of a field helps".to_owned(), |best| {
        let part = 100.0 * (1.0 - best.makespan.as_nanos() / path.makespan.as_nanos());
        format!("most would help {}: {part:.1} % less time", best.sentence())
    });
    vec![
        format!("{}; {best}", path.reason()),
        model.to_string(),
        format!("predicted time: {}, of it {}", Rounded(path.makespan), path.sentence()),
    ]
}

fn row(change: &Change, makespan: Time) -> [String; 5] {
    let Change { what, from, to, makespan: time } = change.clone();
    [what, from, to, Rounded(time).to_string(), percent(change.difference(makespan))]
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}

impl Shown for Explained {
    const SCHEMA: &'static str = "flowcast/critical-path/1";

    fn print(&self) {
        self.lines.iter().for_each(|line| println_out!("{line}"));
        println_out!(
            "on the path: {} messages of {} bytes, {} collectives",
            Grouped(self.messages),
            Grouped(self.bytes),
            Grouped(self.collectives)
        );
        let mut shares = table(&["spent on", ">time", ">of it"]);
        for row in &self.shares {
            shares.add_row(cells![row.limit, row.time_s, percent(row.fraction)]);
        }
        println_out!("{shares}");
        let mut ranks = table(&[">rank", ">time on the path", ">of it"]);
        for row in self.shown.of(&self.ranks) {
            ranks.add_row(cells![row.rank, row.time_s, percent(row.fraction)]);
        }
        println_out!("{}", self.shown.shown(&ranks, self.ranks.len(), "--show-ranks"));
        let mut changes = table(&["change", ">from", ">to", ">predicted time", ">difference"]);
        changes.add_rows(&self.rows);
        println_out!("{changes}");
    }
}
