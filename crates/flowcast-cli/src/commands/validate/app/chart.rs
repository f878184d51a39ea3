//! `flowcast validate chart`: the errors of several programs in one drawing.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use flowcast::report::validation::error_bars;
use serde::Deserialize;
use serde_json::json;

use super::document::SCHEMA;
use crate::files::{read_text, write_whole};
use crate::output::println_out;
use crate::tables::table;

/// Draw and sum up the errors of several validated programs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast validate chart cg.json lu.json is.json -o nas.svg")]
pub struct ValidateChart {
    /// JSON files of `flowcast validate app`; each is named after its file
    #[arg(required = true, value_name = "REPORT.json")]
    reports: Vec<PathBuf>,
    /// The drawing
    #[arg(short, long, value_name = "CHART.svg")]
    output: Option<PathBuf>,
    /// Only these predictions, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "MODEL/COLLECTIVES")]
    only: Vec<String>,
    /// What stands above it
    #[arg(long, default_value = "Predicted against measured time")]
    title: String,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Report {
    schema: String,
    predictions: Vec<Prediction>,
    rows: Vec<RowForm>,
}

#[derive(Deserialize)]
struct Prediction {
    prediction: String,
    total_error: f64,
}

#[derive(Deserialize)]
struct RowForm {
    quantity: String,
    measured_s: f64,
    interval_s: Option<[f64; 2]>,
}

/// One program.
struct Named {
    name: String,
    report: Report,
}

impl ValidateChart {
    /// Reads, draws, sums up.
    pub fn run(self) -> Result<()> {
        let reports = self.reports.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
        let predictions = self.predictions(&reports)?;
        let errors = reports.iter().map(|named| errors_of(named, &predictions)).collect::<Result<Vec<_>>>()?;
        if let Some(output) = &self.output {
            let groups: Vec<(String, Vec<f64>)> =
                reports.iter().zip(&errors).map(|(named, errors)| (named.name.clone(), errors.clone())).collect();
            let svg = error_bars(&self.title, &groups, &predictions);
            write_whole(output, |out| Ok(out.write_all(svg.as_bytes())?))?;
        }
        match self.json {
            true => println_out!("{}", document(&reports, &predictions, &errors)),
            false => print(&reports, &predictions, &errors),
        }
        Ok(())
    }

    fn predictions(&self, reports: &[Named]) -> Result<Vec<String>> {
        let first = &reports[0].report.predictions;
        let known: Vec<String> = first.iter().map(|prediction| prediction.prediction.clone()).collect();
        if self.only.is_empty() {
            return Ok(known);
        }
        match self.only.iter().find(|name| !known.contains(name)) {
            Some(name) => bail!("--only: found `{name}`, expected one of {}", known.join(", ")),
            None => Ok(self.only.clone()),
        }
    }
}

fn read(path: &Path) -> Result<Named> {
    let place = || path.display().to_string();
    let report: Report = serde_json::from_str(&read_text(path)?).with_context(place)?;
    if report.schema != SCHEMA {
        bail!("{}: schema: found `{}`, expected `{SCHEMA}`", place(), report.schema);
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Named { name, report })
}

fn errors_of(named: &Named, predictions: &[String]) -> Result<Vec<f64>> {
    let of = |name: &String| {
        let found = named.report.predictions.iter().find(|prediction| prediction.prediction == *name);
        let missing = || anyhow!("{}: found no prediction `{name}`, expected one as in the first report", named.name);
        Ok(found.ok_or_else(missing)?.total_error)
    };
    predictions.iter().map(of).collect()
}

fn total(named: &Named) -> Option<&RowForm> {
    named.report.rows.iter().find(|row| row.quantity == "total")
}

/// Mean of the absolute errors and the largest, by prediction.
fn sums(errors: &[Vec<f64>], prediction: usize) -> (f64, f64) {
    let absolute = errors.iter().map(|errors| errors[prediction].abs());
    (absolute.clone().sum::<f64>() / errors.len() as f64, absolute.fold(0.0, f64::max))
}

fn print(reports: &[Named], predictions: &[String], errors: &[Vec<f64>]) {
    let mut columns = vec!["program".to_owned(), ">measured".into(), ">95 % interval".into()];
    columns.extend(predictions.iter().map(|name| format!(">{name}")));
    let mut out = table(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    for (named, errors) in reports.iter().zip(errors) {
        let row = total(named);
        let measured = row.map_or(String::new(), |row| format!("{:.3} s", row.measured_s));
        let interval = row.and_then(|row| row.interval_s);
        let interval = interval.map_or(String::new(), |[low, high]| format!("{low:.3} .. {high:.3} s"));
        let errors = errors.iter().map(|error| format!("{:+.1} %", error * 100.0));
        out.add_row([named.name.clone(), measured, interval].into_iter().chain(errors));
    }
    for (what, pick) in [("mean absolute", 0), ("worst", 1)] {
        let of = |at: usize| {
            let (mean, worst) = sums(errors, at);
            format!("{:.1} %", [mean, worst][pick] * 100.0)
        };
        let blank = [what.to_owned(), String::new(), String::new()];
        out.add_row(blank.into_iter().chain((0..predictions.len()).map(of)));
    }
    println_out!("{out}");
}

fn document(reports: &[Named], predictions: &[String], errors: &[Vec<f64>]) -> serde_json::Value {
    let programs: Vec<_> = reports
        .iter()
        .zip(errors)
        .map(|(named, errors)| {
            let by_name: std::collections::BTreeMap<&String, &f64> = predictions.iter().zip(errors).collect();
            json!({ "program": named.name, "measured_s": total(named).map(|row| row.measured_s), "errors": by_name })
        })
        .collect();
    let summed: Vec<_> = predictions
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let (mean, worst) = sums(errors, at);
            json!({ "prediction": name, "mean_absolute_error": mean, "worst_absolute_error": worst })
        })
        .collect();
    json!({ "schema": "flowcast/app-validation-chart/1", "programs": programs, "predictions": summed })
}
