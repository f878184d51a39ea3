//! Costs of a schedule's messages, and the messages that share the network.
//!
//! Without a placement, every message travels as in LogGOPSim. With a placement, messages inside a node have the node's
//! latency and bandwidth and use no interface. With a sharing model, messages between nodes are flows: they spend `L`, then
//! their bytes move at the rate that the model assigns to them (`(s-1)G` alone). The time of a flow is not charged again:
//! interfaces rest for `g` only, and the receiver's processor is busy for `o` only, once the last byte has arrived. `o`, `g`
//! and the rule for messages above `S` are unchanged.

use super::Loggops;
use crate::{
    SimulateError,
    costs::ClassCost,
    packet_transit::Packets,
    placement::Placement,
    transit::{Delivery, Departure, Progress, Shared, Transit},
};
use flowcast_network::{
    machine::inside::InsideNode,
    network::Network,
    sharing::{SharingError, model::Model},
};
use flowcast_program::{
    schedule::{Operation, Schedule},
    slot::Slot,
};
use flowcast_traffic::flows::traffic::Rule;
use flowcast_units::{Bytes, Rank, Time, TimePerByte};

/// Mapping of a schedule's ranks to nodes, and the network that their messages share.
#[derive(Debug, Clone, Copy)]
pub struct PlacedCosts<'a> {
    /// Mapping of the ranks to nodes.
    pub placement: &'a Placement,
    /// Network that messages between nodes share, and the model of sharing; `None` if they do not share it.
    pub sharing: Option<(&'a Network, Model)>,
}

/// Costs of one message.
#[derive(Debug, Clone, Copy)]
pub struct Travel {
    /// Time after the sender's overhead that does not depend on the bandwidth.
    pub latency: Time,
    /// Time of its bytes without other messages.
    pub bytes: Time,
    /// Time for which the message occupies each of the two interfaces: the gap, then the bytes; `None` if it uses no
    /// interface.
    pub interface: Option<(Time, Time)>,
    /// Time of the bytes on the receiver's processor, in addition to `o`.
    pub on_receiver: Time,
    /// `true` if the message is a flow.
    pub shares: bool,
}

/// Costs of all messages.
#[derive(Debug, Clone, Copy)]
pub struct LogGopsCosts<'a> {
    /// LogGOPS parameters of messages between nodes.
    pub parameters: Loggops,
    /// Mapping and sharing; `None` if they do not matter.
    pub placed: Option<PlacedCosts<'a>>,
}

impl From<Loggops> for LogGopsCosts<'_> {
    fn from(parameters: Loggops) -> Self {
        LogGopsCosts {
            parameters,
            placed: None,
        }
    }
}

impl LogGopsCosts<'_> {
    /// `true` if every message travels as in LogGOPSim.
    pub(crate) fn are_plain(&self) -> bool {
        self.placed
            .as_ref()
            .is_none_or(|placed| placed.sharing.is_none() && !placed.placement.is_shared())
    }

    /// Costs of a message between two ranks.
    pub fn travel(&self, from: Rank, to: Rank, size: Bytes) -> Travel {
        let Loggops { latency, gap, .. } = self.parameters;
        let bytes = self.parameters.bytes_time(size);
        let all = Travel {
            latency,
            bytes,
            interface: Some((gap, bytes)),
            on_receiver: bytes,
            shares: false,
        };
        let Some(PlacedCosts { placement, sharing }) = self.placed else {
            return all;
        };
        if placement.node(from) == placement.node(to) {
            let InsideNode { latency, rate } = placement.group(from).inside();
            let bytes = TimePerByte::from_rate(rate).time_for(Bytes(size.0.saturating_sub(1)));
            return Travel {
                latency,
                bytes,
                interface: None,
                on_receiver: Time::ZERO,
                shares: false,
            };
        }
        match sharing {
            Some(_) => Travel {
                interface: Some((gap, Time::ZERO)),
                on_receiver: Time::ZERO,
                shares: true,
                ..all
            },
            None => all,
        }
    }
}

/// The network, shared by rates or by queues of packets.
enum CostsSharing {
    Rates(Box<Shared>),
    Packets(Box<Packets>),
}

/// The costs, and the network if messages share it.
pub struct FlowCarrier<'a> {
    /// Costs of each message without other messages.
    pub costs: LogGopsCosts<'a>,
    network: Option<CostsSharing>,
}

impl<'a> FlowCarrier<'a> {
    /// Creates the carrier for the messages of a schedule.
    ///
    /// # Errors
    /// Errors of the sharing model and of its fabric.
    pub fn new(
        schedule: &Schedule,
        costs: LogGopsCosts<'a>,
    ) -> Result<FlowCarrier<'a>, SimulateError> {
        let Some(PlacedCosts {
            placement,
            sharing: Some((network, model)),
        }) = costs.placed
        else {
            return Ok(FlowCarrier {
                costs,
                network: None,
            });
        };
        let bases = schedule.bases();
        let sends = |rank: Rank| {
            let nodes = schedule.graphs[rank].nodes.iter().zip(bases[rank]..);
            nodes.filter_map(|(node, slot)| match node.operation {
                Operation::Send { to, .. } => Some((Slot(slot), to)),
                Operation::Recv { .. } | Operation::Calc(_) => None,
            })
        };
        let slots = bases[schedule.ranks()] as usize;
        let ranks = schedule.ranks();
        let network = match Rule::new(model, network)? {
            Some(rule) => {
                let shared = Shared::between((ranks, slots), placement, sends, (network, rule))?;
                CostsSharing::Rates(Box::new(shared))
            }
            None => {
                let mut network = network.seen_by(model).into_owned();
                network.nic.latency = costs.parameters.latency;
                let all = Rank::all(ranks)
                    .flat_map(|rank| sends(rank).map(move |(slot, to)| (slot, rank, to)));
                CostsSharing::Packets(Box::new(Packets::between(slots, placement, all, &network)?))
            }
        };
        Ok(FlowCarrier {
            costs,
            network: Some(network),
        })
    }

    /// Starts a flow at `start`.
    pub(crate) fn depart(&mut self, slot: Slot, size: Bytes, start: Time, travel: Travel) {
        let Travel { latency, bytes, .. } = travel;
        let cost = ClassCost {
            delay: latency + bytes,
            bytes,
            ..ClassCost::default()
        };
        let departure = Departure {
            slot,
            start,
            size,
            cost,
            rts: None,
            latency,
            ends: None,
        };
        match &mut self.network {
            Some(CostsSharing::Rates(shared)) => shared.depart(departure),
            Some(CostsSharing::Packets(packets)) => packets.depart(departure),
            None => {}
        }
    }

    /// Returns the next flow whose last byte arrives, up to `limit`.
    pub fn deliver(&mut self, limit: Option<Time>) -> Result<Option<Delivery>, SharingError> {
        loop {
            let progress = match &mut self.network {
                Some(CostsSharing::Rates(shared)) => shared.deliver(limit)?,
                Some(CostsSharing::Packets(packets)) => packets.deliver(limit)?,
                None => None,
            };
            match progress {
                Some(Progress::Arrived(delivery)) => return Ok(Some(delivery)),
                // Senders of a schedule continue when their overhead is over.
                Some(Progress::Held { .. } | Progress::Met(_)) => {}
                None => return Ok(None),
            }
        }
    }
}
