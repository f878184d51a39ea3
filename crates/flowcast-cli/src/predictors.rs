//! The ways of predicting a recording: each model with each way of carrying out collectives.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use flowcast::model::machine::Mapping;
use flowcast::model::network::Network;
use flowcast::model::sharing::model::Model;
use flowcast::recording::decode::RankFile;
use flowcast::replay::Engine;
use flowcast::replay::costs::Rendezvous;
use flowcast::replay::placement::Placement;
use flowcast::replay::run_times::predicted;
use flowcast::trace::read::{Clock, recorded_program, recorded_regions};
use flowcast::trace::run_times::RunTimes;
use flowcast::trace::{Program, ReadOptions};
use flowcast::units::Bytes;

use crate::collectives::CollectivesArgs;
use crate::trace_args::print_notes;

/// Dimemas' links, buses and processors instead of a model of sharing.
const LIMITS: &str = "limits";

/// One way of predicting.
#[derive(Debug, Clone)]
pub struct Predictor {
    /// `MODEL/COLLECTIVES`.
    pub name: String,
    model: Option<Model>,
    collectives: String,
}

/// The network as the models want it.
#[derive(Debug, Clone, PartialEq)]
pub struct Networks {
    /// Rates of payload.
    pub goodput: Network,
    /// Rates of the wire, for `packet`; none where nobody says what they are.
    pub wire: Option<Network>,
}

impl Networks {
    /// The one for a way of predicting.
    pub fn of(&self, predictor: &Predictor) -> Result<&Network> {
        if predictor.model != Some(Model::Packet) {
            return Ok(&self.goodput);
        }
        self.wire.as_ref().context("--model packet: found neither --packet-network nor --lab, expected one of them")
    }
}

/// A network with wire rates whose machine, messages and collectives are those of another.
pub fn on_the_wire(wire: &Network, goodput: &Network) -> Network {
    Network {
        machine: goodput.machine.clone(),
        point_to_point: goodput.point_to_point,
        collectives: goodput.collectives.clone(),
        ..wire.clone()
    }
}

/// What all predictions have in common.
pub struct Setting<'a> {
    pub networks: &'a Networks,
    pub mapping: Option<Mapping>,
    pub rendezvous_from: Option<Bytes>,
    pub clock: Clock,
    /// How often packets are followed, with other disturbances each time; once, and undisturbed, without.
    pub seeds: Option<u32>,
}

/// Each model with each way.
pub fn of(models: &[String], ways: &[String]) -> Result<Vec<Predictor>> {
    let mut predictors = Vec::new();
    for name in models {
        let model = match name.as_str() {
            LIMITS => None,
            name => Some(Model::named(name).with_context(|| format!("--model: expected {LIMITS} or a model"))?),
        };
        let named = |way: &String| Predictor { name: format!("{name}/{way}"), model, collectives: way.clone() };
        predictors.extend(ways.iter().map(named));
    }
    for way in ways {
        CollectivesArgs { collectives: Some(way.clone()) }.table(None)?;
    }
    Ok(predictors)
}

/// What each predictor says of each recording, with each seed.
pub fn predict(
    recordings: &[Vec<RankFile>],
    predictors: &[Predictor],
    setting: &Setting<'_>,
) -> Result<Vec<Vec<RunTimes>>> {
    let mut all = vec![Vec::new(); predictors.len()];
    for files in recordings {
        for (all, said) in all.iter_mut().zip(predict_one(files, predictors, setting)?) {
            all.extend(said);
        }
    }
    Ok(all)
}

fn predict_one(files: &[RankFile], predictors: &[Predictor], setting: &Setting<'_>) -> Result<Vec<Vec<RunTimes>>> {
    let recorded = Recorded::new(files, setting.clock, setting.mapping.clone())?;
    let mut expanded: BTreeMap<&str, Option<Recorded>> = BTreeMap::new();
    let mut all = Vec::new();
    for predictor @ Predictor { model, collectives, .. } in predictors {
        if !expanded.contains_key(collectives.as_str()) {
            expanded.insert(collectives, recorded.expanded(collectives, &setting.networks.goodput)?);
        }
        let recorded = expanded[collectives.as_str()].as_ref().unwrap_or(&recorded);
        let engine = recorded.engine(setting.networks.of(predictor)?, setting.rendezvous_from, *model)?;
        all.push(match setting.seeds.filter(|_| *model == Some(Model::Packet)) {
            Some(seeds) => with_seeds(seeds, engine, |engine| recorded.run_times(engine))?,
            None => vec![recorded.run_times(&engine)?],
        });
    }
    Ok(all)
}

