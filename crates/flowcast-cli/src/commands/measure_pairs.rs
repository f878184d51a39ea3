//! `flowcast measure pairs`: measures messages between all pairs of nodes, and finds slow nodes and links.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    fit::pairs::{
        self, PairAnalysis, PairOptions, Slow, SlowFinding as Outlier, analyse,
        racks::{Groups, racks, topology},
        samples::{ConcurrentLoad, PairSamples},
        steps::steps,
    },
    model::{
        cluster::{flow::Flow, tournament::rounds},
        network::Network,
        topology::Topology,
    },
    report::pairs_page::{PairMap, html},
    table::{Document, Value, figure, fixed, rows, shown},
    units::{Bytes, Node, Rounded, Time},
};
use flowcast_measure::lab::{Lab, PatternOptions};

use crate::{
    carrying::{Medium, WhereArgs},
    commands::{
        doctor,
        lab::{explained, self_tested},
        samples_file::SamplesFile,
    },
    core_pairs::{CoreList, notes},
    shm_ends::answer_one_way_in,
};
use flowcast_terminal::{
    exit::Finding,
    files::{Output, declare, kind_and_file, read_own_text, read_parsed, write_text},
    growing::GrowingFile,
    output::Format,
    repeating::{Over, RepetitionArgs, RunProgress},
    shares::{probability, share},
};

/// Measure all pairs of nodes and report slow nodes and links
///
/// N nodes are measured in N-1 rounds of disjoint pairs, or in N rounds if N is odd. Each pair sends in one direction, then
/// in the other, and messages of the largest size in both directions at the same time. The analysis divides each time into
/// the usual time and the contributions of sender, receiver and link. Outliers are reported with their probability in a
/// healthy network, and the exit code is then 1.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast measure pairs --lab asymmetric -o pairs.csv --report pairs.html\n  \
                        flowcast measure pairs --launcher 'mpirun -np 32 --hostfile hosts' -o pairs.csv\n  \
                        flowcast measure pairs --over shm -o cores.csv --report cores.html\n  \
                        flowcast measure pairs --show examples/pairs.csv"
)]
pub(crate) struct MeasurePairs {
    /// Output file of the times
    #[arg(short, long, value_name = "FILE.csv", required_unless_present_any = ["show", "answer_in"])]
    output: Option<PathBuf>,
    /// Write a page with a heat map for each size
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Analyse the times in this file instead of measuring
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["output", "lab", "launcher", "sizes"])]
    show: Option<PathBuf>,
    #[command(flatten)]
    place: WhereArgs,
    /// With --over shm: core of each rank, such as 0-3,8 [default: all that may be used]
    #[arg(long, value_name = "CORES")]
    cores: Option<CoreList>,
    /// With --over shm: run the other end of a pair, in memory that the measuring process has created
    #[arg(long, value_name = "PATH", requires = "cores", hide = true)]
    answer_in: Option<PathBuf>,
    /// Message sizes: a small one shows latency, a large one bandwidth
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SIZES",
        default_value = "1B,256KiB"
    )]
    sizes: Vec<Bytes>,
    /// Probability of a false alarm in a healthy network
    #[arg(long, value_name = "PROBABILITY", default_value = "0.01", value_parser = probability)]
    false_alarms: f64,
    /// Report a node or link only if it is at least this much slower than usual
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "10%")]
    threshold: f64,
    /// Write the detected racks into this network file, as `[topology]`
    #[arg(long = "write", value_name = "topology=NET.toml", value_parser = topology_file)]
    topology: Option<PathBuf>,
    /// Continue an interrupted measurement from FILE.csv.partial
    #[arg(long, requires = "output")]
    resume: bool,
    #[command(flatten)]
    repeating: RepetitionArgs,
    /// Skip the check that the lab delivers its rates
    #[arg(long)]
    no_self_test: bool,
    #[command(flatten)]
    format: Format,
}

fn topology_file(text: &str) -> Result<PathBuf, String> {
    kind_and_file(text, &[("topology", ())]).map(|((), path)| path)
}

/// Steps that are measured together, with the name of the round.
type NamedRound = (String, Vec<(ConcurrentLoad, Vec<Flow>)>);

