//! `flowcast hpl`: predicted times of High Performance Linpack on a cluster, and its best settings.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::{
    hpl::{
        Cluster, HplSettings, LinpackChoice, LinpackFit, MeasuredRun, NodeProcessors,
        RunPrediction, SettingsQuestion, SimulatedExtent, choose, fit_linpack, hpl_dat,
        measured_runs, operations, predict_runs, settings,
    },
    model::{
        costs::CostParameters,
        csv::{CsvError, Table},
        linpack_costs::LinpackCosts,
    },
    statements::of_networks,
    table::{Document, Value, fixed, percent, rows},
    units::Time,
};

use flowcast_terminal::{
    costs_table::costs_table,
    files::{Output, declare, read_parsed, write_text},
    network_args::{self, NetworkArgs},
    output::{Format, print_notes},
    print_out,
    progress::Progress,
    provenance,
    trace_args::threads,
};

subcommands!(
    /// Fit, predict and choose settings of High Performance Linpack
    Hpl {
        Fit(Fit),
        Predict(Predict),
        Choose(Choose),
    }
);

/// Description of the cluster.
#[derive(Debug, Args)]
struct ClusterArgs {
    #[command(flatten)]
    network: NetworkArgs,
    /// Times of matrix products on each processor, with the columns node,intercept_s,s_per_mnk,resid_per_mnk
    #[arg(long, value_name = "DGEMM.csv")]
    compute: PathBuf,
    /// Number of ranks that fill a node; at most 4096
    #[arg(long, value_name = "RANKS", default_value = "32", value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks_per_node: u32,
}

impl ClusterArgs {
    fn read(&self) -> Result<Cluster> {
        let network = self.network.load()?;
        let processors = read_parsed(&self.compute, NodeProcessors::parse)?;
        Ok(Cluster::new(network, processors, self.ranks_per_node))
    }

    fn inputs<'a>(&'a self, cases: &'a Path) -> [&'a Path; 3] {
        [Path::new(&self.network.network), &self.compute, cases]
    }
}

/// Notes on the uncertainty of the cluster's network, and on assumed constants of Linpack.
fn notes(cluster: &Cluster) -> Vec<String> {
    let mut notes = of_networks([&cluster.network]);
    notes.extend(cluster.network.linpack.is_none().then(|| {
        format!(
            "{} has no [linpack]: rates of memory and caches are assumed (`flowcast hpl fit` fits them)",
            cluster.network.name
        )
    }));
    notes
}

/// Table of a file, with its runs.
pub(super) fn read_cases<T>(
    file: &Path,
    runs: fn(&Table) -> Result<Vec<T>, CsvError>,
) -> Result<(Table, Vec<T>)> {
    let table = read_parsed(file, Table::parse)?;
    let runs = runs(&table).with_context(|| file.display().to_string())?;
    Ok((table, runs))
}

/// Checks that each run of a table can be simulated on the cluster. `file` is the table's file, for messages.
fn check_runs(
    (cluster, extent): (&Cluster, SimulatedExtent),
    table: &Table,
    runs: &[HplSettings],
    file: &Path,
) -> Result<()> {
    for ((line, _), run) in table.rows().zip(runs) {
        cluster
            .check(run, extent)
            .with_context(|| format!("{}:{line}", file.display()))?;
    }
    Ok(())
}

