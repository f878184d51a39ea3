//! `flowcast fit`: from samples to a network. Round trips here, conflicts in [`super::fit_conflicts`].

pub(in crate::commands) mod import;
pub(in crate::commands) mod regions;

use std::{
    collections::BTreeMap,
    fmt::Display,
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
    table::{Document, Value},
    units::Bytes,
};

use super::{
    fit_calls::{CallArgs, FitCalls},
    fit_conflicts,
    fit_models::{self, Models},
};
use crate::{
    network_args,
    terminal::{
        files::{Batch, Output, declare, read_text, write_text},
        output::{Format, say},
        provenance,
    },
};
use regions::FitRegions;

/// Bootstrap replicates of each of all models.
const MODEL_REPLICATES: usize = 100;

/// Open MPI and MPICH move messages over TCP inside MPI calls alone (`docs/evidence/programs.md`).
const OVER_TCP: Progress = Progress::InCalls;

/// Fit the parameters of a network to measured samples
///
/// The median of each point stands for its samples. g and G come from a line through the spacing of messages sent in
/// a row, without the sizes where the overhead hides the gap; o from messages with computing between them; L from
/// plain round trips. From conflicts: rates, flow cuts, alpha and kappa, and the model that explains random patterns
/// best. Intervals are bootstrap percentiles.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast measure p2p -o samples.csv && flowcast fit samples.csv -o mine.toml\n  \
                        flowcast fit --prtt round-trips.csv --json\n  \
                        flowcast measure conflicts -o conflicts.csv && flowcast fit conflicts.csv -o mine.toml\n  \
                        flowcast fit --regions one.rec two.rec --rendezvous-from 64KiB -o cluster.toml\n  \
                        flowcast fit --regions one.rec two.rec --network lab.toml -o cluster.toml\n  \
                        flowcast fit --calls examples/taurus-calls.csv -o taurus.toml\n  \
                        flowcast fit --models all examples/gige-samples.csv --report models.html\n  \
                        flowcast fit --models all examples/pair-round-trips.csv --patterns examples/pairs.csv"
)]
pub(crate) struct Fit {
    /// Samples written by `flowcast measure`
    #[arg(required_unless_present_any = ["prtt", "regions", "calls", "import"], conflicts_with = "prtt")]
    samples: Option<PathBuf>,
    /// Round trips from elsewhere: a CSV with the columns n,d_us,size_B,prtt_us
    #[arg(long, value_name = "FILE.csv")]
    prtt: Option<PathBuf>,
    /// Recordings of micro-benchmarks with a region for each operation and size: Dimemas' latency, bandwidth, links,
    /// buses and table of collectives are found by search
    #[arg(long, value_name = "TRACE", num_args = 1.., conflicts_with_all = ["samples", "prtt"])]
    regions: Vec<PathBuf>,
    #[command(flatten)]
    calls: CallArgs,
    /// Outputs of osu_latency and osu_bw, IMB PingPong, SKaMPI's Pingpong, ReproMPI's Send_Recv, Netgauge's one_one,
    /// nccl-tests' sendrecv_perf, or perftest's ib_send_lat or ib_write_lat: latency and bandwidth, or with --models every model
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["samples", "prtt", "regions", "calls"])]
    import: Vec<PathBuf>,
    /// Fits all models of messages to round trips, and says which one explains the network best
    #[arg(long, value_name = "MODELS", conflicts_with_all = ["regions", "calls", "output", "all_sizes", "robust"])]
    models: Option<Models>,
    /// With --models: patterns between several nodes, as `flowcast measure pairs` and `flowcast measure conflicts` write them. Models are
    /// fitted to them as well, and whole patterns are left out in turn
    #[arg(long, value_name = "FILE.csv", num_args = 1.., requires = "models")]
    patterns: Vec<PathBuf>,
    /// With --regions: messages of at least this size wait for their receiver, as the MPI library has it
    #[arg(
        long,
        value_name = "BYTES",
        requires = "regions",
        help_heading = "Program"
    )]
    rendezvous_from: Option<Bytes>,
    /// Write the network file; with --predict the predictions, and with a second -o that ends in .toml the network file
    #[arg(short, long, value_name = "NET.toml", help_heading = "Output")]
    output: Vec<PathBuf>,
    /// With --regions: what is known of the network beforehand, as `flowcast lab network LAB` prints it. Wire rates and the
    /// parameters of sharing are taken over, and the latency of packets is fitted with collectives carried out as Open MPI
    /// does it
    #[arg(
        short,
        long,
        value_name = "NET",
        requires = "regions",
        help_heading = "Network"
    )]
    network: Option<String>,
    /// Of conflicts: the bytes that each flow kept in flight, as `ss` shows them (snd_wnd); of a lab they are known
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["prtt", "regions"])]
    window: Option<Bytes>,
    /// Write a page: of the models beside each other, or of the samples with their distributions, intervals and environment
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["regions", "calls"], help_heading = "Output")]
    report: Option<PathBuf>,
    /// Name of the network [default: the output file's name, or "measured"]
    #[arg(long)]
    name: Option<String>,
    /// Fit g and G to every size, also where the overhead hides the gap
    #[arg(long)]
    all_sizes: bool,
    /// Theil and Sen's line instead of least squares: wild points do not bend it
    #[arg(long, help_heading = "Precision")]
    robust: bool,
    /// Bootstrap replicates [default: 500, of conflicts 200, of --models 100]
    #[arg(long, value_name = "COUNT", help_heading = "Precision")]
    replicates: Option<usize>,
    /// Confidence level of the intervals
    #[arg(long, value_name = "PROBABILITY", default_value = "0.95", value_parser = super::predict::probability, help_heading = "Precision")]
    level: f64,
    /// Seed of the bootstrap
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Machine-readable output
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl Fit {
    /// Fits, writes the network file if asked, and prints the parameters.
    pub(crate) fn run(self) -> Result<()> {
        if let Some(calls) = &self.calls.calls {
            let name = |to: &Path| self.name.clone().or_else(|| stem(to)).unwrap_or_default();
            let format = Format { json: self.json };
            return FitCalls {
                calls,
                args: &self.calls,
                outputs: &self.output,
                name: &name,
                format,
            }
            .run();
        }
        if self.output.len() > 1 {
            bail!("-o: found {} files, expected one", self.output.len());
        }
        let network = self.network.as_ref().map(PathBuf::from);
        let round_trips = self.samples.iter().chain(&self.prtt).chain(&self.import);
        let inputs = round_trips
            .chain(&self.regions)
            .chain(&network)
            .chain(&self.patterns);
        let outputs = self.output.iter().map(|path| Output::new("-o", path));
        let outputs = outputs.chain(self.report.iter().map(|path| Output::new("--report", path)));
        declare(inputs.map(PathBuf::as_path), outputs)?;
        if !self.regions.is_empty() {
            return self.fit_regions();
        }
        if self.models.is_some() {
            return self.compare_models();
        }
        if !self.import.is_empty() {
            let format = Format { json: self.json };
            return import::run(&self.import, self.output(), &self.network_name(), format);
        }
        let path = self
            .samples
            .as_ref()
            .or(self.prtt.as_ref())
            .expect("clap requires one of them");
        let place = || path.display().to_string();
        let text = read_text(path)?;
        if self.samples.is_some() && ConflictSamples::is_one(&text) {
            return self
                .fit_conflicts(&ConflictSamples::from_csv(&text).with_context(place)?)
                .with_context(place);
        }
        let samples = PrttSamples::from_csv(&text).with_context(place)?;
        let fit = fit_loggp(&samples, &self.options()).with_context(place)?;
        let mut batch = Batch::new();
        if let Some(report) = &self.report {
            batch.write_text(
                report,
                &samples_page(&format!("Round trips, {}", place()), &samples, &fit)?,
            )?;
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
        self.print(&document(&fit, &samples), &fit.warnings)
    }

    /// People are told the warnings, programs find them in the document.
    fn print(&self, document: &Document, warnings: &[impl Display]) -> Result<()> {
        Format { json: self.json }.print(document)?;
        let told = warnings.iter().filter(|_| !self.json);
        told.for_each(|warning| say!("warning: {warning}"));
        Ok(())
    }

    fn compare_models(&self) -> Result<()> {
        let replicates = self.replicates.unwrap_or(MODEL_REPLICATES);
        let options = CompareOptions {
            replicates,
            level: self.level,
            seed: self.seed,
        };
        let path = self.samples.as_ref().or(self.prtt.as_ref());
        let samples = match path {
            Some(path) => PrttSamples::from_csv(&read_text(path)?)
                .with_context(|| path.display().to_string())?,
            None => import::imported(&self.import)?,
        };
        let patterns = fit_models::patterns(&self.patterns)?;
        fit_models::run(
            (&samples, &patterns),
            options,
            self.report.as_deref(),
            Format { json: self.json },
        )
    }

    fn fit_conflicts(&self, samples: &ConflictSamples) -> Result<()> {
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
        let provenance = fit_conflicts::provenance_of(samples, &fit);
        let mut network = fit.to_network(&self.network_name(), provenance);
        network.point_to_point.rendezvous_from =
            lab.and_then(|lab| lab.point_to_point.rendezvous_from);
        network.point_to_point.progress = OVER_TCP;
        write(self.output(), &network)?;
        self.print(&fit_conflicts::document(&fit, samples), &fit.warnings())
    }

    fn fit_regions(&self) -> Result<()> {
        let fit = FitRegions {
            recordings: &self.regions,
            output: self.output(),
            name: self.network_name(),
            rendezvous_from: self.rendezvous_from,
            known: self
                .network
                .as_ref()
                .map(|name| network_args::load(name, &[]))
                .transpose()?,
            format: Format { json: self.json },
        };
        fit.run()
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

/// Writes the network file where one is asked for.
pub(super) fn write(output: Option<&Path>, network: &Network) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    write_text(output, &network.to_toml())
}

fn stem(path: &Path) -> Option<String> {
    path.file_stem()?.to_str().map(str::to_owned)
}

/// This run's provenance, and that of the samples under `samples.`.
fn provenance_of(samples: &PrttSamples, fit: &LogGpFit) -> BTreeMap<String, String> {
    let mut all = provenance::of_this_run();
    all.insert("seed".into(), fit.options.seed.to_string());
    all.insert(
        "bootstrap_replicates".into(),
        fit.options.replicates.to_string(),
    );
    all.extend(
        samples
            .provenance
            .iter()
            .map(|(key, value)| (format!("samples.{key}"), value.clone())),
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
        .field("warnings", fit.warnings.iter().map(ToString::to_string).collect::<Value>())
        .field("samples_provenance", &samples.provenance)
        .shown(parameter_table(fit))
        .line(format!(
            "g and G rest on {} of {} points{knee}.",
            fit.points_used,
            fit.points_used + fit.points_excluded
        ))
        .line(format!(
            "The parameters miss the medians by {:.1} % on average, {:.1} % at worst (n = {}, d = {}, {} B).",
            error.mean_absolute * 100.0,
            error.worst * 100.0,
            worst.messages,
            worst.delay,
            worst.size.0,
        ))
}
