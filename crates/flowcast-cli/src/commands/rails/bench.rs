//! `flowcast rails bench`: the many-messages test over real rails.

mod point;

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use flowcast::{
    scheduler::{RailSet, split::SplitRule},
    statements::of_runs,
    table::{Document, Record, Value, fixed, rows},
    units::{Bytes, Rounded, Time},
};
use flowcast_rails::{
    exchange::end,
    link::{RailLink, RailPath},
};

use super::{
    bench_results::{Plan, Point, Results},
    chosen::{Chosen, Subject, subjects},
    count::{self, CountArgs},
    inputs::rail_parameters,
    live::{LiveRail, WaitingKind, environment_error, live_rail, session_rule},
    serve::exchange_error,
    split,
};
use crate::commands::doctor;
use flowcast_terminal::{
    files::{Output, declare},
    launcher::connected,
    output::Format,
    say,
    token::TokenArgs,
};
use point::PointRun;

/// Flowcast's schedulers first, then those of the thesis from the best to the worst.
const EVERY: &str = "earliest-delivery,whole-messages,adaptive,guarded,earliest-overlap,latency,overlap,fixed-point,vft,\
                     vft-clock,gap,weighted-round-robin,wfq,vtrr,round-robin";

/// Default for the largest size, in bytes. A power of two.
const LARGEST: u64 = 1 << 16;

fn sizes_help() -> String {
    let largest = Rounded(Bytes(LARGEST));
    format!("Sizes of messages [default: each power of two from 1 B to {largest}]")
}

/// Compare schedulers and single networks on many small messages
///
/// Sends N messages, receives N messages and divides the time by two (thesis 5.8.1). Each round measures every scheduler and
/// every rail alone once, one after the other, so that disturbances of the machine affect all alike. The results are medians
/// over the rounds. The other end runs `flowcast rails serve`.
///
/// A rail is given up if it is lost, or silent for two seconds while the other end answers on another rail. The remaining
/// rails carry the missing messages, and the lost rail is reconnected.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast rails bench --connect a=10.0.1.2:7400,device=eth1,network=a.toml \
                        --connect b=10.0.2.2:7400,device=eth2,network=b.toml --token TOKEN --json"
)]
pub(crate) struct Bench {
    /// Rail: name, address of the other end, optional from=ADDRESS and device=INTERFACE, and its parameters: network=NET or
    /// loggp=g/G/o/Lus (repeatable)
    #[arg(long = "connect", value_name = "NAME=ADDRESS:PORT,...", required = true, value_parser = live_rail)]
    pub rails: Vec<LiveRail>,
    /// Schedulers of `rails simulate`, and whole-messages (earliest-delivery that divides no message), adaptive (earliest
    /// delivery that adapts to its rails), guarded (earliest delivery while it is proven to gain, else the best rail alone)
    /// [default: all]
    #[arg(
        long = "scheduler",
        value_delimiter = ',',
        value_name = "NAME,NAME...",
        default_value = EVERY,
        hide_default_value = true
    )]
    schedulers: Vec<Chosen>,
    /// N: messages sent one after another before N are received; at most 1000000
    #[arg(
        value_parser = flowcast_terminal::shares::count::<u32>(..=1_000_000),
        long,
        value_delimiter = ',',
        default_value = "1,8,16,32",
        value_name = "N,N..."
    )]
    burst: Vec<u32>,
    #[arg(long, value_delimiter = ',', value_name = "SIZE,SIZE...", help = sizes_help())]
    sizes: Vec<Bytes>,
    /// Number of rounds, each of which measures every scheduler and every network once; at most 1000000
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = flowcast_terminal::shares::count::<usize>(..=1_000_000))]
    repetitions: usize,
    /// Time for which each measurement is repeated
    #[arg(long, default_value = "20ms", value_name = "TIME")]
    pub span: Time,
    #[command(flatten)]
    token: TokenArgs,
    /// Method by which this end waits for messages
    #[arg(long, value_enum, default_value_t = WaitingKind::Sleep)]
    waiting: WaitingKind,
    /// Divide messages of at least this size over the rails if they then arrive earlier (earliest-delivery, adaptive,
    /// guarded), into pieces of at least the second size
    #[arg(long, default_value = "16KiB,4KiB", value_name = "SIZE[,PIECE]", value_parser = split::rule)]
    pub split_from: SplitRule,
    #[command(flatten)]
    count: CountArgs,
    /// Write all samples: one-way times by scheduler, messages, size and round
    #[arg(short, long, value_name = "FILE.csv")]
    output: Option<PathBuf>,
    /// Continue an interrupted run, whose samples are in FILE.csv.partial
    #[arg(long, requires = "output")]
    resume: bool,
    #[command(flatten)]
    format: Format,
}

