//! The part of `flowcast predict` for patterns of concurrent communications.

use std::path::Path;

use anyhow::{Result, bail};
use flowcast::{
    Contention, Options, PatternPrediction,
    flows::concurrent::FlowPrediction,
    model::{
        cluster::pattern::Steps,
        network::Network,
        quantity::Quantity,
        sharing::{completion::Interval, link_loads::ClassLoad, model::Model},
    },
    packet::seeds::{LEVEL, Runs, Spread},
    pattern_intervals, predict_steps,
    report::{pattern_page, pattern_plot},
    statements::{margin_of_steps, marked_name, of_networks, shown_time, stand_ins},
    table::{Document, Grouped, Rows, figure, fixed, rows},
};

use super::{Asked, Predict, comparison::of_pattern, levels::level_table, trace::interval_fields};
use crate::{
    network_args::tell_rate_kind,
    terminal::{files::write_text, tables::ROWS},
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
        keeps_intervals: args.explain || args.report.is_some(),
        runs: args.replicates.map(Runs::once),
        ..Options::default()
    }
}

fn predict(steps: &Steps, network: &Network, options: &Options, asked: &Asked<'_>) -> Result<()> {
    let args = asked.args;
    let predicted = predict_steps(steps, network, options)?;
    let intervals =
        asked.with_draws(|draws| pattern_intervals(steps, network, options, &predicted, draws))?;
    let last = predicted.last().expect("a pattern has a step");
    let (model, makespan) = (last.model, last.prediction.makespan());
    let flows = flows_text(
        predicted
            .iter()
            .map(|step| step.prediction.flows.len())
            .sum(),
    );
    let interval = intervals.as_ref().map(|intervals| &intervals.makespan);
    let in_steps = match predicted.len() {
        1 => String::new(),
        several => format!(" in {several} steps"),
    };
    let explained = margin_of_steps(predicted.len(), network, interval, !args.no_interval);
    let answer = format!(
        "{flows}{in_steps} on {} ({}): the last ends at {}",
        marked_name(network),
        model.name(),
        shown_time(makespan, interval)
    );
    let of_flows = intervals.as_ref().map(|intervals| &intervals.flows[..]);
    let mut document = Document::new("pattern-prediction")
        .schema("flowcast/pattern-prediction/1")
        .field("network", &network.name)
        .field("stand_ins", stand_ins(network))
        .field("model", model.name())
        .field("makespan_s", makespan)
        .field("margin", &explained)
        .line(answer)
        .line(explained)
        .noted(of_networks([network]))
        .table("flows", flow_table(&predicted, of_flows, asked));
    document = match args.replicates {
        None => document.fields(interval_fields(interval)),
        Some(seeds) => document
            .field("seeds", seeds)
            .field("interval_level", LEVEL)
            .line(format!(
                "medians of {seeds} runs; nine of ten end between the times low and high"
            )),
    };
    if args.explain {
        document = document.line("").shown(interval_table(&predicted, network));
        if network.topology.is_some() {
            let seen = network.seen_by(model);
            let steps = (1..).zip(&predicted);
            let loads: Vec<(usize, ClassLoad)> = steps
                .flat_map(|(step, of)| {
                    let loads = of.prediction.loads(&seen);
                    loads.into_iter().map(move |load| (step, load))
                })
                .collect();
            let table = level_table(&loads, predicted.len() > 1);
            document = document.line("").table("levels", table);
        }
    }
    if let Some(path) = &args.report {
        let title = format!("{flows} on {}, {}", network.name, model.name());
        draw(path, &predicted, &document.clone().titled(title))?;
    }
    args.format.print(&document)
}

/// A flow of a pattern in steps.
#[derive(Clone, Copy)]
struct FlowOfStep<'a> {
    /// Number of the step, from 1.
    step: usize,
    of: &'a PatternPrediction,
    /// Of the flow among those of its step, from 0.
    index: usize,
}

