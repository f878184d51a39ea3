//! Results of a sweep as lines: a header that identifies the sweep, then one line for each set.

use std::collections::BTreeMap;

use flowcast_replay::sweep::SetOutcome;
use serde_json::Value;
use thiserror::Error;

use super::grid::ParameterGrid;
use crate::Interval;

/// Reason why lines are not rows of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}found {found}, expected {expected}")]
pub struct RowsError {
    /// File and line, followed by a colon; empty if they are unknown.
    place: String,
    found: String,
    expected: &'static str,
}

impl RowsError {
    fn at(place: String, found: String, expected: &'static str) -> RowsError {
        RowsError {
            place,
            found,
            expected,
        }
    }
}

/// Format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Comma-separated values under a line with the names of the columns.
    Csv,
    /// A JSON object for each set.
    JsonLines,
}

use Form::*;

/// Lines before the rows, which are the same for all parts of a sweep and for no other sweep.
pub(super) fn header(
    form: Form,
    description: &Value,
    grid: &ParameterGrid,
    has_intervals: bool,
) -> String {
    match form {
        JsonLines => format!("{description}\n"),
        Csv => {
            let fields: String = grid
                .axes()
                .iter()
                .map(|axis| format!("{},", axis.column))
                .collect();
            let ends = if has_intervals { ",low_s,high_s" } else { "" };
            format!("# {description}\nset,{fields}makespan_s,communication_share{ends}\n")
        }
    }
}

/// Result of a set.
#[derive(Debug)]
pub(super) struct SetResult {
    /// Times at which the ranks ended.
    pub outcome: SetOutcome,
    /// Interval of the makespan: `None` if it was not requested, `Some(None)` if it is unknown.
    pub interval: Option<Option<Interval>>,
}

/// The line of a set.
pub(super) fn row(form: Form, grid: &ParameterGrid, set: usize, found: &SetResult) -> String {
    let (makespan, share) = (
        found.outcome.makespan().as_seconds(),
        found.outcome.communication_share(),
    );
    let ends = found.interval.as_ref().map(ends);
    match form {
        Csv => {
            let values: String = grid.shown(set).map(|value| format!("{value},")).collect();
            let ends = match ends {
                None => String::new(),
                Some(None) => ",,".to_owned(),
                Some(Some([low, high])) => format!(",{low},{high}"),
            };
            format!("{set},{values}{makespan},{share}{ends}\n")
        }
        JsonLines => {
            let names = grid.axes().iter().map(|axis| axis.column.as_str());
            let values: String = names
                .zip(grid.shown(set))
                .map(|(name, value): (&str, &str)| match value.parse::<f64>() {
                    Ok(_) => format!("{}:{value},", Value::from(name)),
                    Err(_) => format!("{}:{},", Value::from(name), Value::from(value)),
                })
                .collect();
            let ends = match ends {
                None => String::new(),
                Some(None) => ",\"interval_s\":null".to_owned(),
                Some(Some([low, high])) => format!(",\"interval_s\":[{low},{high}]"),
            };
            format!(
                "{{\"set\":{set},{values}\"makespan_s\":{makespan},\"communication_share\":{share}{ends}}}\n"
            )
        }
    }
}

fn ends(known: &Option<Interval>) -> Option<[f64; 2]> {
    known
        .as_ref()
        .map(|one| [one.low, one.high].map(|end| end.as_seconds()))
}

/// Rows of a sweep, or of a part of it, by set.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rows(BTreeMap<usize, String>);

impl Rows {
    /// Adds the row of a set.
    ///
    /// # Errors
    /// The set has a row already.
    pub fn insert(&mut self, set: usize, line: String) -> Result<(), RowsError> {
        match self.0.insert(set, line) {
            None => Ok(()),
            Some(_) => {
                let found = format!("result {set} twice");
                Err(RowsError::at(String::new(), found, "each result once"))
            }
        }
    }

    /// `true` if the set has a row.
    pub fn contains(&self, set: usize) -> bool {
        self.0.contains_key(&set)
    }