/// Fit the constants of a cluster to measured runs
///
/// The constants are the rates of memory and caches, of triangular solutions and of messages inside a node. The network
/// between nodes is not fitted.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast fit calls.csv -o cluster.toml\n  flowcast hpl fit runs.csv --network cluster.toml --compute dgemm.csv -o fitted.toml"
)]
pub(crate) struct Fit {
    /// CSV file of runs with the columns N,P,Q,block_size,depth,bcast,swap,time_s, in the numbers of HPL.dat; more columns
    /// are allowed
    cases: PathBuf,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Write the network with the fitted constants in [linpack]
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Fit {
    fn run(self) -> Result<()> {
        declare(
            self.cluster.inputs(&self.cases),
            Output::each("-o", &self.output),
        )?;
        let mut cluster = self.cluster.read()?;
        let (table, runs) = read_cases(&self.cases, measured_runs)?;
        let settings: Vec<HplSettings> = runs.iter().map(|run| run.settings).collect();
        check_runs(
            (&cluster, SimulatedExtent::Full),
            &table,
            &settings,
            &self.cases,
        )?;
        // A fit starts from the prior for any cluster.
        cluster.costs = LinpackCosts::prior();
        let progress = Progress::without_end("simulations");
        let fit = fit_linpack(&cluster, &runs, threads(), &|| progress.add(1))?;
        drop(progress);
        if let Some(output) = &self.output {
            cluster.network.linpack = Some(Box::new(fit.linpack.clone()));
            cluster.network.provenance.extend(provenance::of_this_run());
            write_text(output, &cluster.network.to_toml())?;
        }
        let mut notes = of_networks([&cluster.network]);
        let partly = settings
            .iter()
            .filter_map(|run| SimulatedExtent::Full.places(run))
            .count();
        notes.extend((partly > 0).then(|| {
            format!(
                "{partly} of {} runs simulate only some of the panels",
                runs.len()
            )
        }));
        self.format.print(&constants(&fit, &runs).noted(notes))
    }
}

fn constants(fit: &LinpackFit, runs: &[MeasuredRun]) -> Document {
    let costs = costs_table("Constants, with 90 % intervals", &fit.linpack.costs);
    let fits: Vec<(&MeasuredRun, f64)> = runs.iter().zip(fit.errors.iter().copied()).collect();
    let errors = rows(&fits)
        .heading("Fitted runs")
        .column("order", "N", |(run, _)| run.settings.order)
        .column("grid", "grid", |(run, _)| {
            format!("{}x{}", run.settings.rows, run.settings.columns)
        })
        .column("measured_s", "measured", |(run, _)| run.time)
        .column("error", "error", |(_, error)| percent(error.exp_m1(), 1));
    Document::new("linpack-fit")
        .table("constants", costs)
        .table("runs", errors)
        .line(format!(
            "assumed error of predicted runs: {:.1} % (root mean square, at least 1.2 %)",
            100.0 * fit.linpack.spread
        ))
}

/// Simulations from which intervals are determined.
#[derive(Debug, Args)]
struct EnsembleArgs {
    /// Number of simulations of each run, or of each of the best settings; they differ in pivots, times of products, and
    /// nodes if the cluster has more than a run needs; at most 1000
    #[arg(long, value_name = "COUNT", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=1000))]
    replicates: u32,
    /// Probability that the interval contains the time of a run
    #[arg(long, value_name = "PROBABILITY", default_value = "0.9", value_parser = flowcast_terminal::shares::probability)]
    level: f64,
}

/// Predict the times of runs, each with an interval
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast hpl predict grids.csv --network fitted.toml --compute dgemm.csv -o predicted.csv\n  flowcast hpl predict grids.csv --network fitted.toml --compute dgemm.csv --limit 8 --replicates 1"
)]
pub(crate) struct Predict {
    /// CSV file of runs with the columns N,P,Q,block_size,depth,bcast,swap, in the numbers of HPL.dat; more columns are
    /// allowed
    cases: PathBuf,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Output file: the rows with predicted_s,low_s,high_s added [default: standard output]
    #[arg(short, long, value_name = "FILE.csv")]
    output: Option<PathBuf>,
    #[command(flatten)]
    ensemble: EnsembleArgs,
    /// Number of places of each run at which panels are simulated, instead of all panels; faster, and the interval includes
    /// the possible error; 4 to 1000
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(4..=1000))]
    limit: Option<u32>,
}

impl Predict {
    fn run(self) -> Result<()> {
        declare(
            self.cluster.inputs(&self.cases),
            Output::each("-o", &self.output),
        )?;
        let cluster = self.cluster.read()?;
        let (table, runs) = read_cases(&self.cases, settings)?;
        let extent = self
            .limit
            .map_or(SimulatedExtent::Full, SimulatedExtent::Windows);
        check_runs((&cluster, extent), &table, &runs, &self.cases)?;
        print_notes(notes(&cluster));
        let progress = Progress::without_end("simulations");
        let predictions = predict_runs(
            &cluster,
            &runs,
            extent,
            self.ensemble.replicates,
            self.ensemble.level,
            threads(),
            &|| progress.add(1),
        )?;
        drop(progress);
        let partly = predictions.iter().filter(|run| run.left_out > 0.0).count();
        if partly > 0 {
            let most = predictions
                .iter()
                .map(|run| run.left_out)
                .fold(0.0, f64::max);
            print_notes([format!(
                "{partly} of {} runs simulate only some panels; intervals include the error, up to {:.1} %",
                runs.len(),
                100.0 * most
            )]);
        }
        let columns: Vec<[String; 3]> = predictions.iter().map(seconds).collect();
        let text = table.with_columns(["predicted_s", "low_s", "high_s"], &columns);
        match &self.output {
            Some(output) => write_text(output, &text)?,
            None => print_out!("{text}"),
        }
        Ok(())
    }
}

fn seconds(prediction: &RunPrediction) -> [String; 3] {
    [prediction.time, prediction.low, prediction.high]
        .map(|time| format!("{:.3}", time.as_seconds()))
}

