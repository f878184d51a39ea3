//! `flowcast record`: an MPI program, with the recorder loaded into it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::recording::decode::RankFile;
use flowcast::recording::format;
use flowcast::recording::summary::{self, Calls, Summary};
use flowcast::recording::time_axis::{Clocks, TimeAxis};
use flowcast::trace::recorded_times::measured;
use flowcast::units::{Bytes, Time};
use serde::Serialize;
use serde_json::json;

use super::doctor;
use crate::recording::{Loading, not_recorded, open_recording, recorder};
use crate::terminal::exit::{EnvironmentLacks, Finding};
use crate::terminal::files::write_text;
use crate::terminal::output::{Format, Seconds, Shown, println_out, show};
use crate::terminal::provenance;
use crate::terminal::tables::{cells, table};
use flowcast::report::answer::Grouped;

/// Record what an MPI program communicates while it runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast record -o cg.rec -- mpirun -np 8 ./cg.S.x
  flowcast predict cg.rec --network gige-tcp
  flowcast record -o long.rec --budget 20MB -- mpirun -np 64 --hostfile hosts ./solver
  flowcast record --show cg.rec --json")]
pub(crate) struct Record {
    /// Folder to write, new or empty
    #[arg(
        short,
        long,
        value_name = "TRACE",
        required_unless_present = "show",
        help_heading = "Output"
    )]
    output: Option<PathBuf>,
    /// Sum up a recording that there is, and run nothing
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["output", "command"], help_heading = "Output")]
    show: Option<PathBuf>,
    /// Only this rank in the summary
    #[arg(long)]
    rank: Option<u32>,
    /// Most that each rank may write, such as 20MB: repeated sequences of calls are folded, and most of their
    /// repetitions share their mean times
    #[arg(long, value_name = "BYTES")]
    budget: Option<Bytes>,
    /// Memory in which each rank's calls wait for the disk
    #[arg(long, value_name = "BYTES", default_value = "256KiB")]
    buffer: Bytes,
    /// Ranks that wait sleep this long instead of yielding (see `flowcast validate app`)
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    idle_sleep: Option<Time>,
    /// Read rank 0's clock at every rank when the program begins and when it ends, so that times of several hosts stand on
    /// one axis (some hundred messages for each rank)
    #[arg(long)]
    clocks: bool,
    /// The library to load into the program instead of flowcast's own
    #[arg(long, value_name = "FILE.so", help_heading = "Where")]
    recorder: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
    /// What to run: the launcher with its options, the program with its own
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "show")]
    command: Vec<OsString>,
}

impl Record {
    /// Runs the program, or reads a recording, and sums up.
    pub(crate) fn run(self) -> Result<()> {
        if let Some(folder) = &self.show {
            return self.print(folder, &open_recording(folder)?).map(drop);
        }
        let folder = self
            .output
            .as_deref()
            .context("found no --output, expected --output TRACE")?;
        let recorder = recorder(self.recorder.as_deref())?;
        let disturbed = doctor::tell_other_programs(
            "times of computation may be too long; the recording is marked",
        );
        let folder = &prepare(folder, disturbed)?;
        let loading = Loading {
            recorder: &recorder.path,
            folder,
            buffer: self.buffer,
            budget: self.budget,
            idle_sleep: self.idle_sleep,
            clocks: self.clocks,
        };
        let status = loading.run(&self.command, |program| Ok(Command::new(program)))?;
        if !folder.join(format::RECORDING).exists() {
            // So that the next attempt finds the folder empty.
            let _ = fs::remove_file(folder.join(PROVENANCE));
            return Err(not_recorded(&self.command, status));
        }
        if !status.success() {
            let path = folder.join(format::RECORDING);
            write_text(
                &path,
                &format!("{}{}{status}\n", fs::read_to_string(&path)?, format::FAILED),
            )?;
        }
        // A folder that was empty holds what the system let the ranks write.
        let files =
            open_recording(folder).map_err(|error| EnvironmentLacks(format!("{error:#}")))?;
        let cut = self.print(folder, &files)?;
        if status.success() && cut == 0 {
            return Ok(());
        }
        if status.success() {
            let said = format!(
                "{cut} ranks were not recorded to their end: their files could not be written any more, or they did not call \
                 MPI_Finalize"
            );
            return Err(Finding(said).into());
        }
        let said = format!(
            "the program ended with {status}; what it did until then is in {}",
            folder.display()
        );
        Err(Finding(said).into())
    }

