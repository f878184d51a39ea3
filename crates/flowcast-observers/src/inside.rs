//! Messages that stay inside nodes, and their cost.

use flowcast_network::machine::inside::InsideSource;
use flowcast_program::{access::size_of, opcodes::Op, program::Program};
use flowcast_replay::{loggops::sends::Sends, placement::Placement};
use flowcast_units::{Bytes, Rank, Time};

/// The messages between ranks of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InsideTraffic {
    /// Source of their cost.
    pub source: InsideSource,
    /// Number of messages; 0 if only the formula of a collective has a part inside nodes.
    pub messages: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Sum of the times that each message takes alone, `latency + size/bandwidth`.
    pub time: Time,
}

impl InsideTraffic {
    /// Traffic of a program; `None` if nothing happens between ranks of one node.
    pub fn of_program(program: &Program, placement: &Placement) -> Option<InsideTraffic> {
        let mut traffic = InsideTraffic::none(placement);
        let may_stay =
            placement.is_shared() || program.has_self_messages() || !program.accesses().is_empty();
        for rank in Rank::all(program.streams()).filter(|_| may_stay) {
            for (_, op) in program.ops(rank) {
                let (to, size) = match op {
                    Op::Send { class, slot } => (program.receiver(slot), program.class(class).size),
                    Op::Access(access) => {
                        let access = program.access(access);
                        let (Some(target), Some(size)) = (access.target(), size_of(access)) else {
                            continue;
                        };
                        (target, size)
                    }
                    _ => continue,
                };
                traffic.add(placement, rank, to, size);
            }
        }
        (traffic.messages > 0 || shares_collectives(program, placement)).then_some(traffic)
    }

    /// Traffic of a schedule whose ranks are placed; `None` if no message stays inside a node.
    pub fn of_schedule(sends: &Sends<'_>, placement: &Placement) -> Option<InsideTraffic> {
        let mut traffic = InsideTraffic::none(placement);
        for (from, message) in sends.all() {
            traffic.add(placement, from, message.to, message.size);
        }
        (traffic.messages > 0).then_some(traffic)
    }

    /// Traffic of `times` repetitions.
    #[must_use]
    pub fn times(self, times: u64) -> InsideTraffic {
        let messages = self.messages.saturating_mul(times);
        let bytes = Bytes(self.bytes.0.saturating_mul(times));
        InsideTraffic {
            messages,
            bytes,
            time: self.time * times as f64,
            ..self
        }
    }

    /// Sum of both, on the same nodes.
    #[must_use]
    pub fn and(self, other: InsideTraffic) -> InsideTraffic {
        let messages = self.messages.saturating_add(other.messages);
        let bytes = Bytes(self.bytes.0.saturating_add(other.bytes.0));
        InsideTraffic {
            messages,
            bytes,
            time: self.time + other.time,
            ..self
        }
    }

    fn none(placement: &Placement) -> InsideTraffic {
        let source = InsideSource::from_groups(placement.groups());
        InsideTraffic {
            source,
            messages: 0,
            bytes: Bytes(0),
            time: Time::ZERO,
        }
    }

    fn add(&mut self, placement: &Placement, from: Rank, to: Rank, size: Bytes) {
        if placement.node(from) == placement.node(to) {
            self.messages += 1;
            self.bytes.0 = self.bytes.0.saturating_add(size.0);
            self.time += placement.group(from).inside().time_for(size);
        }
    }
}

/// `true` if ranks of one node take part in a collective that a formula carries out.
fn shares_collectives(program: &Program, placement: &Placement) -> bool {
    let shares_node = |members: &[Rank]| {
        let mut nodes: Vec<_> = members.iter().map(|rank| placement.node(*rank)).collect();
        nodes.sort_unstable();
        nodes.windows(2).any(|pair| pair[0] == pair[1])
    };
    let mut used: Vec<u32> = program
        .calls()
        .iter()
        .map(|call| call.communicator)
        .collect();
    used.sort_unstable();
    used.dedup();
    let communicators = used
        .iter()
        .map(|communicator| &program.communicator(*communicator).members);
    placement.is_shared()
        && communicators
            .filter(|members: &&Vec<Rank>| {
                members.iter().all(|rank| rank.index() < program.ranks())
            })
            .any(|members| shares_node(members))
}
