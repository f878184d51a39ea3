//! How fast every time of a replay changes with a parameter, beside the walk that computes the times.

use std::collections::HashMap;

use super::linear_costs::{CostSlopes, PathSlopes};
use flowcast_program::slot::Slot;
use flowcast_replay::{
    observer::{Gathered, Observer, ReceivedMessage, Sent},
    walk::Replay,
};
use flowcast_units::{Rank, Time};

/// Follows a walk and adds up slopes where it adds up times: of two times the slope of the later one counts, of equal times
/// that of the rank's own, which is as true.
pub(super) struct Slopes<'a> {
    replay: &'a Replay<'a>,
    costs: &'a CostSlopes,
    /// By rank: of its time.
    ranks: Vec<f64>,
    /// By rank: of when its interface is free.
    interfaces: Vec<f64>,
    /// By slot: of when its message arrives.
    arrivals: Vec<f64>,
    /// By slot, where senders wait for receivers: of when the receive was posted, then of when the sender may go on.
    handshakes: Vec<f64>,
    /// By slot, where ranks wait for messages to leave their interface: of when they have.
    lefts: Vec<f64>,
    /// By slot: messages whose sender waits for the receiver.
    pending: HashMap<Slot, PendingSlope>,
    /// By execution of a collective: when the last rank, or the data of the last, has come so far, and the slope of that.
    gathered: Vec<(Time, f64)>,
}

/// A message that is ready at the sender.
struct PendingSlope {
    class: u32,
    ready: Time,
    slope: f64,
}

impl<'a> Slopes<'a> {
    pub(super) fn new(replay: &'a Replay<'a>, costs: &'a CostSlopes) -> Slopes<'a> {
        let program = replay.program();
        let slots = program.messages() as usize;
        let waits = if replay.costs.has_rendezvous() {
            slots
        } else {
            0
        };
        Slopes {
            replay,
            costs,
            ranks: vec![0.0; program.streams()],
            interfaces: vec![0.0; program.streams()],
            arrivals: vec![0.0; slots],
            handshakes: vec![f64::NAN; waits],
            lefts: vec![0.0; if program.awaits_sends() { slots } else { 0 }],
            pending: HashMap::new(),
            gathered: vec![(Time::from_nanos(-1.0), 0.0); program.instances().len()],
        }
    }

    /// The slope of when a rank ended.
    pub(super) fn end(&self, rank: usize) -> f64 {
        self.ranks[rank]
    }

    #[inline(always)]
    fn path(&self, slot: Slot) -> &'a PathSlopes {
        &self.costs.paths[self
            .replay
            .route_of
            .get(slot.index())
            .map_or(0, |route| usize::from(*route))]
    }
}

impl Observer for Slopes<'_> {
    #[inline(always)]
    fn computed(&mut self, rank: Rank, start: Time, end: Time) {
        let speed = self.replay.costs.speeds[rank];
        if speed.is_finite() {
            let changes = self.costs.inverse_speeds[rank] * speed;
            self.ranks[rank] += (end - start).as_nanos() * changes;
        }
    }

    #[inline(always)]
    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        let path = self.path(slot);
        let cost = &path.classes[sent.class as usize];
        let at = rank.index();
        let waits = sent.start > sent.call;
        let begun = if waits || sent.departs > sent.end {
            self.interfaces[at]
        } else {
            self.ranks[at]
        };
        self.interfaces[at] = begun + cost.busy;
        let slope = begun + path.send_overhead;
        self.ranks[at] = path.send_overhead + if waits { begun } else { self.ranks[at] };
        if let Some(left) = self.lefts.get_mut(slot.index()) {
            *left = slope + cost.held;
        }
        if sent.arrival < Time::NEVER {
            self.arrivals[slot] = slope + cost.delay;
        } else {
            self.pending.insert(
                slot,
                PendingSlope {
                    class: sent.class,
                    ready: sent.departs,
                    slope,
                },
            );
        }
    }

    fn moved(&mut self, slot: Slot, start: Time, _arrival: Time) {
        let Some(PendingSlope {
            class,
            ready,
            slope,
        }) = self.pending.remove(&slot)
        else {
            return;
        };
        let path = self.path(slot);
        let posted = self.handshakes[slot];
        let start = match start > ready {
            false => slope,
            true if posted.is_nan() => {
                // A blocking receive, in which the receiver still is.
                self.ranks[self.replay.program().receiver(slot)] + path.recv_before
            }
            true => posted,
        };
        let cost = &path.classes[class as usize];
        self.arrivals[slot] = start + cost.delay;
        self.handshakes[slot] = start + cost.held;
    }

    fn posted(&mut self, slot: Slot, _time: Time) {
        if let Some(posted) = self.handshakes.get_mut(slot.index()) {
            *posted = self.ranks[self.replay.program().receiver(slot)];
        }
    }

    fn held(&mut self, rank: Rank, slot: Slot, _start: Time, _end: Time) {
        self.ranks[rank] = self.handshakes[slot];
    }

    fn left(&mut self, rank: Rank, slot: Slot, _start: Time, _end: Time) {
        self.ranks[rank] = self.lefts[slot];
    }

    #[inline(always)]
    fn received(&mut self, rank: Rank, slot: Slot, received: ReceivedMessage) {
        let path = self.path(slot);
        let own = &mut self.ranks[rank];
        let waited = received.taken > received.before;
        let taken = if waited {
            self.arrivals[slot]
        } else {
            *own + path.recv_before
        };
        *own = taken + path.recv_after;
    }

    fn gathered(&mut self, rank: Rank, gathered: Gathered) {
        let Gathered {
            instance,
            call,
            came,
            last,
            last_rank,
            end,
            ..
        } = gathered;
        let own = rank.index();
        if came > call {
            let communicator = self.replay.program().communicator_of(instance);
            self.ranks[own] += self
                .costs
                .startup(communicator, self.replay.costs.group_index(rank));
        }
        let latest = &mut self.gathered[instance as usize];
        if let Some(to_root) = self.costs.to_roots.get(&(instance, rank)) {
            self.ranks[own] += to_root;
            if latest.0 < end {
                *latest = (end, self.ranks[own]);
            }
            return;
        }
        // Whoever came last has not left before the first to leave is observed, or was observed when it came.
        if latest.0 < last {
            *latest = (last, self.ranks[last_rank]);
        }
        if end > came {
            self.ranks[own] = latest.1 + self.costs.collectives[instance as usize];
        }
    }
}
