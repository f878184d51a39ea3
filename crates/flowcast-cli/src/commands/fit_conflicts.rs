//! `flowcast fit` on measured conflicts: the parameters of every sharing model, and the model that explains the network
//! best.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use flowcast::{
    calibrate::{
        conflict_samples::ConflictSamples,
        conflicts::{Bound, BoundedEstimate, ConflictFit, ModelFit},
    },
    flows::concurrent::{Method, predict_ends, predict_seeds},
    model::{
        cluster::{
            flow::{Flow, PatternFlow},
            pattern::Pattern,
            racks::Racks,
        },
        network::Network,
        sharing::{PacketParameters, SharingError, flow_cuts::Strictness, model::Model},
    },
    packet::seeds::Runs,
    statistics::observation::Observations,
    table::{Document, Record, Table, Value, figure, fixed, or_dash, rows, shown},
    units::{Bytes, Rate, Rounded, Time},
};
use flowcast_measure::lab::{LabSpec, network_of};

/// Number of packet simulations if queues are limited, because the result of a single simulation is then random.
const SEEDS: u32 = 9;

/// Durations of flows under a model, simulated from event to event.
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
        predict_ends(flows, racks, network, method)
    };
    Ok(prediction?.flows.iter().map(|flow| flow.duration).collect())
}

/// Network of the lab in which the conflicts were measured, according to its file. `None` for measurements between hosts.
pub(super) fn lab_network(samples: &ConflictSamples) -> Result<Option<Network>> {
    let Some(lab) = samples.provenance.get("lab") else {
        return Ok(None);
    };
    let spec: LabSpec = serde_json::from_str(lab).context("# lab")?;
    Ok(Some(network_of(&spec)))
}

/// Packet parameters of the transport: a given window, or those of the lab's file. `None` if neither is known.
pub(super) fn transport(lab: Option<&Network>, window: Option<Bytes>) -> Option<PacketParameters> {
    if window.is_some() {
        return Some(PacketParameters {
            window,
            first_window: window,
            idle_restart: Some(false),
            ..PacketParameters::default()
        });
    }
    lab.map(|lab| lab.sharing.packet)
}

/// Slowdown of each flow, parameters, and a comparison of the models.
pub(super) fn document(fit: &ConflictFit, samples: &ConflictSamples) -> Document {
    let (conflicts, random, repetitions) = fit.counts;
    let (best, other) = (fit.best_model(), &fit.other_duplex);
    let other_duplex = Record::new()
        .field("duplex", other.duplex.name())
        .field("best", other.model)
        .field("mean_absolute_error", other.mean_absolute);
    let latency = Record::new()
        .field("value_s", fit.latency.value)
        .field("interval_s", fit.latency.interval());
    let backbone = fit.backbone.as_ref().map(|backbone| {
        let from = &backbone.from;
        Record::new()
            .field("bandwidth", rate(&backbone.rate))
            .field("from_flows", from.value)
            .field("from_flows_interval", from.interval())
    });
    let on = match best.held_out {
        Some(_) => "on the random patterns",
        None => "on conflicts left out",
    };
    let warnings: Vec<String> = fit.warnings().iter().map(ToString::to_string).collect();
    Document::new("conflict-fit")
        .field("best", best.name())
        .field("warnings", warnings.iter().cloned().collect::<Value>())
        .field("duplex", fit.duplex.name())
        .field("other_duplex", other_duplex)
        .field("latency", latency)
        .field("bandwidth", rate(&fit.rate))
        .field("backbone", backbone)
        .field("bus_Bps", fit.bus)
        .field("level", fit.options.level)
        .field("replicates", fit.options.replicates)
        .field("seed", fit.options.seed)
        .field("conflicts", conflicts)
        .field("random_patterns", random)
        .field("repetitions", repetitions)
        .field("samples_provenance", &samples.provenance)
        .table("slowdowns", slowdowns(fit))
        .line("")
        .shown(parameters(fit))
        .line("")
        .table("models", models(fit))
        .line(format!("{} explains this network best, {on}.", best.name()))
        .line(format!(
            "Ports are {} duplex. With {} duplex, the best model ({}) has a mean error of {}.",
            fit.duplex.name(),
            other.duplex.name(),
            other.model,
            percent(other.mean_absolute)
        ))
        .noted(warnings)
}

fn rate(estimate: &BoundedEstimate<Rate>) -> Record {
    Record::new()
        .field("value_Bps", estimate.value)
        .field("interval_Bps", estimate.interval())
}

