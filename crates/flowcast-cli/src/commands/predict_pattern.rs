//! The part of `flowcast predict` for patterns of concurrent communications.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use flowcast::flows::concurrent::{FlowPrediction, Prediction};
use flowcast::model::cluster::pattern::Pattern;
use flowcast::model::network::Network;
use flowcast::model::sharing::completion::Interval;
use flowcast::model::sharing::model::Model;
use flowcast::packet::seeds::{LEVEL, Spread};
use flowcast::report::pattern_plot;
use flowcast::units::Rounded;
use flowcast::{PatternOptions, PatternPrediction, pattern_intervals, predict_pattern};
use serde_json::{Value, json};

use super::predict::Asked;
use super::predict_trace::{add_interval, margin};
use crate::files::write_text;
use crate::tables::{cells, table};

/// Options for patterns.
#[derive(Debug, Clone, Args)]
pub(super) struct PatternArgs {
    /// Patterns: draw the flows over time (.svg or .html)
    #[arg(long, value_name = "FILE", help_heading = "Patterns")]
    pub plot: Option<PathBuf>,
    /// Patterns: flow-cuts refuses more than two flows in one direction of a node
    #[arg(long, help_heading = "Patterns")]
    pub strict: bool,
    /// Patterns, model packet: so many runs with random starts and host times; medians, and where nine of ten lie
    #[arg(long, value_name = "N", help_heading = "Patterns", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,
}

impl PatternArgs {
    /// Whether any of them was given.
    pub(super) fn is_given(&self) -> bool {
        self.plot.is_some() || self.strict || self.seeds.is_some()
    }
}

/// Predicts, prints and draws.
pub(super) fn run(
    pattern: &Pattern,
    network: &Network,
    (args, options): (&PatternArgs, &PatternOptions),
    asked: &Asked,
) -> Result<()> {
    let predicted = predict_pattern(pattern, network, options)?;
    let intervals = pattern_intervals(pattern, network, (options, &predicted), &asked.interval())?;
    let PatternPrediction { model, prediction, spreads } = predicted;
    if let Some(path) = &args.plot {
        draw(path, &prediction, &format!("{} on {}, {}", flows_text(&prediction), network.name, model.name()))?;
    }
    let mut out = std::io::stdout().lock();
    if asked.json {
        let mut document = document(&prediction, network, model, asked.explain);
        add_interval(&mut document, intervals.as_ref().map(|intervals| &intervals.makespan));
        for (index, interval) in intervals.iter().flat_map(|intervals| &intervals.flows).enumerate() {
            document["flows"][index]["interval_s"] = [interval.low.as_seconds(), interval.high.as_seconds()].into();
        }
        if let Some(seeds) = args.seeds {
            add_spreads(&mut document, &spreads, seeds);
        }
        writeln!(out, "{document}")?;
        return Ok(());
    }
    print_flows(&mut out, &prediction, &spreads)?;
    let interval = intervals.as_ref().map(|intervals| &intervals.makespan);
    let makespan = interval.map_or_else(|| Rounded(prediction.makespan()).to_string(), ToString::to_string);
    let flows = flows_text(&prediction);
    writeln!(out, "{flows} on {} ({}): the last ends at {makespan}", network.name, model.name())?;
    writeln!(out, "{}", margin(Some(network), interval))?;
    if let Some(seeds) = args.seeds {
        writeln!(out, "medians of {seeds} runs; nine of ten end between the times low and high")?;
    }
    if asked.explain {
        print_intervals(&mut out, &prediction, network)?;
    }
    Ok(())
}

fn document(prediction: &Prediction, network: &Network, model: Model, explain: bool) -> Value {
    let flows = prediction.flows.iter().enumerate().map(|(index, flow)| {
        let mut entry = flow_entry(flow);
        if explain {
            let intervals = prediction.intervals_of(index).iter().map(|interval| interval_entry(prediction, interval));
            entry["intervals"] = intervals.collect();
        }
        entry
    });
    json!({
        "schema": "flowcast/pattern-prediction/1",
        "network": network.name,
        "model": model.name(),
        "makespan_s": prediction.makespan().as_seconds(),
        "flows": flows.collect::<Vec<_>>(),
    })
}

