//! Predictions of finished patterns, and what is made of them: a table, a page and its JSON.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use flowcast::flows::concurrent::{Method, predict, predict_seeds};
use flowcast::model::cluster::pattern::Pattern;
use flowcast::model::network::Network;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::model::stats::sample::median;
use flowcast::packet::seeds::{LEVEL, Runs};
use flowcast::report::validation::{Case, ModelErrors, Validation, html};
use flowcast::units::Time;
use serde_json::{Value, json};

use super::finished::Finished;
use super::patterns::{by_step, racks_of};
use crate::files::write_whole;
use crate::output::println_out;
use crate::tables::table;
use flowcast_lab::LabSpec;

/// The models, each with its network.
pub type Predictors = Vec<(Model, Network)>;

/// Predicts every finished pattern with every model; `seeds` is how often the packet model runs, if not once.
pub fn cases(finished: &[Finished], spec: &LabSpec, predictors: &Predictors, seeds: Option<u32>) -> Result<Vec<Case>> {
    let racks = racks_of(spec);
    let case = |finished: &Finished| -> Result<Case> {
        let (flows, step_of) = (finished.pattern_flows(), finished.steps());
        let (mut predicted, mut intervals) = (Vec::new(), Vec::new());
        for (model, network) in predictors {
            let mut of_model = Predicted::default();
            let network = as_carried(network, finished);
            let runs = seeds.map(|seeds| Runs { seeds, repetitions: finished.repetitions() });
            for flows in by_step(&flows, &step_of) {
                let pattern = Pattern { flows, racks: racks.clone() };
                of_model.add(&pattern, &network, *model, runs).with_context(|| finished.name.clone())?;
            }
            predicted.push(of_model.durations);
            intervals.push(of_model.intervals);
        }
        Ok(Case {
            name: finished.name.clone(),
            configuration: finished.configuration.clone(),
            predicted,
            intervals,
            measured: finished.durations(),
            flows,
        })
    };
    finished.iter().map(case).collect()
}

/// Where a network asks for warm-ups, those of the measurement if they are known.
fn as_carried(network: &Network, finished: &Finished) -> Network {
    let mut network = network.clone();
    if let (Some(warm_ups), Some(found)) = (&mut network.sharing.warm_ups, finished.warm_ups) {
        *warm_ups = found;
    }
    network
}

/// What a model says of a pattern's flows, step by step.
#[derive(Default)]
struct Predicted {
    durations: Vec<Time>,
    intervals: Vec<(Time, Time)>,
}

impl Predicted {
    fn add(&mut self, pattern: &Pattern, network: &Network, model: Model, runs: Option<Runs>) -> Result<()> {
        let prediction = match runs.filter(|_| model == Model::Packet) {
            None => predict(pattern, network, Method { model, strictness: Strictness::Extended })?,
            Some(runs) => {
                let (prediction, spreads) = predict_seeds(pattern, network, runs)?;
                self.intervals.extend(spreads.iter().map(|spread| (spread.low.duration, spread.high.duration)));
                prediction
            }
        };
        self.durations.extend(prediction.flows.iter().map(|flow| flow.duration));
        Ok(())
    }
}

/// A pattern of several steps as a whole: how long all of them took together.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    name: String,
    /// The median of the repetitions.
    measured: f64,
    /// By model.
    predicted: Vec<f64>,
}

/// The patterns that have several steps, the quickest first.
pub fn wholes(finished: &[Finished], validation: &Validation) -> Result<Vec<Whole>> {
    let mut wholes = Vec::new();
    for (finished, case) in finished.iter().zip(&validation.cases) {
        if let Some(whole) = whole(finished, case)? {
            wholes.push(whole);
        }
    }
    wholes.sort_by(|a, b| a.measured.total_cmp(&b.measured));
    Ok(wholes)
}

fn whole(finished: &Finished, case: &Case) -> Result<Option<Whole>> {
    let step_of = finished.steps();
    if step_of.iter().all(|step| *step == step_of[0]) {
        return Ok(None);
    }
    // The sum over the steps of the latest end.
    let together = |durations: &dyn Fn(usize) -> Time| -> f64 {
        let mut ends: BTreeMap<u32, Time> = BTreeMap::new();
        for (at, flow) in case.flows.iter().enumerate() {
            let end = ends.entry(step_of[at]).or_default();
            *end = (*end).max(flow.start + durations(at));
        }
        ends.into_values().sum::<Time>().as_seconds()
    };
    let repetitions = case.measured.first().map_or(0, Vec::len);
    let measured: Vec<f64> = (0..repetitions).map(|at| together(&|flow| case.measured[flow][at])).collect();
    let predicted = case.predicted.iter().map(|predicted| together(&|flow| predicted[flow])).collect();
    Ok(Some(Whole { name: finished.name.clone(), measured: median(&measured)?, predicted }))
}

/// Writes the page and, beside it, the JSON file; gives the latter's document.
pub fn write(output: &Path, validation: &Validation, errors: &[ModelErrors], finished: &[Finished]) -> Result<Value> {
    let document = document(validation, errors, finished)?;
    write_whole(output, |out| Ok(out.write_all(html(validation, errors).as_bytes())?))?;
    write_whole(&output.with_extension("json"), |out| Ok(writeln!(out, "{document}")?))?;
    Ok(document)
}

