//! Programs whose messages share the network by a model: the replay that carries them, and which limits of the machine are left
//! to the model.
//!
//! The closed loop of equal windows through lossless queues is followed as it is, in trains of packets: a message shorter than
//! a window passes the queues behind those before it, which rates that are shared from begin to end would miss.

use std::borrow::Cow;

use super::SimulateError;
use super::contention::{self, Contention};
use super::costs::Rendezvous;
use super::handshakes::Handshakes;
use super::observer::by_pointer::{ByPointer, Watch};
use super::observer::{Observer, Unobserved};
use super::outcome::Outcome;
use super::packet_transit::Packets;
use super::placement::Placement;
use super::transit::{Shared, Transit};
use crate::walk::Replay;
use flowcast_model::network::Network;
use flowcast_model::sharing::model::Model;
use flowcast_model::sharing::rates::transient_windows;
use flowcast_network::flows::traffic::Rule;
use flowcast_trace::program::Program;
use flowcast_units::Bytes;

/// A program whose messages share the network by a model.
pub struct SharedReplay<'a> {
    program: &'a Program,
    network: Network,
    placement: Placement,
    model: Model,
    seed: Option<u64>,
    host: Host<'a>,
}

/// By which rules ranks run beside the network.
enum Host<'a> {
    /// Nobody waits for anything but messages.
    Walk(Box<Replay<'a>>),
    /// Ranks wait for processors, messages for links and buses.
    Contention(Box<Contention<'a>>),
}

impl Host<'_> {
    fn through<O: Observer, T: Transit>(
        &self,
        observer: &mut O,
        mut transit: T,
    ) -> Result<Outcome, SimulateError> {
        match self {
            Host::Walk(replay) => replay.through(observer, &mut transit),
            Host::Contention(contention) => contention.through(observer, &mut transit),
        }
    }
}

impl<'a> SharedReplay<'a> {
    /// Computes the costs of all messages.
    ///
    /// # Errors
    /// As [`Replay::new`].
    pub fn new(
        program: &'a Program,
        network: &Network,
        placement: Placement,
        rendezvous: Rendezvous,
        model: Model,
    ) -> Result<SharedReplay<'a>, SimulateError> {
        let (network, model) = match transient_windows(model, network)? {
            Some(windows) => {
                let usual = Bytes(program.bytes().0 / u64::from(program.messages()).max(1));
                (network.in_trains(windows, usual), Model::Packet)
            }
            None => (network.seen_by(model).into_owned(), model),
        };
        let replay = Replay::new(program, &network, placement.clone(), rendezvous)?;
        let (machine, nodes) = limits(model, &network, &placement);
        let host = if contention::is_needed(&machine, &nodes) {
            Host::Contention(Box::new(Contention::limiting(replay, &machine, &nodes)))
        } else {
            Host::Walk(Box::new(replay))
        };
        Ok(SharedReplay {
            program,
            network,
            placement,
            model,
            seed: None,
            host,
        })
    }

    /// With random times of hosts, where messages go packet by packet.
    #[must_use]
    pub fn disturbed(self, seed: u64) -> SharedReplay<'a> {
        SharedReplay {
            seed: Some(seed),
            ..self
        }
    }

    /// The same program without sharing and without limits, for its costs.
    pub fn free(&self) -> &Replay<'a> {
        match &self.host {
            Host::Walk(replay) => replay,
            Host::Contention(contention) => contention.free(),
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`], [`SimulateError::Sharing`].
    pub fn run(&self) -> Result<Outcome, SimulateError> {
        self.through(&mut Unobserved)
    }

    /// Runs and tells an observer what happens.
    ///
    /// # Errors
    /// As [`SharedReplay::run`].
    pub fn observed<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        self.observed_by(observer)
    }

    fn observed_by(&self, observer: &mut dyn Watch) -> Result<Outcome, SimulateError> {
        self.through(&mut ByPointer(observer))
    }

    fn through<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        let SharedReplay {
            program,
            network,
            placement,
            model,
            seed,
            host,
        } = self;
        match Rule::of(*model, network)? {
            Some(rule) => {
                let shared = Shared::new(program, placement, network, rule)?;
                match self.free().costs.needs_polling() {
                    true => host.through(observer, Handshakes::above(shared)),
                    false => host.through(observer, shared),
                }
            }
            None => host.through(observer, Packets::new(program, placement, network, *seed)?),
        }
    }
}

/// What limits ranks and messages beside a model. Packets queue at interfaces and switches instead of waiting for links and
/// buses between nodes.
fn limits<'n>(
    model: Model,
    network: &'n Network,
    placement: &'n Placement,
) -> (Cow<'n, Network>, Cow<'n, Placement>) {
    if model != Model::Packet {
        return (Cow::Borrowed(network), Cow::Borrowed(placement));
    }
    let mut machine = network.clone();
    machine.machine.buses = 0;
    machine
        .machine
        .further_sites
        .iter_mut()
        .for_each(|site| site.buses = 0);
    (
        Cow::Owned(machine),
        Cow::Owned(placement.clone().without_links()),
    )
}

#[cfg(test)]
mod tests;
