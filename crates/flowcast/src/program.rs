//! A program prepared for replay on one network.

use std::borrow::Cow;

use flowcast_graph::{EventGraph, ProgramRecorder, critical_path::CriticalPath};
use flowcast_network::{
    machine::Mapping,
    network::{Duplex, Network, NicChoice},
    sharing::{model::Model, rates::quasi_dynamic_feedback},
    topology::{CableKind, Topology},
};
use flowcast_observers::{
    explain::Explainer, inside::InsideTraffic, journal::ReplayJournal, run_times::RunTimer,
};
use flowcast_program::{Program, TraceRef, run_times::RunTimes, together::together};
use flowcast_replay::{
    ReplayEngine, contention,
    costs::Rendezvous,
    meetings::messages_meet,
    observer::Observer,
    outcome::Outcome,
    placement::{Application, Placement},
    walk::Replay,
};
use flowcast_report::{NetworkView, export::Replayed};
use flowcast_sensitivity::influence::{FinishedReplay, Unused, without_influence};
use flowcast_table::Grouped;
use flowcast_units::{Bytes, Rank};

use crate::{
    Contention, Error, ModelChoice, Options, Outputs, Prediction,
    error::finite,
    options::{CollectivesWay, MOST_MESSAGES},
    rails::FurtherRails,
    statements,
};

/// Number of messages from which a replay uses threads. Starting threads takes as long as replaying some hundreds of
/// messages.
const MANY_MESSAGES: u32 = 1 << 14;

/// A program prepared for replay on one network: its collectives carried out, its ranks placed on nodes.
#[derive(Debug, Clone)]
pub struct PreparedProgram<'a> {
    pub(crate) program: Cow<'a, Program>,
    pub(crate) network: &'a Network,
    pub(crate) placement: Placement,
    pub(crate) rendezvous: Rendezvous,
    pub(crate) model: ModelChoice,
    /// Way in which collectives are carried out.
    pub(crate) collectives: CollectivesWay,
    /// Threads of the replay.
    pub(crate) threads: usize,
    /// Networks that carry messages in addition to the first.
    pub(crate) further_rails: Option<FurtherRails>,
}

