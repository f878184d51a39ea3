//! Concurrent flows over time as an HTML page: selectable curves of each flow's rate, as a fraction of its uncontended rate,
//! above the drawing of all flows.

use serde_json::{Value, json};

use crate::{
    charts::{self, section, words},
    pattern_plot,
};
use flowcast_table::Document;
use flowcast_traffic::flows::concurrent::FlowsPrediction;
use flowcast_units::Rounded;

const SCRIPT: &str = include_str!("assets/pattern.js");

/// Builds the page of a pattern: the text of its document, its flows over time, their rates and bottlenecks.
pub fn html(prediction: &FlowsPrediction, document: &Document) -> String {
    let flows: Vec<Value> = (0..prediction.flows.len())
        .map(|index| flow(prediction, index))
        .collect();
    let head: String = [
        "", "flow", "from", "to", "size", "start", "end", "alone", "slowdown",
    ]
    .iter()
    .map(|name| format!("<th scope=\"col\">{name}</th>"))
    .collect();
    let shares = "<div id=\"shares\"></div>\n\
                  <p id=\"why\" aria-live=\"polite\">Point at a curve to see what limits the flow.</p>\n";
    let table = format!(
        "<div class=\"scroll tall\"><table><thead><tr>{head}</tr></thead><tbody id=\"flows\"></tbody></table></div>\n"
    );
    let picture = pattern_plot::svg(prediction, "All flows");
    let picture = format!("<div class=\"scroll\">{picture}</div>\n");
    let body = [&words(document), shares, &table, &picture]
        .map(|content| section("", content))
        .concat();
    charts::page(&document.title, &body, &json!(flows).to_string(), SCRIPT)
}

/// Data of a flow for the script: the cells of its row, and the intervals.
fn flow(prediction: &FlowsPrediction, index: usize) -> Value {
    let predicted = &prediction.flows[index];
    let of = &predicted.flow;
    json!({
        "name": format!("{}: {} → {}", of.id, of.src, of.dst),
        "cells": [
            of.id.to_string(),
            of.src.to_string(),
            of.dst.to_string(),
            Rounded(of.size).to_string(),
            Rounded(of.start).to_string(),
            Rounded(predicted.end).to_string(),
            Rounded(predicted.alone).to_string(),
            format!("{:.3}", predicted.slowdown()),
        ],
        "slowdown": predicted.slowdown(),
        "intervals": prediction.intervals_of(index).iter().map(|interval| {
        json!([
            interval.from.as_seconds(),
            interval.to.as_seconds(),
            interval.share.0,
            prediction.reason(index, interval.limit)
        ])
    }).collect::<Vec<_>>(),
    })
}