/// Choose grid, block size, broadcast, swap and depth
///
/// Grids are compared first. For the best grids, the broadcast, the swap with the depth, and the block size are then
/// compared. The best settings are simulated in full, and the time of the first is divided by activity.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast hpl choose --n 250000 --ranks 960 --network fitted.toml --compute dgemm.csv -o HPL.dat\n  flowcast hpl choose --n 250000 --ranks 960 --network fitted.toml --compute dgemm.csv --other-network faster.toml"
)]
pub(crate) struct Choose {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Order of the matrix; at most 2^27
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 27))]
    n: u64,
    /// Number of ranks, all of which are used; at most 65536
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65536))]
    ranks: u32,
    /// Block sizes to choose from; at most 65536
    #[arg(long, value_name = "NB", value_delimiter = ',', default_value = "128,192,256", value_parser = clap::value_parser!(u32).range(1..=65536))]
    block: Vec<u32>,
    /// Depths of look-ahead to choose from; at most 16
    #[arg(long, value_name = "DEPTH", value_delimiter = ',', default_value = "1,0", value_parser = clap::value_parser!(u32).range(0..=16))]
    depth: Vec<u32>,
    /// Alternative network, whose effect on the time is predicted
    #[arg(long, value_name = "NET")]
    other_network: Option<String>,
    /// Write the input file of HPL
    #[arg(short, long, value_name = "HPL.dat")]
    output: Option<PathBuf>,
    #[command(flatten)]
    ensemble: EnsembleArgs,
    #[command(flatten)]
    format: Format,
}

impl Choose {
    fn run(self) -> Result<()> {
        let inputs = [
            Path::new(&self.cluster.network.network),
            &self.cluster.compute,
        ];
        declare(inputs, Output::each("-o", &self.output))?;
        let cluster = self.cluster.read()?;
        let other_network = self
            .other_network
            .map(|name| network_args::load(&name, &[]));
        let question = SettingsQuestion {
            order: self.n,
            ranks: self.ranks,
            blocks: self.block,
            depths: self.depth,
            other_network: other_network.transpose()?,
        };
        question.check(&cluster).context("--ranks")?;
        let panels = question.order.div_ceil(u64::from(question.blocks[0]));
        if let Some(depth) = question
            .depths
            .iter()
            .find(|depth| u64::from(**depth) > panels)
        {
            bail!("--depth: found {depth}, expected at most {panels}, the number of panels");
        }
        let progress = Progress::without_end("simulations");
        let choice = choose(
            &cluster,
            &question,
            self.ensemble.replicates,
            self.ensemble.level,
            threads(),
            &|| progress.add(1),
        )?;
        drop(progress);
        if let Some(output) = &self.output {
            write_text(output, &hpl_dat(&choice.candidates[0].0))?;
        }
        let networks = [Some(&cluster.network), question.other_network.as_ref()];
        let networks = networks.into_iter().flatten();
        self.format.print(
            &chosen(&choice)
                .noted(notes(&cluster))
                .noted(of_networks(networks)),
        )
    }
}

fn gigaflops(settings: &HplSettings, time: Time) -> Value {
    fixed(operations(settings) / time.as_seconds() / 1e9, 0)
}

fn chosen(choice: &LinpackChoice) -> Document {
    let candidates = rows(&choice.candidates)
        .heading("Best settings")
        .column("grid", "grid", |(settings, _)| {
            format!("{}x{}", settings.rows, settings.columns)
        })
        .column("block", "NB", |(settings, _)| settings.block)
        .column("broadcast", "broadcast", |(settings, _)| {
            settings.broadcast.to_string()
        })
        .column("swap", "swap", |(settings, _)| settings.swap.to_string())
        .column("depth", "depth", |(settings, _)| settings.depth)
        .column("predicted_s", "predicted", |(_, run)| run.time)
        .column("low_s", "time from", |(_, run)| run.low)
        .column("high_s", "time to", |(_, run)| run.high)
        .column("gflops", "Gflop/s", |(settings, run)| {
            gigaflops(settings, run.time)
        })
        .column("low_gflops", "rate from", |(settings, run)| {
            gigaflops(settings, run.high)
        })
        .column("high_gflops", "rate to", |(settings, run)| {
            gigaflops(settings, run.low)
        });
    let (_, best) = &choice.candidates[0];
    let spent = [
        ("dgemm", best.spent.multiply),
        ("factoring panels", best.spent.factor),
        ("waiting for panels", best.spent.broadcast),
        ("swaps, and waiting for slower processors", best.spent.swap),
        ("solving, copying", best.spent.kernels),
        ("triangular system", best.spent.solution),
    ];
    let parts = rows(&spent)
        .heading("Time of the best settings by activity (mean of all processes)")
        .column("part", "part", |(name, _)| *name)
        .column("share", "share", |(_, share)| percent(*share, 1));
    let changes = rows(&choice.changes)
        .heading("Effect of changes on the time")
        .column("change", "change", |change| change.what)
        .column("time", "time", |change| percent(change.factor - 1.0, 1));
    Document::new("linpack-choice")
        .table("candidates", candidates)
        .table("parts", parts)
        .table("changes", changes)
}
