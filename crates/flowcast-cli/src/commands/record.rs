//! `flowcast record`: runs an MPI program with the recorder loaded into it.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use flowcast::{
    formats::read::{PROVENANCE, disturbance},
    recording::{
        decode::RankFile,
        format,
        summary::{self, Calls, Summary},
        time_axis::{Clocks, TimeAxis},
    },
    table::{Document, Grouped, Record as Fields, Table, rows},
    trace::recorded_times::measured,
    units::{Bytes, Rounded, Time},
};

use super::doctor;
use crate::recording::{CommandResult, Loading, disturbed_by, open_recording, recorder};
use flowcast_terminal::{
    exit::ProgramFailed, files::write_text, interrupt, output::Format, provenance, say,
};

/// Record the communication of an MPI program while it runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast record -o cg.rec -- mpirun -np 8 ./cg.S.x
  flowcast predict cg.rec --network gige-tcp
  flowcast record -o long.rec --max-file-size 20MB -- mpirun -np 64 --hostfile hosts ./solver
  flowcast record --show cg.rec --json")]
pub(crate) struct Record {
    /// Output folder, new or empty
    #[arg(short, long, value_name = "FOLDER", required_unless_present = "show")]
    output: Option<PathBuf>,
    /// Summarize an existing recording and run nothing
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["output", "command"])]
    show: Option<PathBuf>,
    /// Summarize only this rank
    #[arg(long, value_name = "RANK")]
    only: Option<u32>,
    /// Maximum size of a rank's file, such as 20MB; repeated sequences of calls are folded, and most of their repetitions
    /// share their mean times
    #[arg(long, value_name = "SIZE")]
    max_file_size: Option<Bytes>,
    /// Memory for the calls of a rank that are not yet on disk
    #[arg(long, value_name = "SIZE", default_value = "256KiB")]
    buffer: Bytes,
    /// Read rank 0's clock at every rank at the start and the end of the program, so that times of several hosts are on one
    /// axis (some hundred messages for each rank)
    #[arg(long)]
    clocks: bool,
    /// Library to load into the program instead of Flowcast's own
    #[arg(long, value_name = "FILE.so")]
    recorder: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
    /// Launcher with its options, and program with its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "show")]
    command: Vec<OsString>,
}

impl Record {
    /// Runs the program, or reads a recording, and prints a summary.
    pub(crate) fn run(self) -> Result<()> {
        if let Some(folder) = &self.show {
            return self.print(folder, &open_recording(folder)?).map(drop);
        }
        let folder = self
            .output
            .as_deref()
            .context("found no --output, expected --output TRACE")?;
        let recorder = recorder(self.recorder.as_deref())?;
        let disturbed = doctor::warn_of_other_programs(
            "computation times may be too long; the recording is marked as disturbed",
        );
        let folder = &prepare(folder, disturbed)?;
        let loading = Loading {
            recorder: &recorder.path,
            folder,
            buffer: self.buffer,
            budget: self.max_file_size,
            only_times: false,
            clocks: self.clocks,
        };
        let ended = loading.run(
            &self.command,
            |program| Ok(Command::new(program)),
            interrupt::pass_on_to,
        )?;
        let said = self.sum_up(folder, &ended)?;
        // MPICH's launcher exits with 0 if it is interrupted.
        let code = match ended.code() {
            0 if said.is_some() && interrupt::was_passed_on() => 128 + 2,
            code => code,
        };
        match (said, code) {
            (None, 0) => Ok(()),
            (Some(said), 0) => {
                say!("flowcast: note: {said}");
                Ok(())
            }
            (said, code) => Err(ProgramFailed {
                said: said
                    .unwrap_or_else(|| format!("the program ended with {}", ended.status_text())),
                code,
            }
            .into()),
        }
    }

