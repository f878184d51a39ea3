//! What was carried beside what models say: the cases of the page, and the numbers of the JSON.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use flowcast::{
    Contention, Error, Options,
    model::{
        cluster::{pattern::Steps, racks::Racks},
        network::Network,
        sharing::model::Model,
        stats::sample::median,
    },
    packet::seeds::{LEVEL, Runs},
    predict_steps,
    report::validation::{Case, ModelErrors, Validation},
    table::result,
    trace::parallel,
    units::Time,
};
use flowcast_measure::lab::LabSpec;
use serde_json::{Value, json};

use super::{
    finished::Finished,
    patterns::{by_step, racks_of},
};
use crate::{
    terminal::{output::println_out, progress::Progress, tables::table},
    trace_args::threads,
};

/// Predicts what was measured with each model, on threads.
pub(super) fn cases(
    finished: &[Finished],
    spec: &LabSpec,
    models: &[Model],
    network: &Network,
    seeds: Option<u32>,
) -> Result<Vec<Case>> {
    let racks = racks_of(spec);
    let progress = Progress::of("predicting", "patterns", finished.len() as u64);
    let mut cases: Vec<Option<Case>> = finished.iter().map(|_| None).collect();
    parallel::each_as_done(
        finished,
        threads(),
        |measured| predicted(measured, &racks, models, network, seeds),
        |index, case| -> Result<()> {
            cases[index] = Some(case.with_context(|| finished[index].name.clone())?);
            progress.add(1);
            Ok(())
        },
    )?;
    Ok(cases.into_iter().flatten().collect())
}

fn predicted(
    measured: &Finished,
    racks: &Racks,
    models: &[Model],
    network: &Network,
    seeds: Option<u32>,
) -> Result<Case, Error> {
    let flows = measured.pattern_flows();
    let steps = Steps {
        steps: by_step(&flows, &measured.steps()),
        racks: racks.clone(),
    };
    let network = as_carried(network, measured);
    let (mut predicted, mut intervals) = (Vec::new(), Vec::new());
    for model in models {
        let runs = seeds.map(|seeds| Runs {
            seeds,
            repetitions: measured.repetitions(),
        });
        let options = Options {
            contention: Contention::Shared(*model),
            runs: runs.filter(|_| *model == Model::Packet),
            ..Options::default()
        };
        let steps = predict_steps(&steps, &network, &options)?;
        let flows = steps.iter().flat_map(|step| &step.prediction.flows);
        predicted.push(flows.map(|flow| flow.duration).collect());
        let spreads = steps.iter().flat_map(|step| &step.spreads);
        let ends = spreads.map(|spread| (spread.low.duration, spread.high.duration));
        intervals.push(ends.collect());
    }
    Ok(Case {
        name: measured.name.clone(),
        configuration: measured.configuration.clone(),
        predicted,
        intervals,
        measured: measured.durations(),
        flows,
    })
}

/// The network with as many repetitions before those that count as there were.
fn as_carried(network: &Network, finished: &Finished) -> Network {
    let mut network = network.clone();
    if let (Some(warm_ups), Some(found)) = (&mut network.sharing.packet.warm_ups, finished.warm_ups)
    {
        *warm_ups = found;
    }
    network
}

/// The JSON of a validation.
pub(super) fn document(
    validation: &Validation,
    errors: &[ModelErrors],
    finished: &[Finished],
) -> Result<Value> {
    let mut models = Vec::new();
    for (model, errors) in validation.models.iter().zip(errors) {
        let mut entry = serde_json::to_value(errors)?;
        entry["model"] = model.as_str().into();
        entry["worst_configuration_mean_absolute_error"] = errors.worst_configuration().into();
        if errors.coverage.is_some() {
            entry["interval_level"] = LEVEL.into();
        }
        models.push(entry);
    }
    let mut patterns = Vec::new();
    for (case, own) in validation.cases.iter().zip(finished) {
        let mut entry = json!({
            "pattern": case.name,
            "configuration": case.configuration,
            "is_precise": own.is_precise,
            "flows": flows(&validation.models, case)?,
        });
        let of_flow = own.steps();
        if let Some(found) = StepTimes::of(case, &of_flow)? {
            let predicted: BTreeMap<&String, f64> =
                validation.models.iter().zip(found.predicted_s).collect();
            entry["steps"] = json!({
                "of_flow": of_flow,
                "measured_s": found.measured_s,
                "predicted_s": predicted,
            });
        }
        patterns.push(entry);
    }
    let fields = json!({
        "title": validation.title,
        "models": models,
        "patterns": patterns,
        "provenance": validation.provenance,
    });
    Ok(result("validation", fields))
}

