//! `flowcast collectives`: predicted times of collective operations on a measured machine, and the best algorithms.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use flowcast::{
    model::{algorithm::Base, measured_collectives::MeasuredCollectives, network::Network},
    report::chart_page::{Picture, chart_page},
    statements::{marked_name, of_networks},
    table::{Document, figure, percent, rows},
    units::{Bytes, CollectiveOp},
};
use flowcast_place::rank_place::RankPlace;
use flowcast_tuning::{
    allocations::{Allocations, on_ranks},
    cases::{CaseRow, cases},
    choose::{AlgorithmChoice, ChoiceQuestion, choose, library_rules},
    hosts::host_places,
    library_rules::RuleForm,
    network::{first_places, group_links},
    predict::{CollectivePrediction, predict_collectives},
    step_times::PlacedCase,
};

use super::hpl::read_cases;
use flowcast_terminal::{
    files::{Batch, Output, declare, kind_and_file, read_parsed, read_text, write_text},
    host_args::HostArgs,
    network_args,
    output::{Format, print_notes},
    print_out,
    progress::Progress,
    provenance, say,
    shares::probability,
    trace_args::threads,
};

subcommands!(
    /// Predict collectives on a measured machine and choose algorithms
    Collectives {
        Predict(Predict),
        Choose(Choose),
    }
);

/// Predict the times of collective operations, each with an interval
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast collectives predict cases.csv --network lumi.toml --allocations nodes.csv -o predicted.csv"
)]
pub(crate) struct Predict {
    /// Cases of one machine, with the columns system,run,nodes,ranks_per_node,collective,library,version,algorithm,bytes and
    /// any others
    cases: PathBuf,
    /// Network file of `flowcast fit --collectives`
    #[arg(short, long, value_name = "NET")]
    network: String,
    /// Places of the ranks, with the columns system,run,nodes,rank,node,group,switch
    #[arg(long, value_name = "FILE.csv")]
    allocations: PathBuf,
    /// Output file: the rows with predicted_ns,low_ns,high_ns added [default: standard output]
    #[arg(short, long, value_name = "FILE.csv")]
    output: Option<PathBuf>,
    /// Probability that the interval contains the median of a run
    #[arg(long, value_name = "PROBABILITY", default_value = "0.9", value_parser = probability)]
    level: f64,
}

impl Predict {
    fn run(self) -> Result<()> {
        let network = PathBuf::from(&self.network);
        let inputs = [&self.cases, &self.allocations, &network].map(PathBuf::as_path);
        declare(inputs, Output::each("-o", &self.output))?;
        let network = network_args::load(&self.network, &[])?;
        let measured = measured(&network, &self.network)?;
        print_notes(of_networks([&network]));
        let (table, rows) = read_cases(&self.cases, cases)?;
        let allocations = read_parsed(&self.allocations, Allocations::from_csv)?;
        let group_links = group_links(&network)?;
        let placed = placed(&rows, &allocations, group_links, &self.cases);
        let known: Vec<PlacedCase> = placed.iter().flatten().cloned().collect();
        let progress = Progress::without_end(format!("{} operations", known.len()));
        let mut predictions =
            predict_collectives(measured, &known, self.level, threads()).into_iter();
        drop(progress);
        let columns: Vec<[String; 3]> = placed
            .iter()
            .map(|placed| {
                placed
                    .as_ref()
                    .and_then(|_| predictions.next())
                    .map_or_else(Default::default, nanoseconds)
            })
            .collect();
        let text = table.with_columns(["predicted_ns", "low_ns", "high_ns"], &columns);
        match &self.output {
            None => print_out!("{text}"),
            Some(output) => {
                write_text(output, &text)?;
                say!(
                    "flowcast: predicted {} of {} operations: {}",
                    known.len(),
                    rows.len(),
                    output.display()
                );
            }
        }
        Ok(())
    }
}

