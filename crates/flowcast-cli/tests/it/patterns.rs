//! Pattern files that are too large for the repository.

use std::{
    fmt::Write,
    process::{Command, Output},
};

const LINES: usize = 1_000_000;

fn predict(last: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for line in 1..LINES {
        writeln!(text, "{} -> {} 1kB @ {line}us", line % 64, (line + 1) % 64).unwrap();
    }
    std::fs::write(folder.path().join("large.pattern"), text + last).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowcast"));
    command.args([
        "predict",
        "large.pattern",
        "--network",
        "gige-lam",
        "--model",
        "fair",
    ]);
    command.current_dir(folder.path()).output().unwrap()
}

#[test]
fn an_error_in_the_last_of_a_million_lines_has_its_line_number() {
    for (last, expected) in [
        (
            "0 -> 1 1MB @ -3ms",
            "large.pattern:1000000: found `-3ms`, expected a start that is not negative",
        ),
        (
            "7 -> 7 1MB\n",
            "large.pattern:1000000: found a flow from node 7 to itself",
        ),
    ] {
        let output = predict(last);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{last}: {said}");
        assert!(said.contains(expected), "{last}: {said}");
        assert!(
            output.stdout.is_empty() && said.lines().count() == 1,
            "{last}: {said}"
        );
    }
}
