//! The part of `flowcast predict` for patterns of concurrent communications.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
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
    Asked,
    comparison::of_pattern,
    stand_ins::{marked_name, print_stand_ins, stand_ins_json},
    trace::{add_interval, margin},
};
use crate::{
    network_args::tell_rate_kind,
    terminal::{
        files::write_text,
        output::println_out,
        tables::{Most, USUAL_ROWS, cells, table},
    },
    trace_args::read_pattern,
};

#[derive(Debug, Clone, Args)]
pub(in crate::commands) struct PatternArgs {
    /// Patterns: draw the flows over time (.svg or .html)
    #[arg(long, value_name = "FILE", help_heading = "Patterns")]
    pub plot: Option<PathBuf>,
    /// Patterns: flow-cuts refuses more than two flows in one direction of a node
    #[arg(long, help_heading = "Patterns")]
    pub strict: bool,
    /// Patterns, model packet: so many runs with random starts and host times; medians, and where nine of ten lie
    #[arg(long, value_name = "N", help_heading = "Patterns", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: Option<u32>,
    /// Patterns: flows of which the table has a row, or all
    #[arg(long, value_name = "COUNT", help_heading = "Patterns", default_value = USUAL_ROWS)]
    pub show_flows: Most,
}

impl PatternArgs {
    /// Whether any of them was given.
    pub(in crate::commands) fn is_given(&self) -> bool {
        self.plot.is_some() || self.strict || self.seeds.is_some()
    }

    fn options(&self, contention: Contention) -> Options {
        Options {
            contention,
            is_strict: self.strict,
            runs: self.seeds.map(Runs::once),
            ..Options::default()
        }
    }
}

/// Predicts, prints and draws; a pattern without `step` lines has one step.
/// Predicts and prints; for several networks or models a row for each.
pub(super) fn run(asked: &Asked<'_>, input: &Path) -> Result<()> {
    let (args, typed) = (&asked.args.pattern, asked.args);
    let (name, content) = read_pattern(input)?;
    let steps = Steps::read(&name, &content)?;
    if typed.trace.is_given() {
        bail!(
            "found a pattern, expected a trace for --mapping, --rendezvous-from, --collectives, --goal-params and files to write"
        );
    }
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
        options.push(args.options(*contention));
    }
    if options.is_empty() {
        options.push(args.options(Contention::Automatic));
    }
    match (&asked.networks[..], &options[..]) {
        ([network], [options]) => predict(&steps, network, options, asked),
        _ if args.plot.is_some() || typed.explain => {
            bail!("--plot, --explain: found several networks or models, expected one")
        }
        _ => of_pattern(&steps, &options, asked),
    }
}

fn predict(steps: &Steps, network: &Network, options: &Options, asked: &Asked<'_>) -> Result<()> {
    let (args, explain) = (&asked.args.pattern, asked.args.explain);
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
    if let Some(path) = &args.plot {
        draw(
            path,
            &predicted,
            &format!("{flows} on {}, {}", network.name, model.name()),
        )?;
    }
    let interval = intervals.as_ref().map(|intervals| &intervals.makespan);
    if asked.args.json {
        let mut document = document(&predicted, network, (args, explain));
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
    print_flows(&predicted, args.show_flows);
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
    if explain {
        print_intervals(&predicted, network);
    }
    Ok(())
}

fn document(
    predicted: &[PatternPrediction],
    network: &Network,
    (args, explain): (&PatternArgs, bool),
) -> Value {
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
            if explain {
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
    println_out!("{}", show.shown(&table, flows.len(), "--show-flows"));
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
            "--plot: found a pattern in {} steps, expected one without `step` lines",
            predicted.len()
        );
    };
    let flows = prediction.flows.len();
    if flows > pattern_plot::MOST_FLOWS {
        bail!(
            "--plot: found {}, expected at most {} flows",
            flows_text(flows),
            pattern_plot::MOST_FLOWS
        );
    }
    let drawing = match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => pattern_plot::svg(prediction, title),
        Some("html") => pattern_page::html(prediction, title),
        _ => bail!(
            "--plot: found {}, expected a file that ends in .svg or .html",
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
