//! `flowcast rails bench`: the many-messages test over real rails.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use flowcast::rails::discipline::{Discipline, SchedulerName};
use flowcast::rails::guard::{Guard, GuardRule};
use flowcast::rails::{RailId, RailSet, RailsError};
use flowcast::stats::sample::median;
use flowcast::units::{Bytes, Time};
use flowcast_rails::exchange::{Course, Exchange, end, exchange};
use flowcast_rails::link::Link;
use flowcast_rails::link::RailPath;
use serde_json::json;

use super::bench_plot;
use super::count::{self, CountArgs};
use super::live::{LiveRail, WaitingKind, lacking, live_rail, session_rule};
use super::serve::unexpected;
use crate::files::write_whole;
use crate::output::println_out;
use crate::provenance;
use crate::tables::table;

/// Send many small messages over several networks, with schedulers and with each network alone
///
/// Sends N messages, receives N messages and divides the time by two (thesis 5.8.1). In each round every scheduler and
/// every rail alone is measured once, one after the other, so that what disturbs the machine meets all alike; printed
/// are medians over the rounds. The other end runs `flowcast rails serve`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast rails bench --rail a=10.0.1.2:7400,device=eth1,network=a.toml \
                        --rail b=10.0.2.2:7400,device=eth2,network=b.toml --plot bench.svg --json")]
pub struct Bench {
    /// A rail: name, address of the other end, then from=ADDRESS and device=INTERFACE if wanted, and its parameters:
    /// network=NET or loggp=g/G/o/Lus (repeatable)
    #[arg(long = "rail", value_name = "NAME=ADDRESS:PORT,...", required = true, value_parser = live_rail)]
    rails: Vec<LiveRail>,
    /// Schedulers, as in `rails simulate`; adaptive (earliest delivery that follows its rails) and guarded
    /// (earliest delivery while it is proven to gain, else the best rail alone)
    #[arg(
        long = "scheduler",
        alias = "schedulers",
        value_delimiter = ',',
        value_name = "NAME,NAME...",
        default_value = "earliest-delivery,adaptive,guarded,latency,vft,round-robin,weighted-round-robin,wfq,vtrr"
    )]
    schedulers: Vec<Chosen>,
    /// N, how many messages are sent before as many are received
    #[arg(long, value_delimiter = ',', default_value = "1,8,16,32", value_name = "N,N...")]
    messages: Vec<u32>,
    /// Sizes [default: each power of two from 1 B to 64 KiB]
    #[arg(long, value_delimiter = ',', value_name = "SIZE,SIZE...")]
    sizes: Vec<Bytes>,
    /// Rounds, in each of which everything is measured once
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    rounds: usize,
    /// How long one measurement is repeated
    #[arg(long, default_value = "20ms", value_name = "TIME")]
    point_time: Time,
    /// What this end does while nothing comes
    #[arg(long, value_enum, default_value_t = WaitingKind::Sleep)]
    waiting: WaitingKind,
    #[command(flatten)]
    count: CountArgs,
    /// Write all samples: messages,size_B,scheduler,round,one_way_us,rate_Mbit_s
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Write a plot: a page (.html) or a picture (.svg)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

/// What `--scheduler` names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Chosen {
    /// With the parameters given.
    Fixed(SchedulerName),
    /// With parameters that follow the rails.
    Adaptive,
    /// Guarded by measurements.
    Guarded,
}

impl std::str::FromStr for Chosen {
    type Err = RailsError;

    fn from_str(text: &str) -> Result<Chosen, RailsError> {
        Ok(match text {
            "adaptive" => Chosen::Adaptive,
            "guarded" => Chosen::Guarded,
            name => Chosen::Fixed(name.parse()?),
        })
    }
}

impl Chosen {
    /// Over these rails.
    pub fn course(self, rails: RailSet) -> Course {
        let scheduler = match self {
            Chosen::Fixed(name) => name,
            Chosen::Adaptive | Chosen::Guarded => SchedulerName::new(Discipline::EarliestDelivery),
        };
        Course { scheduler, adapts: self == Chosen::Adaptive, rails }
    }

