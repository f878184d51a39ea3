//! `flowcast generate`: synthetic workloads and High Performance Linpack as traces, and streams of random flows as patterns.

mod hpl;

use std::{
    io::{BufWriter, Write, stdout},
    path::PathBuf,
};

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use flowcast::{
    convert::{
        generate::{ProgramShape, Workload},
        write,
    },
    model::cluster::{pattern, streaming::Stream},
    trace::compiled,
    units::{Bytes, Rate, Time},
};

use flowcast_terminal::{
    files::{Output, declare, write_whole},
    rank_files::write_list,
    shares::count,
};

/// Write a synthetic workload, a Linpack run or random flows
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast generate halo --ranks 64 --iterations 100 --size 8KiB -o halo.dim\n  flowcast generate alltoall --ranks 16 --size 1KiB --format goal > alltoall.goal\n  flowcast generate halo --ranks 1024 --iterations 2500000 --period 1 --format fct -o long.fct\n  flowcast generate stream --ranks 1024 --flows 100000 --load 0.6 --bandwidth 1Gbit/s -o stream.pattern\n  flowcast generate hpl --n 20000 --block 128 --grid 8x8 --depth 1 --bcast 2rM --swap mix:128 --compute dgemm.csv -o hpl.fct"
)]
pub(crate) struct Generate {
    /// Workload of a trace; `hpl`: High Performance Linpack; `stream`: pattern of random flows
    #[arg(value_parser = workload)]
    workload: WorkloadKind,
    /// Number of ranks, or of nodes for a stream; at most 2^24; hpl uses --grid instead
    #[arg(long, conflicts_with = "grid", value_parser = count::<u32>(..=1 << 24))]
    ranks: Option<u32>,
    /// Number of iterations of the program's loop
    #[arg(long, default_value_t = 10)]
    iterations: u32,
    /// Size of each message, such as 8KiB
    #[arg(long, default_value = "8KiB")]
    size: Bytes,
    /// Computation of each rank in each iteration; for hpl, a CSV file with the time of matrix products on each processor
    #[arg(long, default_value = "10us", value_name = "TIME|FILE.csv", value_parser = computation)]
    compute: Computation,
    /// Largest relative deviation of a computation from --compute, 0 to 1
    #[arg(long, default_value_t = 0.2)]
    jitter: f64,
    /// Seed of the random numbers; for hpl, of the pivots and of call_spread
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of iterations after which the computations repeat, which fct stores as a loop; 0: never
    #[arg(long, default_value_t = 0, value_name = "ITERATIONS")]
    period: u32,
    /// Format: dim (Dimemas), goal (LogGOPSim), ti (SimGrid: a list, and a folder with one file for each rank), fct
    /// (compiled); if absent: fct and goal for files with these endings, dim for others
    #[arg(long, value_enum)]
    format: Option<GeneratedFormat>,
    #[command(flatten)]
    stream: StreamArgs,
    #[command(flatten)]
    hpl: hpl::HplArgs,
    /// Output file; standard output if absent (not for ti)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
enum WorkloadKind {
    Trace(Workload),
    Hpl,
    Stream,
}

/// Computation of ranks: a time, or a file with the speed of processors.
#[derive(Debug, Clone)]
enum Computation {
    Each(Time),
    ByFile(PathBuf),
}

/// Options for a stream.
#[derive(Debug, Args)]
struct StreamArgs {
    /// Stream: number of flows; at most 2^24
    #[arg(long, default_value_t = 1000, value_parser = count::<u32>(..=1 << 24))]
    flows: u32,
    /// Stream: range of sizes, which are uniform on a logarithmic scale
    #[arg(long, value_name = "FROM..TO", default_value = "64KiB..4MiB", value_parser = size_range)]
    sizes: (Bytes, Bytes),
    /// Stream: offered load, as a fraction of the aggregate interface rate
    #[arg(long, default_value_t = 0.5)]
    load: f64,
    /// Stream: rate of an interface, to which the load refers
    #[arg(long, default_value = "1Gbit/s")]
    bandwidth: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GeneratedFormat {
    Dim,
    Goal,
    Ti,
    Fct,
}

fn workload(name: &str) -> Result<WorkloadKind, String> {
    match (name, Workload::from_name(name)) {
        ("hpl", _) => Ok(WorkloadKind::Hpl),
        ("stream", _) => Ok(WorkloadKind::Stream),
        (_, Some(workload)) => Ok(WorkloadKind::Trace(workload)),
        (_, None) => {
            let names = Workload::names();
            Err(format!("expected one of: {names}, hpl, stream"))
        }
    }
}

fn computation(text: &str) -> Result<Computation, String> {
    if text.ends_with(".csv") {
        return Ok(Computation::ByFile(PathBuf::from(text)));
    }
    let time = Time::parse(text).map_err(|error| error.to_string())?;
    Ok(Computation::Each(time))
}

fn size_range(text: &str) -> Result<(Bytes, Bytes), String> {
    const EXPECTED: &str = "expected two sizes above 0, the smaller first, such as 64KiB..4MiB";
    let (from, to) = text.split_once("..").ok_or(EXPECTED)?;
    let (from, to) = (size(from)?, size(to)?);
    if from.0 > 0 && from <= to {
        Ok((from, to))
    } else {
        Err(EXPECTED.into())
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    Bytes::parse(text).map_err(|error| error.to_string())
}

impl Generate {
    /// Writes the trace.
    pub(crate) fn run(self) -> Result<()> {
        if matches!(self.workload, WorkloadKind::Hpl) {
            return self.write_hpl();
        }
        let Some(ranks) = self.ranks else {
            bail!("found no number of ranks, expected --ranks N");
        };
        ensure!(
            (1..=1 << 24).contains(&ranks),
            "--ranks: found {ranks}, expected 1 to 16,777,216"
        );
        ensure!(
            (0.0..=1.0).contains(&self.jitter),
            "--jitter: found {}, expected 0 to 1",
            self.jitter
        );
        declare([], Output::each("-o", &self.output))?;
        let workload = match self.workload {
            WorkloadKind::Trace(workload) => workload,
            WorkloadKind::Hpl | WorkloadKind::Stream => return self.write_stream(ranks),
        };
        let Computation::Each(compute) = self.compute else {
            bail!("--compute: found a file, expected a time such as 10us (files are for hpl)");
        };
        let format = self.format();
        let Generate {
            iterations,
            size,
            jitter,
            seed,
            period,
            ..
        } = self;
        let shape = ProgramShape {
            workload,
            ranks,
            iterations,
            size,
            compute,
            jitter,
            seed,
            period,
        };
        match (format, &self.output) {
            (GeneratedFormat::Ti, Some(path)) => write_list(path, ranks, |rank, out| {
                write::simgrid_rank(shape, rank, out)
            }),
            (GeneratedFormat::Ti, None) => {
                bail!("--format ti: found no file name, expected -o LIST (it writes several files)")
            }
            (format, Some(path)) => write_whole(path, |out| write_text(format, shape, out)),
            (format, None) => write_text(
                format,
                shape,
                &mut BufWriter::with_capacity(1 << 16, stdout().lock()),
            ),
        }
    }

    fn format(&self) -> GeneratedFormat {
        let ending = self.output.as_ref().and_then(|path| path.extension());
        self.format
            .unwrap_or(match ending.and_then(|ending| ending.to_str()) {
                Some("fct") => GeneratedFormat::Fct,
                Some("goal") => GeneratedFormat::Goal,
                _ => GeneratedFormat::Dim,
            })
    }

    fn write_stream(self, ranks: u32) -> Result<()> {
        let StreamArgs {
            flows,
            sizes,
            load,
            bandwidth,
        } = self.stream;
        ensure!(
            ranks >= 2,
            "--ranks: found {ranks}, expected at least 2 nodes for a stream"
        );
        ensure!(
            load > 0.0 && load <= 100.0,
            "--load: found {load}, expected a number above 0, such as 0.5"
        );
        if bandwidth.as_bytes_per_second() <= 0.0 {
            bail!("--bandwidth: found {bandwidth}, expected a rate above 0");
        }
        let drawn = Stream {
            flows,
            nodes: ranks,
            sizes,
            load,
            rate: bandwidth,
            seed: self.seed,
        }
        .draw();
        match &self.output {
            Some(path) => write_whole(path, |out| Ok(pattern::write(&drawn, out)?)),
            None => Ok(pattern::write(
                &drawn,
                &mut BufWriter::with_capacity(1 << 16, stdout().lock()),
            )?),
        }
    }
}

fn write_text(format: GeneratedFormat, shape: ProgramShape, out: &mut dyn Write) -> Result<()> {
    match format {
        GeneratedFormat::Goal => write::goal(shape, out)?,
        GeneratedFormat::Fct => compiled::write(&shape.trace()?, out)?,
        GeneratedFormat::Dim | GeneratedFormat::Ti => write::dim(shape, out)?,
    }
    out.flush()?;
    Ok(())
}
