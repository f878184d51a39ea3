//! `flowcast fit`: fits a network to samples. This module fits round trips; [`super::fit_conflicts`] fits conflicts.

pub(crate) mod import;
pub(crate) mod inputs;
mod regions;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::{
    calibrate::{
        conflict_samples::ConflictSamples,
        conflicts::{self, ConflictFitOptions},
    },
    fit::{
        loggp::{FitOptions, LineMethod, LogGpFit, SizeChoice, fit_loggp, interval},
        samples::PrttSamples,
        zoo::compare::CompareOptions,
    },
    model::network::{Network, Progress},
    samples_page::{parameter_table, samples_page},
    statements::of_runs,
    table::Document,
    units::Bytes,
};

use super::{
    fit_calls::{CallArgs, FitCalls},
    fit_collectives::{CollectiveArgs, FitCollectives},
    fit_conflicts,
    fit_models::{self, ModelInputs, Models},
};
use flowcast_terminal::{
    files::{Batch, Output, declare, write_text},
    network_args,
    option_checks::{Kinds, refuse_others},
    output::Format,
    provenance,
    shares::{count, probability, seed},
};
use import::ImportArgs;
use inputs::{FitInput, FitInputKind, one_kind};

/// Number of bootstrap replicates for each model in a comparison of all models.
const MODEL_REPLICATES: usize = 100;

/// Over TCP, Open MPI and MPICH move messages only inside MPI calls (`docs/evidence/programs.md`).
const OVER_TCP: Progress = Progress::InCalls;