/// The error columns for people.
pub fn print(validation: &Validation, errors: &[ModelErrors], wholes: &[Whole]) {
    let columns = ["model", ">mean", ">pattern min", ">max", ">global min", ">max", ">worst flow", "which", ">signed"];
    let has_intervals = errors.iter().any(|errors| errors.coverage.is_some());
    let more = [">worst configuration", ">runs inside 90 %"];
    let mut table = table(&[&columns[..], &more[..1 + usize::from(has_intervals)]].concat());
    for (name, errors) in validation.models.iter().zip(errors) {
        let mut row = vec![
            name.clone(),
            percent(errors.mean_absolute),
            percent(errors.mean_range.0),
            percent(errors.mean_range.1),
            percent(errors.global_range.0),
            percent(errors.global_range.1),
            percent(errors.worst.error),
            format!("{}, flow {}", errors.worst.case, errors.worst.flow),
            format!("{:+.1}..{:+.1} %", errors.signed_range.0 * 100.0, errors.signed_range.1 * 100.0),
            percent(errors.worst_configuration()),
        ];
        if has_intervals {
            row.push(errors.coverage.map_or_else(|| "-".into(), |coverage| percent(coverage.share())));
        }
        table.add_row(row);
    }
    println_out!("{table}");
    let flows: usize = validation.cases.iter().map(|case| case.flows.len()).sum();
    println_out!("{} patterns, {flows} flows", validation.cases.len());
    if !wholes.is_empty() {
        print_wholes(validation, wholes);
    }
}

fn print_wholes(validation: &Validation, wholes: &[Whole]) {
    let mut columns = vec!["steps".to_owned(), ">measured".to_owned()];
    columns.extend(validation.models.iter().map(|name| format!(">{name}")));
    let mut table = table(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    for whole in wholes {
        let mut row = vec![whole.name.clone(), format!("{:.3} s", whole.measured)];
        let error = |predicted: &f64| (predicted - whole.measured) / whole.measured * 100.0;
        row.extend(whole.predicted.iter().map(|predicted| format!("{predicted:.3} s, {:+.1} %", error(predicted))));
        table.add_row(row);
    }
    println_out!("{table}");
}

fn document(validation: &Validation, errors: &[ModelErrors], finished: &[Finished]) -> Result<Value> {
    let models: Vec<Value> =
        validation.models.iter().zip(errors).map(|(name, errors)| model_entry(name, errors)).collect();
    let patterns =
        validation.cases.iter().zip(finished).map(|(case, finished)| pattern_entry(validation, case, finished));
    Ok(json!({
        "schema": "flowcast/validation/1",
        "title": validation.title,
        "models": models,
        "patterns": patterns.collect::<Result<Vec<_>>>()?,
        "provenance": validation.provenance,
    }))
}

fn model_entry(name: &str, errors: &ModelErrors) -> Value {
    let flow = |flow: &flowcast::report::validation::FlowError| {
        json!({
            "pattern": flow.case, "flow": flow.flow, "absolute_error": flow.error,
        })
    };
    let configurations: Vec<Value> = errors
        .by_configuration
        .iter()
        .map(|of| {
            json!({
                "configuration": of.configuration, "patterns": of.patterns, "flows": of.flows,
                "mean_absolute_error": of.mean_absolute, "lowest_error": of.signed_range.0, "highest_error": of.signed_range.1,
            })
        })
        .collect();
    let mut entry = json!({
        "model": name,
        "mean_absolute_error": errors.mean_absolute,
        "pattern_mean_absolute_error": { "min": errors.mean_range.0, "max": errors.mean_range.1 },
        "pattern_global_error": { "min": errors.global_range.0, "max": errors.global_range.1 },
        "best": flow(&errors.best),
        "worst": flow(&errors.worst),
        "lowest_error": errors.signed_range.0,
        "highest_error": errors.signed_range.1,
        "worst_configuration_mean_absolute_error": errors.worst_configuration(),
        "configurations": configurations,
    });
    if let Some(coverage) = errors.coverage {
        entry["interval_level"] = json!(LEVEL);
        entry["coverage"] =
            json!({ "share": coverage.share(), "inside": coverage.inside, "repetitions": coverage.repetitions });
    }
    entry
}

fn pattern_entry(validation: &Validation, case: &Case, finished: &Finished) -> Result<Value> {
    let medians = case.medians()?;
    let flow = |(index, flow): (usize, &flowcast::model::cluster::flow::Flow)| {
        let predicted: BTreeMap<&str, f64> = validation
            .models
            .iter()
            .zip(&case.predicted)
            .map(|(model, predicted)| (model.as_str(), predicted[index].as_seconds()))
            .collect();
        let repetitions: Vec<f64> = case.measured[index].iter().map(|time| time.as_seconds()).collect();
        let interval = |(model, intervals): (&String, &Vec<(Time, Time)>)| {
            let (low, high) = intervals.get(index)?;
            Some((model.clone(), json!([low.as_seconds(), high.as_seconds()])))
        };
        let intervals: serde_json::Map<String, Value> =
            validation.models.iter().zip(&case.intervals).filter_map(interval).collect();
        let mut entry = json!({
            "id": flow.id, "src": flow.src.0, "dst": flow.dst.0, "bytes": flow.size.0, "start_s": flow.start.as_seconds(),
            "measured_s": medians[index], "repetitions_s": repetitions, "predicted_s": predicted,
        });
        if !intervals.is_empty() {
            entry["predicted_interval_s"] = intervals.into();
        }
        entry
    };
    let mut entry = json!({
        "pattern": case.name,
        "configuration": case.configuration,
        "is_precise": finished.is_precise,
        "flows": case.flows.iter().enumerate().map(flow).collect::<Vec<_>>(),
    });
    if let Some(whole) = whole(finished, case)? {
        let predicted: BTreeMap<&String, f64> = validation.models.iter().zip(whole.predicted).collect();
        entry["steps"] = json!({ "of_flow": finished.steps(), "measured_s": whole.measured, "predicted_s": predicted });
    }
    Ok(entry)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
