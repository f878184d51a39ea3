//! `cargo xtask golden DIR`: cases with values known from elsewhere, run through the public library.
//!
//! A `*.json` file holds `cases`, each with `id`, `kind`, `input`, `expected` and `tolerance`. A table named in
//! [`replay::TABLES`] holds one case in each cell of its result columns. Everything else under DIR is an input of a
//! table, a note, or unknown; an unknown file, kind or column counts as a failed case.
//!
//! To add a kind: write `fn kind(case: &Case) -> Result<(), Mismatch>` in the file of its seed and name it in that
//! file's `KINDS`. To add a column of a table: write `fn column(row: &Row, expected: &str) -> Result<(), Mismatch>` in
//! `workloads.rs` and name it in the table's list there. A check reads all it needs from the case, never an id.

mod case;
mod concurrent;
mod dimemas;
mod ethernet;
mod files;
mod flow_cuts;
mod lichei;
mod lichei_rails;
mod martinasso;
mod replay;
mod report;
mod simulation;
mod zhu;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use case::{Case, Mismatch};
use files::{Place, Role};
pub(crate) use report::Report;

/// Checks one case of a kind.
type Check = fn(&Case) -> Result<(), Mismatch>;

/// The kinds of all seeds.
fn check_of(kind: &str) -> Option<Check> {
    let concurrent = [flow_cuts::KINDS, ethernet::KINDS];
    let measured = [martinasso::KINDS, zhu::KINDS];
    let traces_and_rails = [dimemas::KINDS, lichei::KINDS, lichei_rails::KINDS];
    let seeds = concurrent
        .into_iter()
        .chain(measured)
        .chain(traces_and_rails);
    seeds
        .flatten()
        .find(|(name, _)| *name == kind)
        .map(|(_, check)| *check)
}

/// Runs every case under `folder`.
///
/// # Errors
/// A folder that cannot be read or that holds no case.
pub(crate) fn run(folder: &Path) -> Result<Report> {
    let mut report = Report::default();
    for place in files::under(folder)? {
        run_file(&place, &mut report)?;
    }
    ensure!(
        !report.is_empty(),
        "{}: found no golden case, expected *.json with cases or replay tables",
        folder.display()
    );
    Ok(report)
}

fn run_file(place: &Place, report: &mut Report) -> Result<()> {
    match place.role {
        Role::Input => {}
        Role::Unknown => report.add("file", &place.name, Err(Mismatch::Unknown("file".into()))),
        Role::Cases => {
            let text = read(&place.path)?;
            match cases(&text) {
                Ok(cases) => cases
                    .into_iter()
                    .for_each(|case| run_case(case, &place.name, report)),
                Err(mismatch) => report.add("file", &place.name, Err(mismatch)),
            }
        }
        Role::Table => replay::run(&place.path, &read(&place.path)?, report),
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn cases(text: &str) -> Result<Vec<Value>, Mismatch> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| Mismatch::Malformed(error.to_string()))?;
    match document {
        Value::Object(mut fields) => match fields.remove("cases") {
            Some(Value::Array(cases)) if !cases.is_empty() => Ok(cases),
            _ => Err(Mismatch::Malformed(
                "expected a list `cases` with at least one case".into(),
            )),
        },
        _ => Err(Mismatch::Malformed(
            "expected an object with `cases`".into(),
        )),
    }
}

fn run_case(document: Value, file: &str, report: &mut Report) {
    match Case::new(document) {
        Ok(case) => {
            let outcome = match check_of(&case.kind) {
                Some(check) => guarded(|| check(&case)),
                None => Err(Mismatch::Unknown("kind".into())),
            };
            report.add(&case.kind, &case.id, outcome);
        }
        Err(mismatch) => report.add("case", file, Err(mismatch)),
    }
}

/// A panic inside the library is a failed case, not the end of the run.
fn guarded(check: impl FnOnce() -> Result<(), Mismatch>) -> Result<(), Mismatch> {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref().copied());
        Err(Mismatch::Panicked(
            message.unwrap_or("without a message").to_owned(),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_text(case: &str) -> Report {
        let mut report = Report::default();
        run_case(
            serde_json::from_str(case).unwrap(),
            "test.json",
            &mut report,
        );
        report
    }

    #[test]
    fn a_correct_case_passes_and_the_same_case_with_another_value_fails() {
        let case = |steps: u32| {
            format!(
                r#"{{"id":"x","kind":"nsteps","input":{{"P":8,"buses":[2]}},
                     "expected":{{"stage_counts":[4,2,1],"nsteps":{{"2":{steps}}}}},"tolerance":{{"abs":0}}}}"#
            )
        };
        assert_eq!(
            (run_text(&case(4)).passed(), run_text(&case(4)).failed()),
            (1, 0)
        );
        assert_eq!(
            (run_text(&case(5)).passed(), run_text(&case(5)).failed()),
            (0, 1)
        );
    }

    #[test]
    fn an_unknown_kind_a_missing_field_and_a_panic_are_failures() {
        let unknown =
            r#"{"id":"x","kind":"astrology","input":{},"expected":{},"tolerance":{"abs":0}}"#;
        assert_eq!(run_text(unknown).failed(), 1);
        let missing =
            r#"{"id":"x","kind":"nsteps","input":{},"expected":{},"tolerance":{"abs":0}}"#;
        assert_eq!(run_text(missing).failed(), 1);
        assert!(
            matches!(guarded(|| panic!("boom")), Err(Mismatch::Panicked(text)) if text == "boom")
        );
    }

    #[test]
    fn a_file_without_cases_is_a_failure() {
        for text in ["[]", "{}", r#"{"cases":[]}"#, "{"] {
            assert!(cases(text).is_err(), "{text}");
        }
    }
}