    /// For people.
    pub fn name(self) -> String {
        match self {
            Chosen::Fixed(name) => name.to_string(),
            Chosen::Adaptive => "adaptive".into(),
            Chosen::Guarded => "guarded".into(),
        }
    }
}

/// What is measured in turn.
struct Subject {
    name: String,
    chosen: Chosen,
    rails: RailSet,
}

/// The results of one N and size: for each subject the one-way times of the rounds.
pub struct Point {
    /// N.
    pub messages: u32,
    /// Bytes of each.
    pub size: Bytes,
    /// In the order of the subjects.
    pub one_way: Vec<Vec<Time>>,
}

impl Point {
    /// Median rate of a subject in Mbit/s.
    pub fn rate(&self, subject: usize) -> f64 {
        let micros: Vec<f64> = self.one_way[subject].iter().map(|time| time.as_micros()).collect();
        self.megabits(Time::from_micros(median(&micros).unwrap_or(f64::INFINITY)))
    }

    fn megabits(&self, one_way: Time) -> f64 {
        f64::from(self.messages) * self.size.0 as f64 * 8.0 / one_way.as_micros()
    }
}

impl Bench {
    /// Measures and prints.
    pub fn run(self) -> Result<()> {
        let paths: Vec<RailPath> = self.rails.iter().map(|rail| rail.path.clone()).collect();
        let mut link = Link::connect(&paths, session_rule(), self.waiting.waiting()).map_err(lacking)?;
        if let Some(plan) = self.count.plan(&self.rails)? {
            let result = count::run(&mut link, &self.rails, self.schedulers[0], plan, self.json);
            return end(&mut link).map_err(unexpected).and(result);
        }
        ensure!(self.rounds > 0, "--rounds: found 0, expected 1 or more");
        let subjects = self.subjects();
        let mut points = Vec::new();
        for messages in &self.messages {
            for size in self.sizes() {
                points.push(self.point(&mut link, &subjects, *messages, size)?);
                eprintln!("flowcast: {messages} messages of {size} measured");
            }
        }
        end(&mut link).map_err(unexpected)?;
        for (rail, fault) in link.faults() {
            eprintln!("flowcast: rail {}: {fault}", self.rails[rail.index()].name);
        }
        self.write(&subjects, &points)?;
        if self.json {
            self.print_json(&subjects, &points)
        } else {
            print(&subjects, &points)
        }
        Ok(())
    }

    fn sizes(&self) -> Vec<Bytes> {
        if self.sizes.is_empty() { (0..=16).map(|bits| Bytes(1 << bits)).collect() } else { self.sizes.clone() }
    }

    fn subjects(&self) -> Vec<Subject> {
        let all = RailSet::first(self.rails.len());
        let together =
            self.schedulers.iter().map(|chosen| Subject { name: chosen.name(), chosen: *chosen, rails: all });
        let alone = (0u8..).zip(&self.rails).map(|(rail, live)| Subject {
            name: format!("{} alone", live.name),
            chosen: Chosen::Fixed(SchedulerName::new(Discipline::EarliestDelivery)),
            rails: RailSet::NONE.with(RailId(rail)),
        });
        together.chain(alone).collect()
    }

    fn point(&self, link: &mut Link, subjects: &[Subject], messages: u32, size: Bytes) -> Result<Point> {
        let once = Exchange { messages, size, repetitions: 1 };
        let mut guard = Guard::new(RailSet::first(self.rails.len()), GuardRule::default());
        let mut repetitions = Vec::new();
        for subject in subjects {
            // Before the first round the guard makes its first measurements, and all warm up.
            let warm = if subject.chosen == Chosen::Guarded { 3 * (1 + self.rails.len() as u32) } else { 2 };
            let times = run_subject(link, subject, Exchange { repetitions: warm, ..once }, &mut guard)?;
            let last = times.last().copied().unwrap_or(self.point_time);
            repetitions.push(((self.point_time.as_nanos() / last.as_nanos()) as u32).clamp(1, 200));
        }
        let mut one_way = vec![Vec::new(); subjects.len()];
        for _ in 0..self.rounds {
            for ((subject, repetitions), samples) in subjects.iter().zip(&repetitions).zip(&mut one_way) {
                let times = run_subject(link, subject, Exchange { repetitions: *repetitions, ..once }, &mut guard)?;
                let micros: Vec<f64> = times.iter().map(|time| time.as_micros() / 2.0).collect();
                samples.extend(median(&micros).ok().map(Time::from_micros));
            }
        }
        Ok(Point { messages, size, one_way })
    }

