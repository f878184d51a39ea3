//! The part of `flowcast predict` for patterns of concurrent communications.

use std::path::Path;

use anyhow::{Result, bail};
use comfy_table::Cell;
use flowcast::{
    Contention, Options, PatternPrediction,
    flows::concurrent::{FlowPrediction, Prediction},
    model::{
        cluster::pattern::Steps,
        network::Network,
        quantity::Quantity,
        sharing::{completion::Interval, model::Model},
    },
    packet::seeds::{LEVEL, Runs, Spread},
    pattern_intervals, predict_steps,
    report::{pattern_page, pattern_plot},
    table::Grouped,
    units::Rounded,
};
use serde_json::{Value, json};

use super::{
    Asked, Predict,
    comparison::of_pattern,
    stand_ins::{marked_name, print_stand_ins, stand_ins_json},
    trace::{add_interval, margin},
};
use crate::{
    network_args::tell_rate_kind,
    terminal::{
        files::write_text,
        output::println_out,
        tables::{Most, ROWS, cells, table},
    },
    trace_args::read_pattern,
};

/// Predicts and prints; for several networks or models a row for each. A pattern without `step` lines has one step.
pub(super) fn run(asked: &Asked<'_>, input: &Path) -> Result<()> {
    let typed = asked.args;
    let (name, content) = read_pattern(input)?;
    let steps = Steps::read(&name, &content)?;
    let Some(first) = asked.networks.first() else {
        return Err(flowcast::Error::NoNetwork.into());
    };
    let model = typed.model.first().map(String::as_str);
    tell_rate_kind(
        &asked.fields(),
        model.unwrap_or(Model::from_network(first).name()),
    );
    let mut options = Vec::new();
    for (name, contention) in typed.model.iter().zip(&asked.models) {
        if contention.model().is_none() {
            bail!("--model {name}: found a pattern, expected a trace");
        }
        options.push(options_of(typed, *contention));
    }
    if options.is_empty() {
        options.push(options_of(typed, Contention::Automatic));
    }
    match (&asked.networks[..], &options[..]) {
        ([network], [options]) => predict(&steps, network, options, asked),
        _ => of_pattern(&steps, &options, asked),
    }
}

fn options_of(args: &Predict, contention: Contention) -> Options {
    Options {
        contention,
        is_strict: args.strict,
        runs: args.seeds.map(Runs::once),
        ..Options::default()
    }
}

fn predict(steps: &Steps, network: &Network, options: &Options, asked: &Asked<'_>) -> Result<()> {
    let args = asked.args;
    let predicted = predict_steps(steps, network, options)?;
    let intervals = pattern_intervals(steps, network, options, &predicted, &asked.interval())?;
    let last = predicted.last().expect("a pattern has a step");
    let (model, makespan) = (last.model, last.prediction.makespan());
    let flows = flows_text(
        predicted
            .iter()
            .map(|step| step.prediction.flows.len())
            .sum(),
    );
    if let Some(path) = &args.report {
        draw(
            path,
            &predicted,
            &format!("{flows} on {}, {}", network.name, model.name()),
        )?;
    }
    let interval = intervals.as_ref().map(|intervals| &intervals.makespan);
    if asked.args.json {
        let mut document = document(&predicted, network, args);
        if args.seeds.is_none() {
            add_interval(&mut document, interval);
        }
        for (index, interval) in intervals
            .iter()
            .flat_map(|intervals| &intervals.flows)
            .enumerate()
        {
            document["flows"][index]["interval_s"] =
                [interval.low.as_seconds(), interval.high.as_seconds()].into();
        }
        println_out!("{document}");
        return Ok(());
    }
    print_flows(&predicted, asked.args.trace.rows);
    let in_steps = if predicted.len() > 1 {
        format!(" in {} steps", predicted.len())
    } else {
        String::new()
    };
    let makespan = interval.map_or_else(|| Rounded(makespan).to_string(), ToString::to_string);
    println_out!(
        "{flows}{in_steps} on {} ({}): the last ends at {makespan}",
        marked_name(network),
        model.name()
    );
    match predicted.len() {
        1 => println_out!("{}", margin(Some(network), interval)),
        _ => println_out!("no margin known of patterns in several steps"),
    }
    print_stand_ins(std::slice::from_ref(network));
    if let Some(seeds) = args.seeds {
        println_out!("medians of {seeds} runs; nine of ten end between the times low and high");
    }
    if args.explain {
        print_intervals(&predicted, network);
    }
    Ok(())
}

