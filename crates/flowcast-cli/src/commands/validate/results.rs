//! Predictions of finished patterns, and what is made of them: a table, a page and its JSON.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use flowcast::cluster::pattern::Pattern;
use flowcast::model::network::Network;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::report::validation::{Case, ModelErrors, Validation, html};
use flowcast::simulate::concurrent::{Method, predict};
use flowcast::units::Time;
use serde_json::{Value, json};

use super::journal::Finished;
use super::patterns::racks_of;
use crate::files::write_whole;
use crate::output::println_out;
use crate::tables::table;
use flowcast_lab::LabSpec;

/// The models, each with its network.
pub type Predictors = Vec<(Model, Network)>;

/// Predicts every finished pattern with every model.
pub fn cases(finished: &[Finished], spec: &LabSpec, predictors: &Predictors) -> Result<Vec<Case>> {
    let racks = racks_of(spec);
    let case = |finished: &Finished| -> Result<Case> {
        let pattern = Pattern { flows: finished.pattern_flows(), racks: racks.clone() };
        let predicted = predictors.iter().map(|(model, network)| durations(&pattern, network, *model));
        Ok(Case {
            name: finished.name.clone(),
            configuration: finished.configuration.clone(),
            predicted: predicted.collect::<Result<_>>().with_context(|| finished.name.clone())?,
            measured: finished.durations(),
            flows: pattern.flows,
        })
    };
    finished.iter().map(case).collect()
}

fn durations(pattern: &Pattern, network: &Network, model: Model) -> Result<Vec<Time>> {
    let prediction = predict(pattern, network, Method { model, strictness: Strictness::Extended })?;
    Ok(prediction.flows.iter().map(|flow| flow.duration).collect())
}

/// Writes the page and, beside it, the JSON file; gives the latter's document.
pub fn write(output: &Path, validation: &Validation, errors: &[ModelErrors], finished: &[Finished]) -> Result<Value> {
    let document = document(validation, errors, finished)?;
    write_whole(output, |out| Ok(out.write_all(html(validation, errors).as_bytes())?))?;
    write_whole(&output.with_extension("json"), |out| Ok(writeln!(out, "{document}")?))?;
    Ok(document)
}

/// The error columns for people.
pub fn print(validation: &Validation, errors: &[ModelErrors]) {
    let columns = ["model", ">mean", ">pattern min", ">max", ">global min", ">max", ">worst flow", "which", ">signed"];
    let mut table = table(&[&columns[..], &[">worst configuration"]].concat());
    for (name, errors) in validation.models.iter().zip(errors) {
        table.add_row([
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
        ]);
    }
    println_out!("{table}");
    let flows: usize = validation.cases.iter().map(|case| case.flows.len()).sum();
    println_out!("{} patterns, {flows} flows", validation.cases.len());
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
    json!({
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
    })
}

fn pattern_entry(validation: &Validation, case: &Case, finished: &Finished) -> Result<Value> {
    let medians = case.medians()?;
    let flow = |(index, flow): (usize, &flowcast::cluster::flow::Flow)| {
        let predicted: BTreeMap<&str, f64> = validation
            .models
            .iter()
            .zip(&case.predicted)
            .map(|(model, predicted)| (model.as_str(), predicted[index].as_seconds()))
            .collect();
        let repetitions: Vec<f64> = case.measured[index].iter().map(|time| time.as_seconds()).collect();
        json!({
            "id": flow.id, "src": flow.src.0, "dst": flow.dst.0, "bytes": flow.size.0, "start_s": flow.start.as_seconds(),
            "measured_s": medians[index], "repetitions_s": repetitions, "predicted_s": predicted,
        })
    };
    Ok(json!({
        "pattern": case.name,
        "configuration": case.configuration,
        "is_precise": finished.is_precise,
        "flows": case.flows.iter().enumerate().map(flow).collect::<Vec<_>>(),
    }))
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
