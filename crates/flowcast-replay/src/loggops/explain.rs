//! What the communication of a schedule cost, by rank and by kind of call.
//!
//! | time of a rank's processor | cause |
//! |---|---|
//! | `o` of a send or of a message taken | overhead |
//! | `(s-1)G` of a message taken | bandwidth |
//! | idle until its sending or receiving interface is free again (`g`, `G`) | bandwidth |
//! | idle, the message that ends it was not sent yet | late sender |
//! | idle, that message was on its way (`L`) | latency |
//! | idle, that message was slowed down by others, where they share the network | conflict |
//! | a sender above `S`, its message on the way | latency |
//! | the same, until the receiver has taken and asked for it | late receiver |

use std::cmp::Reverse;

use super::sends::{Message, Sends};
use super::ways::{Costs, Travel};
use crate::explain::{Call, Cost, Explanation, Site, Sums};
use crate::journal::Function;
use crate::outcome::Outcome;
use crate::record::{Observer, Received, Sent};

/// Replays by `run`, which is given the observer, and says what communication cost.
///
/// # Errors
/// Those of `run`.
pub fn explain<'a, E>(
    sends: &'a Sends<'a>,
    costs: Costs<'a>,
    run: impl FnOnce(&mut Explainer<'a>) -> Result<Outcome, E>,
) -> Result<(Outcome, Explanation), E> {
    let mut explainer = Explainer {
        overhead: costs.parameters.overhead.as_nanos(),
        costs,
        flights: vec![Flight::default(); sends.count()],
        messages: sends,
        ranks: vec![Sums::default(); sends.ranks()],
        sends: Sums::default(),
        receives: Sums::default(),
    };
    let outcome = run(&mut explainer)?;
    let site = |function| Site { function: None, caller: None, line: None, call: Call::Function(function) };
    let mut sites = vec![(site(Function::Send), explainer.sends), (site(Function::Recv), explainer.receives)];
    sites.sort_by_key(|(_, sums)| Reverse(sums.total()));
    Ok((outcome, Explanation { ranks: explainer.ranks, sites }))
}

/// Takes account while a schedule is replayed.
pub struct Explainer<'a> {
    overhead: f64,
    costs: Costs<'a>,
    messages: &'a Sends<'a>,
    /// By number among all sends.
    flights: Vec<Flight>,
    ranks: Vec<Sums>,
    sends: Sums,
    receives: Sums,
}

/// A message: when its first byte left and its last one was there.
#[derive(Debug, Clone, Copy, Default)]
struct Flight {
    ready: f64,
    arrival: f64,
}

impl Explainer<'_> {
    fn travel(&self, slot: u32) -> Travel {
        let from = self.messages.sender(slot);
        let Message { to, size, .. } = self.messages.sent(from, slot);
        self.costs.travel(from, to, size)
    }

    fn flight(&mut self, slot: u32) -> &mut Flight {
        &mut self.flights[self.messages.number(slot) as usize]
    }
}

impl Observer for Explainer<'_> {
    fn sent(&mut self, rank: u32, slot: u32, Sent { call, start, end, arrival, .. }: Sent) {
        *self.flight(slot) = Flight { ready: end, arrival };
        for (cost, nanos) in [(Cost::Bandwidth, start - call), (Cost::Overhead, end - start)] {
            self.ranks[rank as usize].add(cost, nanos);
            self.sends.add(cost, nanos);
        }
    }

    fn moved(&mut self, slot: u32, _start: f64, arrival: f64) {
        self.flight(slot).arrival = arrival;
    }

    fn held(&mut self, rank: u32, slot: u32, start: f64, end: f64) {
        let latency = self.travel(slot).latency.as_nanos();
        let there = (self.flight(slot).ready + latency).clamp(start, end);
        for (cost, nanos) in [(Cost::Latency, there - start), (Cost::LateReceiver, end - there)] {
            self.ranks[rank as usize].add(cost, nanos);
            self.sends.add(cost, nanos);
        }
    }

    fn received(&mut self, rank: u32, slot: u32, Received { call, taken, end, .. }: Received) {
        let Flight { ready, arrival } = *self.flight(slot);
        let Travel { latency, bytes, shares, .. } = self.travel(slot);
        let taken = taken.max(call);
        let left = ready.clamp(call, taken);
        let moves = ready + latency.as_nanos();
        let there = moves.clamp(left, taken);
        // A flow that was waited for while it moved lost its share of the time to others.
        let lost = 1.0 - bytes.as_nanos() / (arrival - moves).max(bytes.as_nanos());
        let conflict = if shares && lost > 1e-9 { (arrival.min(taken) - there).max(0.0) * lost } else { 0.0 };
        let overhead = self.overhead.min(end - taken);
        let costs = [
            (Cost::LateSender, left - call),
            (Cost::Latency, there - left),
            (Cost::Conflict, conflict),
            (Cost::Bandwidth, taken - there - conflict),
            (Cost::Overhead, overhead),
            (Cost::Bandwidth, end - taken - overhead),
        ];
        for (cost, nanos) in costs {
            self.ranks[rank as usize].add(cost, nanos);
            self.receives.add(cost, nanos);
        }
    }
}