/// A recording that can be replayed in any network.
#[derive(Debug)]
pub struct Recorded {
    program: Program,
    /// Names of the program's regions by number, from 1.
    regions: Vec<String>,
    mapping: Option<Mapping>,
}

impl Recorded {
    /// Ranks lie as `mapping` says, else on the hosts of the recording. What of it is not replayed goes to standard error.
    pub fn new(files: &[RankFile], clock: Clock, mapping: Option<Mapping>) -> Result<Recorded> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let program = recorded_program("the recording", files, clock, ReadOptions { threads })?;
        print_notes(&program);
        Ok(Recorded { program, regions: recorded_regions(files), mapping: mapping.or_else(|| hosts(files)) })
    }

    /// With its collectives carried out as `--collectives` says; `None` where a formula says what they cost.
    pub fn expanded(&self, collectives: &str, network: &Network) -> Result<Option<Recorded>> {
        let how = CollectivesArgs { collectives: Some(collectives.to_owned()) };
        let with = |program| Recorded { program, regions: self.regions.clone(), mapping: self.mapping.clone() };
        Ok(how.apply(&self.program, Some(network))?.map(with))
    }

    /// Its replay in a network; under Dimemas' limits without a model.
    pub fn engine(
        &self,
        network: &Network,
        rendezvous_from: Option<Bytes>,
        model: Option<Model>,
    ) -> Result<Engine<'_>> {
        let placement = Placement::of_program(&network.machine, self.mapping.as_ref(), &self.program)?;
        let rendezvous = Rendezvous::of(network, rendezvous_from);
        Ok(match model {
            Some(model) => Engine::sharing(&self.program, network, placement, rendezvous, model)?,
            None => Engine::new(&self.program, network, placement, rendezvous)?,
        })
    }

    /// What its replay takes.
    pub fn run_times(&self, engine: &Engine<'_>) -> Result<RunTimes> {
        Ok(predicted(&self.program, engine, &self.regions)?)
    }
}

fn with_seeds<T>(seeds: u32, mut engine: Engine<'_>, run: impl Fn(&Engine<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for seed in 1..=u64::from(seeds) {
        engine = engine.disturbed(seed);
        all.push(run(&engine)?);
    }
    Ok(all)
}

/// The hosts of the recording as nodes, where there are several; ranks that ran on one host alone were to be on nodes
/// of their own.
fn hosts(files: &[RankFile]) -> Option<Mapping> {
    let mut names: Vec<&str> = Vec::new();
    let mut nodes = Vec::new();
    for file in files {
        let host = file.header.fields.get("host").map_or("", String::as_str);
        let known = names.iter().position(|name| *name == host);
        nodes.push(known.unwrap_or(names.len()) as u32);
        if known.is_none() {
            names.push(host);
        }
    }
    (names.len() > 1).then_some(Mapping::List(nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(host: &str) -> RankFile {
        let mut file = RankFile::default();
        file.header.fields.insert("host".into(), host.into());
        file
    }

    #[test]
    fn ranks_lie_on_the_hosts_of_the_recording_unless_there_is_only_one() {
        assert_eq!(hosts(&[on("b"), on("a"), on("b")]), Some(Mapping::List(vec![0, 1, 0])));
        assert_eq!(hosts(&[on("a"), on("a")]), None);
    }

    #[test]
    fn each_model_meets_each_way_and_unknown_ones_are_refused() {
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let names: Vec<String> = of(&list("limits,fair"), &list("formula,openmpi"))
            .unwrap()
            .into_iter()
            .map(|predictor| predictor.name)
            .collect();
        assert_eq!(names, ["limits/formula", "limits/openmpi", "fair/formula", "fair/openmpi"]);
        assert!(of(&list("fare"), &list("formula")).is_err());
        assert!(of(&list("fair"), &list("formulas")).is_err());
    }
}
