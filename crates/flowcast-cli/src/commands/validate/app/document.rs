//! The numbers of a validation of a program, as JSON and as tables.

use std::collections::BTreeMap;

use anyhow::Result;
use flowcast::{
    Interval,
    report::validation::app::{AppValidation, Fared, Quantity, Row},
    table::result,
    units::{Rounded, Time},
};
use serde_json::{Value, json};

use crate::terminal::{
    output::println_out,
    tables::{cells, table},
};

/// The kind of the JSON.
pub(super) const KIND: &str = "app-validation";

/// More regions than this are left to the JSON.
const ROWS: usize = 24;

/// What is told of a validation.
pub(super) struct ValidationReport<'a> {
    pub validation: &'a AppValidation,
    /// Its rows, the total first.
    pub rows: Vec<Row>,
    /// By predictor.
    pub fared: &'a [Fared],
    /// By predictor.
    pub intervals: &'a [Option<Interval>],
}

impl ValidationReport<'_> {
    fn predictions(&self) -> impl Iterator<Item = (&String, &Fared, &Option<Interval>)> {
        let names = self.validation.predictors.iter();
        let with_errors = names.zip(self.fared).zip(self.intervals);
        with_errors.map(|((name, fared), interval)| (name, fared, interval))
    }

    fn holds(&self, interval: &Interval) -> bool {
        (interval.low..=interval.high).contains(&self.rows[0].measured)
    }

    /// The JSON.
    pub(super) fn document(&self) -> Result<Value> {
        let mut predictions = Vec::new();
        for (name, fared, interval) in self.predictions() {
            let mut entry = serde_json::to_value(fared)?;
            entry["prediction"] = name.as_str().into();
            if let Some(interval) = interval {
                entry["interval_s"] = seconds((interval.low, interval.high));
                entry["interval_level"] = interval.level.into();
                entry["interval_holds"] = self.holds(interval).into();
            }
            predictions.push(entry);
        }
        let runs = self.validation.runs.iter().cloned();
        let worked = self.validation.worked.iter();
        let fields = json!({
            "program": self.validation.title,
            "ranks": self.validation.worked.len(),
            "predictions": predictions,
            "rows": self.rows.iter().map(|row| self.row(row)).collect::<Vec<_>>(),
            "runs": runs.map(|run| run.map(Time::as_seconds)).collect::<Vec<_>>(),
            "thread_cpu_s": worked.map(|time| time.as_seconds()).collect::<Vec<_>>(),
            "provenance": self.validation.provenance,
        });
        Ok(result(KIND, fields))
    }

    fn row(&self, row: &Row) -> Value {
        let names = || self.validation.predictors.iter();
        let predicted = names().zip(row.predicted.iter().map(|time| time.as_seconds()));
        let ranges = names().zip(&row.ranges);
        let ranges = ranges.filter_map(|(name, range)| Some((name, seconds((*range)?))));
        let errors = row.errors.as_ref().map(|errors| names().zip(errors));
        json!({
            "quantity": row.quantity.name(),
            "name": row.name,
            "measured_s": row.measured.as_seconds(),
            "interval_s": row.interval.map(seconds),
            "predicted_s": predicted.collect::<BTreeMap<_, _>>(),
            "predicted_range_s": ranges.collect::<BTreeMap<_, _>>(),
            "errors": errors.map(Iterator::collect::<BTreeMap<_, _>>),
        })
    }

    /// Prints for people.
    pub(super) fn print(&self) {
        let names = self.validation.predictors.iter();
        let columns = ["", "which", ">measured", ">95 % interval"].map(str::to_owned);
        let columns = columns
            .into_iter()
            .chain(names.map(|name| format!(">{name}")));
        let mut out = table(&columns.collect::<Vec<_>>());
        let is_region = |row: &&Row| row.quantity == Quantity::Region;
        let regions = self.rows.iter().filter(is_region).count();
        for row in &self.rows {
            if regions <= ROWS || !is_region(&row) {
                out.add_row(row_cells(row));
            }
        }
        println_out!("{out}");
        self.print_regions();
        for (name, _, interval) in self.predictions() {
            let Some(interval) = interval else {
                println_out!("{name}: no margin known");
                continue;
            };
            let holds = if self.holds(interval) {
                "contains"
            } else {
                "does not contain"
            };
            println_out!(
                "{name}: {interval}, which {holds} the median of the runs; {}",
                interval.covers
            );
        }
        let computed: Time = self.validation.worked.iter().copied().sum();
        println_out!(
            "{} runs, {} ranks; computation {} of thread CPU in all",
            self.validation.runs.len(),
            self.validation.worked.len(),
            Rounded(computed)
        );
    }

    fn print_regions(&self) {
        let columns = [
            "prediction",
            ">regions",
            ">within 10 %",
            ">median error",
            ">mean error",
            ">worst",
            "which",
        ];
        let mut out = table(&columns);
        for (name, fared, _) in self.predictions() {
            let Some(regions) = &fared.regions else {
                continue;
            };
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            out.add_row(cells![
                name,
                regions.count,
                percent(regions.within_ten_percent),
                percent(regions.median_absolute),
                percent(regions.mean_absolute),
                format!("{:+.1} %", regions.worst.1 * 100.0),
                regions.worst.0
            ]);
        }
        if self.fared.iter().any(|fared| fared.regions.is_some()) {
            println_out!("{out}");
        }
    }
}

fn seconds((low, high): (Time, Time)) -> Value {
    json!([low.as_seconds(), high.as_seconds()])
}

fn row_cells(row: &Row) -> Vec<String> {
    let between = |(low, high): (Time, Time)| format!("{} .. {}", Rounded(low), Rounded(high));
    let mut cells = vec![
        row.quantity.name().to_owned(),
        row.name.clone(),
        Rounded(row.measured).to_string(),
        row.interval.map_or(String::new(), between),
    ];
    for (at, predicted) in row.predicted.iter().enumerate() {
        let error = row.errors.as_ref().map_or(String::new(), |errors| {
            format!(" ({:+.1} %)", errors[at] * 100.0)
        });
        let range = row.ranges[at].filter(|_| row.quantity == Quantity::Total);
        let range = range.map_or(String::new(), |range| format!(", {}", between(range)));
        cells.push(format!("{}{error}{range}", Rounded(*predicted)));
    }
    cells
}