impl<'a> FlowOfStep<'a> {
    fn all(predicted: &'a [PatternPrediction]) -> impl Iterator<Item = FlowOfStep<'a>> {
        (1..).zip(predicted).flat_map(|(step, of)| {
            (0..of.prediction.flows.len()).map(move |index| FlowOfStep { step, of, index })
        })
    }

    fn flow(self) -> &'a FlowPrediction {
        &self.of.prediction.flows[self.index]
    }

    fn spread(self) -> Option<&'a Spread> {
        self.of.spreads.get(self.index)
    }

    fn intervals(self) -> &'a [Interval] {
        self.of.prediction.intervals_of(self.index)
    }

    fn reason(self, interval: &Interval) -> String {
        self.of.prediction.reason(self.index, interval.limit)
    }
}

/// Each flow, with the margins of their durations, if they are known.
fn flow_table<'a>(
    predicted: &'a [PatternPrediction],
    margins: Option<&[flowcast::Interval]>,
    asked: &Asked<'_>,
) -> Rows<(usize, FlowOfStep<'a>)> {
    let mut table = rows(FlowOfStep::all(predicted).enumerate());
    if predicted.len() > 1 {
        table = table.column("step", "step", |(_, of)| of.step);
    }
    table = table
        .column("id", "flow", |(_, of)| of.flow().flow.id)
        .column("src", "from", |(_, of)| of.flow().flow.src)
        .column("dst", "to", |(_, of)| of.flow().flow.dst)
        .column("bytes", "size", |(_, of)| of.flow().flow.size)
        .column("start_s", "start", |(_, of)| of.flow().flow.start)
        .column("end_s", "end", |(_, of)| of.flow().end)
        .column("duration_s", "duration", |(_, of)| of.flow().duration)
        .column("alone_s", "alone", |(_, of)| of.flow().alone)
        .column("slowdown", "slowdown", |(_, of)| {
            fixed(of.flow().slowdown(), 3)
        });
    if predicted.iter().any(|step| !step.spreads.is_empty()) {
        table = table
            .column("end_s_low", "low", |(_, of)| {
                of.spread().map(|of| of.low.end)
            })
            .column("end_s_high", "high", |(_, of)| {
                of.spread().map(|of| of.high.end)
            })
            .field("duration_s_low", |(_, of)| {
                of.spread().map(|of| of.low.duration)
            })
            .field("duration_s_high", |(_, of)| {
                of.spread().map(|of| of.high.duration)
            });
    }
    if let Some(margins) = margins {
        table = table.field("interval_s", |(at, _)| {
            margins.get(at).map(|margin| (margin.low, margin.high))
        });
    }
    if asked.args.explain {
        table = table.field("intervals", |(_, of)| {
            rows(of.intervals())
                .field("from_s", |interval| interval.from)
                .field("to_s", |interval| interval.to)
                .field("share", |interval| interval.share.0)
                .field("limit", |interval| of.reason(interval))
        });
    }
    table.most(asked.args.trace.rows.rows(), ROWS)
}

fn interval_table<'a>(
    predicted: &'a [PatternPrediction],
    network: &Network,
) -> Rows<(FlowOfStep<'a>, &'a Interval)> {
    let lone = Quantity::Rate(network.nic.rate());
    let all = FlowOfStep::all(predicted);
    rows(all.flat_map(|of| of.intervals().iter().map(move |interval| (of, interval))))
        .cell("flow", |(of, _)| of.flow().flow.id)
        .cell("from", |(_, interval)| interval.from)
        .cell("until", |(_, interval)| interval.to)
        .cell("share", |(_, interval)| fixed(interval.share.0, 3))
        .cell("rate", |(_, interval)| {
            figure(lone.with_number(interval.share.0 * lone.number()).rounded())
        })
        .cell("why", |(of, interval)| of.reason(interval))
}

fn draw(path: &Path, predicted: &[PatternPrediction], document: &Document) -> Result<()> {
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
        Some("svg") => pattern_plot::svg(prediction, &document.title),
        Some("html") => pattern_page::html(prediction, document),
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