/// Fit the parameters of a network to measured samples
///
/// Each point is represented by the median of its samples. g and G come from a line through the times between messages sent
/// in a row, without the sizes at which the overhead hides the gap. o comes from messages with computation between them, L
/// from plain round trips. Conflicts give rates, flow cuts, alpha and kappa, and the model that explains random patterns
/// best. Intervals are bootstrap percentiles.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast measure p2p -o samples.csv && flowcast fit samples.csv -o mine.toml\n  \
                        flowcast fit round-trips.csv --json\n  \
                        flowcast measure conflicts -o conflicts.csv && flowcast fit conflicts.csv -o mine.toml\n  \
                        flowcast fit one.rec two.rec --rendezvous-from 64KiB -o cluster.toml\n  \
                        flowcast fit one.rec two.rec --network lab.toml -o cluster.toml\n  \
                        flowcast fit examples/taurus-calls.csv -o taurus.toml\n  \
                        flowcast fit --collectives measured.csv --allocations nodes.csv --system lumi -o lumi.toml\n  \
                        flowcast fit --model all examples/gige-samples.csv --report models.html\n  \
                        flowcast fit --model all examples/pair-round-trips.csv examples/pairs.csv"
)]
pub(crate) struct Fit {
    /// Samples of `flowcast measure`; round trips from other sources, with the columns n,d_us,size_B,prtt_us; medians of MPI
    /// calls by size, with the columns cluster,experiment,call,bytes,median_ns and any others; recordings of
    /// micro-benchmarks with a region for each operation and size; or outputs of osu_latency and osu_bw, IMB PingPong,
    /// SKaMPI's Pingpong, ReproMPI's Send_Recv, NetPIPE, Netgauge's one_one, nccl-tests' sendrecv_perf, or perftest's
    /// ib_send_lat or ib_write_lat. The content determines the kind
    #[arg(required_unless_present_any = ["collectives", "named_inputs"], value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// Inputs; their content determines the kind, not the name of this option
    #[arg(long = "prtt", alias = "calls", num_args = 1.., hide = true, value_name = "FILE")]
    named_inputs: Vec<PathBuf>,
    #[command(flatten)]
    collectives: CollectiveArgs,
    #[command(flatten)]
    calls: CallArgs,
    #[command(flatten)]
    import: ImportArgs,
    /// Fit all models of messages to round trips and report which one explains the network best. Patterns of `flowcast
    /// measure pairs` and `flowcast measure conflicts` among the inputs are fitted too, and whole patterns are left out in
    /// turn
    #[arg(long, value_name = "MODELS", conflicts_with_all = ["output", "all_sizes", "robust"])]
    model: Option<Models>,
    /// Recordings: rendezvous threshold of the MPI library; messages of at least this size wait for their receiver
    #[arg(long, value_name = "SIZE")]
    rendezvous_from: Option<Bytes>,
    /// Output file: the network; with --predict, the predictions, and the network in a second -o that ends in .toml
    #[arg(short, long, value_name = "FILE.toml")]
    output: Vec<PathBuf>,
    /// Collectives: network with the topology of the machine. Calls: network with the properties that calls do not show:
    /// nodes, communication inside them, switches. Recordings: known properties of the network, as printed by `flowcast lab
    /// network LAB`; wire rates and sharing parameters are copied, and with wire rates the latency of packets is fitted too,
    /// with the collective algorithms of Open MPI
    #[arg(short, long, value_name = "NET")]
    network: Option<String>,
    /// Conflicts: bytes that each flow kept in flight, as `ss` shows them (snd_wnd); known for a lab
    #[arg(long, value_name = "SIZE")]
    window: Option<Bytes>,
    /// Round trips: write a page that compares the models (with --model), or a page of the samples with their distributions,
    /// intervals and environment
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Name of the network [default: the output file's name, or "measured"]
    #[arg(long)]
    name: Option<String>,
    /// Fit g and G to all sizes, including those at which the overhead hides the gap
    #[arg(long)]
    all_sizes: bool,
    /// Use the Theil-Sen line, which is robust against outliers, instead of least squares
    #[arg(long)]
    robust: bool,
    #[arg(long, value_name = "COUNT", help = replicates_help(), value_parser = count::<usize>(..=1_000_000))]
    replicates: Option<usize>,
    /// Confidence level of the intervals
    #[arg(long, value_name = "PROBABILITY", default_value = "0.95", value_parser = probability)]
    level: f64,
    /// Seed of the bootstrap, at most 2^53
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    #[command(flatten)]
    format: Format,
}

fn replicates_help() -> String {
    format!(
        "Number of bootstrap replicates, at most 1000000 [default: {}, of conflicts {}, with --model {MODEL_REPLICATES}]",
        FitOptions::default().replicates,
        ConflictFitOptions::default().replicates
    )
}

impl Fit {
    /// Fits, writes the network file if requested, and prints the parameters.
    pub(crate) fn run(mut self) -> Result<()> {
        self.inputs.append(&mut self.named_inputs);
        let network = self.network.as_ref().map(PathBuf::from);
        let inputs = self
            .inputs
            .iter()
            .chain(&self.collectives.collectives)
            .chain(&self.collectives.allocations)
            .chain(&network)
            .chain(&self.calls.predict);
        declare(
            inputs.map(PathBuf::as_path),
            Output::each("-o", &self.output).chain(Output::each("--report", &self.report)),
        )?;
        if self.collectives.collectives.is_some() {
            return self.fit_collectives();
        }
        let inputs = self.inputs.iter().map(|path| FitInput::read(path));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        if self.model.is_some() {
            let benchmark = inputs
                .iter()
                .find(|input| input.kind == FitInputKind::Benchmark);
            self.refuse_others(
                benchmark.map_or(FitInputKind::RoundTrips, |_| FitInputKind::Benchmark),
            )?;
            return self.compare_models(&inputs);
        }
        let kind = one_kind(&inputs)?;
        self.refuse_others(kind)?;
        let input = &inputs[0];
        match kind {
            FitInputKind::Conflicts => self.fit_conflicts(input).with_context(|| input.place()),
            FitInputKind::Calls => self.fit_calls(input),
            FitInputKind::Recording => self.fit_regions(),
            FitInputKind::Benchmark => {
                let (output, name) = (self.output(), self.network_name());
                import::run(&inputs, &self.import, output, &name, self.format)
            }
            FitInputKind::RoundTrips | FitInputKind::Pairs => self.fit_round_trips(input),
            FitInputKind::Collectives => self.fit_collectives(),
        }
    }

