//! Every command with every count at its limit, within 2 GB of address space and 60 seconds of a processor.
//!
//! The cases stand in `crates/flowcast-cli/tests/limits`; a test there compares them with the options that there are.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::programs;

/// Which cases are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those that are marked for it.
    Selection,
    /// All.
    All,
}

/// A command, and how it is to end.
#[derive(Debug, PartialEq, Eq)]
struct Case<'a> {
    arguments: &'a str,
    is_selected: bool,
    codes: &'static [i32],
}

const CASES: &str = "crates/flowcast-cli/tests/limits";
/// Kilobytes of address space, and seconds of a processor; a command may also have to wait.
const LIMITED: &str = "ulimit -v 2000000 && ulimit -t 60 && exec timeout 600 \"$0\" \"$@\"";

/// Runs the cases on a release build of the command.
///
/// # Errors
/// Each command that ends otherwise than its case says.
pub(super) fn check(extent: Extent) -> Result<()> {
    programs::run(programs::cargo().args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "flowcast-cli",
    ]))?;
    let command = std::path::absolute(crate::target().join("release/flowcast"))?;
    let text = std::fs::read_to_string(Path::new(CASES).join("cases.txt"))?;
    let folder = folder()?;
    let chosen = cases(&text).filter(|case| extent == Extent::All || case.is_selected);
    let failed: Vec<String> = chosen
        .filter_map(|case| run(&command, &folder, &case).err())
        .map(|error| format!("{error:#}"))
        .collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// A folder with the files of the cases, the examples and the files of the sessions.
fn folder() -> Result<PathBuf> {
    let folder = crate::target().join("limits");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    for file in std::fs::read_dir(CASES)? {
        let file = file?;
        std::fs::copy(file.path(), folder.join(file.file_name()))?;
    }
    for (name, path) in [
        ("examples", "examples"),
        ("cmd", "crates/flowcast-cli/tests/cmd"),
    ] {
        symlink(std::path::absolute(path)?, folder.join(name))?;
    }
    Ok(folder)
}

fn cases(text: &str) -> impl Iterator<Item = Case<'_>> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| Case {
        arguments: line.trim_start_matches(['*', '?', ' ']),
        is_selected: line.starts_with('*'),
        codes: if line.starts_with('?') { &[2, 3] } else { &[0] },
    })
}

fn run(command: &Path, folder: &Path, case: &Case) -> Result<()> {
    let mut limited = Command::new("bash");
    limited
        .current_dir(folder)
        .args(["-c", LIMITED])
        .arg(command);
    let output = limited
        .args(case.arguments.split(' '))
        .output()
        .context("bash")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    println!("{} {}: {last}", output.status, case.arguments);
    ensure!(
        output
            .status
            .code()
            .is_some_and(|code| case.codes.contains(&code)),
        "{}: found {}, expected code {:?}: {last}",
        case.arguments,
        output.status,
        case.codes
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_select_cases_and_set_their_exit_codes() {
        let all: Vec<Case> = cases("# why\n* a --n=1\n? b\nc d\n").collect();
        let case = |arguments, is_selected, codes| Case {
            arguments,
            is_selected,
            codes,
        };
        assert_eq!(
            all,
            [
                case("a --n=1", true, &[0]),
                case("b", false, &[2, 3]),
                case("c d", false, &[0])
            ]
        );
    }
}
