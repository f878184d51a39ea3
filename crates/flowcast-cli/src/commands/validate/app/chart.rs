//! `flowcast validate chart`: draws the errors of several programs in one chart.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::{
    report::chart_svg::{Chart, ChartAxis, Panel},
    table::{Document, RESULT, Value, figure, percent, rows},
};
use serde::Deserialize;

use super::{super::journal::name_of, document::KIND};
use flowcast_terminal::{
    files::{Output, declare, read_parsed, write_text},
    output::Format,
};

/// Draw and summarize the errors of several validated programs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast validate chart cg.json lu.json is.json -o nas.svg")]
pub(crate) struct ValidateChart {
    /// JSON files of `flowcast validate app`, each of which is named after its file
    #[arg(required = true, value_name = "REPORT.json")]
    reports: Vec<PathBuf>,
    /// Output file of the drawing
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    /// Draw only these predictions, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "MODEL/COLLECTIVES")]
    only: Vec<String>,
    /// Title of the drawing
    #[arg(long, default_value = "Predicted against measured time")]
    name: String,
    #[command(flatten)]
    format: Format,
}

#[derive(Deserialize)]
struct ChartReport {
    schema: String,
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
    /// Reads the reports, draws the chart and prints a summary.
    pub(crate) fn run(self) -> Result<()> {
        declare(
            self.reports.iter().map(PathBuf::as_path),
            Output::each("-o", &self.output),
        )?;
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
            let chart = error_chart(&reports, &errors, &predictions);
            let title = self.name.clone();
            write_text(output, &Chart { title, ..chart }.to_svg())?;
        }
        self.format
            .print(&document(&reports, &errors, &predictions))
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
    let report: ChartReport = read_parsed(path, |text| serde_json::from_str(text))?;
    if (&*report.schema, &*report.kind) != (RESULT, KIND) {
        let (schema, kind) = (&report.schema, &report.kind);
        bail!(
            "{}: found schema `{schema}` of kind `{kind}`, expected `{RESULT}` of kind `{KIND}`",
            path.display()
        );
    }
    let name = name_of(path);
    Ok(NamedReport { name, report })
}

fn errors_of(named: &NamedReport, predictions: &[String]) -> Result<Vec<f64>> {
    predictions
        .iter()
        .map(|name| {
            let found = named
                .report
                .predictions
                .iter()
                .find(|prediction| prediction.prediction == *name);
            let found = found.with_context(|| {
                format!(
                    "{}: found no prediction `{name}`, expected one as in the first report",
                    named.name
                )
            });
            Ok(found?.total_error)
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

/// One point for each program and prediction. Errors beyond 100 % are drawn at the edge.
fn error_chart(reports: &[NamedReport], errors: &[Vec<f64>], predictions: &[String]) -> Chart {
    let absolute = errors.iter().flatten().map(|error| error.abs());
    let largest = ((absolute.fold(0.05, f64::max) * 20.0).ceil() / 20.0).min(1.0);
    let names = reports.iter().enumerate();
    Chart {
        title: String::new(),
        names: predictions.to_vec(),
        panels: vec![Panel {
            title: String::new(),
            x: ChartAxis {
                title: "program".to_owned(),
                range: [-0.5, reports.len() as f64 - 0.5],
                ticks: names
                    .map(|(at, named)| (at as f64, named.name.clone()))
                    .collect(),
            },
            y: ChartAxis::new(
                "predicted minus measured (%)",
                [-largest, largest],
                |share| format!("{:+.0} %", share * 100.0),
            ),
            series: (0..predictions.len())
                .map(|prediction: usize| {
                    let errors = errors.iter().enumerate();
                    errors
                        .map(move |(at, errors)| [at as f64, errors[prediction]])
                        .collect()
                })
                .collect(),
        }],
    }
}

/// Row of a program, or a row of sums below the programs.
struct ChartLine<'a> {
    name: &'a str,
    total: Option<&'a ChartRow>,
    /// Total error of each prediction, as a fraction. In the rows below, the mean and the worst of all programs.
    errors: Vec<Value>,
}

fn document(reports: &[NamedReport], errors: &[Vec<f64>], predictions: &[String]) -> Document {
    let programs = rows(reports.iter().zip(errors))
        .field("program", |(named, _)| &named.name)
        .field("measured_s", |(named, _)| {
            total(named).map(|row| row.measured_s)
        })
        .field("errors", |(_, errors)| {
            predictions.iter().zip(errors).collect::<BTreeMap<_, _>>()
        });
    let sums: Vec<[f64; 2]> = (0..predictions.len())
        .map(|at| mean_and_worst(errors, at))
        .collect();
    let named_sums = rows(predictions.iter().zip(&sums))
        .field("prediction", |(name, _)| name)
        .field("mean_absolute_error", |(_, [mean, _])| mean)
        .field("worst_absolute_error", |(_, [_, worst])| worst);
    let mut lines = Vec::new();
    for (named, errors) in reports.iter().zip(errors) {
        lines.push(ChartLine {
            name: &named.name,
            total: total(named),
            errors: errors
                .iter()
                .map(|error| figure(format!("{:+.1} %", error * 100.0)))
                .collect(),
        });
    }
    for (at, name) in ["mean absolute", "worst"].into_iter().enumerate() {
        lines.push(ChartLine {
            name,
            total: None,
            errors: sums.iter().map(|sums| percent(sums[at], 1)).collect(),
        });
    }
    let mut table = rows(&lines)
        .cell("program", |line| line.name)
        .cell("measured", |line| {
            line.total
                .map(|row| figure(format!("{:.3} s", row.measured_s)))
        })
        .cell("95 % interval", |line| {
            let interval = line.total.and_then(|row| row.interval_s);
            interval.map(|[low, high]| figure(format!("{low:.3} .. {high:.3} s")))
        });
    for (at, name) in predictions.iter().enumerate() {
        table = table.cell(name, |line| &line.errors[at]);
    }
    Document::new("app-validation-chart")
        .field("programs", programs)
        .field("predictions", named_sums)
        .shown(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reports_of_programs_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cg.json");
        let read_as = |head: &str| {
            std::fs::write(&path, format!("{{{head},\"predictions\":[],\"rows\":[]}}")).unwrap();
            read(&path)
        };
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