fn flows(models: &[String], case: &Case) -> Result<Vec<Value>> {
    let mut flows = Vec::new();
    for (index, (flow, measured)) in case.flows.iter().zip(case.medians()?).enumerate() {
        let predicted = models.iter().zip(&case.predicted);
        let predicted: BTreeMap<&String, f64> = predicted
            .map(|(model, predicted)| (model, predicted[index].as_seconds()))
            .collect();
        let repetitions = case.measured[index].iter();
        let mut entry = json!({
            "id": flow.id,
            "src": flow.src.0,
            "dst": flow.dst.0,
            "bytes": flow.size.0,
            "start_s": flow.start.as_seconds(),
            "measured_s": measured,
            "repetitions_s": repetitions.map(|time| time.as_seconds()).collect::<Vec<_>>(),
            "predicted_s": predicted,
        });
        for (model, intervals) in models.iter().zip(&case.intervals) {
            if let Some((low, high)) = intervals.get(index) {
                entry["predicted_interval_s"][model] = json!([low.as_seconds(), high.as_seconds()]);
            }
        }
        flows.push(entry);
    }
    Ok(flows)
}

/// What the steps of a pattern took together, in seconds.
struct StepTimes {
    measured_s: f64,
    /// By model.
    predicted_s: Vec<f64>,
}

impl StepTimes {
    /// None of a pattern in one step.
    fn of(case: &Case, of_flow: &[u32]) -> Result<Option<StepTimes>> {
        if of_flow.iter().all(|step| *step == of_flow[0]) {
            return Ok(None);
        }
        // The sum over the steps of the latest end.
        let together = |durations: &dyn Fn(usize) -> Time| -> f64 {
            let mut ends: BTreeMap<u32, Time> = BTreeMap::new();
            for (at, flow) in case.flows.iter().enumerate() {
                let end = ends.entry(of_flow[at]).or_default();
                *end = (*end).max(flow.start + durations(at));
            }
            ends.into_values().sum::<Time>().as_seconds()
        };
        let repetitions = case.measured.first().map_or(0, Vec::len);
        let measured: Vec<f64> = (0..repetitions)
            .map(|at| together(&|flow| case.measured[flow][at]))
            .collect();
        let predicted = case
            .predicted
            .iter()
            .map(|predicted| together(&|flow| predicted[flow]));
        Ok(Some(StepTimes {
            measured_s: median(&measured)?,
            predicted_s: predicted.collect(),
        }))
    }
}

/// Prints a validation for people.
pub(super) fn print(
    validation: &Validation,
    errors: &[ModelErrors],
    finished: &[Finished],
) -> Result<()> {
    let mut columns = vec![
        "model",
        ">mean",
        ">pattern min",
        ">max",
        ">global min",
        ">max",
        ">worst flow",
        "which",
        ">signed",
        ">worst configuration",
    ];
    let has_intervals = errors.iter().any(|errors| errors.coverage.is_some());
    if has_intervals {
        columns.push(">runs inside 90 %");
    }
    let mut out = table(&columns);
    for (model, errors) in validation.models.iter().zip(errors) {
        let (lowest, highest) = errors.signed_range;
        let mut row = vec![
            model.clone(),
            percent(errors.mean_absolute),
            percent(errors.mean_range.0),
            percent(errors.mean_range.1),
            percent(errors.global_range.0),
            percent(errors.global_range.1),
            percent(errors.worst.error),
            format!("{}, flow {}", errors.worst.case, errors.worst.flow),
            format!("{:+.1}..{:+.1} %", lowest * 100.0, highest * 100.0),
            percent(errors.worst_configuration()),
        ];
        if has_intervals {
            let coverage = errors.coverage.map(|coverage| percent(coverage.share()));
            row.push(coverage.unwrap_or_else(|| "-".into()));
        }
        out.add_row(row);
    }
    println_out!("{out}");
    let flows: usize = validation.cases.iter().map(|case| case.flows.len()).sum();
    println_out!("{} patterns, {flows} flows", validation.cases.len());
    print_steps(validation, finished)
}

fn print_steps(validation: &Validation, finished: &[Finished]) -> Result<()> {
    let mut with_steps = Vec::new();
    for (case, own) in validation.cases.iter().zip(finished) {
        let found = StepTimes::of(case, &own.steps())?;
        with_steps.extend(found.map(|found| (&case.name, found)));
    }
    if with_steps.is_empty() {
        return Ok(());
    }
    with_steps.sort_by(|a, b| a.1.measured_s.total_cmp(&b.1.measured_s));
    let models = validation.models.iter().map(|model| format!(">{model}"));
    let columns = ["steps".to_owned(), ">measured".to_owned()];
    let mut out = table(&columns.into_iter().chain(models).collect::<Vec<_>>());
    for (name, found) in with_steps {
        let measured = found.measured_s;
        let row = [name.clone(), format!("{measured:.3} s")];
        out.add_row(
            row.into_iter()
                .chain(found.predicted_s.into_iter().map(|predicted: f64| {
                    let error = (predicted - measured) / measured * 100.0;
                    format!("{predicted:.3} s, {error:+.1} %")
                })),
        );
    }
    println_out!("{out}");
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
