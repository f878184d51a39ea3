//! Recordings as folders: loads the recorder into a program and reads the files that it writes.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use anyhow::{Context, Result, bail};
use flowcast::{
    formats::read::{self, recorded_files},
    recording::{decode::RankFile, format},
    trace::ReadOptions,
    units::Bytes,
};
use tempfile::TempDir;

use crate::{
    embedded,
    mpi_launcher::{self, Launcher},
};
use flowcast_terminal::{
    exit::EnvironmentLacks, files::read_bytes, input_maps::bytes, trace_args::threads,
};

/// File name of the library that is loaded into programs.
pub(crate) const RECORDER: &str = "libflowcast_record.so";
/// Hint for a user without a recorder.
pub(crate) const WHERE_EXPECTED: &str = "in flowcast (built in by `cargo build --release`), beside it, or at the path \
                                         in --recorder or FLOWCAST_RECORDER";
/// Environment variable with another place of the recorder.
pub(crate) const RECORDER_VARIABLE: &str = "FLOWCAST_RECORDER";

/// Place of a recorder.
pub(crate) enum RecorderPlace {
    /// In a separate file.
    File(PathBuf),
    /// In this program, which writes it to a file before it is loaded.
    Embedded,
}

/// Finds the recorder at the place that the user names; otherwise beside this program, where packages install it, or in this
/// program.
pub(crate) fn find_recorder(given: Option<&Path>) -> Option<RecorderPlace> {
    if let Some(path) = named(given) {
        return fs::canonicalize(path).ok().map(RecorderPlace::File);
    }
    recorder_beside_command()
        .map(RecorderPlace::File)
        .or_else(|| embedded::is_here().then_some(RecorderPlace::Embedded))
}

fn recorder_beside_command() -> Option<PathBuf> {
    let own = fs::canonicalize(env::current_exe().ok()?).ok()?;
    let folder = own.parent()?;
    let places = [
        folder.to_owned(),
        folder.join("deps"),
        folder.join("../lib/flowcast"),
        folder.join("../lib"),
    ];
    places
        .into_iter()
        .find_map(|place| fs::canonicalize(place.join(RECORDER)).ok())
}

/// The recorder as a file.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Absolute path of the recorder.
    pub path: PathBuf,
    /// Temporary folder of the recorder, if it exists only for this run.
    _folder: Option<TempDir>,
}

/// The recorder, or an error that lists its expected places.
pub(crate) fn recorder(given: Option<&Path>) -> Result<Recorder> {
    match find_recorder(given) {
        Some(RecorderPlace::File(path)) => Ok(Recorder {
            path,
            _folder: None,
        }),
        Some(RecorderPlace::Embedded) => {
            let (path, _folder) =
                embedded::unpack().map_err(|error| EnvironmentLacks(format!("{error:#}")))?;
            Ok(Recorder { path, _folder })
        }
        None => {
            let sought = named(given).unwrap_or_else(|| RECORDER.into());
            bail!(EnvironmentLacks(format!(
                "found no {}, expected it {WHERE_EXPECTED}",
                sought.display()
            )))
        }
    }
}

/// Place that the user names.
fn named(given: Option<&Path>) -> Option<PathBuf> {
    given
        .map(PathBuf::from)
        .or_else(|| env::var_os(RECORDER_VARIABLE).map(PathBuf::from))
}

/// Options of the recorder.
#[derive(Debug)]
pub(crate) struct Loading<'a> {
    /// Path of the recorder's library, which the program loads through `LD_PRELOAD`.
    pub recorder: &'a Path,
    /// Absolute path of the folder to which it writes.
    pub folder: &'a Path,
    /// Size of each rank's buffer for calls that are not written yet.
    pub buffer: Bytes,
    /// Maximum size of the output of each rank.
    pub budget: Option<Bytes>,
    /// `true` if only the times of the run and of its regions are needed, and no other call is intercepted.
    pub only_times: bool,
    /// `true` if ranks read each other's clocks.
    pub clocks: bool,
}

/// Result of a recorded command.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub status: ExitStatus,
    /// Message of a rank: the reason why its recording ended early, or did not start.
    pub reason: Option<String>,
}

impl CommandResult {
    /// Exit code of the command. If a signal has ended it, the same code as in a shell.
    pub(crate) fn code(&self) -> u8 {
        let code = self
            .status
            .code()
            .or_else(|| Some(128 + self.status.signal()?));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }

    /// Message for a command that recorded nothing.
    pub(crate) fn nothing_recorded(&self, command: &[OsString]) -> String {
        let command = command.join(" ".as_ref());
        let reason = self.reason.as_deref().unwrap_or(
            "it calls no MPI, is linked statically, or could not start (`flowcast doctor -- COMMAND` shows more)",
        );
        format!(
            "`{}` ended with {} and nothing was recorded: {reason}",
            command.to_string_lossy(),
            self.status_text()
        )
    }

    /// Exit status for messages: `exit status 132`, `signal 9 (SIGKILL)`.
    pub(crate) fn status_text(&self) -> String {
        self.status.to_string().replacen(": ", " ", 1)
    }
}

impl Loading<'_> {
    /// Runs a command with the recorder. `process` creates the process of a program, here or in a lab, and `wait` waits for
    /// its end.
    pub(crate) fn run(
        &self,
        command: &[OsString],
        process: impl FnOnce(&OsStr) -> Result<Command>,
        wait: impl FnOnce(&mut Command) -> io::Result<ExitStatus>,
    ) -> Result<CommandResult> {
        let reason = self.folder.join(format::REASON);
        fs::write(&reason, [0; format::REASON_BYTES])
            .with_context(|| format!("cannot write {}", reason.display()))?;
        let status = self.start(command, process, wait);
        let left = fs::read(&reason).unwrap_or_default();
        let _ = fs::remove_file(&reason);
        let text = left.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(CommandResult {
            status: status?,
            reason: (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned()),
        })
    }

    fn start(
        &self,
        command: &[OsString],
        process: impl FnOnce(&OsStr) -> Result<Command>,
        wait: impl FnOnce(&mut Command) -> io::Result<ExitStatus>,
    ) -> Result<ExitStatus> {
        let budget = self.budget.map(|budget| budget.0.to_string().into());
        let variables: [(&str, Option<OsString>); 7] = [
            ("LD_PRELOAD", Some(preload(self.recorder))),
            ("FLOWCAST_RECORD", Some(self.folder.into())),
            (
                "FLOWCAST_RECORD_BUFFER",
                Some(self.buffer.0.to_string().into()),
            ),
            (SANITIZER, Some(sanitizer_options())),
            ("FLOWCAST_RECORD_BUDGET", budget),
            ("FLOWCAST_RECORD_TIMES", self.only_times.then(|| "1".into())),
            ("FLOWCAST_RECORD_CLOCKS", self.clocks.then(|| "1".into())),
        ];
        let variables = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let (names, values): (Vec<&str>, Vec<OsString>) = variables.unzip();
        let launcher = Launcher::by_program(&command[0]);
        let forwarded = mpi_launcher::forward(launcher, command, &names);
        let (program, arguments) = forwarded
            .command
            .split_first()
            .context("found no command")?;
        let mut process = process(program)?;
        process
            .args(arguments)
            .envs(names.iter().zip(values))
            .envs(forwarded.variables);
        wait(&mut process).map_err(|error| {
            EnvironmentLacks(format!("cannot run {}: {error}", program.to_string_lossy())).into()
        })
    }
}

/// Options of the address sanitizer, which ends programs if a library is loaded before it.
const SANITIZER: &str = "ASAN_OPTIONS";

fn sanitizer_options() -> OsString {
    let mut options = env::var_os(SANITIZER).unwrap_or_default();
    if !options.is_empty() {
        options.push(":");
    }
    options.push("verify_asan_link_order=0");
    options
}

/// Value of `LD_PRELOAD`: the recorder, followed by the libraries that are already there.
fn preload(recorder: &Path) -> OsString {
    let mut value: OsString = recorder.into();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    value
}

/// Disturbance of the machine during the recording, from the recording's folder.
pub(crate) fn disturbed_by(folder: &Path) -> Option<String> {
    read::disturbed_by(&fs::read(folder.join(read::PROVENANCE)).ok()?)
}

/// Files of all ranks of a recording.
pub(crate) fn open_recording(folder: &Path) -> Result<Vec<RankFile>> {
    let path = folder.join(format::RECORDING);
    let text = read_bytes(&path)?;
    Ok(recorded_files(
        &path.display().to_string(),
        &text,
        &mut |name: &str| bytes(&folder.join(name)),
        ReadOptions { threads: threads() },
    )?)
}
