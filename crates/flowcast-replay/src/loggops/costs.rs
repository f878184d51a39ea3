//! What the messages of a schedule cost, and which of them share the network.
//!
//! Without a placement every message travels as LogGOPSim has it. With one, messages inside a node take the node's latency
//! and bandwidth and no interface; with a sharing model those between nodes are flows: `L` and then their bytes, alone
//! `(s-1)G`, at the rate that the model leaves them. What a flow takes is not charged again: interfaces rest `g` only,
//! and the receiver's processor is busy for `o` only, once the last byte is there. `o`, `g` and the rule for messages
//! above `S` stay what they are.

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

/// Where the ranks of a schedule run, and how their messages share the network.
#[derive(Debug, Clone, Copy)]
pub struct PlacedCosts<'a> {
    /// Which node each rank runs on.
    pub placement: &'a Placement,
    /// The network that messages between nodes share, and by which model, if they do.
    pub sharing: Option<(&'a Network, Model)>,
}

/// What one message costs.
#[derive(Debug, Clone, Copy)]
pub struct Travel {
    /// From the end of the sender's overhead on, what no bandwidth would shorten.
    pub latency: Time,
    /// The time of its bytes, alone.
    pub bytes: Time,
    /// How long either interface is taken, from one start to the next: rest, then bytes; none if it takes no interface.
    pub interface: Option<(Time, Time)>,
    /// What the bytes take of the receiver's processor, beside `o`.
    pub on_receiver: Time,
    /// Whether it is a flow.
    pub shares: bool,
}

/// The costs of all messages.
#[derive(Debug, Clone, Copy)]
pub struct LogGopsCosts<'a> {
    /// LogGOPS parameters of messages between nodes.
    pub parameters: Loggops,
    /// Where ranks run, if that matters.
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
    /// Whether every message travels as LogGOPSim has it.
    pub(crate) fn are_plain(&self) -> bool {
        self.placed
            .as_ref()
            .is_none_or(|placed| placed.sharing.is_none() && !placed.placement.is_shared())
    }

    /// Of a message between two ranks.
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

/// The network, shared by rates or by queues.
enum CostsSharing {
    Rates(Box<Shared>),
    Packets(Box<Packets>),
}

/// The costs, and the network where it is shared.
pub struct FlowCarrier<'a> {
    /// What each message costs alone.
    pub costs: LogGopsCosts<'a>,
    network: Option<CostsSharing>,
}

impl<'a> FlowCarrier<'a> {
    /// For the messages of a schedule.
    ///
    /// # Errors
    /// Those of the sharing model and of its fabric.
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

    /// A flow begins at `start`.
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

    /// The next flow whose last byte is there, up to a time.
    pub fn deliver(&mut self, limit: Option<Time>) -> Result<Option<Delivery>, SharingError> {
        loop {
            let progress = match &mut self.network {
                Some(CostsSharing::Rates(shared)) => shared.deliver(limit)?,
                Some(CostsSharing::Packets(packets)) => packets.deliver(limit)?,
                None => None,
            };
            match progress {
                Some(Progress::Arrived(delivery)) => return Ok(Some(delivery)),
                // Senders of a schedule go on when their overhead is over.
                Some(Progress::Held { .. } | Progress::Met(_)) => {}
                None => return Ok(None),
            }
        }
    }
}
