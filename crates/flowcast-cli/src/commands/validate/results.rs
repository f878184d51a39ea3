//! What was carried beside what models say.

use anyhow::{Context, Result};
use flowcast::{
    PatternOptions,
    model::{cluster::pattern::Steps, network::Network, sharing::model::Model},
    packet::seeds::Runs,
    predict_steps,
    report::validation::Case,
};
use flowcast_measure::lab::LabSpec;

use super::{
    finished::Finished,
    patterns::{by_step, racks_of},
};
use crate::terminal::progress::Progress;

/// Predicts what was carried with each model.
pub(super) fn cases(
    finished: &[Finished],
    spec: &LabSpec,
    models: &[Model],
    network: &Network,
    seeds: Option<u32>,
) -> Result<Vec<Case>> {
    let racks = racks_of(spec);
    let progress = Progress::of("predicting", "patterns", finished.len() as u64);
    let mut cases = Vec::new();
    for carried in finished {
        let flows = carried.pattern_flows();
        let steps = Steps {
            steps: by_step(&flows, &carried.steps()),
            racks: racks.clone(),
        };
        let network = as_carried(network, carried);
        let (mut predicted, mut intervals) = (Vec::new(), Vec::new());
        for model in models {
            let runs = seeds.map(|seeds| Runs {
                seeds,
                repetitions: carried.repetitions(),
            });
            let options = PatternOptions {
                model: Some(*model),
                runs: runs.filter(|_| *model == Model::Packet),
                ..PatternOptions::default()
            };
            let steps =
                predict_steps(&steps, &network, &options).with_context(|| carried.name.clone())?;
            let flows = steps.iter().flat_map(|step| &step.prediction.flows);
            predicted.push(flows.map(|flow| flow.duration).collect());
            let spreads = steps.iter().flat_map(|step| &step.spreads);
            let ends = spreads.map(|spread| (spread.low.duration, spread.high.duration));
            intervals.push(ends.collect());
        }
        progress.add(1);
        cases.push(Case {
            name: carried.name.clone(),
            configuration: carried.configuration.clone(),
            predicted,
            intervals,
            measured: carried.durations(),
            is_precise: carried.is_precise,
            step_of: carried.steps(),
            flows,
        });
    }
    Ok(cases)
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