impl MeasurePairs {
    /// Measures or reads times, writes the requested files, and prints the slow nodes and links.
    pub(crate) fn run(self) -> Result<()> {
        if let (Some(memory), Some(cores)) = (&self.answer_in, &self.cores) {
            return answer_one_way_in(memory, cores.single()?);
        }
        self.check_cores()?;
        let outputs = Output::each("-o", &self.output);
        declare(
            self.show
                .iter()
                .map(PathBuf::as_path)
                .chain([Path::new(&self.place.lab)]),
            outputs.chain(Output::each("--report", &self.report)),
        )?;
        if self.threshold < 0.0 {
            bail!(
                "--threshold: found {}, expected a share of at least 0",
                self.threshold
            );
        }
        let samples = match &self.show {
            Some(path) => read_parsed(path, PairSamples::from_csv)?,
            None => {
                let (samples, file) = self.measure()?;
                file.finish_text(&samples.to_csv())?;
                samples
            }
        };
        let report = self.report_of(&samples)?;
        if let Some(path) = &self.topology {
            write_topology(path, report.racks.as_ref(), &samples)?;
        }
        if let Some(path) = &self.report {
            let page = html("Times between all pairs", &report.maps, &report.sentences());
            write_text(path, &page)?;
        }
        self.format.print(&report.document())?;
        let slow: BTreeSet<_> = report.slow.iter().map(|(_, found)| found.slow).collect();
        match slow.len() {
            0 => Ok(()),
            1 => bail!(Finding("one node or link is slow".into())),
            count => bail!(Finding(format!("{count} nodes or links are slow"))),
        }
    }

    fn measure(&self) -> Result<(PairSamples, GrowingFile)> {
        let options = self.repeating.options()?;
        let mut samples = PairSamples::default();
        samples
            .provenance
            .extend(doctor::provenance_of_measurement());
        samples
            .provenance
            .insert("repetitions".into(), self.repeating.describe());
        let file = match &self.place.launcher {
            _ if self.place.over() == Over::Shm => self.between_cores(&mut samples, options)?,
            Some(words) => self.with_launcher(words, &mut samples, &options)?,
            None => self.in_lab(&mut samples, &options)?,
        };
        Ok((samples, file))
    }

    fn in_lab(&self, samples: &mut PairSamples, options: &PatternOptions) -> Result<GrowingFile> {
        let spec = self.place.spec()?;
        samples
            .provenance
            .insert("lab".into(), serde_json::to_string(&spec)?);
        let lab = Lab::up(&spec).map_err(explained)?;
        if !self.no_self_test {
            self_tested(&lab)?;
        }
        let nodes: Vec<Node> = spec.nodes().collect();
        self.carry(
            &mut Medium::in_lab(&lab, self.place.over())?,
            &nodes,
            samples,
            options,
        )
    }

    fn check_cores(&self) -> Result<()> {
        let is_shm = self.place.over() == Over::Shm;
        let is_network = self.place.is_elsewhere() || self.topology.is_some();
        ensure!(
            !is_shm || !is_network,
            "--over shm: found --lab, --launcher or --write, expected none: cores belong to this machine, not to a network"
        );
        ensure!(
            is_shm || self.cores.is_none(),
            "--cores: found a measurement without --over shm, expected --over shm"
        );
        Ok(())
    }

    /// Measures one pair after the other, like `measure p2p --over shm`, because concurrent pairs would share the memory.
    fn between_cores(
        &self,
        samples: &mut PairSamples,
        options: PatternOptions,
    ) -> Result<GrowingFile> {
        let cores = self
            .cores
            .clone()
            .map_or_else(CoreList::usable, Ok)?
            .checked()?;
        samples.provenance.extend(cores.provenance());
        let ranks = cores.ranks();
        // No message is in flight between two repetitions.
        let options = PatternOptions {
            pause: Duration::ZERO,
            ..options
        };
        self.carry(&mut Medium::Cores(cores), &ranks, samples, &options)
    }