    /// Gives how many ranks were cut off.
    fn print(&self, folder: &Path, files: &[RankFile]) -> Result<usize> {
        if let Some(rank) = self.rank.filter(|rank| *rank as usize >= files.len()) {
            bail!(
                "--rank: found {rank}, expected a rank below {}",
                files.len()
            );
        }
        let mut sum = Summary::default();
        let chosen = files
            .iter()
            .filter(|file| self.rank.is_none_or(|rank| file.header.rank.0 == rank));
        chosen.clone().for_each(|file| sum.add(&summary::of(file)));
        let axis = TimeAxis::of(files);
        let begins: Vec<RankBegin> = chosen
            .clone()
            .map(|file| RankBegin::new(file, &axis))
            .collect();
        show(
            &Recorded::new(folder, begins, &sum, axis.clocks, measured(files).total),
            self.format,
        )?;
        Ok(files
            .iter()
            .filter(|file| !file.ended && !file.stopped)
            .count())
    }
}

/// The note in a recording's folder.
const PROVENANCE: &str = "provenance.json";

/// The folder, made and with a note of where the recording comes from.
pub(super) fn prepare(folder: &Path, disturbed: Option<String>) -> Result<PathBuf> {
    let cannot = || format!("cannot write {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    if fs::read_dir(folder).with_context(cannot)?.next().is_some() {
        bail!(
            "--output: found files in {}, expected a new or empty folder",
            folder.display()
        );
    }
    let folder = fs::canonicalize(folder).with_context(cannot)?;
    let mut provenance = provenance::of_this_run();
    provenance.extend(disturbed.map(|found| ("disturbed_by".to_owned(), found)));
    let note = json!({ "schema": "flowcast/recording/1", "provenance": provenance });
    write_text(&folder.join(PROVENANCE), &format!("{note}\n"))?;
    Ok(folder)
}

/// A recording in sums.
#[derive(Serialize)]
struct Recorded {
    trace: String,
    ranks: usize,
    clocks: Known,
    begins: Vec<RankBegin>,
    ended: u32,
    stopped: u32,
    calls: u64,
    not_modelled: u64,
    /// From the end of `MPI_Init` to the begin of `MPI_Finalize`, on the rank where that took longest.
    run_s: Seconds,
    compute_s: Seconds,
    thread_cpu_s: Seconds,
    file_bytes: u64,
    functions: Vec<Function>,
}

/// Whether times of different hosts can be compared.
#[derive(Serialize)]
#[serde(rename_all = "lowercase", tag = "state")]
enum Known {
    Unknown,
    Shared,
    Synchronised { known_to_s: Seconds },
    Apart { ranks: usize },
}

impl From<Clocks> for Known {
    fn from(clocks: Clocks) -> Known {
        match clocks {
            Clocks::Unknown => Known::Unknown,
            Clocks::Shared => Known::Shared,
            Clocks::Synchronised(known_to) => Known::Synchronised {
                known_to_s: Seconds(known_to),
            },
            Clocks::Apart(ranks) => Known::Apart { ranks },
        }
    }
}

/// Where a rank begins on the time axis of all.
#[derive(Serialize)]
struct RankBegin {
    rank: u32,
    host: String,
    begin_s: Option<Seconds>,
}

impl RankBegin {
    fn new(file: &RankFile, axis: &TimeAxis) -> RankBegin {
        let host = file.header.fields.get("host").cloned().unwrap_or_default();
        RankBegin {
            rank: file.header.rank.0,
            host,
            begin_s: axis.at(file.header.rank, Time::ZERO).map(Seconds),
        }
    }
}

