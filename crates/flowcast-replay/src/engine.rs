//! The replay of a program, by rules that suit the contention between its messages.
//!
//! The closed loop of equal windows through lossless queues is simulated directly, in trains of packets. A message shorter
//! than a window passes through the queues behind the messages before it. Rates that hold from start to end would miss this.

use std::borrow::Cow;

use super::{
    SimulateError,
    contention::{self, Links},
    costs::{PathCosts, Rendezvous},
    handshakes::{Handshakes, InOrder},
    observer::{
        Observer, Unobserved,
        by_pointer::{ByPointer, Watch},
    },
    outcome::Outcome,
    packet_transit::Packets,
    placement::Placement,
    rails_transit::{ProgramRail, RailRule, RailTransit, RailsTransit},
    transit::{
        Shared, Transit, Undisturbed, cable_latencies,
        delays::LinkDelays,
        parts::{Division, LookAhead, side_by_side},
    },
};
use crate::walk::Replay;
use flowcast_network::{
    network::Network,
    sharing::{active_flows::Reach, model::Model, rates::transient_windows},
};
use flowcast_program::program::Program;
use flowcast_traffic::flows::traffic::Rule;
use flowcast_units::{Bytes, Time};

/// The replay of a program. Without limits and without sharing it is a walk without events.
pub struct ReplayEngine<'a> {
    replay: Replay<'a>,
    /// Limits of links, buses or processors: event by event, by Dimemas' rules.
    limits: Option<Box<Links>>,
    /// The model by which messages share the network, with or without limits.
    shared: Option<Box<SharedNetwork>>,
    /// The networks, if messages use several of them.
    rails: Option<Box<SeveralNetworks>>,
}

/// The networks that messages use, and the rule that chooses between them.
struct SeveralNetworks {
    rails: Vec<ProgramRail>,
    rule: RailRule,
}

/// The network that messages share, and the model of sharing.
struct SharedNetwork {
    network: Network,
    model: Model,
    seed: Option<u64>,
    /// `true` if the outcome contains the loads of the links.
    notes_loads: bool,
}

impl<'a> From<Replay<'a>> for ReplayEngine<'a> {
    /// Creates an engine without contention, whatever the machine limits.
    fn from(replay: Replay<'a>) -> ReplayEngine<'a> {
        ReplayEngine {
            replay,
            limits: None,
            shared: None,
            rails: None,
        }
    }
}