    fn rounds(&self, means: &Medium<'_>, nodes: &[Node]) -> Vec<NamedRound> {
        let rounds = rounds(nodes);
        if !matches!(means, Medium::Cores(_)) {
            return rounds
                .iter()
                .enumerate()
                .map(|(at, round): (usize, &Vec<_>)| {
                    (format!("round {}", at + 1), steps(round, &self.sizes))
                })
                .collect();
        }
        // A core copies in and out alternately, so concurrent messages in both directions are not a separate case.
        rounds
            .iter()
            .flatten()
            .map(|pair: &(Node, Node)| {
                let all = steps(&[*pair], &self.sizes)
                    .into_iter()
                    .filter(|(company, _)| *company == ConcurrentLoad::Alone);
                (format!("ranks {} and {}", pair.0, pair.1), all.collect())
            })
            .collect()
    }

    fn with_launcher(
        &self,
        words: &str,
        samples: &mut PairSamples,
        options: &PatternOptions,
    ) -> Result<GrowingFile> {
        let (mut means, hosts) = self.place.between_hosts(words)?;
        samples.provenance.insert("hosts".into(), hosts.join(" "));
        let nodes: Vec<Node> = (0..hosts.len() as u32).map(Node).collect();
        self.carry(&mut means, &nodes, samples, options)
    }

    fn carry(
        &self,
        means: &mut Medium<'_>,
        nodes: &[Node],
        samples: &mut PairSamples,
        options: &PatternOptions,
    ) -> Result<GrowingFile> {
        let mut file = self.begin(samples)?;
        let missing: Vec<_> = self
            .rounds(means, nodes)
            .into_iter()
            .filter(|(_, steps): &NamedRound| {
                let mut flows = steps
                    .iter()
                    .flat_map(|(company, flows)| flows.iter().map(move |flow| (*company, flow)));
                flows.any(|(company, flow)| !samples.has(flow.size, company, flow.src, flow.dst))
            })
            .collect();
        let mut carrying = RunProgress::with_steps(missing.len());
        for (name, steps) in missing {
            let start = Instant::now();
            let all: Vec<Vec<Flow>> = steps.iter().map(|(_, flows)| flows.clone()).collect();
            let run = means.run(&all, options)?;
            let named = steps
                .iter()
                .flat_map(|(company, flows)| flows.iter().map(move |flow| (*company, flow)));
            let mut measured = PairSamples::default();
            for (at, (company, flow)) in named.enumerate() {
                measured.extend(flow.size, company, flow.src, flow.dst, run.durations_of(at));
            }
            file.append(&measured.rows())?;
            samples.add(&measured);
            carrying.report(&name, &run, start);
        }
        Ok(file)
    }

    /// File of the measured rounds. With --resume, it may already contain some.
    fn begin(&self, samples: &mut PairSamples) -> Result<GrowingFile> {
        let target = self.output.as_deref();
        let file = SamplesFile {
            target: target.context("found no --output, expected --output FILE.csv")?,
            resume: self.resume,
            head: samples.head(),
            same: &["lab", "hosts", "cores"],
        };
        let (file, known) = file.open(PairSamples::from_csv)?;
        samples.add(&known);
        Ok(file)
    }

    fn report_of(&self, samples: &PairSamples) -> Result<Report> {
        let options = PairOptions {
            level: self.false_alarms,
            least: self.threshold,
        };
        let racks = racks(samples, self.threshold)?.map(|(_, groups)| groups);
        let notes = notes(&samples.provenance, racks.as_ref());
        let mut report = Report {
            sizes: Vec::new(),
            slow: Vec::new(),
            racks,
            notes,
            maps: Vec::new(),
        };
        for size in samples.sizes() {
            let Some(alone) = samples.typical(size, ConcurrentLoad::Alone) else {
                continue;
            };
            let both = samples.typical(size, ConcurrentLoad::Both);
            let analysis = analyse(&alone, both.as_ref(), options)?;
            report.add(size, &analysis, alone, both);
        }
        Ok(report)
    }
}

/// Writes racks as a topology into a file whose other values are kept.
fn write_topology(path: &Path, racks: Option<&Groups>, samples: &PairSamples) -> Result<()> {
    let racks = racks
        .context("--write: found no racks, expected nodes between which messages take longer")?;
    let topology = topology(racks, samples);
    let topology = topology
        .context("--write: found other racks, expected equal blocks of consecutive nodes")?;
    let text = with_topology(&read_own_text(path)?, topology);
    write_text(path, &text.with_context(|| path.display().to_string())?)
}

