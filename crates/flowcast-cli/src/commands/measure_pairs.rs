//! `flowcast measure pairs`: messages between all pairs of nodes, and which node or link is slow.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::fit::pairs::samples::{Company, PairSamples};
use flowcast::fit::pairs::{self, PairAnalysis, PairOptions, Slow, analyse};
use flowcast::model::cluster::flow::Flow;
use flowcast::model::cluster::tournament::rounds;
use flowcast::report::pairs_page::{PairMap, html};
use flowcast::units::{Bytes, Node, Rounded, Time};
use flowcast_lab::{Lab, PatternOptions};
use serde::Serialize;

use crate::carrying::{Means, WhereArgs};
use crate::commands::lab::{explained, self_tested};
use crate::exit::Finding;
use crate::files::{Batch, Output, declare, read_text};
use crate::output::{Format, Seconds, Shown, println_out, show};
use crate::provenance;
use crate::repeating::{Carrying, Repeating};
use crate::tables::table;

/// Measure messages between all pairs of nodes, and name the slow node or link
///
/// N nodes meet in N-1 rounds of disjoint pairs. Each pair sends one way, then the other, and the largest size in both
/// directions at once. Times are explained by what sender, receiver and link add to the usual time; what stands out of
/// its kind is named with its probability in a healthy network, and the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast measure pairs --lab asymmetric -o pairs.csv --report pairs.html\n  \
                        flowcast measure pairs --launcher 'mpirun -np 32 --hostfile hosts' -o pairs.csv\n  \
                        flowcast measure pairs --again examples/pairs.csv")]
pub(crate) struct MeasurePairs {
    /// Write the times here
    #[arg(short, long, value_name = "FILE.csv", required_unless_present = "again", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Write a page with a heat map of each size
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    report: Option<PathBuf>,
    /// Measure nothing and look at times that were measured before
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["output", "lab", "launcher", "sizes"], help_heading = "Where")]
    again: Option<PathBuf>,
    #[command(flatten)]
    place: WhereArgs,
    /// Sizes of messages: a small one shows latency, a large one bandwidth
    #[arg(long, value_delimiter = ',', value_name = "SIZES", default_value = "1B,256KiB")]
    sizes: Vec<Bytes>,
    /// Probability of an alarm in a healthy network
    #[arg(long, value_name = "SHARE", default_value_t = PairOptions::default().level)]
    level: f64,
    /// By how much longer something takes at least that is called slow
    #[arg(long, value_name = "SHARE", default_value_t = PairOptions::default().least)]
    least: f64,
    #[command(flatten)]
    repeating: Repeating,
    /// Do not check that the lab delivers its rates
    #[arg(long, help_heading = "Run")]
    no_self_test: bool,
    #[command(flatten)]
    format: Format,
}

impl MeasurePairs {
    /// Measures or reads, writes what was asked for, and prints what is slow.
    pub(crate) fn run(self) -> Result<()> {
        let outputs = self.output.iter().map(|path| Output::new("-o", path));
        let pages = self.report.iter().map(|path| Output::new("--report", path));
        declare(self.again.iter().map(PathBuf::as_path).chain([Path::new(&self.place.lab)]), outputs.chain(pages))?;
        if !(self.level > 0.0 && self.level < 1.0 && self.least >= 0.0) {
            bail!(
                "--level and --least: found {} and {}, expected a share between 0 and 1 and one from 0 on",
                self.level,
                self.least
            );
        }
        let samples = match &self.again {
            Some(path) => PairSamples::from_csv(&read_text(path)?).with_context(|| path.display().to_string())?,
            None => self.measure()?,
        };
        let report = self.report_of(&samples)?;
        let mut batch = Batch::new();
        if let Some(path) = &self.output {
            batch.write(path, |out| Ok(out.write_all(samples.to_csv().as_bytes())?))?;
        }
        if let Some(path) = &self.report {
            let page = html("Times between all pairs", &report.maps, &report.sentences());
            batch.write(path, |out| Ok(out.write_all(page.as_bytes())?))?;
        }
        batch.commit()?;
        show(&report, self.format)?;
        match report.slow.len() {
            0 => Ok(()),
            count => Err(Finding(format!("{count} nodes or links are slow")).into()),
        }
    }

    fn measure(&self) -> Result<PairSamples> {
        let options = self.repeating.options()?;
        let mut samples = PairSamples::default();
        samples.provenance.extend(provenance::of_this_measurement());
        samples.provenance.insert("repetitions".into(), self.repeating.describe());
        match &self.place.launcher {
            Some(words) => self.with_launcher(words, &mut samples, &options)?,
            None => self.in_lab(&mut samples, &options)?,
        }
        Ok(samples)
    }

    fn in_lab(&self, samples: &mut PairSamples, options: &PatternOptions) -> Result<()> {
        let spec = self.place.spec()?;
        samples.provenance.insert("lab".into(), serde_json::to_string(&spec)?);
        let lab = Lab::up(&spec).map_err(explained)?;
        if !self.no_self_test {
            self_tested(&lab)?;
        }
        let nodes: Vec<Node> = spec.nodes().collect();
        self.carry(&mut Means::in_lab(&lab, self.place.over())?, &nodes, samples, options)
    }

    fn with_launcher(&self, words: &str, samples: &mut PairSamples, options: &PatternOptions) -> Result<()> {
        let (mut means, hosts) = self.place.between_hosts(words)?;
        samples.provenance.insert("hosts".into(), hosts.join(" "));
        let nodes: Vec<Node> = (0..hosts.len() as u32).map(Node).collect();
        self.carry(&mut means, &nodes, samples, options)
    }