    fn refuse_others(&self, found: FitInputKind) -> Result<()> {
        let calls = &self.calls;
        const CALLS: Kinds<'_, FitInputKind> = (&[FitInputKind::Calls], "medians of calls");
        const RECORDINGS: Kinds<'_, FitInputKind> = (&[FitInputKind::Recording], "recordings");
        const KNOWN: Kinds<'_, FitInputKind> = (
            &[
                FitInputKind::Recording,
                FitInputKind::Collectives,
                FitInputKind::Calls,
            ],
            "recordings, collective operations or medians of calls",
        );
        const CONFLICTS: Kinds<'_, FitInputKind> = (&[FitInputKind::Conflicts], "conflicts");
        const BENCHMARKS: Kinds<'_, FitInputKind> =
            (&[FitInputKind::Benchmark], "outputs of benchmarks");
        const ROUND_TRIPS: Kinds<'_, FitInputKind> = (&[FitInputKind::RoundTrips], "round trips");
        let options = [
            ("--test", self.import.test.is_some(), BENCHMARKS),
            ("--section", !self.import.section.is_empty(), BENCHMARKS),
            ("--predict", calls.predict.is_some(), CALLS),
            ("--pieces", calls.pieces.is_some(), CALLS),
            ("--only", calls.only.is_some(), CALLS),
            ("several -o", self.output.len() > 1, CALLS),
            (
                "--rendezvous-from",
                self.rendezvous_from.is_some(),
                RECORDINGS,
            ),
            ("--network", self.network.is_some(), KNOWN),
            ("--window", self.window.is_some(), CONFLICTS),
            (
                "--report",
                self.report.is_some() && self.model.is_none(),
                ROUND_TRIPS,
            ),
            ("--all-sizes", self.all_sizes, ROUND_TRIPS),
            ("--robust", self.robust, ROUND_TRIPS),
        ];
        refuse_others(&found, &options)
    }

    fn fit_round_trips(&self, input: &FitInput) -> Result<()> {
        let samples = input.parsed(PrttSamples::from_csv)?;
        let fit = fit_loggp(&samples, &self.options()).with_context(|| input.place())?;
        let mut batch = Batch::new();
        let document = document(&fit, &samples).titled(format!("Round trips, {}", input.place()));
        if let Some(report) = &self.report {
            batch.write_text(report, &samples_page(document.clone(), &samples, &fit)?)?;
        }
        if let Some(output) = self.output() {
            let mut network = fit.to_network(&self.network_name(), provenance_of(&samples, &fit));
            if samples
                .provenance
                .get("path")
                .is_some_and(|path| path.starts_with("tcp"))
            {
                network.point_to_point.progress = OVER_TCP;
            }
            batch.write_text(output, &network.to_toml())?;
        }
        batch.commit()?;
        self.format.print(&document)
    }

    fn compare_models(&self, inputs: &[FitInput]) -> Result<()> {
        let options = CompareOptions {
            replicates: self.replicates.unwrap_or(MODEL_REPLICATES),
            level: self.level,
            seed: self.seed,
        };
        let inputs = ModelInputs::read(inputs, &self.import)?;
        fit_models::run(inputs, options, self.report.as_deref(), self.format)
    }

    fn fit_conflicts(&self, input: &FitInput) -> Result<()> {
        let samples = &ConflictSamples::from_csv(&input.text)?;
        let replicates = self
            .replicates
            .unwrap_or(ConflictFitOptions::default().replicates);
        let lab = fit_conflicts::lab_network(samples)?;
        let transport = fit_conflicts::transport(lab.as_ref(), self.window);
        let options = ConflictFitOptions {
            replicates,
            level: self.level,
            seed: self.seed,
            transport,
        };
        let fit = conflicts::fit_conflicts(samples, options, &fit_conflicts::durations)?;
        let provenance = provenance_of_bootstrap(
            &samples.provenance,
            fit.options.seed,
            fit.options.replicates,
        );
        let mut network = fit.to_network(&self.network_name(), provenance);
        network.point_to_point.rendezvous_from =
            lab.and_then(|lab| lab.point_to_point.rendezvous_from);
        network.point_to_point.progress = OVER_TCP;
        write(self.output(), &network)?;
        self.format.print(&fit_conflicts::document(&fit, samples))
    }

    fn fit_calls(&self, calls: &FitInput) -> Result<()> {
        let options = self.options();
        FitCalls {
            calls,
            args: &self.calls,
            outputs: &self.output,
            name: &|to| self.name.clone().or_else(|| stem(to)).unwrap_or_default(),
            known: self.known()?,
            options,
            provenance: provenance_of_bootstrap(&BTreeMap::new(), options.seed, options.replicates),
            format: self.format,
        }
        .run()
    }

    fn fit_collectives(&self) -> Result<()> {
        self.refuse_others(FitInputKind::Collectives)?;
        let args = &self.collectives;
        let (Some(measured), Some(allocations), Some(system)) =
            (&args.collectives, &args.allocations, &args.system)
        else {
            bail!("--collectives: found no --allocations or no --system, expected both");
        };
        FitCollectives {
            measured,
            allocations,
            system,
            known: self.known()?,
            output: self.output(),
            name: self.network_name(),
            format: self.format,
        }
        .run()
    }

