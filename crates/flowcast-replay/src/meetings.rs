//! Detection of messages that meet at an interface.
//!
//! If no messages meet, a sharing model leaves every message its full rate, and the walk without contention gives the same
//! times at a small fraction of the cost. The walk itself shows this: an observer records the intervals in which each
//! interface sends or receives, and compares them.

use std::collections::HashMap;

use crate::{
    SimulateError,
    observer::{Observer, Sent},
    walk::Replay,
};
use flowcast_program::slot::Slot;
use flowcast_units::{Node, Rank, Time};

/// Maximum overlap that counts as rounding.
const TOLERANCE: Time = Time::from_nanos(1e-3);

/// `true` if one interface ever sends or receives two messages between nodes at the same time, in a replay without
/// contention. One-sided transfers are ignored.
///
/// # Errors
/// The same as for [`Replay::run`].
pub fn messages_meet(replay: &Replay<'_>) -> Result<bool, SimulateError> {
    let nodes = replay.placement.nodes();
    let mut meetings = Meetings {
        replay,
        sending: vec![Vec::new(); nodes],
        receiving: vec![Vec::new(); nodes],
        senders: HashMap::new(),
        met: false,
    };
    replay.observed(&mut meetings)?;
    Ok(meetings.met
        || meetings
            .sending
            .into_iter()
            .chain(meetings.receiving)
            .any(overlap))
}

/// Intervals in which an interface was busy in one direction: starts and ends.
type Busy = Vec<(Time, Time)>;

struct Meetings<'a> {
    replay: &'a Replay<'a>,
    sending: Vec<Busy>,
    receiving: Vec<Busy>,
    /// Sender of each message that waits for its receiver, by slot.
    senders: HashMap<Slot, Rank>,
    met: bool,
}

impl Meetings<'_> {
    fn carried(&mut self, from: Rank, slot: Slot, left: Time, arrival: Time) {
        let Replay {
            program,
            placement,
            costs,
            route_of,
            ..
        } = self.replay;
        let ends = [placement.node(from), placement.node(program.receiver(slot))];
        if ends[0] == ends[1] {
            return;
        }
        let route = route_of
            .get(slot.index())
            .map_or(0, |route| usize::from(*route));
        let busy = (left + costs.paths[route].latency, arrival);
        if busy.0 < busy.1 {
            self.met |=
                add(&mut self.sending, ends[0], busy) | add(&mut self.receiving, ends[1], busy);
        }
    }
}

/// Adds an interval. Returns `true` if it overlaps the one added before it, in which case no further intervals are needed.
fn add(all: &mut [Busy], node: Node, busy: (Time, Time)) -> bool {
    let known = &mut all[node];
    let meets = known
        .last()
        .is_some_and(|last| busy.0 < last.1 - TOLERANCE && last.0 < busy.1 - TOLERANCE);
    known.push(busy);
    meets
}

fn overlap(mut busy: Busy) -> bool {
    busy.sort_unstable_by_key(|(start, _)| *start);
    busy.windows(2)
        .any(|pair| pair[1].0 < pair[0].1 - TOLERANCE)
}

impl Observer for Meetings<'_> {
    fn sent(
        &mut self,
        rank: Rank,
        slot: Slot,
        Sent {
            departs, arrival, ..
        }: Sent,
    ) {
        if self.met {
            return;
        }
        if arrival < Time::NEVER {
            self.carried(rank, slot, departs, arrival);
        } else {
            self.senders.insert(slot, rank);
        }
    }

    fn moved(&mut self, slot: Slot, start: Time, arrival: Time) {
        if let Some(from) = self.senders.remove(&slot).filter(|_| !self.met) {
            self.carried(from, slot, start, arrival);
        }
    }
}
