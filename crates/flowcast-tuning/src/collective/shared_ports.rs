//! Slowdown of messages by other messages of the same node or group that are sent at the same time.
//!
//! Ranks execute their steps at about the same time. Messages that the ranks of a node send in the same turn share its
//! interface, and messages that leave a group of switches share the links out of the group.

use super::plan::{CollectivePlan, PlannedMessage};
use flowcast_place::rank_place::{JoinLevel, RankPlace};

/// Largest number of places times turns for which the bytes of all pairs are stored, even of pairs without messages.
const FEW: usize = 1 << 20;

/// Factors on the time at the port, indexed by message. `None` if nothing is shared.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct SharedPorts {
    stretches: Option<Vec<f32>>,
}

impl SharedPorts {
    /// Computes the factors for messages of the given sizes. `group_links` is the capacity of the links out of a group, in
    /// multiples of a node's interface; infinite if the links are no limit.
    pub(crate) fn new(
        plan: &CollectivePlan,
        bytes: &[u64],
        places: &[RankPlace],
        group_links: f64,
    ) -> SharedPorts {
        let nodes = 1 + places.iter().map(|place| place.node).max().unwrap_or(0) as usize;
        let groups = 1 + places.iter().map(|place| place.group).max().unwrap_or(0) as usize;
        // The port of a rank already serializes the messages that this rank alone sends or receives.
        let shares_nodes = nodes < places.len();
        if !shares_nodes && group_links.is_infinite() {
            return SharedPorts::default();
        }
        let turns = 1 + plan
            .messages
            .iter()
            .map(|message| message.turn)
            .max()
            .unwrap_or(0) as usize;
        let ends =
            |message: &PlannedMessage| (places[message.from as usize], places[message.to as usize]);
        let loads = |count: usize, place: &dyn Fn(&PlannedMessage) -> u32| {
            TurnLoads::new(count, turns, &plan.messages, place)
        };
        let mut own = loads(places.len(), &|message| message.from);
        let mut out = loads(nodes, &|message| ends(message).0.node);
        let mut into = loads(nodes, &|message| ends(message).1.node);
        let mut up = loads(groups, &|message| ends(message).0.group);
        let mut down = loads(groups, &|message| ends(message).1.group);
        for message in &plan.messages {
            let (from, to) = ends(message);
            let (turn, bytes) = (message.turn as usize, bytes[message.size as usize] as f32);
            let level = from.level(to);
            if level != JoinLevel::Node {
                own.add(message.from, turn, bytes);
                out.add(from.node, turn, bytes);
                into.add(to.node, turn, bytes);
            }
            if level == JoinLevel::Global {
                up.add(from.group, turn, bytes);
                down.add(to.group, turn, bytes);
            }
        }
        let links = group_links as f32;
        SharedPorts {
            stretches: Some(
                plan.messages
                    .iter()
                    .map(|message| {
                        let (from, to) = ends(message);
                        let turn = message.turn as usize;
                        let own = own.at(message.from, turn);
                        let level = from.level(to);
                        if level == JoinLevel::Node || own <= 0.0 {
                            return 1.0;
                        }
                        let mut most = match shares_nodes {
                            true => out.at(from.node, turn).max(into.at(to.node, turn)),
                            false => own,
                        };
                        if level == JoinLevel::Global {
                            most = most
                                .max(up.at(from.group, turn) / links)
                                .max(down.at(to.group, turn) / links);
                        }
                        (most / own).max(1.0)
                    })
                    .collect(),
            ),
        }
    }

    /// Factor of a message.
    pub(super) fn stretch(&self, message: u32) -> f64 {
        self.stretches
            .as_ref()
            .map_or(1.0, |stretches| f64::from(stretches[message as usize]))
    }
}

/// Number of bytes of each place in each turn.
struct TurnLoads {
    turns: usize,
    /// Sorted indices of the places and turns that have messages, if these are a small part of all; empty otherwise.
    known: Vec<usize>,
    bytes: Vec<f32>,
}

impl TurnLoads {
    fn new(
        places: usize,
        turns: usize,
        messages: &[PlannedMessage],
        place: &dyn Fn(&PlannedMessage) -> u32,
    ) -> TurnLoads {
        let mut known = Vec::new();
        if places * turns > FEW.max(4 * messages.len()) {
            known.extend(
                messages
                    .iter()
                    .map(|message| place(message) as usize * turns + message.turn as usize),
            );
            known.sort_unstable();
            known.dedup();
        }
        let count = if known.is_empty() {
            places * turns
        } else {
            known.len()
        };
        TurnLoads {
            turns,
            known,
            bytes: vec![0.0; count],
        }
    }

    fn index(&self, place: u32, turn: usize) -> usize {
        let index = place as usize * self.turns + turn;
        match self.known[..] {
            [] => index,
            _ => self.known.partition_point(|known| *known < index),
        }
    }

    fn add(&mut self, place: u32, turn: usize, bytes: f32) {
        let index = self.index(place, turn);
        self.bytes[index] += bytes;
    }

    fn at(&self, place: u32, turn: usize) -> f32 {
        self.bytes[self.index(place, turn)]
    }
}