    /// Prints a summary of the recording. Returns the missing part and its reason, if any.
    fn sum_up(&self, folder: &Path, ended: &CommandResult) -> Result<Option<String>> {
        let path = folder.join(format::RECORDING);
        if !path.exists() {
            // The next attempt finds an empty folder.
            let _ = fs::remove_file(folder.join(PROVENANCE));
            return Ok(Some(ended.nothing_recorded(&self.command)));
        }
        let CommandResult { status, reason } = ended;
        if !status.success() {
            let text = format!("{}{}{status}\n", fs::read_to_string(&path)?, format::FAILED);
            // On a full disk, the note may fail to be written.
            let _ = write_text(&path, &text);
        }
        let files = match open_recording(folder) {
            Ok(files) => files,
            // The folder was empty before, so it contains what the system let the ranks write.
            Err(error) => {
                let reason = reason.clone().unwrap_or_else(|| format!("{error:#}"));
                return Ok(Some(format!(
                    "the recording in {} cannot be read: {reason}",
                    folder.display()
                )));
            }
        };
        let cut = self.print(folder, &files)?;
        let (folder, ranks) = (folder.display(), files.len());
        let because = reason
            .as_ref()
            .map_or(String::new(), |reason| format!(" ({reason})"));
        let kept = format!(
            "{folder} contains the calls of {ranks} ranks until then{because}: `flowcast predict {folder} --incomplete` reads it"
        );
        Ok(if interrupt::was_passed_on() && cut > 0 {
            Some(format!("interrupted; {kept}"))
        } else if !status.success() {
            Some(format!(
                "the program ended with {}; {kept}",
                ended.status_text()
            ))
        } else if cut > 0 {
            let reason = reason
                .as_deref()
                .unwrap_or("they did not call MPI_Finalize");
            Some(format!(
                "{cut} of {ranks} ranks were not recorded to their end: {reason}"
            ))
        } else {
            reason.clone()
        })
    }

    /// Prints the summary and returns the number of ranks that were cut off.
    fn print(&self, folder: &Path, files: &[RankFile]) -> Result<usize> {
        if let Some(rank) = self.only.filter(|rank| *rank as usize >= files.len()) {
            bail!(
                "--only: found {rank}, expected a rank below {}",
                files.len()
            );
        }
        let mut sum = Summary::default();
        let chosen = files
            .iter()
            .filter(|file| self.only.is_none_or(|rank| file.header.rank.0 == rank));
        chosen
            .clone()
            .for_each(|file| sum.add(&summary::summarize(file)));
        let axis = TimeAxis::new(files);
        let begins = rows(chosen)
            .field("rank", |file| file.header.rank)
            .field("host", |file| {
                file.header.fields.get("host").map_or("", String::as_str)
            })
            .field("begin_s", |file| axis.at(file.header.rank, Time::ZERO));
        let document = document(folder, begins.into(), &sum, measured(files).total);
        let disturbed = disturbed_by(folder).as_deref().map(disturbance);
        let document = document.noted(disturbed);
        self.format.print(&with_clocks(document, axis.clocks))?;
        Ok(files
            .iter()
            .filter(|file| !file.ended && !file.stopped)
            .count())
    }
}

/// Creates the folder, with a note on the origin of the recording.
pub(super) fn prepare(folder: &Path, disturbed: Option<String>) -> Result<PathBuf> {
    let made = fs::create_dir_all(folder).and_then(|()| {
        let is_used = fs::read_dir(folder)?.next().is_some();
        Ok((is_used, fs::canonicalize(folder)?))
    });
    let (is_used, absolute) = made.with_context(|| format!("cannot write {}", folder.display()))?;
    ensure!(
        !is_used,
        "--output: found files in {}, expected a new or empty folder",
        folder.display()
    );
    let mut provenance = provenance::of_this_run();
    provenance.extend(disturbed.map(|found| ("disturbed_by".to_owned(), found)));
    let note = Document::new("recording")
        .schema("flowcast/recording/1")
        .field("provenance", provenance);
    write_text(&absolute.join(PROVENANCE), &format!("{}\n", note.json()?))?;
    Ok(absolute)
}

