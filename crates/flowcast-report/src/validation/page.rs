//! A validation as one HTML page that loads nothing from anywhere.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{ModelErrors, Validation, plot};

/// Drawings of more patterns than this would make a page that no browser likes; the histograms show all of them.
const MOST_DRAWINGS: usize = 24;

const STYLE: &str = "body{margin:24px auto;max-width:1040px;font:15px/1.45 system-ui,sans-serif;color:#222;padding:0 16px}\
table{border-collapse:collapse;margin:12px 0}th,td{padding:3px 12px;text-align:right;border-bottom:1px solid #ddd}\
th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}.key{display:inline-block;width:10px;\
height:10px;border-radius:5px;margin-right:6px}";

/// The page.
pub fn html(validation: &Validation, errors: &[ModelErrors]) -> String {
    let mut out = begun(&validation.title);
    let flows: usize = validation.cases.iter().map(|case| case.flows.len()).sum();
    let _ = writeln!(
        out,
        "<p>{} patterns, {flows} flows. Errors are (predicted - measured) / measured.</p>",
        validation.cases.len()
    );
    push_models(&mut out, validation, errors);
    push_configurations(&mut out, validation, errors);
    push_drawings(&mut out, validation, errors);
    push_provenance(&mut out, &validation.provenance);
    out + "</html>\n"
}

/// The page down to its heading.
pub(super) fn begun(title: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <h1>{title}</h1>\n"
    )
}

fn push_models(out: &mut String, validation: &Validation, errors: &[ModelErrors]) {
    out.push_str(
        "<table><tr><th>model</th><th>mean absolute</th><th>of a pattern, min / max</th><th>global, min / max</th>\
         <th>best flow</th><th>worst flow</th><th>signed</th><th>runs inside 90 %</th></tr>\n",
    );
    for (model, (name, errors)) in validation.models.iter().zip(errors).enumerate() {
        let _ = writeln!(
            out,
            "<tr><td><span class=\"key\" style=\"background:{}\"></span>{}</td><td>{}</td><td>{} / {}</td>\
             <td>{} / {}</td><td>{} ({}, flow {})</td><td>{} ({}, flow {})</td><td>{} .. {}</td><td>{}</td></tr>",
            plot::colour(model),
            escaped(name),
            percent(errors.mean_absolute),
            percent(errors.mean_range.0),
            percent(errors.mean_range.1),
            percent(errors.global_range.0),
            percent(errors.global_range.1),
            percent(errors.best.error),
            escaped(&errors.best.case),
            errors.best.flow,
            percent(errors.worst.error),
            escaped(&errors.worst.case),
            errors.worst.flow,
            signed(errors.signed_range.0),
            signed(errors.signed_range.1),
            errors.coverage.map_or_else(|| "-".into(), |of| format!("{} of {}", percent(of.share()), of.repetitions)),
        );
    }
    out.push_str("</table>\n");
}

fn push_configurations(out: &mut String, validation: &Validation, errors: &[ModelErrors]) {
    let Some(first) = errors.first() else { return };
    out.push_str("<h2>Mean absolute error by configuration</h2>\n<table><tr><th>configuration</th><th>patterns</th><th>flows</th>");
    validation.models.iter().for_each(|name| out.push_str(&format!("<th>{}</th>", escaped(name))));
    out.push_str("</tr>\n");
    for (at, configuration) in first.by_configuration.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td>",
            escaped(&configuration.configuration),
            configuration.patterns,
            configuration.flows
        );
        errors.iter().for_each(|model| {
            let of_model = &model.by_configuration[at];
            let (low, high) = of_model.signed_range;
            let _ = write!(
                out,
                "<td title=\"{} .. {}\">{}</td>",
                signed(low),
                signed(high),
                percent(of_model.mean_absolute)
            );
        });
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

fn push_drawings(out: &mut String, validation: &Validation, errors: &[ModelErrors]) {
    let widest = errors.iter().flat_map(|errors| [errors.signed_range.0.abs(), errors.signed_range.1.abs()]);
    let half_range = ((widest.fold(0.05, f64::max) * 20.0).ceil() / 20.0).min(1.0);
    out.push_str("<h2>Errors of all flows</h2>\n");
    for (model, (name, errors)) in validation.models.iter().zip(errors).enumerate() {
        out.push_str(&plot::histogram(name, errors, half_range, plot::colour(model)));
    }
    out.push_str(
        "<h2>Durations</h2>\n<p>Black: groups of measured durations with their median. Circles: predictions.</p>\n",
    );
    for case in validation.cases.iter().take(MOST_DRAWINGS) {
        out.push_str(&plot::durations(case, &validation.models));
    }
    if let Some(more @ 1..) = validation.cases.len().checked_sub(MOST_DRAWINGS) {
        let _ = writeln!(out, "<p>{more} more patterns are in the JSON file.</p>");
    }
}

pub(super) fn push_provenance(out: &mut String, provenance: &BTreeMap<String, String>) {
    out.push_str("<h2>Provenance</h2>\n<table>\n");
    for (key, value) in provenance {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td style=\"text-align:left;white-space:pre-wrap\">{}</td></tr>",
            escaped(key),
            escaped(value)
        );
    }
    out.push_str("</table>\n");
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

pub(super) fn signed(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// Text for HTML and SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
