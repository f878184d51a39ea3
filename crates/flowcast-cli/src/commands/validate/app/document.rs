//! What is made of a program's validation: a table, a page and its JSON.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use flowcast::report::validation::app::{AppValidation, Fared, Quantity, Row};
use flowcast::report::validation::app_html;
use flowcast::trace::run_times::RunTimes;
use flowcast::units::{Rounded, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::files::write_whole;
use crate::output::println_out;
use crate::tables::table;

pub const SCHEMA: &str = "flowcast/app-validation/1";

/// More regions than this are summed up in the table for people.
const ROWS: usize = 24;

/// What a run took, as files have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimesForm {
    total_s: f64,
    communication_s: Vec<f64>,
    computation_s: Vec<f64>,
    calls_s: BTreeMap<String, f64>,
    regions_s: BTreeMap<String, f64>,
}

impl From<&RunTimes> for TimesForm {
    fn from(times: &RunTimes) -> TimesForm {
        let list = |times: &[Time]| times.iter().map(|time| time.as_seconds()).collect();
        let named = |times: &BTreeMap<String, Time>| {
            times.iter().map(|(name, time)| (name.clone(), time.as_seconds())).collect()
        };
        TimesForm {
            total_s: times.total.as_seconds(),
            communication_s: list(&times.communication),
            computation_s: list(&times.computation),
            calls_s: named(&times.calls),
            regions_s: named(&times.regions),
        }
    }
}

impl From<TimesForm> for RunTimes {
    fn from(form: TimesForm) -> RunTimes {
        let list = |seconds: Vec<f64>| seconds.into_iter().map(Time::from_seconds).collect();
        let named = |seconds: BTreeMap<String, f64>| {
            seconds.into_iter().map(|(name, seconds)| (name, Time::from_seconds(seconds))).collect()
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

/// Writes the page and, beside it, the JSON file; gives the latter's document.
pub fn write(output: &Path, validation: &AppValidation, fared: &[Fared]) -> Result<Value> {
    let document = document(validation, fared)?;
    let page = app_html(validation)?;
    write_whole(output, |out| Ok(out.write_all(page.as_bytes())?))?;
    write_whole(&output.with_extension("json"), |out| Ok(writeln!(out, "{document}")?))?;
    Ok(document)
}

fn document(validation: &AppValidation, fared: &[Fared]) -> Result<Value> {
    let predictions = validation.predictors.iter().zip(fared).map(|(name, fared)| fared_entry(name, fared));
    let rows = validation.rows()?;
    Ok(json!({
        "schema": SCHEMA,
        "program": validation.title,
        "ranks": validation.worked.len(),
        "predictions": predictions.collect::<Vec<_>>(),
        "rows": rows.iter().map(|row| row_entry(&validation.predictors, row)).collect::<Vec<_>>(),
        "runs": validation.runs.iter().map(TimesForm::from).collect::<Vec<_>>(),
        "thread_cpu_s": validation.worked.iter().map(|time| time.as_seconds()).collect::<Vec<_>>(),
        "provenance": validation.provenance,
    }))
}

fn fared_entry(name: &str, fared: &Fared) -> Value {
    let regions = fared.regions.as_ref().map(|regions| {
        json!({
            "count": regions.count,
            "mean_absolute_error": regions.mean_absolute,
            "median_absolute_error": regions.median_absolute,
            "within_ten_percent": regions.within_ten_percent,
            "worst": { "region": regions.worst.0, "error": regions.worst.1 },
        })
    });
    json!({
        "prediction": name, "total_error": fared.total, "communication_error": fared.communication, "regions": regions,
    })
}

fn row_entry(predictors: &[String], row: &Row) -> Value {
    let by_name = |values: Vec<f64>| predictors.iter().cloned().zip(values).collect::<BTreeMap<String, f64>>();
    let ranges = predictors.iter().zip(&row.ranges);
    let ranges =
        ranges.filter_map(|(name, range)| range.map(|(low, high)| (name, [low.as_seconds(), high.as_seconds()])));
    let ranges: BTreeMap<&String, [f64; 2]> = ranges.collect();
    json!({
        "quantity": row.quantity.name(),
        "name": row.name,
        "measured_s": row.measured.as_seconds(),
        "interval_s": row.interval.map(|(low, high)| [low.as_seconds(), high.as_seconds()]),
        "predicted_s": by_name(row.predicted.iter().map(|time| time.as_seconds()).collect()),
        "predicted_range_s": ranges,
        "errors": row.errors.clone().map(by_name),
    })
}

/// For people.
pub fn print(validation: &AppValidation, fared: &[Fared]) -> Result<()> {
    let rows = validation.rows()?;
    let mut columns = vec!["".to_owned(), "which".to_owned(), ">measured".to_owned(), ">95 % interval".to_owned()];
    columns.extend(validation.predictors.iter().map(|name| format!(">{name}")));
    let mut out = table(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    let regions = rows.iter().filter(|row| row.quantity == Quantity::Region).count();
    for row in rows.iter().filter(|row| row.quantity != Quantity::Region || regions <= ROWS) {
        out.add_row(cells(row));
    }
    println_out!("{out}");
    print_regions(validation, fared);
    let computed: Time = validation.worked.iter().copied().sum();
    println_out!(
        "{} runs, {} ranks; computation {} of thread CPU in all",
        validation.runs.len(),
        validation.worked.len(),
        Rounded(computed)
    );
    Ok(())
}

fn cells(row: &Row) -> Vec<String> {
    let interval = row.interval.map_or(String::new(), |(low, high)| format!("{} .. {}", Rounded(low), Rounded(high)));
    let mut cells = vec![row.quantity.name().to_owned(), row.name.clone(), Rounded(row.measured).to_string(), interval];
    for (at, predicted) in row.predicted.iter().enumerate() {
        let error = row.errors.as_ref().map_or(String::new(), |errors| format!(" ({:+.1} %)", errors[at] * 100.0));
        let range = row.ranges[at].filter(|_| row.quantity == Quantity::Total);
        let range = range.map_or(String::new(), |(low, high)| format!(", {} .. {}", Rounded(low), Rounded(high)));
        cells.push(format!("{}{error}{range}", Rounded(*predicted)));
    }
    cells
}

fn print_regions(validation: &AppValidation, fared: &[Fared]) {
    if fared.iter().all(|fared| fared.regions.is_none()) {
        return;
    }
    let mut out = table(&["prediction", ">regions", ">within 10 %", ">median error", ">mean error", ">worst", "which"]);
    for (name, fared) in validation.predictors.iter().zip(fared) {
        let Some(regions) = &fared.regions else { continue };
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        out.add_row([
            name.clone(),
            regions.count.to_string(),
            percent(regions.within_ten_percent),
            percent(regions.median_absolute),
            percent(regions.mean_absolute),
            format!("{:+.1} %", regions.worst.1 * 100.0),
            regions.worst.0.clone(),
        ]);
    }
    println_out!("{out}");
}