    fn carry(
        &self,
        means: &mut Means<'_>,
        nodes: &[Node],
        samples: &mut PairSamples,
        options: &PatternOptions,
    ) -> Result<()> {
        let largest = self.sizes.iter().max().copied();
        let rounds = rounds(nodes);
        let mut carrying = Carrying::of(rounds.len());
        for (number, round) in rounds.iter().enumerate() {
            let start = Instant::now();
            let mut steps: Vec<(Company, Vec<Flow>)> = Vec::new();
            for size in &self.sizes {
                let back: Vec<(Node, Node)> = round.iter().map(|(one, other)| (*other, *one)).collect();
                steps.push((Company::Alone, flows(round, *size)));
                steps.push((Company::Alone, flows(&back, *size)));
                if Some(*size) == largest {
                    steps.push((Company::Both, flows(&[&round[..], &back].concat(), *size)));
                }
            }
            let all: Vec<Vec<Flow>> = steps.iter().map(|(_, flows)| flows.clone()).collect();
            let run = means.run(&all, options)?;
            let named = steps.iter().flat_map(|(company, flows)| flows.iter().map(move |flow| (*company, flow)));
            for (at, (company, flow)) in named.enumerate() {
                samples.extend((flow.size, company), (flow.src, flow.dst), run.durations_of(at));
            }
            carrying.report(&format!("round {}", number + 1), &run, start);
        }
        Ok(())
    }

    fn report_of(&self, samples: &PairSamples) -> Result<Report> {
        let options = PairOptions { level: self.level, least: self.least };
        let mut report = Report { sizes: Vec::new(), slow: Vec::new(), maps: Vec::new() };
        for size in samples.sizes() {
            let Some(alone) = samples.medians(size, Company::Alone) else { continue };
            let both = samples.medians(size, Company::Both);
            let analysis = analyse(&alone, both.as_ref(), options)?;
            report.add(size, &analysis, alone, both);
        }
        Ok(report)
    }
}

fn flows(pairs: &[(Node, Node)], size: Bytes) -> Vec<Flow> {
    let flow = |(id, (src, dst)): (u32, &(Node, Node))| Flow { id, src: *src, dst: *dst, size, start: Time::ZERO };
    (1..).zip(pairs).map(flow).collect()
}

#[derive(Serialize)]
struct Report {
    sizes: Vec<SizeReport>,
    slow: Vec<SlowReport>,
    #[serde(skip)]
    maps: Vec<PairMap>,
}

#[allow(non_snake_case, reason = "the name ends in the unit")]
#[derive(Serialize)]
struct SizeReport {
    size_B: u64,
    pairs: usize,
    usual_s: Seconds,
}

#[allow(non_snake_case, reason = "the name ends in the unit")]
#[derive(Serialize)]
struct SlowReport {
    size_B: u64,
    kind: &'static str,
    nodes: Vec<u32>,
    times: f64,
    p: f64,
}

impl Report {
    fn add(&mut self, size: Bytes, analysis: &PairAnalysis, alone: pairs::PairTimes, both: Option<pairs::PairTimes>) {
        self.sizes.push(SizeReport { size_B: size.0, pairs: alone.len(), usual_s: Seconds(analysis.usual) });
        self.slow.extend(analysis.findings.iter().map(|finding| {
            let (kind, nodes) = match finding.slow {
                Slow::Sender(node) => ("sender", vec![node.0]),
                Slow::Receiver(node) => ("receiver", vec![node.0]),
                Slow::HalfDuplex(node) => ("half-duplex port", vec![node.0]),
                Slow::Link(from, to) => ("link", vec![from.0, to.0]),
            };
            SlowReport { size_B: size.0, kind, nodes, times: finding.times, p: finding.probability }
        }));
        let map = |company: &str, times: BTreeMap<(Node, Node), Time>| PairMap {
            size,
            company: company.to_owned(),
            usual: analysis.usual,
            times,
        };
        self.maps.push(map("alone", alone));
        self.maps.extend(both.map(|both| map("both directions at once", both)));
    }

    fn sentences(&self) -> Vec<String> {
        let sentence = |slow: &SlowReport| {
            let (place, times, size) = (slow.place(), slow.times, Bytes(slow.size_B));
            format!("{} {place}: {times:.2} times as long as usual with {size} (p {})", slow.kind, small(slow.p))
        };
        self.slow.iter().map(sentence).collect()
    }
}

impl SlowReport {
    fn place(&self) -> String {
        self.nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(" > ")
    }
}

fn small(probability: f64) -> String {
    if probability < 1e-6 { "< 1e-6".to_owned() } else { format!("{probability:.1e}") }
}

impl Shown for Report {
    const SCHEMA: &'static str = "flowcast/pair-measurement/1";

    fn print(&self) {
        let mut usual = table(&[">size", ">pairs", ">usual time"]);
        for size in &self.sizes {
            usual.add_row([
                Bytes(size.size_B).to_string(),
                size.pairs.to_string(),
                Rounded(size.usual_s.0).to_string(),
            ]);
        }
        println_out!("{usual}");
        if self.slow.is_empty() {
            println_out!("No node and no link is slow.");
            return;
        }
        let mut slow = table(&["slow", ">node", ">size", ">times as long", ">p"]);
        for one in &self.slow {
            let size = Bytes(one.size_B).to_string();
            slow.add_row([one.kind.to_owned(), one.place(), size, format!("{:.2}", one.times), small(one.p)]);
        }
        println_out!("{slow}");
    }
}