fn document(predicted: &[PatternPrediction], network: &Network, args: &Predict) -> Value {
    let last = predicted.last().expect("a pattern has a step");
    let mut flows = Vec::new();
    for (
        step,
        PatternPrediction {
            prediction,
            spreads,
            ..
        },
    ) in predicted.iter().enumerate()
    {
        for (index, flow) in prediction.flows.iter().enumerate() {
            let mut entry = flow_entry(flow);
            if predicted.len() > 1 {
                entry["step"] = json!(step + 1);
            }
            if args.explain {
                let intervals = prediction.intervals_of(index).iter();
                entry["intervals"] = intervals
                    .map(|interval| interval_entry(prediction, interval))
                    .collect();
            }
            spreads
                .get(index)
                .into_iter()
                .for_each(|spread| add_spread(&mut entry, spread));
            flows.push(entry);
        }
    }
    let mut document = json!({
        "schema": "flowcast/pattern-prediction/1",
        "network": network.name,
        "stand_ins": stand_ins_json(network),
        "model": last.model.name(),
        "makespan_s": last.prediction.makespan().as_seconds(),
        "flows": flows,
    });
    if let Some(seeds) = args.seeds {
        document["seeds"] = json!(seeds);
        document["interval_level"] = json!(LEVEL);
    }
    document
}

/// Where nine of ten runs of a flow lie.
fn add_spread(flow: &mut Value, spread: &Spread) {
    flow["end_s_low"] = json!(spread.low.end.as_seconds());
    flow["end_s_high"] = json!(spread.high.end.as_seconds());
    flow["duration_s_low"] = json!(spread.low.duration.as_seconds());
    flow["duration_s_high"] = json!(spread.high.duration.as_seconds());
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

fn print_flows(predicted: &[PatternPrediction], show: Most) {
    let mut columns = vec![
        ">flow",
        ">from",
        ">to",
        ">size",
        ">start",
        ">end",
        ">duration",
        ">alone",
        ">slowdown",
    ];
    let has_steps = predicted.len() > 1;
    if has_steps {
        columns.insert(0, ">step");
    }
    if predicted.iter().any(|step| !step.spreads.is_empty()) {
        columns.extend([">low", ">high"]);
    }
    let mut table = table(&columns);
    let flows: Vec<_> = (1..)
        .zip(predicted)
        .flat_map(|(number, step)| {
            step.prediction
                .flows
                .iter()
                .enumerate()
                .map(move |flow| (number, step, flow))
        })
        .collect();
    for (number, step, (index, flow)) in show.of(&flows) {
        let mut row = if has_steps {
            Vec::from(cells![number])
        } else {
            Vec::new()
        };
        row.extend(flow_cells(flow));
        if let Some(spread) = step.spreads.get(*index) {
            row.extend(cells![Rounded(spread.low.end), Rounded(spread.high.end)]);
        }
        table.add_row(row);
    }
    println_out!("{}", show.shown(&table, flows.len(), ROWS));
}

fn flow_cells(predicted: &FlowPrediction) -> Vec<Cell> {
    let flow = &predicted.flow;
    Vec::from(cells![
        flow.id,
        flow.src,
        flow.dst,
        flow.size,
        Rounded(flow.start),
        Rounded(predicted.end),
        Rounded(predicted.duration),
        Rounded(predicted.alone),
        format!("{:.3}", predicted.slowdown())
    ])
}

fn print_intervals(predicted: &[PatternPrediction], network: &Network) {
    let mut table = table(&[">flow", ">from", ">until", ">share", ">rate", "why"]);
    let lone = Quantity::Rate(network.nic.rate());
    let flows = predicted.iter().flat_map(|step| {
        let flows = step.prediction.flows.iter().enumerate();
        flows.map(|(index, flow)| (&step.prediction, index, flow))
    });
    for (prediction, index, predicted) in flows {
        for interval in prediction.intervals_of(index) {
            table.add_row(cells![
                predicted.flow.id,
                Rounded(interval.from),
                Rounded(interval.to),
                format!("{:.3}", interval.share.0),
                lone.with_number(interval.share.0 * lone.number()).rounded(),
                prediction.reason(interval.limit)
            ]);
        }
    }
    println_out!("\n{table}");
}

fn draw(path: &Path, predicted: &[PatternPrediction], title: &str) -> Result<()> {
    let [PatternPrediction { prediction, .. }] = predicted else {
        bail!(
            "--report: found a pattern in {} steps, expected one without `step` lines",
            predicted.len()
        );
    };
    let flows = prediction.flows.len();
    if flows > pattern_plot::MOST_FLOWS {
        bail!(
            "--report: found {}, expected at most {} flows",
            flows_text(flows),
            pattern_plot::MOST_FLOWS
        );
    }
    let drawing = match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => pattern_plot::svg(prediction, title),
        Some("html") => pattern_page::html(prediction, title),
        _ => bail!(
            "--report: found {}, expected a file that ends in .svg or .html",
            path.display()
        ),
    };
    write_text(path, &drawing)
}

fn flows_text(flows: usize) -> String {
    match flows {
        1 => "1 flow".into(),
        _ => format!("{} flows", Grouped(flows as u64)),
    }
}
