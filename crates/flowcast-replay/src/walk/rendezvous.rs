//! Messages whose sender waits for its receiver.
//!
//! A transfer starts when both are there: the receive is posted and the sender's overhead is over. Where what they tell
//! each other takes the network ([`Transit::HANDSHAKES`]), the message departs when it is offered, and the transit comes
//! to terms with both; elsewhere this costs nothing, or what the network's rule for the transfer has.

use super::{Engine, PendingSend, RankState, Step, mark};
use crate::record::{Observer, Sent};
use crate::transit::{Departure, Offer, Transit, Wanted};

impl<O, T, const RENDEZVOUS: bool, const MANY_WAYS: bool> Engine<'_, O, T, RENDEZVOUS, MANY_WAYS>
where
    O: Observer,
    T: Transit,
{
    /// A receiver is ready for the message of a slot; a sender that waits for it starts the transfer.
    pub(super) fn post(&mut self, slot: u32, time: f64, looked: f64) {
        let before = std::mem::replace(&mut self.posted[slot as usize], time.to_bits());
        if T::HANDSHAKES && self.is_between_nodes(slot) {
            if before == mark::EMPTY {
                self.looked[slot as usize] = looked;
            } else {
                self.transit.want(slot, Wanted { since: time, looked });
            }
        } else if before != mark::EMPTY {
            let PendingSend { ready, class } = self.pending[before as u32 as usize];
            self.transfer(slot, class, ready, time);
        }
    }

    /// A rendezvous transfer starts: the receiver learns of its arrival, the sender of its release.
    fn transfer(&mut self, slot: u32, class: u32, ready: f64, posted: f64) {
        let path = self.path(slot);
        let cost = path.classes[class as usize];
        let start = if ready > posted { ready } else { posted };
        if T::SHARED && self.is_between_nodes(slot) {
            self.transit.depart(Departure {
                slot,
                start,
                size: self.program.classes()[class as usize].size,
                cost,
                offer: None,
                latency: path.latency,
                ends: None,
            });
            // A sender that is not held by the transfer itself need not wait for its end.
            if cost.held == 0.0 {
                self.release(slot, start);
            }
            return;
        }
        let arrival = start + cost.delay;
        self.observer.moved(slot, start, arrival);
        self.fill(slot, arrival);
        self.release(slot, start + cost.held);
    }

    /// The sender of a rendezvous message may go on from this time.
    fn release(&mut self, slot: u32, time: f64) {
        let before = std::mem::replace(&mut self.released[slot as usize], time.to_bits());
        if before != mark::EMPTY {
            self.ready.push(before as u32);
        }
    }

    /// The sender of a message may go on, if that holds it.
    pub(super) fn let_go(&mut self, slot: u32, time: f64) {
        if RENDEZVOUS && slot < self.program.messages() && !mark::is_time(self.released[slot as usize]) {
            self.release(slot, time);
        }
    }

    #[inline(never)]
    pub(super) fn send_rendezvous(&mut self, rank: u32, state: &mut RankState, class: u32, slot: u32) -> Step {
        let immediate = self.program.classes()[class as usize].mode.immediate;
        if !state.entered {
            self.start_rendezvous(rank, state, class, slot);
            if immediate {
                return Step::GoOn;
            }
            state.entered = true;
        }
        let step = self.until_released(rank, state, slot);
        state.entered = matches!(step, Step::Wait);
        step
    }

    fn start_rendezvous(&mut self, rank: u32, state: &mut RankState, class: u32, slot: u32) {
        let path = self.path(slot);
        let cost = path.classes[class as usize];
        let (call, start, ready) = state.begin_send(path.send_overhead, cost.busy);
        self.sends[rank as usize].push(slot);
        self.observer.sent(rank, slot, Sent { class, call, start, end: ready, arrival: f64::INFINITY });
        let posted = self.posted[slot as usize];
        if T::HANDSHAKES && self.is_between_nodes(slot) {
            self.offer(rank, slot, class, ready);
        } else if mark::is_time(posted) {
            self.transfer(slot, class, ready, f64::from_bits(posted));
        } else {
            self.posted[slot as usize] = mark::waiting(self.pending.len() as u32);
            self.pending.push(PendingSend { ready, class });
        }
    }

    /// Sender and receiver of a rendezvous message come to terms over the network.
    fn offer(&mut self, rank: u32, slot: u32, class: u32, ready: f64) {
        let path = self.path(slot);
        let posted = self.posted[slot as usize];
        let wanted =
            mark::is_time(posted).then(|| Wanted { since: f64::from_bits(posted), looked: self.looked[slot as usize] });
        if wanted.is_none() {
            self.posted[slot as usize] = mark::waiting(rank);
        }
        self.transit.depart(Departure {
            slot,
            start: ready,
            size: self.program.classes()[class as usize].size,
            cost: path.classes[class as usize],
            offer: Some(Offer { from: rank, to: self.program.receiver(slot).0, wanted }),
            latency: path.latency,
            ends: None,
        });
    }

    /// Waits until the sender of a slot may go on.
    fn until_released(&mut self, rank: u32, state: &mut RankState, slot: u32) -> Step {
        let bits = self.released[slot as usize];
        if !mark::is_time(bits) {
            self.released[slot as usize] = mark::waiting(rank);
            return Step::Wait;
        }
        let release = f64::from_bits(bits);
        if release > state.time {
            self.observer.held(rank, slot, state.time, release);
            state.blocked += release - state.time;
            state.time = release;
        }
        state.looked = state.time;
        Step::GoOn
    }

    pub(super) fn wait_send(&mut self, rank: u32, state: &mut RankState, ago: u32) -> Step {
        if !RENDEZVOUS {
            return Step::GoOn;
        }
        let sends = &self.sends[rank as usize];
        match (sends.len() as u32).checked_sub(ago + 1) {
            Some(index) => self.until_released(rank, state, sends[index as usize]),
            None => Step::GoOn,
        }
    }
}
