//! The results of a program's validation: a table, a page and its JSON.

use std::collections::BTreeMap;

use anyhow::Result;
use flowcast::Interval;
use flowcast::report::validation::app::{AppValidation, Fared, Quantity, Row};
use flowcast::trace::run_times::RunTimes;
use flowcast::units::{Rounded, Time};
use serde::{Deserialize, Serialize};

use crate::terminal::output::{Seconds, Shown, println_out};
use crate::terminal::tables::{cells, table};

pub(super) const SCHEMA: &str = "flowcast/app-validation/1";

/// More regions than this are summed up in the table for people.
const ROWS: usize = 24;

/// What a run took, as files have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedTimes {
    total_s: f64,
    communication_s: Vec<f64>,
    computation_s: Vec<f64>,
    calls_s: BTreeMap<String, f64>,
    regions_s: BTreeMap<String, f64>,
}

impl From<&RunTimes> for RecordedTimes {
    fn from(times: &RunTimes) -> RecordedTimes {
        let list = |times: &[Time]| times.iter().map(|time| time.as_seconds()).collect();
        let named = |times: &BTreeMap<String, Time>| {
            times
                .iter()
                .map(|(name, time)| (name.clone(), time.as_seconds()))
                .collect()
        };
        RecordedTimes {
            total_s: times.total.as_seconds(),
            communication_s: list(&times.communication),
            computation_s: list(&times.computation),
            calls_s: named(&times.calls),
            regions_s: named(&times.regions),
        }
    }
}

impl From<RecordedTimes> for RunTimes {
    fn from(form: RecordedTimes) -> RunTimes {
        let list = |seconds: Vec<f64>| seconds.into_iter().map(Time::from_seconds).collect();
        let named = |seconds: BTreeMap<String, f64>| {
            seconds
                .into_iter()
                .map(|(name, seconds)| (name, Time::from_seconds(seconds)))
                .collect()
        };
        RunTimes {
            total: Time::from_seconds(form.total_s),
            communication: list(form.communication_s),
            computation: list(form.computation_s),
            calls: named(form.calls_s),
            regions: named(form.regions_s),
        }
    }
}

/// A program's validation: the errors of each prediction, and every figure behind them.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    #[serde(skip)]
    table: Vec<Row>,
    program: &'a str,
    ranks: usize,
    predictions: Vec<PredictionEntry<'a>>,
    rows: Vec<RowEntry>,
    runs: Vec<RecordedTimes>,
    thread_cpu_s: Vec<Seconds>,
    provenance: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct PredictionEntry<'a> {
    prediction: &'a str,
    #[serde(flatten)]
    fared: &'a Fared,
    /// Absent where no margin is known.
    #[serde(flatten)]
    margin: Option<MarginEntry>,
}

/// Whether the interval of a prediction contains the median of the runs.
#[derive(Serialize)]
struct MarginEntry {
    #[serde(skip)]
    interval: Interval,
    interval_s: [Seconds; 2],
    interval_level: f64,
    interval_holds: bool,
}

impl MarginEntry {
    fn new(interval: &Interval, measured: Time) -> MarginEntry {
        MarginEntry {
            interval: interval.clone(),
            interval_s: [Seconds(interval.low), Seconds(interval.high)],
            interval_level: interval.level,
            interval_holds: (interval.low..=interval.high).contains(&measured),
        }
    }
}

/// One quantity, measured and by prediction.
#[derive(Serialize)]
struct RowEntry {
    quantity: &'static str,
    name: String,
    measured_s: Seconds,
    interval_s: Option<[Seconds; 2]>,
    predicted_s: BTreeMap<String, Seconds>,
    predicted_range_s: BTreeMap<String, [Seconds; 2]>,
    errors: Option<BTreeMap<String, f64>>,
}

impl<'a> Document<'a> {
    /// Of a validation.
    pub(super) fn new(
        validation: &'a AppValidation,
        fared: &'a [Fared],
        intervals: &[Option<Interval>],
    ) -> Result<Document<'a>> {
        let table = validation.rows()?;
        let predictors = &validation.predictors;
        let measured = table
            .iter()
            .find(|row| row.quantity == Quantity::Total)
            .map(|row| row.measured);
        let mut predictions = Vec::new();
        for ((prediction, fared), interval) in predictors.iter().zip(fared).zip(intervals) {
            let margin = interval
                .as_ref()
                .zip(measured)
                .map(|(interval, measured)| MarginEntry::new(interval, measured));
            predictions.push(PredictionEntry {
                prediction,
                fared,
                margin,
            });
        }
        Ok(Document {
            program: &validation.title,
            ranks: validation.worked.len(),
            predictions,
            rows: table
                .iter()
                .map(|row| RowEntry::new(predictors, row))
                .collect(),
            runs: validation.runs.iter().map(RecordedTimes::from).collect(),
            thread_cpu_s: validation.worked.iter().copied().map(Seconds).collect(),
            provenance: &validation.provenance,
            table,
        })
    }
}

