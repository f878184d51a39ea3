//! How messages get from sender to receiver in a replay: undisturbed, or sharing the network with the others.
//!
//! A message is a flow: it departs when its sender's processor is through with it, spends its latency undisturbed,
//! and then moves at the rate that a [`RateModel`] leaves it among all that are under way (RR-5910 section 5.3,
//! Algorithm 1 of Zhu et al.). With max-min fairness this is what SimGrid's SMPI computes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::SimulateError;
use super::costs::{ClassCost, Rendezvous};
use super::outcome::Outcome;
use super::placement::Placement;
use super::record::{Observer, Recorder};
use super::replay::Replay;
use crate::cluster::flow::Flow;
use crate::cluster::racks::Racks;
use crate::model::network::Network;
use crate::model::sharing::fabric::{Fabric, Share};
use crate::model::sharing::flow_cuts::Strictness;
use crate::model::sharing::model::{Model, backbone_share, rate_model};
use crate::model::sharing::{RateModel, SharingError};
use crate::trace::program::Program;
use crate::trace::words::Op;
use crate::units::{Bytes, Rank, Time};

/// The way of messages between nodes.
pub trait Transit {
    /// Whether messages disturb each other; otherwise nothing below is ever called.
    const SHARED: bool;

    /// A message leaves its sender.
    fn depart(&mut self, departure: Departure);

    /// The next message to arrive, once no rank can go on without one.
    ///
    /// # Errors
    /// Those of the sharing model.
    fn deliver(&mut self) -> Result<Option<Delivery>, SharingError>;
}

/// A message that leaves its sender, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    /// Its slot.
    pub slot: u32,
    /// When its sender's processor was through with it.
    pub start: f64,
    /// What it would cost alone.
    pub cost: ClassCost,
    /// The part of the delay that is not shared.
    pub latency: f64,
}

/// A message that has arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delivery {
    /// Its slot.
    pub slot: u32,
    /// When it left.
    pub start: f64,
    /// When its last byte arrived.
    pub arrival: f64,
    /// When its last byte had left the sender.
    pub left: f64,
}

/// Messages do not disturb each other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Undisturbed;

impl Transit for Undisturbed {
    const SHARED: bool = false;

    fn depart(&mut self, _departure: Departure) {}

    fn deliver(&mut self) -> Result<Option<Delivery>, SharingError> {
        Ok(None)
    }
}

/// Messages share the links of a fabric.
pub struct Shared {
    fabric: Fabric,
    model: Box<dyn RateModel>,
    /// Messages whose latency is not over, by the time when it is.
    coming: BinaryHeap<Reverse<(Time, u32)>>,
    /// What is left of each message that has departed, by slot.
    passages: Vec<Passage>,
    /// Slots under way, ascending.
    active: Vec<usize>,
    stale: bool,
    now: f64,
    /// Messages that have arrived and were not yet asked for; the last is the next.
    arrived: Vec<Delivery>,
}

/// A message under way.
#[derive(Debug, Clone, Copy, Default)]
struct Passage {
    start: f64,
    latency: f64,
    /// Time that the rest takes at the whole rate.
    left: f64,
    share: f64,
    /// When `left` was true.
    since: f64,
}

impl Passage {
    fn end(&self) -> f64 {
        self.since + if self.left == 0.0 { 0.0 } else { self.left / self.share }
    }
}

impl Shared {
    /// For the messages of a program on placed ranks; racks share links of the capacity `backbone`.
    pub fn new(program: &Program, placement: &Placement, backbone: Option<Share>, model: Box<dyn RateModel>) -> Shared {
        let flows = flows_of(program, placement);
        Shared {
            fabric: Fabric::new(&flows, &Racks::default(), backbone),
            model,
            coming: BinaryHeap::new(),
            passages: vec![Passage::default(); flows.len()],
            active: Vec::new(),
            stale: false,
            now: 0.0,
            arrived: Vec::new(),
        }
    }

    /// Time of the next end, infinite if nothing is under way.
    fn next_end(&self) -> f64 {
        self.active.iter().map(|slot| self.passages[*slot].end()).fold(f64::INFINITY, f64::min)
    }

    /// Ends all messages whose last byte passes now; ends come before starts.
    fn end_messages(&mut self, now: f64) {
        let (passages, arrived) = (&self.passages, &mut self.arrived);
        let before = self.active.len();
        self.active.retain(|slot| {
            let passage = &passages[*slot];
            let ends = passage.end() <= now;
            if ends {
                let Passage { start, latency, .. } = *passage;
                arrived.push(Delivery { slot: *slot as u32, start, arrival: now, left: now - latency });
            }
            !ends
        });
        // The slot order of the caller, who takes from the end.
        self.arrived.reverse();
        self.stale |= self.active.len() != before;
    }