fn errors(observed: &Observations<PatternFlow>) -> Record {
    let worst = observed.worst();
    Record::new()
        .field("mean_absolute_error", observed.mean_absolute())
        .field("worst", worst.error().abs())
        .field("worst_conflict", &worst.of.pattern)
        .field("worst_flow", worst.of.flow.id)
        .field("flows", observed.all().len())
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn slowdowns(fit: &ConflictFit) -> Table {
    let all = &fit.slowdowns;
    rows(0..all.len())
        .column("conflict", "conflict", |index| {
            let name = &all[index].conflict;
            let is_new = index == 0 || all[index - 1].conflict != *name;
            shown(name, if is_new { name } else { "" })
        })
        .field("kind", |index| all[index].kind.to_string())
        .column("flow", "flow", |index| all[index].flow.id)
        .field("src", |index| all[index].flow.src)
        .field("dst", |index| all[index].flow.dst)
        .cell("", |index| {
            format!("{} > {}", all[index].flow.src, all[index].flow.dst)
        })
        .column("times_longer_than_alone", "slowdown", |index| {
            fixed(all[index].measured.value, 3)
        })
        .column("interval", "interval", |index| {
            let BoundedEstimate { low, high, .. } = all[index].measured;
            shown([low, high], format!("{low:.3} .. {high:.3}"))
        })
        .field("predicted", |index| {
            let names = fit.models.iter().map(ModelFit::name);
            let predicted = all[index].predicted.iter();
            let predicted = predicted.map(|times| times.is_finite().then_some(*times));
            names.zip(predicted).collect::<BTreeMap<_, _>>()
        })
        .cell(fit.best_model().name(), |index| {
            let times = all[index].predicted[fit.best];
            or_dash(times.is_finite().then(|| fixed(times, 3)))
        })
        .into()
}

fn parameters(fit: &ConflictFit) -> Table {
    let mut all = vec![
        (
            "nic.latency",
            "all",
            texts(&fit.latency, |time| Rounded(time).to_string()),
        ),
        ("nic.bandwidth", "all", texts(&fit.rate, megabits)),
    ];
    if let Some(backbone) = &fit.backbone {
        all.push(("backbone.bandwidth", "all", texts(&backbone.rate, megabits)));
        let from = texts(&backbone.from, |from| from.to_string());
        all.push(("sharing.asymmetric.backbone_from", "asymmetric", from));
    }
    if let Some(bus) = fit.bus {
        all.push(("bus.bandwidth", "all", [megabits(bus), "-".to_owned()]));
    }
    for model in &fit.models {
        for parameter in &model.parameters {
            let [value, interval] = texts(&parameter.estimate, |number| format!("{number:.3}"));
            let at_bound = parameter
                .bound
                .map(|bound| format!("at its {} bound", bound.name()));
            all.push((
                parameter.field,
                model.name(),
                [value, at_bound.unwrap_or(interval)],
            ));
        }
    }
    rows(&all)
        .cell("parameter", |(field, ..)| *field)
        .cell("model", |(_, model, _)| *model)
        .cell("value", |(.., [value, _])| figure(value))
        .cell(
            format!("{} % interval", fit.options.level * 100.0),
            |(.., [_, ends])| figure(ends),
        )
        .into()
}

fn megabits(rate: Rate) -> String {
    format!("{:.2} Mbit/s", rate.as_bytes_per_second() * 8e-6)
}

/// Text of the value, and of its interval or `-`.
fn texts<T: Copy + PartialEq>(
    estimate: &BoundedEstimate<T>,
    text: impl Fn(T) -> String,
) -> [String; 2] {
    let interval = estimate.interval().map_or("-".to_owned(), |[low, high]| {
        format!("{} .. {}", text(low), text(high))
    });
    [text(estimate.value), interval]
}

fn models(fit: &ConflictFit) -> Table {
    rows(&fit.models)
        .column("model", "model", |model| model.name())
        .field("parameters", |model| {
            rows(&model.parameters)
                .field("field", |parameter| parameter.field)
                .field("value", |parameter| parameter.estimate.value)
                .field("interval", |parameter| parameter.estimate.interval())
                .field("bound", |parameter| parameter.bound.map(Bound::name))
                .field("is_measured", |parameter| parameter.is_measured)
        })
        .field("held_out", |model| model.held_out.as_ref().map(errors))
        .cell("random patterns", |model| {
            held_out(model, Observations::mean_absolute)
        })
        .cell("worst flow", |model| held_out(model, worst))
        .column("left_out", "conflicts left out", |model| {
            shown(
                errors(&model.left_out),
                percent(model.left_out.mean_absolute()),
            )
        })
        .cell("worst flow", |model| {
            figure(percent(worst(&model.left_out)))
        })
        .column("fitted", "fitted", |model| {
            shown(errors(&model.fitted), percent(model.fitted.mean_absolute()))
        })
        .into()
}

fn worst(observed: &Observations<PatternFlow>) -> f64 {
    observed.worst().error().abs()
}

fn held_out(model: &ModelFit, pick: fn(&Observations<PatternFlow>) -> f64) -> Value {
    or_dash(
        model
            .held_out
            .as_ref()
            .map(|errors| figure(percent(pick(errors)))),
    )
}
