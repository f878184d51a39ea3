//! The table of messages as Parquet, read by a program that is not ours.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::{Result, ensure};

use super::{Outcome, cargo, programs::run_within, python_modules};

const FOLDER: &str = "target/parquet";
/// A Python of the suite's own, where the system's cannot read Parquet.
const OWN_PYTHON: &str = "target/parquet/python";
const TRACE: &str = "crates/flowcast/examples/data/lu.S.4.dim.gz";

/// Prints the rows as the CSV has them.
const READ: &str = "
import sys
try:
    import duckdb
    rows = duckdb.sql(f\"select * from '{sys.argv[1]}'\").fetchall()
except ImportError:
    import pyarrow.parquet
    rows = [tuple(row.values()) for row in pyarrow.parquet.read_table(sys.argv[1]).to_pylist()]
expected = [line.split(',') for line in open(sys.argv[2]) if line[0].isdigit()]
assert len(rows) == len(expected) > 1000, (len(rows), len(expected))
for row, texts in zip(rows, expected):
    assert all(value == type(value)(text) for value, text in zip(row, texts)), (row, texts)
";

/// Replays a trace, writes its messages both ways, and compares.
pub(super) fn check() -> Outcome {
    let Some(python) = python_modules::that_imports(&["duckdb", "pyarrow"], OWN_PYTHON) else {
        return Outcome::Skipped(
            "Python has neither duckdb nor pyarrow, and pip cannot install pyarrow".into(),
        );
    };
    match cargo::run(&["build", "--release", "--package", "flowcast-cli"]) {
        Outcome::Passed => write_and_compare(&python).into(),
        other => other,
    }
}

fn write_and_compare(python: &Path) -> Result<()> {
    fs::create_dir_all(FOLDER)?;
    let (parquet, csv) = (
        Path::new(FOLDER).join("messages.parquet"),
        Path::new(FOLDER).join("messages.csv"),
    );
    for path in [&parquet, &csv] {
        let mut predict = Command::new(crate::built("flowcast"));
        predict
            .args([
                "predict",
                TRACE,
                "--network",
                "gige-tcp",
                "--json",
                "--write",
            ])
            .arg(format!("messages={}", path.display()));
        let status = run_within(
            Duration::from_secs(60),
            predict.stdout(std::process::Stdio::null()),
        )?;
        ensure!(
            status.success(),
            "flowcast predict --write messages={}: {status}",
            path.display()
        );
    }
    let mut python = Command::new(python);
    let status = run_within(
        Duration::from_secs(60),
        python.args(["-c", READ]).args([&parquet, &csv]),
    )?;
    ensure!(
        status.success(),
        "{} differs from {}",
        parquet.display(),
        csv.display()
    );
    Ok(())
}