/// Places of the ranks of each case. Prints a note for each case that cannot be predicted.
fn placed(
    rows: &[CaseRow],
    allocations: &Allocations,
    group_links: f64,
    file: &Path,
) -> Vec<Option<PlacedCase>> {
    rows.iter()
        .map(|row| match placed_case(row, allocations, group_links) {
            Ok(placed) => Some(placed),
            Err(why) => {
                say!(
                    "flowcast: note: {}:{}: not predicted: {why}",
                    file.display(),
                    row.line
                );
                None
            }
        })
        .collect()
}

fn placed_case(
    row: &CaseRow,
    allocations: &Allocations,
    group_links: f64,
) -> Result<PlacedCase, String> {
    let case = row.case.clone().map_err(|error| error.to_string())?;
    case.check()
        .map_err(|error| format!("found more messages, expected {error}"))?;
    let places = allocations.places(&case.job, case.ranks_per_node);
    let places = places.ok_or_else(|| {
        format!(
            "found no allocation of the run `{}` on {} nodes",
            case.job.run, case.job.nodes
        )
    })?;
    Ok(PlacedCase {
        places: places.into(),
        group_links,
        case,
    })
}

fn nanoseconds(prediction: CollectivePrediction) -> [String; 3] {
    let CollectivePrediction {
        predicted,
        low,
        high,
    } = prediction;
    [predicted, low, high].map(|time| format!("{:.0}", time.as_nanos()))
}

fn measured<'a>(network: &'a Network, name: &str) -> Result<&'a MeasuredCollectives> {
    let measured = network.collectives.measured.as_deref();
    measured.with_context(|| {
        format!("{name}: found no [collectives.measured], expected a file written by `flowcast fit --collectives`")
    })
}

/// Choose algorithms by operation, number of ranks and size
///
/// If a gain may be noise, the library's own decision is kept.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast collectives choose --network lumi.toml --collective allreduce --ranks 512 --sizes 1KiB,1MiB\n  \
                        flowcast collectives choose --network mn5.toml --ranks 128,1024 --sizes 1KiB,64KiB,1MiB,64MiB \
                        --write openmpi=rules.conf\n  \
                        flowcast collectives choose --network lumi.toml --ranks 128 --sizes 1MiB --hosts x1305c6s[0-7]b0n[0-1]"
)]
pub(crate) struct Choose {
    /// Network file of `flowcast fit --collectives`
    #[arg(short, long, value_name = "NET")]
    network: String,
    /// Operations, such as allreduce [default: those that were measured on the machine]
    #[arg(long, value_name = "OPERATION", value_delimiter = ',', value_parser = operation)]
    collective: Vec<CollectiveOp>,
    /// Number of ranks of the communicator, 2 to 65536; algorithms that send more than 33554432 messages are not compared
    #[arg(long, required = true, value_name = "COUNT", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=65536))]
    ranks: Vec<u32>,
    /// Number of nodes for each number of ranks, at most 65536 [default: as many as ranks]
    #[arg(long, value_name = "COUNT", value_delimiter = ',', conflicts_with = "hosts", value_parser = clap::value_parser!(u32).range(1..=65536))]
    nodes: Vec<u32>,
    #[command(flatten)]
    hosts: HostArgs,
    /// Buffer sizes: size of the vector, or of all blocks together
    #[arg(long, required = true, value_name = "SIZE", value_delimiter = ',')]
    sizes: Vec<Bytes>,
    /// Write a library's selection file: openmpi-VERSION=FILE with 4.1, 5.0 or 6.0, or mpich-VERSION=FILE with 4.0, 4.1,
    /// 4.2, 4.3 or 5.0; openmpi is openmpi-5.0, mpich is mpich-4.0
    #[arg(long, value_name = "LIBRARY=FILE", value_parser = rule_file)]
    write: Vec<(RuleForm, PathBuf)>,
    /// With --write mpich: MPICH selection for calls to which no rule applies, such as MPICH's
    /// maint/tuning/coll/mpir/generic.json, instead of Flowcast's own
    #[arg(long, value_name = "FILE.json")]
    selection: Option<PathBuf>,
    /// Write a heat map of the algorithms by ranks and sizes
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Required probability that a gain is real
    #[arg(long, value_name = "PROBABILITY", default_value = "0.9", value_parser = probability)]
    level: f64,
    #[command(flatten)]
    format: Format,
}

