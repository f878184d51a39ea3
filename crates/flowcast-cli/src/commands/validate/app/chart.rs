//! `flowcast validate chart`: the errors of several programs in one drawing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use flowcast::{
    model::former_schemas::current,
    report::validation::error_bars,
    table::{RESULT, result},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::document::KIND;
use crate::terminal::{
    files::{Output, declare, read_text, write_text},
    output::{Format, println_out},
    tables::table,
};

/// Draw and sum up the errors of several validated programs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast validate chart cg.json lu.json is.json -o nas.svg")]
pub(crate) struct ValidateChart {
    /// JSON files of `flowcast validate app`; each is named after its file
    #[arg(required = true, value_name = "REPORT.json")]
    reports: Vec<PathBuf>,
    /// The drawing
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    /// Only these predictions, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "MODEL/COLLECTIVES")]
    only: Vec<String>,
    /// What stands above it
    #[arg(long, default_value = "Predicted against measured time")]
    name: String,
    #[command(flatten)]
    format: Format,
}

#[derive(Deserialize)]
struct ChartReport {
    schema: String,
    /// None in a file of the former schema.
    #[serde(default)]
    kind: String,
    predictions: Vec<ChartPrediction>,
    rows: Vec<ChartRow>,
}

#[derive(Deserialize)]
struct ChartPrediction {
    prediction: String,
    total_error: f64,
}

#[derive(Deserialize)]
struct ChartRow {
    quantity: String,
    measured_s: f64,
    interval_s: Option<[f64; 2]>,
}

/// One program.
struct NamedReport {
    name: String,
    report: ChartReport,
}

impl ValidateChart {
    /// Reads, draws, sums up.
    pub(crate) fn run(self) -> Result<()> {
        let outputs = self.output.iter().map(|path| Output::new("-o", path));
        declare(self.reports.iter().map(PathBuf::as_path), outputs)?;
        let reports = self
            .reports
            .iter()
            .map(|path| read(path))
            .collect::<Result<Vec<_>>>()?;
        let predictions = self.predictions(&reports)?;
        let errors = reports
            .iter()
            .map(|named| errors_of(named, &predictions))
            .collect::<Result<Vec<_>>>()?;
        if let Some(output) = &self.output {
            let names = reports.iter().map(|named| named.name.clone());
            let groups: Vec<(String, Vec<f64>)> = names.zip(errors.iter().cloned()).collect();
            write_text(output, &error_bars(&self.name, &groups, &predictions))?;
        }
        if self.format.json {
            println_out!("{}", document(&reports, &errors, &predictions));
        } else {
            print(&reports, &errors, &predictions);
        }
        Ok(())
    }

    fn predictions(&self, reports: &[NamedReport]) -> Result<Vec<String>> {
        let first = &reports[0].report.predictions;
        let known: Vec<String> = first
            .iter()
            .map(|prediction| prediction.prediction.clone())
            .collect();
        if self.only.is_empty() {
            return Ok(known);
        }
        match self.only.iter().find(|name| !known.contains(name)) {
            Some(name) => bail!(
                "--only: found `{name}`, expected one of {}",
                known.join(", ")
            ),
            None => Ok(self.only.clone()),
        }
    }
}

fn read(path: &Path) -> Result<NamedReport> {
    let place = || path.display().to_string();
    let report: ChartReport = serde_json::from_str(&read_text(path)?).with_context(place)?;
    if current(&report.schema, &report.kind) != (RESULT, KIND) {
        let (schema, kind) = (&report.schema, &report.kind);
        bail!(
            "{}: found schema `{schema}` of kind `{kind}`, expected `{RESULT}` of kind `{KIND}`",
            place()
        );
    }
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Ok(NamedReport { name, report })
}

fn errors_of(named: &NamedReport, predictions: &[String]) -> Result<Vec<f64>> {
    predictions
        .iter()
        .map(|name: &String| {
            let found = named
                .report
                .predictions
                .iter()
                .find(|prediction| prediction.prediction == *name);
            Ok(found
                .ok_or_else(|| {
                    anyhow!(
                        "{}: found no prediction `{name}`, expected one as in the first report",
                        named.name
                    )
                })?
                .total_error)
        })
        .collect()
}

fn total(named: &NamedReport) -> Option<&ChartRow> {
    named.report.rows.iter().find(|row| row.quantity == "total")
}

/// Mean and largest absolute error of a prediction over all programs.
fn mean_and_worst(errors: &[Vec<f64>], prediction: usize) -> [f64; 2] {
    let absolute = errors.iter().map(|errors| errors[prediction].abs());
    [
        absolute.clone().sum::<f64>() / errors.len() as f64,
        absolute.fold(0.0, f64::max),
    ]
}

fn document(reports: &[NamedReport], errors: &[Vec<f64>], predictions: &[String]) -> Value {
    let mut programs = Vec::new();
    for (named, errors) in reports.iter().zip(errors) {
        let errors: BTreeMap<&String, &f64> = predictions.iter().zip(errors).collect();
        programs.push(json!({
            "program": named.name,
            "measured_s": total(named).map(|row| row.measured_s),
            "errors": errors,
        }));
    }
    let mut sums = Vec::new();
    for (at, name) in predictions.iter().enumerate() {
        let [mean, worst] = mean_and_worst(errors, at);
        sums.push(json!({
            "prediction": name,
            "mean_absolute_error": mean,
            "worst_absolute_error": worst,
        }));
    }
    let fields = json!({"programs": programs, "predictions": sums});
    result("app-validation-chart", fields)
}

fn print(reports: &[NamedReport], errors: &[Vec<f64>], predictions: &[String]) {
    let columns = ["program", ">measured", ">95 % interval"].map(str::to_owned);
    let names = predictions.iter().map(|name| format!(">{name}"));
    let mut out = table(&columns.into_iter().chain(names).collect::<Vec<_>>());
    for (named, errors) in reports.iter().zip(errors) {
        let total = total(named);
        let measured = total.map_or(String::new(), |row| format!("{:.3} s", row.measured_s));
        let interval = total.and_then(|row| row.interval_s);
        let interval = interval.map_or(String::new(), |[low, high]| {
            format!("{low:.3} .. {high:.3} s")
        });
        let errors = errors
            .iter()
            .map(|error| format!("{:+.1} %", error * 100.0));
        let row = [named.name.clone(), measured, interval];
        out.add_row(row.into_iter().chain(errors));
    }
    for (at, what) in ["mean absolute", "worst"].into_iter().enumerate() {
        let sums = (0..predictions.len()).map(|prediction| {
            let sum = mean_and_worst(errors, prediction)[at];
            format!("{:.1} %", sum * 100.0)
        });
        let row = [what.to_owned(), String::new(), String::new()];
        out.add_row(row.into_iter().chain(sums));
    }
    println_out!("{out}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_the_former_and_of_the_present_schema_are_read_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cg.json");
        let read_as = |head: &str| {
            std::fs::write(&path, format!("{{{head},\"predictions\":[],\"rows\":[]}}")).unwrap();
            read(&path)
        };
        assert!(read_as(r#""schema":"flowcast/app-validation/1""#).is_ok());
        assert!(read_as(r#""schema":"flowcast/result/1","kind":"app-validation""#).is_ok());
        let other = read_as(r#""schema":"flowcast/result/1","kind":"fit""#).err();
        assert!(
            other
                .unwrap()
                .to_string()
                .contains("of kind `fit`, expected")
        );
    }
}
