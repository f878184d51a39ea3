//! Point-to-point calls, and what becomes of their messages.

use super::super::record::{Observer, Received, Sent};
use super::engine::Engine;
use super::messages::{Message, Purpose};
use super::pending::{Event, Kind, Lane};
use super::processors::Place;
use super::ranks::{Phase, RankState, Step};
use super::slots::{Release, Slot, state};
use super::ways::{Move, Way};

impl<O: Observer> Engine<'_, O> {
    #[inline(always)]
    fn way(&self, slot: u32) -> &Way {
        let way = if self.way_of.is_empty() { 0 } else { self.way_of[slot as usize] };
        &self.ways[usize::from(way)]
    }

    /// A send: overhead first, then the message is handed to the network or waits for its receiver.
    #[inline(always)]
    pub fn send(&mut self, rank: u32, class: u32, slot: u32) -> Step {
        let now = self.pending.now();
        if self.ranks[rank as usize].phase == Phase::Begin {
            let way = self.way(slot);
            let (overhead, busy) = (way.send, way.moves[class as usize].busy);
            let state = &mut self.ranks[rank as usize];
            let start = if state.interface_free > now { state.interface_free } else { now };
            state.call = now;
            state.before = start;
            state.blocked += start - now;
            state.interface_free = start + busy;
            state.overhead += overhead.nanos;
            if start > now {
                state.until = start + overhead.nanos;
                state.lane = Lane::NONE;
                state.phase = Phase::StartUp;
                return Step::Spend;
            }
            if overhead.nanos > 0.0 {
                return self.start_up(rank, overhead);
            }
        }
        let RankState { call, before: start, .. } = self.ranks[rank as usize];
        self.observer.sent(rank, slot, Sent { class, call, start, end: now, arrival: f64::INFINITY });
        let Slot { receiver, state } = self.slots.all[slot as usize];
        let mut message = Message::new(slot, (rank, receiver), class, Purpose::Deliver);
        self.links.route(&mut message, (self.processors.node(rank), self.processors.node(receiver)));
        if self.slots.has_rendezvous() && self.note_send(&mut message, state) {
            return Step::Wait;
        }
        let number = self.messages.add(message);
        if state == state::EMPTY && self.cost(&message).rendezvous {
            self.slots.all[slot as usize].state = state::PENDING + number;
        } else {
            self.hand_over(number);
        }
        Step::Done
    }

    /// Where there is rendezvous: notes for later waits who sent; whether the sender has to stop.
    #[inline(never)]
    fn note_send(&mut self, message: &mut Message, state: u32) -> bool {
        let slot = message.slot;
        self.slots.sends[message.from as usize].push(slot);
        let cost = self.cost(message);
        if !cost.rendezvous || state != state::EMPTY && cost.held == 0.0 {
            self.slots.releases[slot as usize] = Release::Released;
            return false;
        }
        if self.program.classes()[message.class as usize].mode.immediate {
            return false;
        }
        message.holds_sender = true;
        self.ranks[message.from as usize].before = self.pending.now();
        let number = self.messages.add(*message);
        if state == state::EMPTY {
            self.slots.all[slot as usize].state = state::PENDING + number;
        } else {
            self.hand_over(number);
        }
        true
    }

    #[inline(always)]
    fn cost(&self, message: &Message) -> Move {
        self.way(message.slot).moves[message.class as usize]
    }

    /// Hands a message to the network.
    #[inline(always)]
    pub fn hand_over(&mut self, number: u32) {
        let now = self.pending.now();
        let message = &mut self.messages[number];
        message.asked = now;
        if message.purpose == Purpose::Deliver {
            self.observer.moved(message.slot, now, f64::INFINITY);
        }
        self.links.request(&mut self.messages, number);
        self.start_granted();
    }

    /// The receiver of a message that waited for it is ready.
    #[inline(never)]
    fn meet(&mut self, number: u32) {
        self.hand_over(number);
        if self.cost(&self.messages[number]).held == 0.0 {
            self.release_sender(number);
        }
    }

    /// The sender of a rendezvous message may go on.
    #[inline(never)]
    fn release_sender(&mut self, number: u32) {
        let Message { slot, from, holds_sender, .. } = self.messages[number];
        let before = std::mem::replace(&mut self.slots.releases[slot as usize], Release::Released);
        if !holds_sender && before != Release::Awaited {
            return;
        }
        let now = self.pending.now();
        let state = &mut self.ranks[from as usize];
        let since = state.before;
        state.blocked += now - since;
        self.observer.held(from, slot, since, now);
        self.advance(from, Place::Front);
    }

    /// A message has all links that it needs.
    #[inline(always)]
    pub fn begin_transfer(&mut self, number: u32) {
        let now = self.pending.now();
        let Message { slot, class, asked, .. } = self.messages[number];
        let way = if self.way_of.is_empty() { 0 } else { self.way_of[slot as usize] };
        let way = &self.ways[usize::from(way)];
        let cost = &way.moves[class as usize];
        let arrival = if way.has_latency {
            let arrival = now + cost.arrives.nanos;
            self.pending.at(now + cost.bytes, Event { kind: Kind::Moved, index: number });
            self.pending.at(arrival, Event { kind: Kind::Arrived, index: number });
            arrival
        } else {
            cost.arrives.schedule(&mut self.pending, Event { kind: Kind::Moved, index: number })
        };
        self.observer.moved(slot, now, arrival);
        if asked < now {
            self.observer.queued(slot, asked);
        }
    }

    /// A message has left its links.
    #[inline(always)]
    pub fn moved(&mut self, number: u32) {
        self.links.release(&mut self.messages, number);
        self.start_granted();
        let Message { slot, from, purpose, .. } = self.messages[number];
        if purpose == Purpose::Part {
            self.messages.remove(number);
            self.part_arrived(from, slot);
            return;
        }
        if self.slots.has_rendezvous() {
            let cost = self.cost(&self.messages[number]);
            if cost.rendezvous && cost.held > 0.0 {
                self.release_sender(number);
            }
        }
        if !self.way(slot).has_latency {
            self.arrived(number);
        }
    }

    /// A message is there; a receiver that waits for it goes on.
    #[inline(always)]
    pub fn arrived(&mut self, number: u32) {
        let slot = self.messages[number].slot;
        self.messages.remove(number);
        let Slot { receiver, state } = &mut self.slots.all[slot as usize];
        if std::mem::replace(state, state::ARRIVED) != state::AWAITED {
            return;
        }
        let receiver = *receiver;
        let now = self.pending.now();
        let rank = &mut self.ranks[receiver as usize];
        rank.blocked += now - rank.before;
        match self.take(receiver, slot) {
            Step::Done => self.advance(receiver, Place::Back),
            _ => self.queue(receiver, Place::Back),
        }
    }

    /// A receive (which posts itself) or a wait for one posted before: overhead, then the message is taken or awaited.
    #[inline(always)]
    pub fn receive(&mut self, rank: u32, slot: u32) -> Step {
        let now = self.pending.now();
        if self.ranks[rank as usize].phase == Phase::Begin {
            let before = self.way(slot).before;
            self.ranks[rank as usize].call = now;
            self.ranks[rank as usize].overhead += before.nanos;
            if before.nanos > 0.0 {
                return self.start_up(rank, before);
            }
        }
        self.ranks[rank as usize].before = now;
        let state = self.slots.all[slot as usize].state;
        if state == state::ARRIVED {
            return self.take(rank, slot);
        }
        self.slots.all[slot as usize].state = state::AWAITED;
        if state >= state::PENDING {
            self.meet(state - state::PENDING);
        }
        Step::Wait
    }

    /// Takes a message that is there.
    #[inline(always)]
    fn take(&mut self, rank: u32, slot: u32) -> Step {
        let now = self.pending.now();
        let after = self.way(slot).after;
        let state = &mut self.ranks[rank as usize];
        state.next_slot += u32::from(slot == state.next_slot);
        let RankState { call, before, .. } = *state;
        self.observer.received(rank, slot, Received { call, before, taken: now, end: now + after.nanos });
        if after.nanos > 0.0 {
            self.ranks[rank as usize].overhead += after.nanos;
            self.start_up(rank, after);
            self.ranks[rank as usize].phase = Phase::Finish;
            return Step::Spend;
        }
        Step::Done
    }

    /// An immediate receive.
    #[inline(always)]
    pub fn post(&mut self, rank: u32) -> Step {
        let state = &mut self.ranks[rank as usize];
        let slot = state.next_slot;
        state.next_slot += 1;
        self.observer.posted(slot, self.pending.now());
        let state = self.slots.all[slot as usize].state;
        if state != state::ARRIVED {
            self.slots.all[slot as usize].state = state::POSTED;
        }
        if state >= state::PENDING {
            self.meet(state - state::PENDING);
        }
        Step::Done
    }

    /// A wait for a send, which costs nothing.
    pub fn wait_send(&mut self, rank: u32, ago: u32) -> Step {
        let Some(slot) = self.slots.sent(rank, ago) else { return Step::Skip };
        let release = &mut self.slots.releases[slot as usize];
        if *release == Release::Released {
            return Step::Skip;
        }
        *release = Release::Awaited;
        self.ranks[rank as usize].before = self.pending.now();
        Step::Wait
    }
}