impl<'a> PreparedProgram<'a> {
    /// Carries out the collectives and places the ranks.
    ///
    /// # Errors
    /// [`Error::Option`] for parameters of GOAL schedules, [`Error::Replay`] if the mapping does not match the ranks and
    /// nodes, [`Error::Trace`] if the collectives expand to more messages than a program can hold.
    pub fn new(
        program: &'a Program,
        network: &'a Network,
        options: &Options,
    ) -> Result<PreparedProgram<'a>, Error> {
        PreparedProgram::prepare(Cow::Borrowed(program), Some(network), options)
    }

    pub(crate) fn prepare(
        mut program: Cow<'a, Program>,
        network: Option<&'a Network>,
        options: &Options,
    ) -> Result<PreparedProgram<'a>, Error> {
        if options.loggops.is_some() {
            return Err(Error::option(
                "--goal-params",
                "a trace that is not a GOAL schedule",
                "a GOAL schedule (other traces need --network)",
            ));
        }
        let network = network.ok_or(Error::NoNetwork)?;
        let carried_out =
            options
                .collectives
                .carry_out(&program, Some(network), options.threads)?;
        if let Some(expanded) = carried_out.expanded {
            program = Cow::Owned(expanded.program);
        }
        PreparedProgram::placed(program, network, options, carried_out.way)
    }

    /// Places the ranks of a program whose collectives have been carried out.
    pub(crate) fn placed(
        program: Cow<'a, Program>,
        network: &'a Network,
        options: &Options,
        collectives: CollectivesWay,
    ) -> Result<PreparedProgram<'a>, Error> {
        let placement =
            Placement::of_program(&network.machine, options.mapping.as_ref(), &program)?;
        Ok(PreparedProgram {
            model: model_for(options.contention, &program, network)?,
            further_rails: FurtherRails::new(
                &options.rails,
                options.contention,
                &program,
                &placement,
            )?,
            placement,
            program,
            network,
            rendezvous: Rendezvous::from_network(network, options.rendezvous_from),
            collectives,
            threads: options.threads,
        })
    }

    /// Prepares several programs that share a machine. Each program has its own mapping, or all share one, or there is none.
    /// The ranks of the first program come first. `options.mapping` and `options.collectives` are ignored.
    ///
    /// # Errors
    /// Errors of [`PreparedProgram::new`].
    pub fn together(
        programs: &[&Program],
        mappings: &[Mapping],
        network: &'a Network,
        options: &Options,
    ) -> Result<PreparedProgram<'a>, Error> {
        let applications: Vec<Application<'_>> = programs
            .iter()
            .enumerate()
            .map(|(index, program): (usize, &&Program)| Application {
                threads: program.threads_of_tasks(),
                mapping: mappings.get(if mappings.len() == 1 { 0 } else { index }),
            })
            .collect();
        let program = together(programs)?;
        options.refuse_rails("several traces")?;
        Ok(PreparedProgram {
            placement: Placement::of_applications(&network.machine, &applications)?,
            model: model_for(options.contention, &program, network)?,
            collectives: CollectivesWay::formula(&program),
            program: Cow::Owned(program),
            network,
            rendezvous: Rendezvous::from_network(network, options.rendezvous_from),
            threads: options.threads,
            further_rails: None,
        })
    }

    /// The program on another network. `options` give contention, mapping and rendezvous. Collectives are carried out in the
    /// same way.
    pub fn moved<'b>(
        &'b self,
        network: &'b Network,
        options: &Options,
    ) -> Result<PreparedProgram<'b>, Error> {
        PreparedProgram::placed(
            Cow::Borrowed(self.program()),
            network,
            options,
            self.collectives,
        )
    }

    /// The program on a network with other values and the same nodes.
    pub(crate) fn on<'b>(&'b self, network: &'b Network) -> PreparedProgram<'b> {
        PreparedProgram {
            program: Cow::Borrowed(&self.program),
            network,
            placement: self.placement.on(&network.machine),
            model: self.model.clone(),
            further_rails: self.further_rails.clone(),
            ..*self
        }
    }

    /// Returns the program with a rank that computes `factor` times as fast.
    #[must_use]
    pub fn paced(self, rank: Rank, factor: f64) -> Self {
        PreparedProgram {
            placement: self.placement.paced(rank, factor),
            ..self
        }
    }

    /// The replayed program, with its collectives expanded if messages were requested.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Number of collectives that keep their formula although messages were requested: their communicator names a rank
    /// twice.
    pub fn collectives_by_formula(&self) -> u64 {
        self.collectives.kept
    }

    /// Traffic between ranks of one node; `None` if there is none.
    pub fn inside(&self) -> Option<InsideTraffic> {
        InsideTraffic::of_program(&self.program, &self.placement)
    }

    /// The model that the contention option selects.
    pub fn model(&self) -> &ModelChoice {
        &self.model
    }

    /// The model, with the way in which collectives are carried out.
    pub(crate) fn described(&self) -> ModelChoice {
        let CollectivesWay { name, is_used, .. } = self.collectives;
        ModelChoice {
            collectives: is_used.then_some(name),
            ..self.model.clone()
        }
    }

    /// Engine of the model, with the costs of all messages computed.
    ///
    /// # Errors
    /// [`Error::Replay`] if the network lacks what the sharing model needs, or if ranks wait for each other.
    pub fn engine(&self) -> Result<ReplayEngine<'_>, Error> {
        let (program, network, placement) = (&*self.program, self.network, self.placement.clone());
        if let Some((rails, rule)) = self.rails()? {
            let engine = ReplayEngine::over_rails(program, &rails, self.rendezvous, rule);
            return Ok(engine?);
        }
        let Contention::Shared(model) = self.model.contention else {
            return Ok(ReplayEngine::new(
                program,
                network,
                placement,
                self.rendezvous,
            )?);
        };
        if self.is_uncontended(model)? {
            return Ok(Replay::new(program, network, placement, self.rendezvous)?.into());
        }
        Ok(ReplayEngine::sharing(
            program,
            network,
            placement,
            self.rendezvous,
            model,
        )?)
    }

    /// `true` if the walk gives the model's result, because nothing limits ranks and messages and no messages meet.
    fn is_uncontended(&self, model: Model) -> Result<bool, Error> {
        let (program, network, placement) = (&*self.program, self.network, &self.placement);
        let has_own_links = network.nic.duplex == Duplex::Full && network.bus.is_none();
        let is_plain = network.backbone.is_none()
            && network.topology.is_none()
            && program.accesses().is_empty();
        match model {
            Model::Independent => Ok(!has_kinds_of_cables(network)),
            Model::Packet => Ok(false),
            _ if !is_plain || !has_own_links || contention::is_needed(network, placement) => {
                Ok(false)
            }
            // If queues follow windows in steps, a lone message gets only nearly its full rate.
            _ if quasi_dynamic_feedback(model, network)?.is_some() => Ok(false),
            _ => Ok(!messages_meet(&Replay::new(
                program,
                network,
                placement.clone(),
                self.rendezvous,
            )?)?),
        }
    }

    /// Replays the program.
    ///
    /// # Errors
    /// Errors of the replay, and [`Error::NotFinite`].
    pub fn outcome(&self) -> Result<Outcome, Error> {
        finite(self.engine()?.run()?, Some(self.network), &[])
    }

    /// Replays and reports all events to an observer.
    ///
    /// # Errors
    /// Errors of [`PreparedProgram::engine`]; ranks that wait for each other.
    pub fn observe<O: Observer>(&self, observer: &mut O) -> Result<Outcome, Error> {
        Ok(self.engine()?.observed(observer)?)
    }

    /// Replays and follows the events back from the end. Returns the outcome and the path that limits it.
    ///
    /// # Errors
    /// Errors of [`PreparedProgram::observe`].
    pub fn critical_path(&self) -> Result<(Outcome, CriticalPath), Error> {
        self.with_graph(|graph| Ok(graph.critical_path()))
    }

    /// Replays and returns the outcome, and the result of `use_graph` for the graph of the events.
    pub(crate) fn with_graph<R>(
        &self,
        use_graph: impl FnOnce(&EventGraph<'_>) -> Result<R, Error>,
    ) -> Result<(Outcome, R), Error> {
        let engine = self.engine()?;
        let (outcome, graph) = EventGraph::record(&engine)?;
        let outcome = finite(outcome, Some(self.network), &[])?;
        Ok((outcome, use_graph(&graph)?))
    }

    /// Replays for the requested outputs. The journal goes to `export`.
    ///
    /// # Errors
    /// Errors of [`PreparedProgram::observe`] and of `export`.
    pub(crate) fn predict<E: From<Error>>(
        &self,
        outputs: Outputs,
        asked: &[String],
        export: impl FnOnce(Replayed<'_>) -> Result<(), E>,
    ) -> Result<Prediction, E> {
        let mut engine = self.engine()?;
        if outputs.explanation {
            engine = engine.noting_loads();
        }
        if !engine.is_free() && self.program.messages() >= MANY_MESSAGES {
            engine = engine.on_threads(self.threads);
        }
        let mut journal = outputs
            .kept()
            .map(|keeps| ReplayJournal::new(&self.program, keeps));
        let mut explainer = outputs.explanation.then(|| Explainer::new(&engine));
        let mut recorder = outputs.view.then(|| ProgramRecorder::new(&engine));
        let all = ((journal.as_mut(), explainer.as_mut()), recorder.as_mut());
        let outcome = watched(&engine, all)?;
        let path = recorder.map(|recorder| recorder.finish().critical_path());
        let outcome = finite(outcome, Some(self.network), asked)?;
        let explanation = explainer.map(|explainer| explainer.finish(&outcome));
        let mut view = None;
        if let Some(journal) = &journal {
            let trace = TraceRef::Program(&self.program);
            let replayed = Replayed {
                trace,
                placement: &self.placement,
                outcome: &outcome,
                journal,
            };
            view = path.map(|path| NetworkView::new(self.network, replayed, Some(&path)));
            export(replayed)?;
        }
        let unused = self.unused(&outcome, asked);
        let is_uncontended = engine.is_free() && self.model.shares();
        let inside = self.inside();
        let model = ModelChoice {
            is_uncontended,
            inside: inside.map(|traffic| traffic.source),
            ..self.described()
        };
        let view = view.map(|view| model.named_in(view));
        let transfers = self.program.transfers();
        let rails = self.rails_prediction(&outcome.rails);
        Ok(Prediction {
            model,
            outcome,
            view,
            explanation,
            unused,
            transfers,
            inside,
            notes: self.notes(),
            loops: None,
            rails,
        })
    }

    /// Times of the run in total, by rank, by kind of call and by region, in the terms in which recorded runs are measured.
    /// `regions` are the names of the program's regions by number, from 1. Under the packet model there is one run for each
    /// seed from 1 to `seeds`, each with other random times of hosts. Under other models, or with `seeds` 0, there is one
    /// run.
    ///
    /// # Errors
    /// Errors of [`PreparedProgram::observe`].
    pub fn run_times(&self, regions: &[String], seeds: u64) -> Result<Vec<RunTimes>, Error> {
        let mut engine = self.engine()?;
        if seeds == 0 || self.model.contention != Contention::Shared(Model::Packet) {
            return Ok(vec![self.timed(&engine, regions)?]);
        }
        let mut all = Vec::new();
        for seed in 1..=seeds {
            engine = engine.disturbed(seed);
            all.push(self.timed(&engine, regions)?);
        }
        Ok(all)
    }

    fn timed(&self, engine: &ReplayEngine<'_>, regions: &[String]) -> Result<RunTimes, Error> {
        let mut timer = RunTimer::new(&self.program, regions);
        let outcome = finite(engine.observed(&mut timer)?, Some(self.network), &[])?;
        Ok(timer.finish(&outcome))
    }

    /// Sentences on ignored records, on the reliability of the networks' values, and on assumptions.
    pub fn notes(&self) -> Vec<String> {
        statements::notes(self.program.ignored(), self.assumptions())
    }

    /// Assumptions that no option and no file states.
    pub(crate) fn assumptions(&self) -> Vec<String> {
        let further = self.further_rails.iter().flat_map(FurtherRails::networks);
        let mut notes = statements::of_networks(std::iter::once(self.network).chain(further));
        notes.extend_from_slice(self.program.assumed());
        notes.extend(self.disagreements());
        notes.extend(undivided(self.network).filter(|_| self.model.shares()));
        let processors = self.placement.processors_by_mapping();
        if processors > 1 {
            notes.push(format!(
                "nodes are assumed to have {processors} processors, the most ranks that the mapping places on a node \
                 (machine.nodes.*.cpus sets the number)"
            ));
        }
        if let Some(messages) = self.collectives.too_many {
            notes.push(format!(
                "collectives by formula, because they would be {} messages, more than {} (--collectives openmpi sends the \
                 messages anyway)",
                Grouped(messages),
                Grouped(MOST_MESSAGES)
            ));
        }
        let collectives = self.program.collectives();
        if collectives > 0 && self.model.shares() {
            notes.push(format!(
                "a formula gives the time of {collectives} collectives, which do not share the network \
                 (--collectives openmpi or mpich sends messages instead)"
            ));
        }
        notes
    }

    /// Parameters of the network without influence on a replay. `asked` are dotted names that the caller set. Empty for
    /// programs on several networks.
    pub fn unused(&self, outcome: &Outcome, asked: &[String]) -> Vec<Unused> {
        if self.further_rails.is_some() {
            return Vec::new();
        }
        let done = FinishedReplay {
            program: &self.program,
            network: self.network,
            placement: &self.placement,
            rendezvous: self.rendezvous,
            model: self.model.contention.model(),
            outcome,
        };
        without_influence(&done, asked)
    }
}

/// `true` if messages take longer over some cables than over others.
fn has_kinds_of_cables(network: &Network) -> bool {
    let topology = network.topology.iter();
    topology
        .flat_map(Topology::classes)
        .any(|class| class.cables != CableKind::default())
}

/// Sentence on the use of several interfaces of one network, if nodes have more than one.
fn undivided(network: &Network) -> Option<String> {
    let count = network.nic.count;
    let taken = match network.nic.choice {
        NicChoice::Pair => format!(
            "all messages between two nodes use the same one of their {count} interfaces (nic.choice=round-robin \
             uses them in turn)"
        ),
        NicChoice::RoundRobin => {
            format!("messages between two nodes use their {count} interfaces in turn")
        }
    };
    let divided = "each message undivided; --rail and flowcast rails advise divide long messages over several networks";
    (count > 1).then(|| format!("{taken}, {divided}"))
}

/// Runs the engine with the observers. Inside the generic function above, the engines would be compiled again in every crate
/// that calls it, with the optimiser settings of the caller.
fn watched(engine: &ReplayEngine<'_>, observers: Observers<'_, '_>) -> Result<Outcome, Error> {
    Ok(match observers {
        ((None, None), None) => engine.run()?,
        mut all => engine.observed(&mut all)?,
    })
}

/// Observers of one replay, one for each requested result.
type Observers<'o, 'a> = (
    (
        Option<&'o mut ReplayJournal<'a>>,
        Option<&'o mut Explainer<'a>>,
    ),
    Option<&'o mut ProgramRecorder<'a>>,
);

fn model_for(
    contention: Contention,
    program: &Program,
    network: &Network,
) -> Result<ModelChoice, Error> {
    if contention == Contention::Loggops {
        return Err(Error::option(
            "--model loggops",
            "a trace that is not a GOAL schedule",
            "a GOAL schedule",
        ));
    }
    Ok(ModelChoice::for_program(contention, program, network))
}

/// Outcome of each of the programs that were replayed together.
pub fn split(outcome: &Outcome, programs: &[&Program]) -> Vec<Outcome> {
    let mut ranks = &outcome.ranks[..];
    programs
        .iter()
        .map(|program: &&Program| {
            let (own, rest) = ranks.split_at(program.ranks());
            ranks = rest;
            let (messages, bytes): (u64, Bytes) = (u64::from(program.messages()), program.bytes());
            Outcome {
                ranks: own.to_vec(),
                messages,
                bytes,
                ..Outcome::default()
            }
        })
        .collect()
}
