//! Measured patterns with the predictions of the models.

use anyhow::{Context, Result};
use flowcast::{
    Contention, Error, Options,
    model::{
        cluster::{pattern::Steps, racks::Racks},
        network::Network,
        sharing::model::Model,
    },
    packet::seeds::Runs,
    predict_steps,
    report::validation::CarriedPattern,
    trace::parallel,
};
use flowcast_measure::lab::LabSpec;

use super::{
    finished::Finished,
    patterns::{by_step, racks_of},
};
use flowcast_terminal::{progress::Progress, trace_args::threads};

/// Predicts the measured patterns with each model, on several threads.
pub(super) fn cases(
    finished: &[Finished],
    spec: &LabSpec,
    models: &[Model],
    network: &Network,
    seeds: Option<u32>,
) -> Result<Vec<CarriedPattern>> {
    let racks = racks_of(spec);
    let progress = Progress::counted("predicting", "patterns", finished.len() as u64);
    let mut cases: Vec<Option<CarriedPattern>> = finished.iter().map(|_| None).collect();
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
) -> Result<CarriedPattern, Error> {
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
    Ok(CarriedPattern {
        name: measured.name.clone(),
        configuration: measured.configuration.clone(),
        predicted,
        intervals,
        measured: measured.durations(),
        is_precise: measured.is_precise,
        step_of: measured.steps(),
        flows,
    })
}

/// The network with the measurement's number of uncounted repetitions.
fn as_carried(network: &Network, finished: &Finished) -> Network {
    let mut network = network.clone();
    if let (Some(warm_ups), Some(found)) = (&mut network.sharing.packet.warm_ups, finished.warm_ups)
    {
        *warm_ups = found;
    }
    network
}
