//! Other programs: whether they are there, and running them with a time limit.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

/// The program's place, if it is on the search path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Whether this process may install packages and must not use a browser's sandbox.
pub(crate) fn is_root() -> bool {
    output("id", &["-u"]).is_ok_and(|text| text.trim() == "0")
}

/// What a program prints, if it succeeds.
///
/// # Errors
/// It cannot be run or fails; its last words are in the message.
pub(crate) fn output(
    program: impl AsRef<OsStr>,
    arguments: &[impl AsRef<OsStr>],
) -> Result<String> {
    let mut command = Command::new(program);
    let result = command.args(arguments).stdin(Stdio::null()).output();
    let result = result.with_context(|| format!("cannot run {}", words(&command)))?;
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        bail!("{}: {}: {}", words(&command), result.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

/// Runs a program with its output shown.
///
/// # Errors
/// It cannot be run or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", words(command)))?;
    ensure!(status.success(), "{}: {status}", words(command));
    Ok(())
}

/// The `cargo` that runs this program; otherwise the one in the search path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The kind of machine that the compiler builds for.
pub(crate) fn host() -> Option<String> {
    let version = output("rustc", &["-vV"]).ok()?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
}

fn words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a program, ending it when `limit` is over.
///
/// # Errors
/// It cannot be run or does not end in time.
pub(crate) fn run_within(limit: Duration, command: &mut Command) -> Result<ExitStatus> {
    let name = Path::new(command.get_program()).display().to_string();
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("{name} did not end within {} s", limit.as_secs());
        }
        sleep(Duration::from_millis(50));
    }
}

/// Which share of the processors is taken while this process does nothing, over half a second; 0 where the system does not say.
pub(crate) fn other_programs() -> f64 {
    let ticks = || -> Option<(u64, u64)> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let all: Vec<u64> = text
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .map_while(|tick| tick.parse().ok())
            .collect();
        Some((all.iter().sum(), all.get(3)? + all.get(4)?))
    };
    let before = ticks();
    sleep(Duration::from_millis(500));
    let (Some((all, idle)), Some((all_after, idle_after))) = (before, ticks()) else {
        return 0.0;
    };
    1.0 - (idle_after - idle) as f64 / (all_after - all).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let limit = Duration::from_millis(100);
        let error = run_within(limit, Command::new("sleep").arg("60")).unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
        assert!(
            run_within(Duration::from_secs(20), &mut Command::new("true"))
                .unwrap()
                .success()
        );
    }

    #[test]
    fn a_failed_program_reports_its_reason() {
        assert!(find("sh").is_some() && find("no-such-program-here").is_none());
        let error = output("sh", &["-c", "echo reason >&2; exit 3"]).unwrap_err();
        assert!(error.to_string().contains("reason"), "{error}");
    }
}