    fn start_messages(&mut self, now: f64) {
        while let Some(Reverse((time, slot))) = self.coming.peek().copied()
            && time.as_nanos() <= now
        {
            self.coming.pop();
            let at = self.active.partition_point(|other| *other < slot as usize);
            self.active.insert(at, slot as usize);
            self.passages[slot as usize].since = now;
            self.stale = true;
        }
    }

    /// Asks the model for new shares; a message's progress is settled only when its share changes.
    fn share_out(&mut self) -> Result<(), SharingError> {
        if !std::mem::take(&mut self.stale) || self.active.is_empty() {
            return Ok(());
        }
        let allocations = self.model.shares(&self.fabric, &self.active)?;
        for (slot, allocation) in self.active.iter().zip(allocations) {
            let passage = &mut self.passages[*slot];
            if passage.share != allocation.share.0 {
                passage.left = (passage.left - (self.now - passage.since) * passage.share).max(0.0);
                passage.since = self.now;
                passage.share = allocation.share.0;
            }
        }
        Ok(())
    }
}

impl Transit for Shared {
    const SHARED: bool = true;

    fn depart(&mut self, departure: Departure) {
        let Departure { slot, start, cost, latency } = departure;
        let left = (cost.delay - latency).max(0.0);
        self.passages[slot as usize] = Passage { start, latency, left, share: 0.0, since: start + latency };
        self.coming.push(Reverse((Time::from_nanos(start + latency), slot)));
    }

    fn deliver(&mut self) -> Result<Option<Delivery>, SharingError> {
        loop {
            if let Some(delivery) = self.arrived.pop() {
                return Ok(Some(delivery));
            }
            self.share_out()?;
            let start = self.coming.peek().map_or(f64::INFINITY, |Reverse((time, _))| time.as_nanos());
            let end = self.next_end();
            let next = start.min(end);
            if next == f64::INFINITY {
                return Ok(None);
            }
            self.now = next.max(self.now);
            if end <= start {
                self.end_messages(end);
            } else {
                self.start_messages(self.now);
            }
        }
    }
}

/// A program whose messages share the network by a model.
pub struct SharedReplay<'a> {
    program: &'a Program,
    network: Network,
    placement: Placement,
    model: Model,
    replay: Replay<'a>,
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
        let replay = Replay::new(program, network, placement.clone(), rendezvous)?;
        Ok(SharedReplay { program, network: network.clone(), placement, model, replay })
    }

    /// The same program without sharing, for its costs.
    pub fn free(&self) -> &Replay<'a> {
        &self.replay
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SimulateError::Deadlock`], [`SimulateError::Sharing`].
    pub fn run(&self) -> Result<Outcome, SimulateError> {
        self.replay.run_shared(&mut self.transit()?)
    }

    /// Runs and tells an observer what happens.
    ///
    /// # Errors
    /// As [`SharedReplay::run`].
    pub fn observed<O: Observer>(&self, observer: &mut O) -> Result<Outcome, SimulateError> {
        self.replay.through(observer, &mut self.transit()?)
    }

    /// Runs and keeps what happened.
    ///
    /// # Errors
    /// As [`SharedReplay::run`].
    pub fn record(&self) -> Result<(Outcome, Recorder), SimulateError> {
        self.replay.record_shared(&mut self.transit()?)
    }

    fn transit(&self) -> Result<Shared, SimulateError> {
        let model = rate_model(self.model, &self.network, Strictness::Extended)?.ok_or(SimulateError::PacketLevel)?;
        Ok(Shared::new(self.program, &self.placement, backbone_share(&self.network)?, model))
    }
}

/// The flow of each slot: only its ends matter here.
fn flows_of(program: &Program, placement: &Placement) -> Vec<Flow> {
    let nowhere =
        Flow { id: 0, src: placement.node(Rank(0)), dst: placement.node(Rank(0)), size: Bytes(0), start: Time::ZERO };
    let mut flows = vec![nowhere; program.messages() as usize];
    for rank in (0..program.ranks() as u32).map(Rank) {
        for (_, op) in program.ops(rank) {
            if let Op::Send { slot, .. } = op {
                let flow = &mut flows[slot as usize];
                flow.id = slot;
                flow.src = placement.node(rank);
                flow.dst = placement.node(program.receiver(slot));
            }
        }
    }
    flows
}
