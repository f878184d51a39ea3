//! High Performance Linpack as a trace.

use std::io::stdout;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    Conversion, ConversionError, TraceForm,
    convert::{self, Losses, WriterTables},
    hpl::{Broadcast, CallSpread, HplSettings, KernelRates, NodeProcessors, Pivots, Script, Swap},
    model::quantity::Quantity,
    trace::{Program, Trace, compiled},
    units::Rate,
};

use super::{Computation, Generate, GeneratedFormat};
use flowcast_terminal::{
    files::{Output, declare, read_text, write_whole},
    rank_files::write_list,
    say,
};

/// Options for High Performance Linpack.
#[derive(Debug, Args)]
pub(super) struct HplArgs {
    /// HPL: order of the matrix
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    n: u64,
    /// HPL: block size NB
    #[arg(long, value_name = "NB", default_value_t = 128)]
    block: u32,
    /// HPL: process rows and columns; ranks are numbered row by row
    #[arg(long, value_name = "PxQ", value_parser = grid)]
    grid: Option<Grid>,
    /// HPL: depth of look-ahead, in panels
    #[arg(long, default_value_t = 1)]
    depth: u32,
    /// HPL: broadcast of panels: 1rg, 1rM, 2rg, 2rM, lng, lnM
    #[arg(long, default_value = "1rM")]
    bcast: Broadcast,
    /// HPL: row swaps: binary, long, mix or mix:THRESHOLD (64: spread and roll for more columns)
    #[arg(long, default_value = "mix")]
    swap: Swap,
    /// HPL: number of ranks that fill a node; they are divided equally among its processors
    #[arg(long, value_name = "RANKS", default_value_t = 32)]
    ranks_per_node: u32,
    /// HPL: other costs of a core, with defaults in parentheses (repeatable): call_spread=SHARE (0): fraction of
    /// resid_per_mnk, the spread of measured products, that differs from call to call; solve=FACTOR (2): time of a step of a triangular
    /// solution, as a multiple of a step of a product; cache=SIZE (1MiB) with cache_rate=RATE (20GB/s): rate of kernels on
    /// panels and vectors that fit into the cache; memory_rate=RATE (6GB/s): rate of the other kernels while all cores of
    /// the node run them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    costs: Vec<String>,
}

/// Number of process rows and columns.
#[derive(Debug, Clone, Copy)]
struct Grid {
    rows: u32,
    columns: u32,
}

fn grid(text: &str) -> Result<Grid, String> {
    const EXPECTED: &str = "expected process rows and columns, each above 0, such as 4x8";
    const MOST: u32 = 1 << 24;
    let (rows, columns) = text.split_once('x').ok_or(EXPECTED)?;
    let [rows, columns] =
        [rows, columns].map(|text| text.parse::<u32>().ok().filter(|number| *number > 0));
    let (rows, columns) = rows.zip(columns).ok_or(EXPECTED)?;
    match rows.checked_mul(columns) {
        Some(ranks) if ranks <= MOST => Ok(Grid { rows, columns }),
        _ => Err("expected at most 16,777,216 processes".into()),
    }
}

impl HplArgs {
    fn settings(&self) -> Result<HplSettings> {
        let Some(Grid { rows, columns }) = self.grid else {
            bail!("hpl: found no grid, expected --grid PxQ, such as 4x8");
        };
        ensure!(
            (1..=1 << 31).contains(&self.n),
            "--n: found {}, expected 1 to 2,147,483,648",
            self.n
        );
        ensure!(self.block != 0, "--block: found 0, expected at least 1");
        let settings = HplSettings {
            order: self.n,
            block: self.block,
            rows,
            columns,
            depth: self.depth,
            broadcast: self.bcast,
            swap: self.swap,
        };
        // With a larger depth, HPL would broadcast empty panels.
        ensure!(
            self.depth <= settings.panels(),
            "--depth: found {}, expected at most the number of panels, {}",
            self.depth,
            settings.panels()
        );
        Ok(settings)
    }