    fn write(&self, subjects: &[Subject], points: &[Point]) -> Result<()> {
        if let Some(path) = &self.csv {
            write_whole(path, |out| Ok(out.write_all(csv(subjects, points).as_bytes())?))?;
        }
        if let Some(path) = &self.plot {
            let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
            let picture = bench_plot::rates(&names, self.rails.len(), points);
            let whole = if path.extension().is_some_and(|ending| ending == "svg") {
                picture
            } else {
                super::plot::page(&picture)
            };
            write_whole(path, |out| Ok(out.write_all(whole.as_bytes())?))?;
        }
        Ok(())
    }

    fn print_json(&self, subjects: &[Subject], points: &[Point]) {
        let rails: Vec<_> = self.rails.iter().map(|rail| count::rail_json(&rail.name, &rail.path.cost)).collect();
        let rates = |point: &Point| {
            let rate = |(index, subject): (usize, &Subject)| {
                let micros: Vec<f64> = point.one_way[index].iter().map(|time| time.as_micros()).collect();
                json!({ "scheduler": subject.name, "rate_Mbit_s": point.rate(index), "one_way_us": micros })
            };
            let results: Vec<_> = subjects.iter().enumerate().map(rate).collect();
            json!({ "messages": point.messages, "size_B": point.size.0, "results": results })
        };
        let document = json!({
            "schema": "flowcast/rails-bench/1",
            "rails": rails,
            "rounds": self.rounds,
            "points": points.iter().map(rates).collect::<Vec<_>>(),
            "provenance": provenance::of_this_run(),
        });
        println_out!("{document}");
    }
}

/// A guarded subject decides before each exchange; the others run all in a row.
fn run_subject(link: &mut Link, subject: &Subject, wanted: Exchange, guard: &mut Guard) -> Result<Vec<Time>> {
    if subject.chosen != Chosen::Guarded {
        return exchange(link, subject.chosen.course(subject.rails), wanted).map_err(unexpected);
    }
    let mut times = Vec::new();
    for _ in 0..wanted.repetitions {
        let arm = guard.choose();
        let course = subject.chosen.course(arm.rails(subject.rails));
        let took = exchange(link, course, Exchange { repetitions: 1, ..wanted }).map_err(unexpected)?;
        for time in took {
            guard.observe(arm, time, Time::from_micros(1.0));
            times.push(time);
        }
    }
    Ok(times)
}

fn csv(subjects: &[Subject], points: &[Point]) -> String {
    let mut text = String::from("messages,size_B,scheduler,round,one_way_us,rate_Mbit_s\n");
    for point in points {
        for (subject, times) in subjects.iter().zip(&point.one_way) {
            for (time, round) in times.iter().zip(1..) {
                let (messages, size, name) = (point.messages, point.size.0, &subject.name);
                let (micros, rate) = (time.as_micros(), point.megabits(*time));
                let _ = writeln!(text, "{messages},{size},{name},{round},{micros:.3},{rate:.3}");
            }
        }
    }
    text
}

fn print(subjects: &[Subject], points: &[Point]) {
    let names: Vec<String> = subjects.iter().map(|subject| format!(">{}", subject.name)).collect();
    let columns: Vec<&str> = [">N", ">size"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = table(&columns);
    for point in points {
        let rates = (0..subjects.len()).map(|index| format!("{:.2}", point.rate(index)));
        table.add_row([point.messages.to_string(), point.size.to_string()].into_iter().chain(rates));
    }
    println_out!("{table}");
    println_out!("Mbit/s one way, N·size/(T/2), medians.");
}