/// Beside each flow where nine of ten runs lie.
fn add_spreads(document: &mut Value, spreads: &[Spread], seeds: u32) {
    document["seeds"] = json!(seeds);
    document["interval_level"] = json!(LEVEL);
    for (index, spread) in spreads.iter().enumerate() {
        let flow = &mut document["flows"][index];
        flow["end_s_low"] = json!(spread.low.end.as_seconds());
        flow["end_s_high"] = json!(spread.high.end.as_seconds());
        flow["duration_s_low"] = json!(spread.low.duration.as_seconds());
        flow["duration_s_high"] = json!(spread.high.duration.as_seconds());
    }
}

fn flow_entry(predicted: &FlowPrediction) -> Value {
    let flow = &predicted.flow;
    json!({
        "id": flow.id,
        "src": flow.src.0,
        "dst": flow.dst.0,
        "bytes": flow.size.0,
        "start_s": flow.start.as_seconds(),
        "end_s": predicted.end.as_seconds(),
        "duration_s": predicted.duration.as_seconds(),
        "alone_s": predicted.alone.as_seconds(),
        "slowdown": predicted.slowdown(),
    })
}

fn interval_entry(prediction: &Prediction, interval: &Interval) -> Value {
    json!({
        "from_s": interval.from.as_seconds(),
        "to_s": interval.to.as_seconds(),
        "share": interval.share.0,
        "limit": prediction.reason(interval.limit),
    })
}

fn print_flows(out: &mut impl Write, prediction: &Prediction, spreads: &[Spread]) -> Result<()> {
    let mut columns = vec![">flow", ">from", ">to", ">size", ">start", ">end", ">duration", ">alone", ">slowdown"];
    if !spreads.is_empty() {
        columns.extend([">low", ">high"]);
    }
    let mut table = table(&columns);
    for (index, predicted) in prediction.flows.iter().enumerate() {
        let flow = &predicted.flow;
        let mut row = Vec::from(cells![
            flow.id,
            flow.src,
            flow.dst,
            flow.size,
            Rounded(flow.start),
            Rounded(predicted.end),
            Rounded(predicted.duration),
            Rounded(predicted.alone),
            format!("{:.3}", predicted.slowdown())
        ]);
        if let Some(spread) = spreads.get(index) {
            row.extend(cells![Rounded(spread.low.end), Rounded(spread.high.end)]);
        }
        table.add_row(row);
    }
    writeln!(out, "{table}")?;
    Ok(())
}

fn print_intervals(out: &mut impl Write, prediction: &Prediction, network: &Network) -> Result<()> {
    let mut table = table(&[">flow", ">from", ">until", ">share", ">rate", "why"]);
    let lone_rate = network.nic.rate().as_bytes_per_second() / 1e6;
    for (index, predicted) in prediction.flows.iter().enumerate() {
        for interval in prediction.intervals_of(index) {
            table.add_row(cells![
                predicted.flow.id,
                Rounded(interval.from),
                Rounded(interval.to),
                format!("{:.3}", interval.share.0),
                format!("{:.1} MB/s", interval.share.0 * lone_rate),
                prediction.reason(interval.limit)
            ]);
        }
    }
    writeln!(out, "\n{table}")?;
    Ok(())
}

fn draw(path: &Path, prediction: &Prediction, title: &str) -> Result<()> {
    if prediction.flows.len() > pattern_plot::MOST_FLOWS {
        bail!("--plot: found {}, expected at most {} flows", flows_text(prediction), pattern_plot::MOST_FLOWS);
    }
    let drawing = match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => pattern_plot::svg(prediction, title),
        Some("html") => pattern_plot::html(prediction, title),
        _ => bail!("--plot: found {}, expected a file that ends in .svg or .html", path.display()),
    };
    write_text(path, &drawing)
}

fn flows_text(prediction: &Prediction) -> String {
    match prediction.flows.len() {
        1 => "1 flow".into(),
        flows => format!("{flows} flows"),
    }
}
