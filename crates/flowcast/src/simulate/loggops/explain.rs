//! What the communication of a schedule cost, by rank and by kind of call.
//!
//! | time of a rank's processor | cause |
//! |---|---|
//! | `o` of a send or of a message taken | overhead |
//! | `(s-1)G` of a message taken | bandwidth |
//! | idle until its sending or receiving interface is free again (`g`, `G`) | bandwidth |
//! | idle, the message that ends it was not sent yet | late sender |
//! | idle, that message was on its way (`L`) | latency |
//! | a sender above `S`, its message on the way | latency |
//! | the same, until the receiver has taken and asked for it | late receiver |

use std::cmp::Reverse;

use super::Loggops;
use crate::simulate::SimulateError;
use crate::simulate::explain::{Call, Cost, Explanation, Site, Sums};
use crate::simulate::journal::Function;
use crate::simulate::outcome::Outcome;
use crate::simulate::record::{Observer, Received, Sent};
use crate::trace::schedule::Schedule;

/// Runs a schedule and says what its communication cost.
///
/// # Errors
/// As [`super::run`].
pub fn explain(schedule: &Schedule, parameters: Loggops) -> Result<(Outcome, Explanation), SimulateError> {
    let operations = schedule.graphs.iter().map(|graph| graph.nodes.len()).sum();
    let mut explainer = Explainer {
        overhead: parameters.overhead.as_nanos(),
        latency: parameters.latency.as_nanos(),
        ready: vec![0.0; operations],
        ranks: vec![Sums::default(); schedule.ranks()],
        sends: Sums::default(),
        receives: Sums::default(),
    };
    let outcome = super::observed(schedule, parameters, &mut explainer)?;
    let site = |function| Site { function: None, caller: None, line: None, call: Call::Function(function) };
    let mut sites = vec![(site(Function::Send), explainer.sends), (site(Function::Recv), explainer.receives)];
    sites.sort_by_key(|(_, sums)| Reverse(sums.total()));
    Ok((outcome, Explanation { ranks: explainer.ranks, sites }))
}

struct Explainer {
    overhead: f64,
    latency: f64,
    /// When the first byte of each message left, by its send.
    ready: Vec<f64>,
    ranks: Vec<Sums>,
    sends: Sums,
    receives: Sums,
}

impl Observer for Explainer {
    fn sent(&mut self, rank: u32, slot: u32, Sent { call, start, end, .. }: Sent) {
        self.ready[slot as usize] = end;
        for (cost, nanos) in [(Cost::Bandwidth, start - call), (Cost::Overhead, end - start)] {
            self.ranks[rank as usize].add(cost, nanos);
            self.sends.add(cost, nanos);
        }
    }

    fn held(&mut self, rank: u32, slot: u32, start: f64, end: f64) {
        let there = (self.ready[slot as usize] + self.latency).clamp(start, end);
        for (cost, nanos) in [(Cost::Latency, there - start), (Cost::LateReceiver, end - there)] {
            self.ranks[rank as usize].add(cost, nanos);
            self.sends.add(cost, nanos);
        }
    }

    fn received(&mut self, rank: u32, slot: u32, Received { call, taken, end, .. }: Received) {
        let ready = self.ready[slot as usize];
        let taken = taken.max(call);
        let left = ready.clamp(call, taken);
        let there = (ready + self.latency).clamp(left, taken);
        let overhead = self.overhead.min(end - taken);
        let costs = [
            (Cost::LateSender, left - call),
            (Cost::Latency, there - left),
            (Cost::Bandwidth, taken - there),
            (Cost::Overhead, overhead),
            (Cost::Bandwidth, end - taken - overhead),
        ];
        for (cost, nanos) in costs {
            self.ranks[rank as usize].add(cost, nanos);
            self.receives.add(cost, nanos);
        }
    }
}