/// All calls of one MPI function.
#[derive(Serialize)]
struct Function {
    name: String,
    calls: u64,
    unsuccessful: u64,
    bytes: u64,
    seconds: Seconds,
    /// Whether a replay has no model of it and leaves it out.
    left_out: bool,
}

impl Recorded {
    fn new(
        folder: &Path,
        begins: Vec<RankBegin>,
        sum: &Summary,
        clocks: Clocks,
        run: Time,
    ) -> Recorded {
        let function = |(name, calls): (&String, &Calls)| Function {
            name: name.clone(),
            calls: calls.calls,
            unsuccessful: calls.unsuccessful,
            bytes: calls.bytes,
            seconds: nanos(calls.nanos),
            left_out: calls.left_out,
        };
        Recorded {
            trace: folder.display().to_string(),
            ranks: begins.len(),
            clocks: clocks.into(),
            begins,
            ended: sum.ended,
            stopped: sum.stopped,
            calls: sum.calls(),
            not_modelled: sum
                .functions
                .values()
                .filter(|calls| calls.left_out)
                .map(|calls| calls.calls)
                .sum(),
            run_s: Seconds(run),
            compute_s: nanos(sum.burst),
            thread_cpu_s: nanos(sum.cpu),
            file_bytes: sum.file_bytes,
            functions: sum.functions.iter().map(function).collect(),
        }
    }
}

/// How often a function was called, and the bytes where any are known.
fn in_words(function: &Function) -> String {
    let Function {
        name, calls, bytes, ..
    } = function;
    let bytes = if *bytes > 0 {
        format!(" ({} bytes)", Grouped(*bytes))
    } else {
        String::new()
    };
    format!("{} {name}{bytes}", Grouped(*calls))
}

fn nanos(nanos: u64) -> Seconds {
    Seconds(Time::from_nanos(nanos as f64))
}

impl Shown for Recorded {
    const SCHEMA: &'static str = "flowcast/record/1";

    fn print(&self) {
        let mut rows = table(&["function", ">calls", ">found nothing", ">bytes", ">time"]);
        for Function {
            name,
            calls,
            unsuccessful,
            bytes,
            seconds,
            ..
        } in &self.functions
        {
            rows.add_row(cells![
                name,
                Grouped(*calls),
                Grouped(*unsuccessful),
                Grouped(*bytes),
                seconds
            ]);
        }
        println_out!("{rows}");
        let Recorded {
            trace,
            ranks,
            calls,
            file_bytes,
            ..
        } = self;
        let each = *file_bytes as f64 / (*calls).max(1) as f64;
        println_out!(
            "{trace}: {ranks} ranks, a run of {} from MPI_Init to MPI_Finalize, {} calls, {} bytes ({each:.1} a call); computation of all ranks {} \
             wall, {} thread CPU",
            self.run_s,
            Grouped(*calls),
            Grouped(*file_bytes),
            self.compute_s,
            self.thread_cpu_s
        );
        match &self.clocks {
            Known::Unknown | Known::Shared => {}
            Known::Synchronised { known_to_s } => {
                println_out!("clocks of the hosts are known to {known_to_s}")
            }
            Known::Apart { ranks } => println_out!(
                "{ranks} ranks have clocks of their own: times of different hosts cannot be compared (record with --clocks)"
            ),
        }
        if self
            .functions
            .iter()
            .any(|function| function.name.starts_with("MPI_Comm_spawn"))
        {
            println_out!("processes that MPI_Comm_spawn started are not recorded");
        }
        let left_out: Vec<String> = self
            .functions
            .iter()
            .filter(|function| function.left_out)
            .map(in_words)
            .collect();
        if !left_out.is_empty() {
            println_out!("no model, left out of a replay: {}", left_out.join(", "));
        }
        let open = *ranks as u32 - self.ended.min(*ranks as u32);
        if open > 0 {
            println_out!(
                "{open} ranks did not come to their end; {} of them because their budget was used up",
                self.stopped
            );
        }
    }
}