fn with_topology(text: &str, topology: Topology) -> Result<String> {
    let mut network = Network::from_toml(text, &[])?;
    network.topology = Some(topology);
    network.provenance.insert(
        "racks".into(),
        "flowcast measure pairs --write topology".into(),
    );
    let text = network.to_toml();
    Network::from_toml(&text, &[])?;
    Ok(text)
}

struct Report {
    /// Number of pairs and usual time, by size.
    sizes: Vec<(Bytes, usize, Time)>,
    slow: Vec<(Bytes, Outlier)>,
    racks: Option<Groups>,
    notes: Vec<String>,
    maps: Vec<PairMap>,
}

/// Kind of a slow part, and its nodes.
fn place(slow: Slow) -> (&'static str, Vec<Node>) {
    match slow {
        Slow::Sender(node) => ("sender", vec![node]),
        Slow::Receiver(node) => ("receiver", vec![node]),
        Slow::HalfDuplex(node) => ("half-duplex port", vec![node]),
        Slow::Link(from, to) => ("link", vec![from, to]),
    }
}

fn joined(nodes: &[Node], with: &str) -> String {
    let names: Vec<String> = nodes.iter().map(Node::to_string).collect();
    names.join(with)
}

fn small(probability: f64) -> String {
    if probability < 1e-6 {
        "< 1e-6".to_owned()
    } else {
        format!("{probability:.1e}")
    }
}

const NONE: &str = "No node and no link is slow.";

impl Report {
    fn add(
        &mut self,
        size: Bytes,
        analysis: &PairAnalysis,
        alone: pairs::PairTimes,
        both: Option<pairs::PairTimes>,
    ) {
        self.sizes.push((size, alone.len(), analysis.usual));
        let found = analysis.findings.iter().cloned();
        self.slow.extend(found.map(|finding| (size, finding)));
        let maps = [
            ("alone", Some(alone)),
            ("both directions at the same time", both),
        ];
        self.maps
            .extend(maps.into_iter().filter_map(|(company, times)| {
                Some(PairMap {
                    size,
                    company: company.to_owned(),
                    usual: analysis.usual,
                    times: times?,
                })
            }));
    }

    fn sentences(&self) -> Vec<String> {
        let none = self.slow.is_empty().then(|| NONE.to_owned());
        self.slow
            .iter()
            .map(|(size, finding): &(Bytes, Outlier)| {
                let (kind, nodes) = place(finding.slow);
                let (nodes, p) = (joined(&nodes, " > "), small(finding.probability));
                let times = finding.times;
                format!(
                    "{kind} {nodes}: {times:.2} times the usual time at {} (p {p})",
                    Rounded(*size)
                )
            })
            .chain(none)
            .chain(self.notes.iter().cloned())
            .collect()
    }

    fn document(&self) -> Document {
        let sizes = rows(&self.sizes)
            .column("size_B", "size", |(size, ..)| *size)
            .column("pairs", "pairs", |(_, pairs, _)| *pairs)
            .column("usual_s", "usual time", |(.., usual)| *usual);
        let slow = rows(&self.slow)
            .column("kind", "slow", |(_, found)| place(found.slow).0)
            .field("nodes", |(_, found)| place(found.slow).1)
            .cell("node", |(_, found)| {
                figure(joined(&place(found.slow).1, " > "))
            })
            .column("size_B", "size", |(size, _)| *size)
            .column("times", "ratio", |(_, found)| fixed(found.times, 2))
            .column("p", "p", |(_, found)| {
                shown(found.probability, small(found.probability))
            });
        let kind = if self.notes.is_empty() {
            "Racks"
        } else {
            "Groups"
        };
        let racks = self.racks.as_ref().map(|Groups { nodes, times }| {
            let racks: Vec<String> = nodes.iter().map(|group| joined(group, " ")).collect();
            let racks = racks.join(" | ");
            format!("{kind}: {racks}; messages between them take {times:.2} times as long.")
        });
        let nodes = self.racks.iter().flat_map(|racks| &racks.nodes);
        Document::new("pair-measurement")
            .table("sizes", sizes)
            .field("racks", nodes.collect::<Value>())
            .lines(racks)
            .noted(&self.notes)
            .lines(self.slow.is_empty().then_some(NONE))
            .table("slow", slow)
    }
}
