//! `flowcast fit` on measured conflicts: parameters of every sharing model, and which one explains the network best.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use flowcast::calibrate::conflict_samples::ConflictSamples;
use flowcast::calibrate::conflicts::{
    Bound, ConflictFit, Errors, Estimate, FittedParameter, ModelFit, OtherDuplex, Slowdown,
};
use flowcast::flows::concurrent::{Method, PredictError, predict_flows, predict_seeds};
use flowcast::model::cluster::flow::Flow;
use flowcast::model::cluster::pattern::Pattern;
use flowcast::model::cluster::racks::Racks;
use flowcast::model::network::Network;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::model::sharing::{PacketParameters, SharingError};
use flowcast::packet::seeds::Runs;
use flowcast::units::{Bytes, Rate, Rounded, Time};
use flowcast_measure::lab::{LabSpec, network_of};
use serde_json::{Value, json};

use crate::terminal::output::{println_out, say};
use crate::terminal::provenance;
use crate::terminal::tables::table;

/// Runs of the packet level where queues overflow, and single runs are a matter of chance.
const SEEDS: u32 = 9;

/// Durations of flows under a model, stepped through their events.
pub(super) fn durations(
    flows: &[Flow],
    racks: &Racks,
    network: &Network,
    model: Model,
) -> Result<Vec<Time>, SharingError> {
    let method = Method {
        model,
        strictness: Strictness::Extended,
    };
    let prediction = if model == Model::Packet && network.sharing.packet.queue.is_some() {
        let pattern = Pattern {
            flows: flows.to_vec(),
            racks: racks.clone(),
        };
        predict_seeds(&pattern, network, Runs::once(SEEDS)).map(|(prediction, _)| prediction)
    } else {
        predict_flows(flows, racks, network, method)
    };
    match prediction {
        Ok(prediction) => Ok(prediction.flows.iter().map(|flow| flow.duration).collect()),
        Err(PredictError::Sharing(refused)) => Err(refused),
    }
}

/// The network of the lab in which the conflicts were measured, as its file says; `None` between hosts.
pub(super) fn lab_network(samples: &ConflictSamples) -> Result<Option<Network>> {
    let Some(lab) = samples.provenance.get("lab") else {
        return Ok(None);
    };
    let spec: LabSpec = serde_json::from_str(lab).context("# lab")?;
    Ok(Some(network_of(&spec)))
}

/// What carried the messages: a window that was given, or what the lab's file says; `None` if neither is known.
pub(super) fn transport(lab: Option<&Network>, window: Option<Bytes>) -> Option<PacketParameters> {
    if window.is_some() {
        let fixed = PacketParameters {
            window,
            first_window: window,
            ..PacketParameters::default()
        };
        return Some(PacketParameters {
            idle_restart: Some(false),
            ..fixed
        });
    }
    lab.map(|lab| lab.sharing.packet)
}

/// This run's provenance, and that of the samples under `samples.`.
pub(super) fn provenance_of(
    samples: &ConflictSamples,
    fit: &ConflictFit,
) -> BTreeMap<String, String> {
    let mut all = provenance::of_this_run();
    all.insert("seed".into(), fit.options.seed.to_string());
    all.insert(
        "bootstrap_replicates".into(),
        fit.options.replicates.to_string(),
    );
    all.extend(
        samples
            .provenance
            .iter()
            .map(|(key, value)| (format!("samples.{key}"), value.clone())),
    );
    all
}

/// Machine-readable.
pub(super) fn document(fit: &ConflictFit, samples: &ConflictSamples) -> Value {
    let rate = |estimate: &Estimate<Rate>| {
        let interval = estimate
            .interval()
            .map(|ends| ends.map(|rate| rate.as_bytes_per_second()));
        json!({ "value_Bps": estimate.value.as_bytes_per_second(), "interval_Bps": interval })
    };
    let latency = fit
        .latency
        .interval()
        .map(|ends| ends.map(|time| time.as_seconds()));
    let backbone = fit.backbone.as_ref().map(|backbone| {
        let from = &backbone.from;
        json!({ "bandwidth": rate(&backbone.rate), "from_flows": from.value, "from_flows_interval": from.interval() })
    });
    let parameter = |parameter: &FittedParameter| {
        json!({
            "field": parameter.field, "value": parameter.estimate.value, "interval": parameter.estimate.interval(),
            "bound": parameter.bound.map(Bound::name), "is_measured": parameter.is_measured,
        })
    };
    let model = |fit: &ModelFit| {
        json!({
            "model": fit.name(), "parameters": fit.parameters.iter().map(parameter).collect::<Vec<_>>(),
            "fitted": errors(&fit.fitted), "left_out": errors(&fit.left_out),
            "held_out": fit.held_out.as_ref().map(errors),
        })
    };
    let (conflicts, random, repetitions) = fit.counts;
    let OtherDuplex {
        duplex: other,
        model: other_best,
        mean_absolute,
    } = fit.other_duplex;
    json!({
        "schema": "flowcast/conflict-fit/1", "best": fit.best_model().name(),
        "warnings": fit.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(), "duplex": fit.duplex.name(),
        "other_duplex": { "duplex": other.name(), "best": other_best, "mean_absolute_error": mean_absolute },
        "latency": { "value_s": fit.latency.value.as_seconds(), "interval_s": latency },
        "bandwidth": rate(&fit.rate), "backbone": backbone,
        "bus_Bps": fit.bus.map(Rate::as_bytes_per_second),
        "models": fit.models.iter().map(model).collect::<Vec<_>>(),
        "slowdowns": fit.slowdowns.iter().map(|one| slowdown(fit, one)).collect::<Vec<_>>(),
        "level": fit.options.level, "replicates": fit.options.replicates, "seed": fit.options.seed,
        "conflicts": conflicts, "random_patterns": random, "repetitions": repetitions,
        "samples_provenance": samples.provenance,
    })
}