impl Bench {
    /// Measures and prints the results.
    pub(crate) fn run(self) -> Result<()> {
        ensure!(
            self.repetitions > 0,
            "--repetitions: found 0, expected 1 or more"
        );
        declare([], Output::each("-o", &self.output))?;
        let expected = "found no token, expected --token TOKEN from `flowcast rails serve`";
        let token = self.token.given()?.context(expected)?;
        let subjects = subjects(&self.schedulers, &self.rails);
        let mut results = if self.count.is_requested() {
            None
        } else {
            Some(self.results(&subjects)?)
        };
        let paths: Vec<RailPath> = self.rails.iter().map(|rail| rail.path.clone()).collect();
        let mut link =
            connected(|| RailLink::connect(&paths, session_rule(token), self.waiting.waiting()))
                .map_err(environment_error)?;
        let Some(results) = &mut results else {
            let plan = self.count.plan(&self.rails)?;
            let course =
                self.schedulers[0].course(RailSet::first(self.rails.len()), self.split_from);
            let result = count::run(&mut link, &self.rails, course, plan, self.format);
            return end(&mut link).map_err(exchange_error).and(result);
        };
        // Taken before the runs themselves occupy the processors.
        let provenance = doctor::provenance_of_measurement();
        self.measure(&mut link, &subjects, results)?;
        end(&mut link).map_err(exchange_error)?;
        for (rail, fault) in link.faults() {
            say!("flowcast: rail {}: {fault}", self.rails[rail.index()].name);
        }
        self.deliver(&subjects, results, &provenance)
    }

    /// Results, including those of an interrupted run.
    fn results(&self, subjects: &[Subject]) -> Result<Results> {
        let SplitRule {
            from,
            minimal_piece,
            ..
        } = self.split_from;
        let settings = Record::new()
            .field("rails", self.parameters())
            .field("messages", &self.burst)
            .field("sizes_B", self.sizes())
            .field(
                "subjects",
                subjects
                    .iter()
                    .map(|subject| &subject.name)
                    .collect::<Value>(),
            )
            .field("rounds", self.repetitions)
            .field("point_time_s", self.span)
            .field("split_from_B", from)
            .field("minimal_piece_B", minimal_piece)
            .field("flowcast", env!("CARGO_PKG_VERSION"));
        let names = subjects
            .iter()
            .map(|subject| subject.name.clone())
            .collect();
        let plan = Plan {
            settings: settings
                .json()?
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect(),
            names,
            points: self.points(),
        };
        match &self.output {
            None => Ok(Results::unkept(plan)),
            Some(path) => Results::open(path, self.resume, plan),
        }
    }

    fn parameters(&self) -> Value {
        rail_parameters(self.rails.iter().map(|rail| (&*rail.name, &rail.path.cost)))
    }

    fn sizes(&self) -> Vec<Bytes> {
        if self.sizes.is_empty() {
            (0..=LARGEST.ilog2()).map(|bits| Bytes(1 << bits)).collect()
        } else {
            self.sizes.clone()
        }
    }

    fn points(&self) -> Vec<(u32, Bytes)> {
        let sizes = self.sizes();
        self.burst
            .iter()
            .flat_map(|messages| sizes.iter().map(|size| (*messages, *size)))
            .collect()
    }

    /// Each round visits all points before the next starts. A temporary disturbance therefore affects one round of some
    /// points, and not all rounds of one point.
    fn measure(
        &self,
        link: &mut RailLink,
        subjects: &[Subject],
        results: &mut Results,
    ) -> Result<()> {
        let mut points: Vec<PointRun<'_>> = self
            .points()
            .into_iter()
            .map(|point| PointRun::new(self, subjects, point))
            .collect();
        for visit in results.visits()..self.repetitions * points.len() {
            let (round, index) = (visit / points.len(), visit % points.len());
            results.append(points[index].visit(link, round)?)?;
            if index + 1 == points.len() {
                say!(
                    "flowcast: round {} of {} measured",
                    round + 1,
                    self.repetitions
                );
            }
        }
        Ok(())
    }

    fn deliver(
        &self,
        subjects: &[Subject],
        results: &Results,
        provenance: &BTreeMap<String, String>,
    ) -> Result<()> {
        if self.output.is_some() {
            results.finish()?;
        }
        let (points, alone) = (results.points(), self.rails.len());
        let mut table = rows(&points)
            .column("messages", "N", |point| point.messages)
            .column("size_B", "size", |point| point.size)
            .field("results", |point| {
                rows((0..subjects.len()).map(|index| (index, point)))
                    .field("scheduler", |(index, _)| &subjects[index].name)
                    .field("rate_Mbit_s", |(index, point): (usize, &Point)| {
                        point.rate(index)
                    })
                    .field("over_best_alone", |(index, point)| {
                        point.over_best_alone(index, alone)
                    })
                    .field("one_way_us", |(index, point)| &point.one_way[index])
            });
        for (index, subject) in subjects.iter().enumerate() {
            table = table.cell(&subject.name, |point| fixed(point.rate(index), 2));
        }
        let table = table.cell("first / best alone", |point| {
            fixed(point.over_best_alone(0, alone), 3)
        });
        let document = Document::new("rails-bench")
            .titled("Rail schedulers")
            .field("rails", self.parameters())
            .field("rounds", self.repetitions)
            .table("points", table)
            .field("provenance", provenance)
            .line("Mbit/s one way, N·size/(T/2), medians.")
            .noted(of_runs(provenance));
        self.format.print(&document)
    }
}