fn rule_file(text: &str) -> Result<(RuleForm, PathBuf), String> {
    kind_and_file(text, &RuleForm::NAMES)
}

fn operation(text: &str) -> Result<CollectiveOp, String> {
    CollectiveOp::from_function(text)
        .ok_or_else(|| format!("found `{text}`, expected an operation such as allreduce"))
}

impl Choose {
    fn run(self) -> Result<()> {
        let rules = self.write.iter();
        let rules = rules.map(|(_, path)| Output::new("--write", path));
        let outputs = rules.chain(Output::each("--report", &self.report));
        let network_path = PathBuf::from(&self.network);
        let host_file = self.hosts.hosts.as_deref().map(Path::new);
        let host_file = host_file.filter(|path| path.is_file());
        let inputs = [
            Some(network_path.as_path()),
            host_file,
            self.selection.as_deref(),
        ];
        declare(inputs.into_iter().flatten(), outputs)?;
        let network = network_args::load(&self.network, &[])?;
        let measured = measured(&network, &self.network)?;
        let hosts = self.host_places()?;
        let library = network
            .collectives
            .algorithms
            .as_ref()
            .map_or(Base::default(), |table| table.base);
        let mut notes = of_networks([&network]);
        notes.extend((hosts.is_empty() && network.topology.is_none()).then(|| {
            format!(
                "{} has no [topology]: assuming one switch per node, all in one group",
                network.name
            )
        }));
        let choices = self.choices(&network, measured, library, &hosts)?;
        notes.extend(choices.iter().filter_map(left_out));
        notes.extend(self.hierarchical(&choices));
        let mut batch = Batch::new();
        for (form, path) in &self.write {
            self.refuse_other_library(form.library(), library)?;
            let rules = library_rules(&choices, self.level);
            let selection = self.selection.as_deref().map(read_text).transpose()?;
            batch.write_text(path, &form.write(&rules, selection.as_deref())?)?;
        }
        let document = document(&choices, self.level)
            .titled(format!("{}: best algorithms", marked_name(&network)))
            .noted(notes);
        if let Some(output) = &self.report {
            let page = chart_page(&document, Picture::Algorithms, &provenance::of_this_run())?;
            batch.write_text(output, &page)?;
        }
        batch.commit()?;
        self.format.print(&document)
    }

    fn choices(
        &self,
        network: &Network,
        measured: &MeasuredCollectives,
        library: Base,
        hosts: &[RankPlace],
    ) -> Result<Vec<AlgorithmChoice>> {
        ensure!(
            self.nodes.is_empty() || self.nodes.len() == self.ranks.len(),
            "--nodes: found {} numbers, expected {}, one for each number of --ranks",
            self.nodes.len(),
            self.ranks.len()
        );
        let mut sizes = self.sizes.clone();
        sizes.sort();
        sizes.dedup();
        let mut choices = Vec::new();
        for op in self.operations(measured) {
            for (at, ranks) in self.ranks.iter().enumerate() {
                let (option, nodes) = match hosts {
                    [] => ("--nodes", self.nodes.get(at).copied().unwrap_or(*ranks)),
                    hosts => ("--hosts", hosts.len() as u32),
                };
                ensure!(
                    ranks.is_multiple_of(nodes),
                    "{option}: found {nodes} nodes for {ranks} ranks, expected a divisor of the number of ranks"
                );
                let places = match hosts {
                    [] => first_places(network, nodes)?,
                    hosts => hosts.to_vec(),
                };
                let question = ChoiceQuestion {
                    op,
                    library,
                    places: on_ranks(&places, ranks / nodes),
                    ranks_per_node: ranks / nodes,
                    sizes: sizes.clone(),
                    group_links: group_links(network)?,
                };
                choices.extend(choose(measured, &question, self.level, threads())?);
            }
        }
        Ok(choices)
    }

