//! `flowcast record`: an MPI program, with the recorder loaded into it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::trace::recorded::form;
use flowcast::trace::recorded::summary::{self, Summary};
use flowcast::units::{Bytes, Rounded, Time};
use serde_json::json;

use crate::exit::{EnvironmentLacks, Finding};
use crate::files::write_whole;
use crate::mpi_launcher::{self, Launcher};
use crate::output::println_out;
use crate::provenance;
use crate::recording::{RECORDER, find_recorder, open_recording};
use crate::tables::table;

/// Record what an MPI program communicates while it runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast record -o cg.rec -- mpirun -np 8 ./cg.S.x
  flowcast predict cg.rec --network gige-tcp
  flowcast record -o long.rec --budget 20MB -- mpirun -np 64 --hostfile hosts ./solver
  flowcast record --show cg.rec --json")]
pub struct Record {
    /// Folder to write, new or empty
    #[arg(short, long, value_name = "TRACE", required_unless_present = "show")]
    output: Option<PathBuf>,
    /// Sum up a recording that there is, and run nothing
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["output", "command"])]
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
    /// The library to load into the program, if it is not beside flowcast
    #[arg(long, value_name = "FILE.so")]
    recorder: Option<PathBuf>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
    /// What to run: the launcher with its options, the program with its own
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "show")]
    command: Vec<OsString>,
}

impl Record {
    /// Runs the program, or reads a recording, and sums up.
    pub fn run(self) -> Result<()> {
        if let Some(folder) = &self.show {
            return self.print(folder);
        }
        let folder = self.output.as_deref().context("found no --output, expected --output TRACE")?;
        let recorder = find_recorder(self.recorder.as_deref()).ok_or_else(no_recorder)?;
        let folder = prepare(folder)?;
        let status = self.start(&folder, &recorder)?;
        if !folder.join(form::RECORDING).exists() {
            return Err(not_recorded(&self.command, status));
        }
        self.print(&folder)?;
        if status.success() {
            return Ok(());
        }
        let said = format!("the program ended with {status}; what it did until then is in {}", folder.display());
        Err(Finding(said).into())
    }

    fn start(&self, folder: &Path, recorder: &Path) -> Result<ExitStatus> {
        let mut variables = vec![
            ("LD_PRELOAD".to_owned(), preload(recorder)),
            ("FLOWCAST_RECORD".to_owned(), folder.into()),
            ("FLOWCAST_RECORD_BUFFER".to_owned(), self.buffer.0.to_string().into()),
        ];
        if let Some(budget) = self.budget {
            variables.push(("FLOWCAST_RECORD_BUDGET".to_owned(), budget.0.to_string().into()));
        }
        let launcher = Launcher::of(&self.command[0]);
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        let forwarded = mpi_launcher::forward(launcher, &self.command, &names);
        let (program, arguments) = forwarded.command.split_first().context("found no command")?;
        let mut command = Command::new(program);
        command.args(arguments).envs(variables).envs(forwarded.variables);
        command
            .status()
            .map_err(|error| EnvironmentLacks(format!("cannot run {}: {error}", program.to_string_lossy())).into())
    }

    fn print(&self, folder: &Path) -> Result<()> {
        let files = open_recording(folder)?;
        if let Some(rank) = self.rank.filter(|rank| *rank as usize >= files.len()) {
            bail!("--rank: found {rank}, expected a rank below {}", files.len());
        }
        let mut sum = Summary::default();
        let chosen = files.iter().filter(|file| self.rank.is_none_or(|rank| file.header.rank == rank));
        chosen.clone().for_each(|file| sum.add(&summary::of(file)));
        let ranks = chosen.count();
        match self.json {
            true => println_out!("{}", to_json(folder, ranks, &sum)),
            false => print_table(folder, ranks, &sum),
        }
        Ok(())
    }
}

fn no_recorder() -> anyhow::Error {
    let advice = format!(
        "found no {RECORDER}, expected it beside flowcast (`cargo build --release` makes both) or with --recorder"
    );
    EnvironmentLacks(advice).into()
}

fn not_recorded(command: &[OsString], status: ExitStatus) -> anyhow::Error {
    let command = command.join(" ".as_ref());
    EnvironmentLacks(format!(
        "`{}` ended with {status} and nothing was recorded: it calls no MPI, is linked statically, or could not start \
         (`flowcast doctor -- COMMAND` tells more)",
        command.to_string_lossy()
    ))
    .into()
}

/// The folder, made and with a note of where the recording comes from.
fn prepare(folder: &Path) -> Result<PathBuf> {
    let cannot = || format!("cannot write {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    if fs::read_dir(folder).with_context(cannot)?.next().is_some() {
        bail!("--output: found files in {}, expected a new or empty folder", folder.display());
    }
    let folder = fs::canonicalize(folder).with_context(cannot)?;
    let note = json!({ "schema": "flowcast/recording/1", "provenance": provenance::of_this_run() });
    write_whole(&folder.join("provenance.json"), |out| {
        Ok(std::io::Write::write_all(out, format!("{note}\n").as_bytes())?)
    })?;
    Ok(folder)
}

/// In front of what is loaded anyway.
fn preload(recorder: &Path) -> OsString {
    let mut value: OsString = recorder.into();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    value
}

fn to_json(folder: &Path, ranks: usize, sum: &Summary) -> serde_json::Value {
    let functions = sum.functions.iter().map(|(name, calls)| {
        json!({
            "name": name,
            "calls": calls.calls,
            "unsuccessful": calls.unsuccessful,
            "bytes": calls.bytes,
            "seconds": calls.nanos as f64 / 1e9,
        })
    });
    json!({
        "schema": "flowcast/record/1",
        "trace": folder.display().to_string(),
        "ranks": ranks,
        "ended": sum.ended,
        "stopped": sum.stopped,
        "calls": sum.calls(),
        "not_modelled": sum.not_modelled,
        "compute_s": sum.burst as f64 / 1e9,
        "thread_cpu_s": sum.cpu as f64 / 1e9,
        "file_bytes": sum.file_bytes,
        "functions": functions.collect::<Vec<_>>(),
    })
}

fn print_table(folder: &Path, ranks: usize, sum: &Summary) {
    let mut rows = table(&["function", ">calls", ">found nothing", ">bytes", ">time"]);
    for (name, calls) in &sum.functions {
        rows.add_row([
            name.clone(),
            calls.calls.to_string(),
            calls.unsuccessful.to_string(),
            calls.bytes.to_string(),
            Rounded(Time::from_nanos(calls.nanos as f64)).to_string(),
        ]);
    }
    println_out!("{rows}");
    let each = sum.file_bytes as f64 / sum.calls().max(1) as f64;
    println_out!(
        "{}: {ranks} ranks, {} calls, {} bytes ({each:.1} a call); computation {} wall, {} thread CPU",
        folder.display(),
        sum.calls(),
        sum.file_bytes,
        Rounded(Time::from_nanos(sum.burst as f64)),
        Rounded(Time::from_nanos(sum.cpu as f64)),
    );
    if sum.not_modelled > 0 {
        println_out!("{} calls have no model and are left out of a replay", sum.not_modelled);
    }
    let open = ranks as u32 - sum.ended.min(ranks as u32);
    if open > 0 {
        println_out!(
            "{open} ranks did not come to their end; {} of them because their budget was used up",
            sum.stopped
        );
    }
}