/// Summary of a recording. `run` is the time from the end of `MPI_Init` to the start of `MPI_Finalize` on the rank where it
/// is longest.
fn document(folder: &Path, begins: Table, sum: &Summary, run: Time) -> Document {
    let (trace, ranks, calls) = (folder.display(), begins.rows, sum.calls());
    let functions = rows(&sum.functions)
        .column("name", "function", |(name, _)| name)
        .column("calls", "calls", |(_, calls)| Grouped(calls.calls))
        .column("unsuccessful", "unsuccessful", |(_, calls)| {
            Grouped(calls.unsuccessful)
        })
        .column("bytes", "bytes", |(_, calls)| Grouped(calls.bytes))
        .column("seconds", "time", |(_, calls)| {
            Time::from_nanos(calls.nanos as f64)
        })
        .field("left_out", |(_, calls)| calls.left_out);
    let [compute, cpu] = [sum.burst, sum.cpu].map(|nanos| Time::from_nanos(nanos as f64));
    let left_out: Vec<_> = sum
        .functions
        .iter()
        .filter(|(_, calls)| calls.left_out)
        .collect();
    let words: Vec<String> = left_out.iter().copied().map(in_words).collect();
    let open = (ranks as u32).saturating_sub(sum.ended);
    let spawns = sum
        .functions
        .keys()
        .any(|name| name.starts_with("MPI_Comm_spawn"));
    let spawned = "processes that MPI_Comm_spawn started are not recorded";
    Document::new("record")
        .field("trace", trace.to_string())
        .field("ranks", ranks)
        .field("begins", begins)
        .field("ended", sum.ended)
        .field("stopped", sum.stopped)
        .field("calls", calls)
        .field("not_modelled", left_out.iter().map(|(_, calls)| calls.calls).sum::<u64>())
        .field("run_s", run)
        .field("compute_s", compute)
        .field("thread_cpu_s", cpu)
        .field("file_bytes", sum.file_bytes)
        .table("functions", functions)
        .line(format!(
            "{trace}: {ranks} ranks, run time {} from MPI_Init to MPI_Finalize, {} calls, {} bytes ({:.1} per call); computation of all ranks: {} \
             wall, {} thread CPU",
            Rounded(run),
            Grouped(calls),
            Grouped(sum.file_bytes),
            sum.file_bytes as f64 / calls.max(1) as f64,
            Rounded(compute),
            Rounded(cpu)
        ))
        .lines(spawns.then_some(spawned))
        .lines((!words.is_empty()).then(|| {
            format!("not modelled, ignored by a replay: {}", words.join(", "))
        }))
        .lines((open > 0).then(|| {
            format!(
                "{open} ranks were not recorded to their end; {} of them reached --max-file-size",
                sum.stopped
            )
        }))
}

/// Adds the state of the clocks, which shows if times of different hosts can be compared.
fn with_clocks(document: Document, clocks: Clocks) -> Document {
    match clocks {
        Clocks::Unknown => document.field("clocks", state("unknown")),
        Clocks::Shared => document.field("clocks", state("shared")),
        Clocks::Synchronised(known_to) => document
            .field("clocks", state("synchronised").field("known_to_s", known_to))
            .line(format!("clock offsets of hosts are known to within {}", Rounded(known_to))),
        Clocks::Apart(ranks) => document.field("clocks", state("apart").field("ranks", ranks)).line(
            format!("{ranks} ranks have unsynchronised clocks: times of different hosts cannot be compared (record with --clocks)"),
        ),
    }
}

fn state(name: &str) -> Fields {
    Fields::new().field("state", name)
}

/// Text with the number of calls of a function, and with the bytes if they are known.
fn in_words((name, calls): (&String, &Calls)) -> String {
    let bytes = match calls.bytes {
        0 => String::new(),
        bytes => format!(" ({} bytes)", Grouped(bytes)),
    };
    format!("{} {name}{bytes}", Grouped(calls.calls))
}
