//! `flowcast validate chart`: the errors of several programs in one drawing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use flowcast::report::validation::error_bars;
use serde::{Deserialize, Serialize};

use super::document::SCHEMA;
use crate::terminal::files::{Output, declare, read_text, write_text};
use crate::terminal::output::{Format, Shown, println_out, show};
use crate::terminal::tables::table;

/// Draw and sum up the errors of several validated programs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast validate chart cg.json lu.json is.json -o nas.svg")]
pub(crate) struct ValidateChart {
    /// JSON files of `flowcast validate app`; each is named after its file
    #[arg(required = true, value_name = "REPORT.json")]
    reports: Vec<PathBuf>,
    /// The drawing
    #[arg(short, long, value_name = "CHART.svg", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Only these predictions, separated by commas
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "MODEL/COLLECTIVES",
        help_heading = "Output"
    )]
    only: Vec<String>,
    /// What stands above it
    #[arg(
        long,
        default_value = "Predicted against measured time",
        help_heading = "Output"
    )]
    title: String,
    #[command(flatten)]
    format: Format,
}

#[derive(Deserialize)]
struct Report {
    schema: String,
    predictions: Vec<Prediction>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Prediction {
    prediction: String,
    total_error: f64,
}

#[derive(Deserialize)]
struct Row {
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
            let groups: Vec<(String, Vec<f64>)> = reports
                .iter()
                .zip(&errors)
                .map(|(named, errors)| (named.name.clone(), errors.clone()))
                .collect();
            write_text(output, &error_bars(&self.title, &groups, &predictions))?;
        }
        let errors_of = |errors: &Vec<f64>| {
            predictions
                .iter()
                .cloned()
                .zip(errors.iter().copied())
                .collect()
        };
        let program = |(named, errors): (&Named, &Vec<f64>)| Program {
            program: named.name.clone(),
            measured_s: total(named).map(|row| row.measured_s),
            interval: total(named).and_then(|row| row.interval_s),
            errors: errors_of(errors),
        };
        let chart = Chart {
            programs: reports.iter().zip(&errors).map(program).collect(),
            predictions: (0..)
                .zip(&predictions)
                .map(|(at, name)| Sum::new(name, &errors, at))
                .collect(),
        };
        show(&chart, self.format)
    }

    fn predictions(&self, reports: &[Named]) -> Result<Vec<String>> {
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

fn read(path: &Path) -> Result<Named> {
    let place = || path.display().to_string();
    let report: Report = serde_json::from_str(&read_text(path)?).with_context(place)?;
    if report.schema != SCHEMA {
        bail!(
            "{}: schema: found `{}`, expected `{SCHEMA}`",
            place(),
            report.schema
        );
    }
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Ok(Named { name, report })
}

fn errors_of(named: &Named, predictions: &[String]) -> Result<Vec<f64>> {
    let of = |name: &String| {
        let found = named
            .report
            .predictions
            .iter()
            .find(|prediction| prediction.prediction == *name);
        let missing = || {
            anyhow!(
                "{}: found no prediction `{name}`, expected one as in the first report",
                named.name
            )
        };
        Ok(found.ok_or_else(missing)?.total_error)
    };
    predictions.iter().map(of).collect()
}

fn total(named: &Named) -> Option<&Row> {
    named.report.rows.iter().find(|row| row.quantity == "total")
}

/// The errors of all programs and their sums.
#[derive(Serialize)]
struct Chart {
    programs: Vec<Program>,
    predictions: Vec<Sum>,
}

/// A program: the relative error of each prediction.
#[derive(Serialize)]
struct Program {
    program: String,
    measured_s: Option<f64>,
    #[serde(skip)]
    interval: Option<[f64; 2]>,
    errors: BTreeMap<String, f64>,
}

/// A prediction over all programs.
#[derive(Serialize)]
struct Sum {
    prediction: String,
    mean_absolute_error: f64,
    worst_absolute_error: f64,
}

impl Sum {
    fn new(name: &str, errors: &[Vec<f64>], prediction: usize) -> Sum {
        let absolute = errors.iter().map(|errors| errors[prediction].abs());
        Sum {
            prediction: name.to_owned(),
            mean_absolute_error: absolute.clone().sum::<f64>() / errors.len() as f64,
            worst_absolute_error: absolute.fold(0.0, f64::max),
        }
    }
}

impl Shown for Chart {
    const SCHEMA: &'static str = "flowcast/app-validation-chart/1";

    fn print(&self) {
        let mut columns = vec![
            "program".to_owned(),
            ">measured".into(),
            ">95 % interval".into(),
        ];
        columns.extend(
            self.predictions
                .iter()
                .map(|sum| format!(">{}", sum.prediction)),
        );
        let mut out = table(&columns);
        for Program {
            program,
            measured_s,
            interval,
            errors,
        } in &self.programs
        {
            let measured = measured_s.map_or(String::new(), |measured| format!("{measured:.3} s"));
            let interval = interval.map_or(String::new(), |[low, high]| {
                format!("{low:.3} .. {high:.3} s")
            });
            let errors = self
                .predictions
                .iter()
                .map(|sum| format!("{:+.1} %", errors[&sum.prediction] * 100.0));
            out.add_row(
                [program.clone(), measured, interval]
                    .into_iter()
                    .chain(errors),
            );
        }
        let mut row = |what: &str, of: fn(&Sum) -> f64| {
            let sums = self
                .predictions
                .iter()
                .map(|sum| format!("{:.1} %", of(sum) * 100.0));
            out.add_row(
                [what.to_owned(), String::new(), String::new()]
                    .into_iter()
                    .chain(sums),
            );
        };
        row("mean absolute", |sum| sum.mean_absolute_error);
        row("worst", |sum| sum.worst_absolute_error);
        println_out!("{out}");
    }
}
