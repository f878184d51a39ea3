//! Predictors of recordings: combinations of a model and a method for collectives.

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

/// Combination of a model and a method for collectives.
#[derive(Debug, Clone)]
pub struct Predictor {
    /// Name in tables, `MODEL/COLLECTIVES`.
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

    /// `true` if the model expects wire rates.
    pub fn counts_frames(&self) -> bool {
        self.contention == Contention::Shared(Model::Packet)
    }
}

/// Value if none is given.
const AUTOMATIC: &str = "automatic";

/// Settings that all predictions share.
pub struct Setting<'a> {
    pub network: &'a Network,
    pub mapping: Option<Mapping>,
    pub rendezvous_from: Option<Bytes>,
    pub clock: Clock,
    /// Number of packet simulations, each with different random disturbances. `None` for one simulation without
    /// disturbances.
    pub seeds: Option<u32>,
}

/// All combinations of models and methods. Without either, uses the default of `predict`.
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

/// Predicts a recording with each predictor, and replaces `automatic` in their names by the model and method that were used.
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

/// Predictions of each predictor for each recording, with each seed.
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
    fn each_model_is_combined_with_each_method_and_unknown_names_are_refused() {
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