    /// Number of sets that have a row.
    #[allow(
        clippy::len_without_is_empty,
        reason = "rows are counted; whether there are any is not asked"
    )]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds all rows of a part.
    ///
    /// # Errors
    /// Errors of [`Rows::insert`].
    pub fn merge(&mut self, part: Rows) -> Result<(), RowsError> {
        let mut rows = part.0.into_iter();
        rows.try_for_each(|(set, line)| self.insert(set, line))
    }

    /// Lines in the order of the sets.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    /// Fields without influence on any makespan; empty unless all sets have a row.
    pub fn without_influence<'a>(&self, form: Form, grid: &'a ParameterGrid) -> Vec<&'a str> {
        if self.len() < grid.len() {
            return Vec::new();
        }
        let mut changed = vec![false; grid.axes().len()];
        let place = 1 + grid.axes().len();
        let makespans: Vec<Option<&str>> = self
            .lines()
            .map(|line| makespan_of(form, place, line))
            .collect();
        for set in 0..grid.len() {
            let mut step = 1;
            for (axis, at) in grid.positions(set).into_iter().enumerate().rev() {
                changed[axis] |= at > 0 && makespans[set] != makespans[set - step * at];
                step *= grid.axes()[axis].len();
            }
        }
        let fields = grid
            .axes()
            .iter()
            .zip(changed)
            .filter(|(axis, changed)| !changed && axis.len() > 1);
        fields.map(|(axis, _)| axis.key.as_str()).collect()
    }
}

/// Makespan of a line as text, because a comparison as a number would require exact parsing. `place` is the index of its
/// column in CSV.
fn makespan_of(form: Form, place: usize, line: &str) -> Option<&str> {
    match form {
        Csv => line.split(',').nth(place),
        JsonLines => line.split_once("\"makespan_s\":")?.1.split(',').next(),
    }
}

/// A file of results: complete, or as far as an interrupted run got.
#[derive(Debug)]
pub struct ResultsPart {
    /// The lines before the rows.
    pub header: String,
    /// Number of sets of the whole run.
    pub sets: usize,
    /// Complete rows, indexed by set.
    pub rows: Rows,
    /// Number of bytes up to the end of the last complete line.
    pub whole: usize,
}

impl ResultsPart {
    /// Reads a part. An incomplete line at the end is ignored.
    ///
    /// # Errors
    /// The file does not describe a sweep, or has a line that is not a row.
    pub fn read(name: &str, text: &str) -> Result<ResultsPart, RowsError> {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let form = if text.starts_with('#') {
            Csv
        } else {
            JsonLines
        };
        let above = if form == Csv { 2 } else { 1 };
        let mut lines = text[..whole].split_inclusive('\n');
        let header: String = lines.by_ref().take(above).collect();
        let sets = sets_of(&header);
        if whole > 0 && sets.is_none() {
            let found = "no description of a sweep (flowcast/sweep/1)".to_owned();
            return Err(RowsError::at(format!("{name}:1: "), found, "a description"));
        }
        let mut rows = Rows::default();
        for (index, line) in lines.enumerate() {
            let Some(set) = set_of(form, line) else {
                let place = format!("{name}:{}: ", above + index + 1);
                let found = "a line that is not a row".to_owned();
                return Err(RowsError::at(
                    place,
                    found,
                    "a row that starts with the number of a set",
                ));
            };
            rows.insert(set, line.to_owned())?;
        }
        Ok(ResultsPart {
            header,
            sets: sets.unwrap_or(0),
            rows,
            whole,
        })
    }
}

/// Number of sets of the sweep that a header describes.
fn sets_of(header: &str) -> Option<usize> {
    let first = header.lines().next()?;
    let description: Value = serde_json::from_str(first.trim_start_matches("# ")).ok()?;
    (description["schema"] == "flowcast/sweep/1").then_some(())?;
    description["sets"].as_u64().map(|sets| sets as usize)
}

fn set_of(form: Form, line: &str) -> Option<usize> {
    match form {
        Csv => line.split_once(',')?.0.parse().ok(),
        JsonLines => serde_json::from_str::<Value>(line).ok()?["set"]
            .as_u64()
            .map(|set| set as usize),
    }
}