fn errors(errors: &Errors) -> Value {
    json!({
        "mean_absolute_error": errors.mean_absolute, "worst": errors.worst, "worst_conflict": errors.worst_of.0,
        "worst_flow": errors.worst_of.1, "flows": errors.flows,
    })
}

fn slowdown(fit: &ConflictFit, one: &Slowdown) -> Value {
    let predicted: BTreeMap<&str, f64> = fit
        .models
        .iter()
        .map(ModelFit::name)
        .zip(one.predicted.iter().copied())
        .collect();
    json!({
        "conflict": one.conflict, "kind": one.kind.to_string(), "flow": one.flow.id, "src": one.flow.src.0,
        "dst": one.flow.dst.0, "times_longer_than_alone": one.measured.value,
        "interval": [one.measured.low, one.measured.high], "predicted": predicted,
    })
}

/// For people: what each flow got, the parameters, and the models side by side.
pub(super) fn print(fit: &ConflictFit) {
    fit.warnings()
        .iter()
        .for_each(|warning| say!("warning: {warning}"));
    print_slowdowns(fit);
    println_out!();
    print_parameters(fit);
    println_out!();
    print_models(fit);
    let best = fit.best_model();
    let on = if best.held_out.is_some() {
        "on the random patterns"
    } else {
        "on conflicts left out"
    };
    println_out!("{} explains this network best, {on}.", best.name());
    let OtherDuplex {
        duplex: other,
        model,
        mean_absolute,
    } = fit.other_duplex;
    println_out!(
        "Ports are {} duplex: with {} duplex the best model, {model}, misses the conflicts by {}.",
        fit.duplex.name(),
        other.name(),
        percent(mean_absolute)
    );
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn print_slowdowns(fit: &ConflictFit) {
    let best = fit.best;
    let mut table = table(&[
        "conflict",
        ">flow",
        "",
        ">times alone",
        ">interval",
        &format!(">{}", fit.best_model().name()),
    ]);
    let mut last = "";
    for one in &fit.slowdowns {
        let name = if one.conflict == last {
            ""
        } else {
            one.conflict.as_str()
        };
        last = &one.conflict;
        table.add_row([
            name.to_owned(),
            one.flow.id.to_string(),
            format!("{} > {}", one.flow.src, one.flow.dst),
            format!("{:.3}", one.measured.value),
            format!("{:.3} .. {:.3}", one.measured.low, one.measured.high),
            format!("{:.3}", one.predicted[best]),
        ]);
    }
    println_out!("{table}");
}

fn print_parameters(fit: &ConflictFit) {
    let mut table = table(&[
        "parameter",
        "model",
        ">value",
        &format!(">{} % interval", fit.options.level * 100.0),
    ]);
    let megabits = |rate: Rate| format!("{:.2} Mbit/s", rate.as_bytes_per_second() * 8e-6);
    let mut row = |name: &str, model: &str, [value, interval]: [String; 2]| {
        table.add_row([name.to_owned(), model.to_owned(), value, interval]);
    };
    row(
        "nic.latency",
        "all",
        texts(&fit.latency, |time| Rounded(time).to_string()),
    );
    row("nic.bandwidth", "all", texts(&fit.rate, megabits));
    if let Some(backbone) = &fit.backbone {
        row("backbone.bandwidth", "all", texts(&backbone.rate, megabits));
        let from = texts(&backbone.from, |from| from.to_string());
        row("sharing.asymmetric.backbone_from", "asymmetric", from);
    }
    if let Some(bus) = fit.bus {
        row("bus.bandwidth", "all", [megabits(bus), "-".to_owned()]);
    }
    for model in &fit.models {
        for parameter in &model.parameters {
            let [value, interval] = texts(&parameter.estimate, |number| format!("{number:.3}"));
            let at_bound = parameter
                .bound
                .map(|bound| format!("at its {} bound", bound.name()));
            row(
                parameter.field,
                model.name(),
                [value, at_bound.unwrap_or(interval)],
            );
        }
    }
    println_out!("{table}");
}

/// The value, and the interval if there is one.
fn texts<T: Copy + PartialEq>(estimate: &Estimate<T>, text: impl Fn(T) -> String) -> [String; 2] {
    let interval = estimate.interval().map_or("-".to_owned(), |[low, high]| {
        format!("{} .. {}", text(low), text(high))
    });
    [text(estimate.value), interval]
}

fn print_models(fit: &ConflictFit) {
    let columns = [
        "model",
        ">random patterns",
        ">worst flow",
        ">conflicts left out",
        ">worst flow",
        ">fitted",
    ];
    let mut table = table(&columns);
    for model in &fit.models {
        let held_out = model.held_out.as_ref();
        let or_none = |value: Option<f64>| value.map_or("-".to_owned(), percent);
        table.add_row([
            model.name().to_owned(),
            or_none(held_out.map(|errors| errors.mean_absolute)),
            or_none(held_out.map(|errors| errors.worst)),
            percent(model.left_out.mean_absolute),
            percent(model.left_out.worst),
            percent(model.fitted.mean_absolute),
        ]);
    }
    println_out!("{table}");
}
