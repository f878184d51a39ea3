//! The ways of predicting a recording: each model with each way of carrying out collectives.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
};

use anyhow::{Context, Result};
use flowcast::{
    Collectives, Contention, IntervalOptions, Options, Recorded, RecordingPrediction,
    formats::read::Clock,
    model::{machine::Mapping, network::Network, sharing::model::Model},
    recording::decode::RankFile,
    trace::run_times::RunTimes,
    units::Bytes,
};

use crate::{collectives::named, progress::Progress, trace_args::threads};

/// One way of predicting.
#[derive(Debug, Clone)]
pub struct Predictor {
    /// `MODEL/COLLECTIVES`, as tables show it.
    pub name: String,
    contention: Contention,
    way: String,
    collectives: Collectives,
}

impl Predictor {
    fn options(&self, setting: &Setting<'_>) -> Options {
        Options {
            contention: self.contention,
            rendezvous_from: setting.rendezvous_from,
            ..Options::default()
        }
    }

    /// Whether it takes wire rates.
    pub fn counts_frames(&self) -> bool {
        self.contention == Contention::Shared(Model::Packet)
    }
}

/// What is taken where nothing is asked for.
const AUTOMATIC: &str = "automatic";

/// What all predictions have in common.
pub struct Setting<'a> {
    pub network: &'a Network,
    pub mapping: Option<Mapping>,
    pub rendezvous_from: Option<Bytes>,
    pub clock: Clock,
    /// How often packets are followed, with other disturbances each time; once, and undisturbed, without.
    pub seeds: Option<u32>,
}

/// Each model with each way; without either what `predict` takes.
pub fn combinations(models: &[String], ways: &[String]) -> Result<Vec<Predictor>> {
    let automatic = [AUTOMATIC.to_owned()];
    let (models, ways) = (
        if models.is_empty() {
            &automatic
        } else {
            models
        },
        if ways.is_empty() { &automatic } else { ways },
    );
    let mut predictors = Vec::new();
    for model in models {
        let contention = match model.as_str() {
            AUTOMATIC => Contention::Automatic,
            name => Contention::named(name).context("--model: expected limits or a model")?,
        };
        for way in ways {
            let collectives = if way == AUTOMATIC {
                Collectives::Automatic
            } else {
                named(way)?
            };
            predictors.push(Predictor {
                name: format!("{model}/{way}"),
                contention,
                way: way.clone(),
                collectives,
            });
        }
    }
    Ok(predictors)
}

/// Gives predictors the names of what they take for a recording, and predicts it with each.
pub fn settle(
    predictors: &mut [Predictor],
    files: &[RankFile],
    setting: &Setting<'_>,
    asked: &IntervalOptions<'_>,
) -> Result<Vec<RecordingPrediction>> {
    let recorded = Recorded::new(files, setting.clock, setting.mapping.clone(), threads())?;
    let mut all = Vec::new();
    for predictor in predictors {
        let (expanded, way) =
            recorded.expanded(&predictor.collectives, setting.network, threads())?;
        let predicted = expanded.predicted(setting.network, &predictor.options(setting), asked)?;
        if predictor.contention == Contention::Automatic {
            predictor.name = predictor.name.replacen(AUTOMATIC, predicted.model, 1);
        }
        if predictor.collectives == Collectives::Automatic {
            predictor.name = predictor.name.replacen(AUTOMATIC, way.name, 1);
        }
        all.push(predicted);
    }
    Ok(all)
}

/// What each predictor says of each recording, with each seed.
pub fn predict(
    recordings: &[Vec<RankFile>],
    predictors: &[Predictor],
    setting: &Setting<'_>,
) -> Result<Vec<Vec<RunTimes>>> {
    let mut all = vec![Vec::new(); predictors.len()];
    let progress = Progress::counted("predicting", "recordings", recordings.len() as u64);
    for files in recordings {
        for (all, said) in all.iter_mut().zip(predict_one(files, predictors, setting)?) {
            all.extend(said);
        }
        progress.add(1);
    }
    Ok(all)
}

fn predict_one(
    files: &[RankFile],
    predictors: &[Predictor],
    setting: &Setting<'_>,
) -> Result<Vec<Vec<RunTimes>>> {
    let recorded = Recorded::new(files, setting.clock, setting.mapping.clone(), threads())?;
    let mut expanded: BTreeMap<&str, Cow<'_, Recorded>> = BTreeMap::new();
    let mut all = Vec::new();
    for predictor in predictors {
        let recorded = match expanded.entry(&predictor.way) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let how = &predictor.collectives;
                place.insert(recorded.expanded(how, setting.network, threads())?.0)
            }
        };
        all.push(recorded.run_times(
            setting.network,
            &predictor.options(setting),
            setting.seeds.map_or(0, u64::from),
        )?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_model_meets_each_way_and_unknown_ones_are_refused() {
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let names: Vec<String> = combinations(&list("limits,fair"), &list("formula,openmpi"))
            .unwrap()
            .into_iter()
            .map(|predictor| predictor.name)
            .collect();
        assert_eq!(
            names,
            [
                "limits/formula",
                "limits/openmpi",
                "fair/formula",
                "fair/openmpi"
            ]
        );
        assert!(combinations(&list("fare"), &list("formula")).is_err());
        assert!(combinations(&list("fair"), &list("formulas")).is_err());
    }
}
