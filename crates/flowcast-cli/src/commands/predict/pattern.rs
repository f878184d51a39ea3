//! Part of `flowcast predict` for patterns of concurrent communications.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use flowcast::{
    Contention, Options, PatternPrediction,
    answers::{PatternAnswer, flows_text},
    model::{cluster::pattern::Steps, network::Network, sharing::model::Model},
    packet::seeds::Runs,
    pattern_intervals, predict_steps,
    report::{pattern_page, pattern_plot},
    table::Document,
};

use super::{Predict, PredictQuestion, comparison::of_pattern};
use flowcast_terminal::{
    files::write_text, network_args::print_rate_kind, trace_args::read_pattern,
};

/// Predicts and prints. Several networks or models have a row each. A pattern without `step` lines has one step.
pub(super) fn run(asked: &PredictQuestion<'_>, input: &Path) -> Result<()> {
    let typed = asked.args;
    let (name, content) = read_pattern(input)?;
    let steps = Steps::read(&name, &content)?;
    let Some(first) = asked.networks.first() else {
        return Err(flowcast::Error::NoNetwork.into());
    };
    let model = typed.model.first().map(String::as_str);
    print_rate_kind(
        &asked.fields(),
        model.unwrap_or(Model::from_network(first).name()),
    );
    let mut options = Vec::new();
    for (name, contention) in typed.model.iter().zip(&asked.models) {
        ensure!(
            contention.model().is_some(),
            "--model {name}: found a pattern, expected a trace"
        );
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

fn predict(
    steps: &Steps,
    network: &Network,
    options: &Options,
    asked: &PredictQuestion<'_>,
) -> Result<()> {
    let args = asked.args;
    let predicted = predict_steps(steps, network, options)?;
    let intervals =
        asked.with_progress(|how| pattern_intervals(steps, network, options, &predicted, how))?;
    let answer = PatternAnswer {
        predicted: &predicted,
        network,
        intervals: intervals.as_ref(),
        has_interval: !args.no_interval,
        seeds: args.replicates,
        explains: args.explain,
        most_rows: args.trace.rows.rows(),
    };
    let document = answer.document();
    if let Some(path) = &args.report {
        draw(path, &predicted, &document)?;
    }
    args.format.print(&document)
}

fn draw(path: &Path, predicted: &[PatternPrediction], document: &Document) -> Result<()> {
    let [PatternPrediction { prediction, .. }] = predicted else {
        bail!(
            "--report: found a pattern in {} steps, expected one without `step` lines",
            predicted.len()
        );
    };
    let flows = prediction.flows.len();
    ensure!(
        flows <= pattern_plot::MOST_FLOWS,
        "--report: found {}, expected at most {} flows",
        flows_text(flows),
        pattern_plot::MOST_FLOWS
    );
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