    /// Network with values that are known before the fit, if given.
    fn known(&self) -> Result<Option<Network>> {
        let name = self.network.as_ref();
        name.map(|name| network_args::load(name, &[])).transpose()
    }

    fn output(&self) -> Option<&Path> {
        self.output.first().map(PathBuf::as_path)
    }

    fn options(&self) -> FitOptions {
        FitOptions {
            sizes: if self.all_sizes {
                SizeChoice::Every
            } else {
                SizeChoice::AboveKnee
            },
            line: if self.robust {
                LineMethod::TheilSen
            } else {
                LineMethod::LeastSquares
            },
            replicates: self.replicates.unwrap_or(FitOptions::default().replicates),
            level: self.level,
            seed: self.seed,
        }
    }

    fn network_name(&self) -> String {
        self.name
            .clone()
            .or_else(|| stem(self.output()?))
            .unwrap_or_else(|| "measured".into())
    }
}

/// Writes the network file if one is requested.
pub(super) fn write(output: Option<&Path>, network: &Network) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    write_text(output, &network.to_toml())
}

fn stem(path: &Path) -> Option<String> {
    path.file_stem()?.to_str().map(str::to_owned)
}

/// Provenance of this run, with its seed and replicates, and of the samples, with the prefix `samples.`.
pub(super) fn provenance_of_bootstrap(
    samples: &BTreeMap<String, String>,
    seed: u64,
    replicates: usize,
) -> BTreeMap<String, String> {
    let mut all = provenance::of_this_run();
    all.insert("seed".into(), seed.to_string());
    all.insert("bootstrap_replicates".into(), replicates.to_string());
    for (key, value) in samples {
        all.insert(format!("samples.{key}"), value.clone());
    }
    all
}

/// Provenance of the bootstrap, with the warnings of the fit.
fn provenance_of(samples: &PrttSamples, fit: &LogGpFit) -> BTreeMap<String, String> {
    let mut all = provenance_of_bootstrap(
        &samples.provenance,
        fit.options.seed,
        fit.options.replicates,
    );
    all.extend(
        fit.warnings
            .iter()
            .enumerate()
            .map(|(at, warning)| (format!("warning.{}", at + 1), warning.to_string())),
    );
    all
}

fn document(fit: &LogGpFit, samples: &PrttSamples) -> Document {
    let (values, intervals, error) = (&fit.parameters, &fit.intervals, &fit.model_error);
    let per_byte = interval(intervals.gap_per_byte);
    let knee = fit.knee_size.map_or(String::new(), |knee| {
        format!("; the overhead hides the gap below {knee:.0} B")
    });
    let worst = &error.worst_point;
    let warnings: Vec<String> = fit.warnings.iter().map(ToString::to_string).collect();
    Document::new("fit")
        .field("g_us", values.gap)
        .field("g_us_interval", interval(intervals.gap))
        .field("G_us_per_B", values.gap_per_byte.as_micros())
        .field(
            "G_us_per_B_interval",
            per_byte.map(|(low, high)| [low.as_micros(), high.as_micros()]),
        )
        .field("o_us", values.overhead)
        .field("o_us_interval", interval(intervals.overhead))
        .field("L_us", values.latency)
        .field("L_us_interval", interval(intervals.latency))
        .field("level", fit.options.level)
        .field("knee_size_B", fit.knee_size)
        .field("points_used", fit.points_used)
        .field("points_excluded", fit.points_excluded)
        .field("samples", fit.samples)
        .field("replicates", fit.options.replicates)
        .field("seed", fit.options.seed)
        .field("model_error_mean", error.mean_absolute)
        .field("model_error_worst", error.worst)
        .field("warnings", &warnings)
        .field("samples_provenance", &samples.provenance)
        .shown(parameter_table(fit))
        .line(format!(
            "g and G are fitted to {} of {} points{knee}.",
            fit.points_used,
            fit.points_used + fit.points_excluded
        ))
        .line(format!(
            "Model error at the medians: {:.1} % on average, {:.1} % at worst (n = {}, d = {}, {} B).",
            error.mean_absolute * 100.0,
            error.worst * 100.0,
            worst.messages,
            worst.delay,
            worst.size.0,
        ))
        .noted(warnings)
        .noted(of_runs(&samples.provenance))
}
