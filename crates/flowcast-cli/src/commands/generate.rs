//! `flowcast generate`: synthetic workloads as traces.

use std::fs;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use flowcast::trace::generate::{Shape, Workload};
use flowcast::trace::write;
use flowcast::units::{Bytes, Rank, Time};

use crate::files::write_whole;

/// Write a synthetic workload as a trace
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast generate halo --ranks 64 --iterations 100 --size 8KiB -o halo.dim\n  flowcast generate alltoall --ranks 16 --size 1KiB --format goal > alltoall.goal"
)]
pub struct Generate {
    /// Workload
    #[arg(value_parser = workload)]
    workload: Workload,
    /// Number of ranks
    #[arg(long)]
    ranks: u32,
    /// Iterations
    #[arg(long, default_value_t = 10)]
    iterations: u32,
    /// Bytes of each message, such as 8KiB
    #[arg(long, default_value = "8KiB")]
    size: Bytes,
    /// Computation of each rank in each iteration
    #[arg(long, default_value = "10us")]
    compute: Time,
    /// The computation varies by up to this fraction
    #[arg(long, default_value_t = 0.2)]
    jitter: f64,
    /// Start of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Format: dim (Dimemas), goal (LogGOPSim), ti (SimGrid: a list, and a folder with one file for each rank)
    #[arg(long, value_enum, default_value = "dim")]
    format: Format,
    /// File to write; standard output if absent (not for ti)
    #[arg(short, long)]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Dim,
    Goal,
    Ti,
}

fn workload(name: &str) -> Result<Workload, String> {
    let found = Workload::ALL.iter().find(|(known, _)| *known == name);
    let names = || Workload::ALL.map(|(known, _)| known).join(", ");
    found.map(|(_, workload)| *workload).ok_or_else(|| format!("expected one of: {}", names()))
}

impl Generate {
    /// Writes the trace.
    pub fn run(self) -> Result<()> {
        if !(1..=1 << 24).contains(&self.ranks) {
            bail!("--ranks: found {}, expected 1 to 16,777,216", self.ranks);
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            bail!("--jitter: found {}, expected 0 to 1", self.jitter);
        }
        let Generate { workload, ranks, iterations, size, compute, jitter, seed, .. } = self;
        let shape = Shape { workload, ranks, iterations, size, compute, jitter, seed };
        match (self.format, &self.output) {
            (Format::Ti, Some(path)) => write_ti(shape, path),
            (Format::Ti, None) => bail!("--format ti: found no file name, expected -o LIST (it writes several files)"),
            (format, Some(path)) => write_whole(path, |out| write_text(format, shape, out)),
            (format, None) => write_text(format, shape, &mut BufWriter::with_capacity(1 << 16, stdout().lock())),
        }
    }
}

fn write_text(format: Format, shape: Shape, out: &mut dyn Write) -> Result<()> {
    match format {
        Format::Goal => write::goal(shape, out)?,
        Format::Dim | Format::Ti => write::dim(shape, out)?,
    }
    out.flush()?;
    Ok(())
}

/// `NAME.list` beside the folder `NAME.ti` with the ranks; the list comes last, so that it never names what is not there.
fn write_ti(shape: Shape, list: &Path) -> Result<()> {
    let folder = list.with_extension("ti");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for rank in (0..shape.ranks).map(Rank) {
        write_whole(&folder.join(format!("rank{rank}.txt")), |out| Ok(write::simgrid_rank(shape, rank, out)?))?;
    }
    write_whole(list, |out| {
        for rank in 0..shape.ranks {
            writeln!(out, "{name}/rank{rank}.txt")?;
        }
        Ok(())
    })
}