impl RowEntry {
    fn new(predictors: &[String], row: &Row) -> RowEntry {
        let range = |(low, high): (Time, Time)| [Seconds(low), Seconds(high)];
        let ranges = predictors.iter().zip(&row.ranges);
        RowEntry {
            quantity: row.quantity.name(),
            name: row.name.clone(),
            measured_s: Seconds(row.measured),
            interval_s: row.interval.map(range),
            predicted_s: predictors
                .iter()
                .cloned()
                .zip(row.predicted.iter().copied().map(Seconds))
                .collect(),
            predicted_range_s: ranges
                .filter_map(|(name, at)| Some((name.clone(), range((*at)?))))
                .collect(),
            errors: row.errors.as_ref().map(|errors| {
                predictors
                    .iter()
                    .cloned()
                    .zip(errors.iter().copied())
                    .collect()
            }),
        }
    }
}

impl Shown for Document<'_> {
    const SCHEMA: &'static str = SCHEMA;

    fn print(&self) {
        let mut columns = vec![
            "".to_owned(),
            "which".to_owned(),
            ">measured".to_owned(),
            ">95 % interval".to_owned(),
        ];
        columns.extend(
            self.predictions
                .iter()
                .map(|entry| format!(">{}", entry.prediction)),
        );
        let mut out = table(&columns);
        let regions = self
            .table
            .iter()
            .filter(|row| row.quantity == Quantity::Region)
            .count();
        for row in self
            .table
            .iter()
            .filter(|row| row.quantity != Quantity::Region || regions <= ROWS)
        {
            out.add_row(cells(row));
        }
        println_out!("{out}");
        print_regions(&self.predictions);
        for PredictionEntry {
            prediction, margin, ..
        } in &self.predictions
        {
            match margin {
                Some(MarginEntry {
                    interval,
                    interval_holds,
                    ..
                }) => {
                    let holds = if *interval_holds {
                        "contains"
                    } else {
                        "does not contain"
                    };
                    println_out!(
                        "{prediction}: {interval}, which {holds} the median of the runs; {}",
                        interval.covers
                    );
                }
                None => println_out!("{prediction}: no margin known"),
            }
        }
        let computed: Time = self.thread_cpu_s.iter().map(|seconds| seconds.0).sum();
        println_out!(
            "{} runs, {} ranks; computation {} of thread CPU in all",
            self.runs.len(),
            self.ranks,
            Rounded(computed)
        );
    }
}

fn cells(row: &Row) -> Vec<String> {
    let interval = row.interval.map_or(String::new(), |(low, high)| {
        format!("{} .. {}", Rounded(low), Rounded(high))
    });
    let mut cells = vec![
        row.quantity.name().to_owned(),
        row.name.clone(),
        Rounded(row.measured).to_string(),
        interval,
    ];
    for (at, predicted) in row.predicted.iter().enumerate() {
        let error = row.errors.as_ref().map_or(String::new(), |errors| {
            format!(" ({:+.1} %)", errors[at] * 100.0)
        });
        let range = row.ranges[at].filter(|_| row.quantity == Quantity::Total);
        let range = range.map_or(String::new(), |(low, high)| {
            format!(", {} .. {}", Rounded(low), Rounded(high))
        });
        cells.push(format!("{}{error}{range}", Rounded(*predicted)));
    }
    cells
}

fn print_regions(predictions: &[PredictionEntry<'_>]) {
    if predictions
        .iter()
        .all(|entry| entry.fared.regions.is_none())
    {
        return;
    }
    let mut out = table(&[
        "prediction",
        ">regions",
        ">within 10 %",
        ">median error",
        ">mean error",
        ">worst",
        "which",
    ]);
    for entry in predictions {
        let Some(regions) = &entry.fared.regions else {
            continue;
        };
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        out.add_row(cells![
            entry.prediction,
            regions.count,
            percent(regions.within_ten_percent),
            percent(regions.median_absolute),
            percent(regions.mean_absolute),
            format!("{:+.1} %", regions.worst.1 * 100.0),
            regions.worst.0
        ]);
    }
    println_out!("{out}");
}