impl<'a> ReplayEngine<'a> {
    /// Creates an engine with the rules that the limits of the machine require, and computes the costs of all messages.
    ///
    /// # Errors
    /// [`SimulateError::Placement`] if program and machine do not fit together.
    pub fn new(
        program: &'a Program,
        network: &Network,
        placement: Placement,
        rendezvous: Rendezvous,
    ) -> Result<ReplayEngine<'a>, SimulateError> {
        let replay = Replay::new(program, network, placement, rendezvous)?;
        Ok(match contention::is_needed(network, &replay.placement) {
            true => ReplayEngine::limited(replay, network),
            false => replay.into(),
        })
    }

    /// Creates an engine that replays event by event, by Dimemas' rules, even if the machine has no limits.
    pub fn limited(replay: Replay<'a>, network: &Network) -> ReplayEngine<'a> {
        let links = Links::new(replay.program, network, &replay.placement);
        ReplayEngine {
            limits: Some(Box::new(links)),
            ..replay.into()
        }
    }

    /// Creates an engine in which messages between nodes share the network by `model`, after they have obtained the links
    /// and buses that the machine limits. Under the packet model they need neither. Processors, and the rules inside nodes
    /// and between sites, are the same as in [`ReplayEngine::new`].
    ///
    /// # Errors
    /// The same as for [`ReplayEngine::new`].
    pub fn sharing(
        program: &'a Program,
        network: &Network,
        placement: Placement,
        rendezvous: Rendezvous,
        model: Model,
    ) -> Result<ReplayEngine<'a>, SimulateError> {
        let (network, model) = as_followed(program, network, model)?;
        let replay = Replay::new(program, &network, placement, rendezvous)?;
        Ok(ReplayEngine {
            limits: limits(program, &network, &replay.placement, model),
            replay,
            shared: Some(Box::new(SharedNetwork {
                network,
                model,
                seed: None,
                notes_loads: false,
            })),
            rails: None,
        })
    }

    /// Creates an engine in which messages between nodes use several networks at the same time. The first network gives the
    /// processors, their times, and the messages that wait for their receiver. Messages need no links and no buses of the
    /// machine.
    ///
    /// # Errors
    /// The same as for [`ReplayEngine::new`]; [`SimulateError::Rails`] for models that cannot run together, and for several
    /// sites.
    pub fn over_rails(
        program: &'a Program,
        rails: &[ProgramRail],
        rendezvous: Rendezvous,
        rule: RailRule,
    ) -> Result<ReplayEngine<'a>, SimulateError> {
        let mut followed = Vec::new();
        for rail in rails {
            if rail.placement.sites() > 1 {
                return Err(SimulateError::Rails(format!(
                    "found several sites in {}, expected one",
                    rail.network.name
                )));
            }
            let (network, model) = as_followed(program, &rail.network, rail.model)?;
            followed.push(ProgramRail {
                network,
                model,
                placement: rail.placement.clone(),
            });
        }
        let is_by_packets = |rail: &ProgramRail| rail.model == Model::Packet;
        let Some(first) = followed.first() else {
            return Err(SimulateError::Rails(
                "found no rails, expected 1 or more".to_owned(),
            ));
        };
        if let Some(other) = followed
            .iter()
            .find(|rail| is_by_packets(rail) != is_by_packets(first))
        {
            return Err(SimulateError::Rails(format!(
                "found the model {} for {} and {} for {}, expected the packet model for all rails or for none (--model)",
                first.model, first.network.name, other.model, other.network.name
            )));
        }
        let mut replay = Replay::new(program, &first.network, first.placement.clone(), rendezvous)?;
        replay.costs.free_interfaces();
        Ok(ReplayEngine {
            limits: limits(program, &first.network, &replay.placement, Model::Packet),
            rails: Some(Box::new(SeveralNetworks {
                rails: followed,
                rule,
            })),
            ..replay.into()
        })
    }

    /// `true` if messages are independent of each other and ranks wait for messages only.
    pub fn is_free(&self) -> bool {
        self.limits.is_none() && self.shared.is_none() && self.rails.is_none()
    }

    /// Lets [`ReplayEngine::run`] use up to this number of threads where that is faster; the result does not depend on it.
    #[must_use]
    pub fn on_threads(self, threads: usize) -> ReplayEngine<'a> {
        ReplayEngine {
            replay: self.replay.on_threads(threads),
            ..self
        }
    }

    /// Adds the loads of the shared links to the outcome ([`Outcome::loads`]), and the time that messages lost there
    /// ([`Outcome::delays`]).
    #[must_use]
    pub fn noting_loads(mut self) -> ReplayEngine<'a> {
        if let Some(shared) = &mut self.shared {
            shared.notes_loads = true;
        }
        self
    }

    /// Uses random times of hosts where messages move packet by packet; other engines are unchanged.
    #[must_use]
    pub fn disturbed(mut self, seed: u64) -> ReplayEngine<'a> {
        if let Some(shared) = &mut self.shared {
            shared.seed = Some(seed);
        }
        self
    }

    /// Runs the replay to the end.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`]; [`SimulateError::Sharing`] if a sharing model has no solution.
    pub fn run(&self) -> Result<Outcome, SimulateError> {
        match self.is_free() {
            true => self.replay.run(),
            false if self.rails.is_some() => self.watched(&mut Unobserved),
            false => self.disturbing(&mut Unobserved),
        }
    }

    /// Runs the replay and reports its events to an observer, or to a pair of observers.
    ///
    /// # Errors
    /// The same as for [`ReplayEngine::run`].
    pub fn observed<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        match self.is_free() {
            true => self.replay.observed(observer),
            false => self.watched(observer),
        }
    }

    fn watched(&self, observer: &mut dyn Watch) -> Result<Outcome, SimulateError> {
        match &self.rails {
            Some(networks) => self.over(networks, &mut ByPointer(observer)),
            None => self.disturbing(&mut ByPointer(observer)),
        }
    }

    /// Replays with messages over several networks.
    fn over(
        &self,
        networks: &SeveralNetworks,
        observer: &mut ByPointer<'_>,
    ) -> Result<Outcome, SimulateError> {
        let program = self.replay.program;
        let (mut fluid, mut packets) = (Vec::new(), Vec::new());
        for rail in &networks.rails {
            let (network, placement) = (&rail.network, &rail.placement);
            match Rule::new(rail.model, network)? {
                Some(rule) => fluid.push(Shared::new(program, placement, network, rule)?),
                None => {
                    packets.push(Packets::new(program, placement, network, None)?.without_data())
                }
            }
        }
        if packets.is_empty() {
            self.through_rails(networks, observer, fluid)
        } else {
            self.through_rails(networks, observer, packets)
        }
    }

    fn through_rails<T: RailTransit>(
        &self,
        SeveralNetworks { rails, rule }: &SeveralNetworks,
        observer: &mut ByPointer<'_>,
        transits: Vec<T>,
    ) -> Result<Outcome, SimulateError> {
        let rails = RailsTransit::new(self.replay.program, rails, *rule, transits)?;
        let traffic = rails.traffic();
        let outcome = match !T::HANDSHAKES && self.replay.costs.needs_polling() {
            true => self.through(observer, Handshakes::above(rails)),
            false => self.through(observer, rails),
        }?;
        Ok(Outcome {
            rails: traffic.iter().map(std::cell::Cell::get).collect(),
            ..outcome
        })
    }

    /// Replays with messages that affect each other.
    fn disturbing<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        let (program, placement) = (self.replay.program, &self.replay.placement);
        let polls = self.replay.costs.needs_polling();
        let Some(SharedNetwork {
            network,
            model,
            seed,
            notes_loads,
        }) = self.shared.as_deref()
        else {
            return match polls {
                true => self.through(observer, Handshakes::above(InOrder::default())),
                false => self.through(observer, Undisturbed),
            };
        };
        let Some(rule) = Rule::new(*model, network)? else {
            let mut packets = Packets::new(program, placement, network, *seed)?;
            if *notes_loads {
                packets = packets.noting_loads();
            }
            let loads = packets.loads();
            return Ok(self
                .through(observer, packets)?
                .with_loads(loads.as_deref()));
        };
        let reach = rule.local_reach();
        let mut shared = Shared::new(program, placement, network, rule)?;
        if *notes_loads {
            shared = shared.noting_loads();
        }
        let (loads, delays) = (shared.loads(), shared.delays());
        let noted = |outcome: Outcome| {
            let found = delays.as_deref().map(LinkDelays::finish);
            let (delays, delayed) = found.unwrap_or_default();
            Outcome {
                delays,
                delayed,
                ..outcome.with_loads(loads.as_deref())
            }
        };
        if let Some(division) = self.division(&shared, reach)
            && let Some(outcome) = self.side_by_side(observer, &shared, &division)?
        {
            return Ok(noted(outcome));
        }
        let outcome = match polls {
            true => self.through(observer, Handshakes::above(shared)),
            false => self.through(observer, shared),
        };
        outcome.map(noted)
    }

    /// Number of parts of the network that threads solve in parallel; 1 if one thread solves all of it.
    ///
    /// # Errors
    /// Errors of the sharing model.
    pub fn parts(&self) -> Result<usize, SimulateError> {
        let Some(SharedNetwork { network, model, .. }) = self.shared.as_deref() else {
            return Ok(1);
        };
        let Some(rule) = Rule::new(*model, network)? else {
            return Ok(1);
        };
        let reach = rule.local_reach();
        let (program, placement) = (self.replay.program, &self.replay.placement);
        let shared = Shared::new(program, placement, network, rule)?;
        let division = self.division(&shared, reach);
        Ok(division.map_or(1, |division| division.parts()))
    }

    /// Division of the network under a model of this reach; `None` if it cannot be divided. Threads can solve parts only if
    /// every send is caused by an arrival: no rank waits for a message to leave, and nothing but the model limits ranks and
    /// messages.
    fn division(&self, shared: &Shared, reach: Option<Reach>) -> Option<Division> {
        let Replay { threads, costs, .. } = &self.replay;
        if *threads < 2
            || self.limits.is_some()
            || costs.has_rendezvous()
            || !self.replay.program.accesses().is_empty()
        {
            return None;
        }
        // Paths alternate between nodes and inside a node; only the former count.
        let between = costs.paths.iter().step_by(2);
        let look_ahead = LookAhead {
            overhead: between.clone().map(PathCosts::least_sending).min()?,
            latency: between.map(|path| path.latency).min()?,
        };
        shared.division(reach?, look_ahead, *threads)
    }

    /// Solves parts of the network in parallel; `None` if that fails and one thread has to find the cause.
    fn side_by_side<O: Observer>(
        &self,
        observer: &mut O,
        shared: &Shared,
        division: &Division,
    ) -> Result<Option<Outcome>, SimulateError> {
        let Some(SharedNetwork { network, model, .. }) = self.shared.as_deref() else {
            return Ok(None);
        };
        let mut parts = Vec::with_capacity(division.parts());
        while parts.len() < division.parts()
            && let Some(rule) = Rule::new(*model, network)?
        {
            parts.push(shared.again(rule));
        }
        let outcome = side_by_side(parts, division, self.replay.threads, |parted| {
            self.replay.through(observer, parted)
        });
        match outcome {
            Err(SimulateError::Sharing(_)) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    fn through<O: Observer, T: Transit>(
        &self,
        observer: &mut O,
        mut transit: T,
    ) -> Result<Outcome, SimulateError> {
        match &self.limits {
            None => self.replay.through(observer, &mut transit),
            Some(links) => contention::run(&self.replay, links, observer, &mut transit),
        }
    }

    /// Latency that the cables of the topology add to each message, indexed by slot, on the route of the first message
    /// between its nodes; empty without such latency.
    pub fn cable_latencies(&self) -> Vec<Time> {
        let Some(SharedNetwork { network, .. }) = self.shared.as_deref() else {
            return Vec::new();
        };
        // The replay itself fails on a node without a place in the topology.
        cable_latencies(self.replay.program, &self.replay.placement, network).unwrap_or_default()
    }

    /// Replay of the program without contention, for its costs.
    pub fn free(&self) -> &Replay<'a> {
        &self.replay
    }
}

/// The network as seen by a model, and the model that the replay uses there.
fn as_followed(
    program: &Program,
    network: &Network,
    model: Model,
) -> Result<(Network, Model), SimulateError> {
    Ok(match transient_windows(model, network)? {
        Some(windows) => {
            let usual = Bytes(program.bytes().0 / u64::from(program.messages()).max(1));
            (network.in_trains(windows, usual), Model::Packet)
        }
        None => (network.seen_by(model).into_owned(), model),
    })
}

/// Links and buses that messages also wait for under a model; `None` if there are enough. Packets queue at interfaces and
/// switches instead of waiting for links and buses between nodes.
fn limits(
    program: &Program,
    network: &Network,
    placement: &Placement,
    model: Model,
) -> Option<Box<Links>> {
    let (mut network, mut placement) = (Cow::Borrowed(network), Cow::Borrowed(placement));
    if model == Model::Packet {
        let machine = &mut network.to_mut().machine;
        machine.buses = 0;
        for site in &mut machine.further_sites {
            site.buses = 0;
        }
        placement = Cow::Owned(placement.into_owned().without_links());
    }
    contention::is_needed(&network, &placement)
        .then(|| Box::new(Links::new(program, &network, &placement)))
}

#[cfg(test)]
mod tests;