    /// Kernel rates, and the fraction of the spread that differs from call to call.
    fn costs(&self) -> Result<(KernelRates, f64)> {
        let (mut rates, mut call_spread) = (KernelRates::default(), 0.0);
        for text in &self.costs {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            match (key, Quantity::parse(value)) {
                ("call_spread", Some(Quantity::Number(share @ 0.0..=1.0))) => call_spread = share,
                ("solve", Some(Quantity::Number(factor @ 0.0..=f64::MAX))) => rates.solve = factor,
                ("cache", Some(Quantity::Size(size))) => rates.cache_bytes = size.0 as f64,
                ("cache_rate", Some(Quantity::Rate(rate))) if rate > Rate::default() => {
                    rates.cache_rate = rate.as_bytes_per_second();
                }
                ("memory_rate", Some(Quantity::Rate(rate))) if rate > Rate::default() => {
                    rates.memory_rate = rate.as_bytes_per_second();
                }
                _ => bail!(
                    "--set: found `{text}`, expected call_spread=SHARE from 0 to 1, solve=FACTOR of at least 0, cache=SIZE, or cache_rate=RATE or memory_rate=RATE above 0"
                ),
            }
        }
        Ok((rates, call_spread))
    }
}

impl Generate {
    /// Writes the trace of an HPL run.
    pub(super) fn write_hpl(self) -> Result<()> {
        let Computation::ByFile(table) = &self.compute else {
            bail!(
                "hpl: found no table of processors, expected --compute FILE.csv with the columns node, intercept_s, s_per_mnk and resid_per_mnk"
            );
        };
        declare([table.as_path()], Output::each("-o", &self.output))?;
        let settings = self.hpl.settings()?;
        let (rates, share) = self.hpl.costs()?;
        let name = table.display().to_string();
        let text = read_text(table)?;
        let nodes = NodeProcessors::parse(&text).with_context(|| name.clone())?;
        let per_node = self.hpl.ranks_per_node;
        ensure!(
            per_node != 0,
            "--ranks-per-node: found 0, expected at least 1"
        );
        let Some(processors) = nodes.of_ranks(settings.ranks(), per_node) else {
            bail!(
                "{name}: found {} nodes, expected {} for {} ranks with {per_node} per node",
                nodes.nodes(),
                settings.ranks().div_ceil(per_node),
                settings.ranks()
            );
        };
        let pivots = Pivots::Random { seed: self.seed };
        let spread = CallSpread {
            share,
            seed: self.seed,
        };
        let script = Script::new(settings, &pivots, rates, processors).with_spread(spread);
        let program = script.program()?;
        let losses = self.write_program(program)?;
        for (kind, count) in losses.kinds() {
            say!("flowcast: note: {count} {kind}");
        }
        Ok(())
    }

    fn write_program(&self, program: Program) -> Result<Losses> {
        let form = match self.format() {
            GeneratedFormat::Ti => return self.write_ti(&program),
            GeneratedFormat::Dim => Some(TraceForm::Dim),
            GeneratedFormat::Goal => Some(TraceForm::Goal),
            GeneratedFormat::Fct => None,
        };
        let trace = Trace::Program(program);
        let mut losses = Losses::default();
        let mut write = |out: &mut dyn std::io::Write| -> Result<()> {
            match form {
                None => compiled::write(&trace, out)?,
                Some(form) => {
                    let conversion = Conversion {
                        form,
                        strict: false,
                        collectives: None,
                    };
                    // Keeps the system's own reason: a full disk, or a reader that has closed the stream.
                    losses = conversion.write(&trace, out).map_err(|error| match error {
                        ConversionError::Write(error) => error.into(),
                        error => anyhow::Error::from(error),
                    })?;
                }
            }
            Ok(out.flush()?)
        };
        match &self.output {
            Some(path) => write_whole(path, |out| write(out))?,
            None => write(&mut stdout().lock())?,
        }
        Ok(losses)
    }

    fn write_ti(&self, program: &Program) -> Result<Losses> {
        let Some(path) = &self.output else {
            bail!("--format ti: found no file name, expected -o LIST (it writes several files)");
        };
        let (tables, mut losses) = (WriterTables::new(program), Losses::default());
        write_list(path, program.ranks() as u32, |rank, out| {
            convert::ti_rank(&tables, rank, &mut losses, out)
        })?;
        Ok(losses)
    }
}