    /// Places of the nodes of `--hosts`; empty without the option.
    fn host_places(&self) -> Result<Vec<RankPlace>> {
        let job = self.hosts.job()?;
        if let Some(slots) = job.slots.first() {
            say!(
                "flowcast: note: --hosts: slots such as {slots} are ignored: --ranks are divided equally among the hosts"
            );
        }
        host_places(&job.hosts, self.hosts.host_blocks.as_ref()).context("--hosts")
    }

    /// Note on Open MPI's component `han`, which decides before the rules if nodes have several ranks.
    fn hierarchical(&self, choices: &[AlgorithmChoice]) -> Option<String> {
        let mut forms = self.write.iter().map(|(form, _)| form);
        let has_han = forms.any(|form| matches!(form, RuleForm::OpenMpi50 | RuleForm::OpenMpi60));
        let mut choices = choices.iter();
        let is_shared = choices.any(|choice| choice.nodes > 1 && choice.nodes < choice.ranks);
        (has_han && is_shared).then(|| {
            "Open MPI 5.0 and 6.0 follow the rules for several ranks on each of several nodes only with --mca coll ^han"
                .to_owned()
        })
    }

    fn operations(&self, measured: &MeasuredCollectives) -> Vec<CollectiveOp> {
        if !self.collective.is_empty() {
            return self.collective.clone();
        }
        let here = measured
            .series
            .iter()
            .filter(|series| series.system == measured.system);
        let mut operations: Vec<CollectiveOp> = here.map(|series| series.operation).collect();
        operations.sort();
        operations.dedup();
        operations
    }

    fn refuse_other_library(&self, asked: Base, library: Base) -> Result<()> {
        let expected = match library {
            Base::OpenMpi => "openmpi",
            _ => "mpich",
        };
        ensure!(
            (asked == Base::OpenMpi) == (library == Base::OpenMpi),
            "--write: found {}, expected {expected}, the library of {}",
            asked.name(),
            self.network
        );
        Ok(())
    }
}

/// Note on algorithms that are not compared, if there are any.
fn left_out(choice: &AlgorithmChoice) -> Option<String> {
    (!choice.left_out.is_empty()).then(|| {
        format!(
            "{} on {} ranks, {}: not compared because of too many messages: {}",
            choice.op.name(),
            choice.ranks,
            choice.bytes,
            choice.left_out.join(", ")
        )
    })
}

fn document(choices: &[AlgorithmChoice], level: f64) -> Document {
    let advice = rows(choices)
        .column("operation", "operation", |choice| choice.op.name())
        .column("ranks", "ranks", |choice| choice.ranks)
        .column("nodes", "nodes", |choice| choice.nodes)
        .column("bytes", "size", |choice| choice.bytes)
        .column("best", "best", |choice| choice.advised(level).name.clone())
        .field("algorithm", |choice| {
            choice.advised(level).choice.to_string()
        })
        .column("predicted", "time", |choice| {
            choice.advised(level).time.predicted
        })
        .field("low", |choice| choice.advised(level).time.low)
        .field("high", |choice| choice.advised(level).time.high)
        .field("fastest", |choice| choice.algorithms[0].name.clone())
        .field("default", |choice| choice.default.choice.to_string())
        .field("gain", |choice| choice.gain)
        .field("sure", |choice| choice.sure)
        .cell("gain", |choice| match choice.is_no_difference(level) {
            true => figure("none"),
            false => percent(choice.gain, 0),
        })
        .cell("probability", |choice| percent(choice.sure, 0));
    let gains = choices
        .iter()
        .filter(|choice| !choice.is_no_difference(level))
        .count();
    Document::new("collective-choice")
        .table("choices", advice)
        .line(format!(
            "in {gains} of {} cases, another algorithm is faster than the library's default by more than the noise",
            choices.len()
        ))
}
