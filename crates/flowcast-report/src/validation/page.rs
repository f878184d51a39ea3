//! A validation as one HTML page that loads nothing from anywhere.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ConfigurationErrors, FlowError, ModelErrors, Validation, plot};
use crate::charts::{self, section};
use flowcast_table::escape;

/// Drawings of more patterns than this slow browsers down; the histograms show all of them.
const MOST_DRAWINGS: usize = 24;

const SCRIPT: &str = include_str!("../assets/validation.js");

/// The whole HTML page of a validation, with the errors of its models.
pub fn html(validation: &Validation, errors: &[ModelErrors]) -> String {
    let flows: usize = validation.cases.iter().map(|case| case.flows.len()).sum();
    let patterns = validation.cases.len();
    let summary = format!(
        "<p>{patterns} patterns, {flows} flows. Errors are (predicted - measured) / measured.</p>\n"
    );
    let words = "<p>Bars: groups of measured durations. Points: the medians of all measured, and the predictions.</p>\n";
    let durations = format!(
        "{words}<div id=\"points\"></div>\n{}",
        not_drawn(validation)
    );
    let body = [
        section("", &summary),
        section("", &models(validation, errors)),
        section(
            "Mean absolute error by configuration",
            &configurations(validation, errors),
        ),
        section("Errors of all flows", "<div id=\"histograms\"></div>\n"),
        section("Durations", &durations),
        provenance(&validation.provenance),
    ];
    page(
        &validation.title,
        &body.concat(),
        &drawings(validation, errors),
    )
}

/// A page whose drawings are `histograms` and `points`.
pub(super) fn page(title: &str, body: &str, drawings: &Value) -> String {
    charts::page(title, body, (&drawings.to_string(), SCRIPT))
}

/// A table; cells are HTML.
pub(super) fn table<S: AsRef<str>>(
    head: &[S],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let cells: String = head
        .iter()
        .map(|cell| format!("<th>{}</th>", cell.as_ref()))
        .collect();
    let head = if head.is_empty() {
        String::new()
    } else {
        format!("<tr>{cells}</tr>\n")
    };
    let row = |cells: Vec<String>| {
        cells
            .iter()
            .map(|cell| format!("<td>{cell}</td>"))
            .collect::<String>()
    };
    let rows: String = rows
        .into_iter()
        .map(|cells| format!("<tr>{}</tr>\n", row(cells)))
        .collect();
    format!("<div class=\"scroll\"><table>{head}{rows}</table></div>\n")
}

/// A name behind a spot of the colour in which drawings show it.
pub(super) fn key(number: usize, name: &str) -> String {
    format!(
        "<span class=\"key\" style=\"background:{}\"></span>{}",
        plot::colour(number),
        escape(name)
    )
}

fn models(validation: &Validation, errors: &[ModelErrors]) -> String {
    let head = [
        "model",
        "mean absolute",
        "of a pattern, min / max",
        "global, min / max",
        "best flow",
        "worst flow",
        "signed",
        "runs inside 90 %",
    ];
    let range = |(low, high)| format!("{} / {}", percent(low), percent(high));
    let flow = |of: &FlowError| {
        format!(
            "{} ({}, flow {})",
            percent(of.error),
            escape(&of.case),
            of.flow
        )
    };
    table(
        &head,
        validation.models.iter().zip(errors).enumerate().map(
            |(model, (name, errors)): (usize, (&String, &ModelErrors))| {
                vec![
                    key(model, name),
                    percent(errors.mean_absolute),
                    range(errors.mean_range),
                    range(errors.global_range),
                    flow(&errors.best),
                    flow(&errors.worst),
                    signed_range(errors.signed_range),
                    errors.coverage.map_or_else(
                        || "-".into(),
                        |of| format!("{} of {}", percent(of.share()), of.repetitions),
                    ),
                ]
            },
        ),
    )
}

fn configurations(validation: &Validation, errors: &[ModelErrors]) -> String {
    let Some(first) = errors.first() else {
        return String::new();
    };
    let names = validation.models.iter().map(|name| escape(name));
    let head: Vec<String> = ["configuration", "patterns", "flows"]
        .map(str::to_owned)
        .into_iter()
        .chain(names)
        .collect();
    table(
        &head,
        first
            .by_configuration
            .iter()
            .enumerate()
            .map(|(at, of): (usize, &ConfigurationErrors)| {
                let first = [
                    escape(&of.configuration),
                    of.patterns.to_string(),
                    of.flows.to_string(),
                ];
                first
                    .into_iter()
                    .chain(errors.iter().map(|errors: &ModelErrors| {
                        let ConfigurationErrors {
                            signed_range: range,
                            mean_absolute,
                            ..
                        } = errors.by_configuration[at];
                        format!(
                            "<span title=\"{}\">{}</span>",
                            signed_range(range),
                            percent(mean_absolute)
                        )
                    }))
                    .collect()
            }),
    )
}

fn drawings(validation: &Validation, errors: &[ModelErrors]) -> Value {
    let widest = errors
        .iter()
        .flat_map(|errors| [errors.signed_range.0.abs(), errors.signed_range.1.abs()]);
    let half_range = ((widest.fold(0.05, f64::max) * 20.0).ceil() / 20.0).min(1.0);
    let histograms: Vec<_> = validation
        .models
        .iter()
        .zip(errors)
        .enumerate()
        .map(|(model, (name, errors))| {
            let label = format!("{name}: errors of {} flows", errors.signed.len());
            plot::histogram(label, errors, half_range, plot::colour(model))
        })
        .collect();
    let cases = validation.cases.iter().take(MOST_DRAWINGS);
    let points: Vec<_> = cases
        .map(|case| plot::durations(case, &validation.models))
        .collect();
    json!({"histograms": histograms, "points": points})
}

fn not_drawn(validation: &Validation) -> String {
    match validation.cases.len().checked_sub(MOST_DRAWINGS) {
        Some(more @ 1..) => format!("<p>{more} more patterns are in the JSON file.</p>\n"),
        _ => String::new(),
    }
}

pub(super) fn provenance(provenance: &BTreeMap<String, String>) -> String {
    let value = |value: &str| format!("<span class=\"text\">{}</span>", escape(value));
    let rows = provenance
        .iter()
        .map(|(name, text)| vec![escape(name), value(text)]);
    section("Provenance", &table::<&str>(&[], rows))
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

pub(super) fn signed(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

fn signed_range((low, high): (f64, f64)) -> String {
    format!("{} .. {}", signed(low), signed(high))
}
