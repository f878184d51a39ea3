//! Point-to-point calls, and what becomes of their messages.

use super::super::observer::{Observer, Received, Sent};
use super::super::routes::Route;
use super::super::transit::Transit;
use super::engine::Engine;
use super::events::{Event, Kind};
use super::messages::{Mark, Message, Purpose};
use super::processors::Place;
use super::ranks::{Phase, RankState, Step};
use super::slots::{Release, state};
use super::ways::{Delay, Move, Way};
use flowcast_queues::lanes::Lane;

impl<O: Observer, T: Transit> Engine<'_, O, T> {
    #[inline(always)]
    fn way(&self, slot: u32) -> &Way {
        &self.ways[self.way_number(slot)]
    }

    #[inline(always)]
    pub(super) fn way_number(&self, slot: u32) -> usize {
        if self.way_of.is_empty() { 0 } else { usize::from(self.way_of[slot as usize]) }
    }

    /// A start-up on the way of a slot.
    #[inline(always)]
    fn start_up_on(&mut self, slot: u32, delay: Delay) -> Delay {
        let way = self.way_number(slot);
        match &mut self.perturbation {
            Some(perturbation) => Delay::of(perturbation.start_up(delay.nanos, self.routes[way])),
            None => delay,
        }
    }

    /// A send: overhead first, then the message is handed to the network or waits for its receiver.
    #[inline(always)]
    pub(super) fn send(&mut self, rank: u32, class: u32, slot: u32) -> Step {
        let now = self.pending.now();
        if self.ranks[rank as usize].phase == Phase::Begin {
            let way = self.way(slot);
            let (overhead, busy) = (way.sending(class), way.moves[class as usize].busy);
            let overhead = self.start_up_on(slot, overhead);
            if let Some(step) = self.begin_send(rank, overhead, busy) {
                return step;
            }
        }
        let RankState { call, before: start, waited: processor, .. } = self.ranks[rank as usize];
        let arrival = f64::INFINITY;
        self.observer.sent(rank, slot, Sent { class, call, start, processor, end: now, arrival });
        let receiver = self.slots.receiver(slot);
        let state = self.slots.states[slot as usize];
        let mut message = Message::new(slot, rank, class, Purpose::Deliver);
        let nodes = (self.processors.node(rank), self.processors.node(receiver));
        let route = if self.way_of.is_empty() { Route::Between } else { self.routes[self.way_number(slot)] };
        self.links.route(&mut message, receiver, nodes, route);
        if T::HANDSHAKES && route == Route::Between && self.cost(&message).rendezvous {
            return self.send_rts(message, receiver);
        }
        if self.slots.has_rendezvous() && self.note_send(&mut message, state) {
            return Step::Wait;
        }
        let number = self.messages.add(message);
        if state == state::EMPTY && self.cost(&message).rendezvous {
            self.slots.wait(slot, number);
        } else {
            self.hand_over(number);
        }
        Step::Done
    }

    /// A call begins that takes the processor for so many nanoseconds.
    #[inline(always)]
    pub(super) fn begin_call(&mut self, rank: u32, overhead: f64) {
        let state = &mut self.ranks[rank as usize];
        state.call = self.pending.now();
        state.waited = 0.0;
        state.overhead += overhead;
    }

    /// The processor's part of a send, once the interface is free; the step if that takes time.
    #[inline(always)]
    pub(super) fn begin_send(&mut self, rank: u32, overhead: Delay, busy: f64) -> Option<Step> {
        let now = self.pending.now();
        let state = &mut self.ranks[rank as usize];
        let start = if state.interface_free > now { state.interface_free } else { now };
        state.call = now;
        state.before = start;
        state.waited = 0.0;
        if busy > 0.0 {
            state.interface_free = start + busy;
        }
        state.overhead += overhead.nanos;
        if start > now {
            state.until = start + overhead.nanos;
            state.spend = start - now + overhead.nanos;
            state.lane = Lane::NONE;
            state.phase = Phase::StartUp;
            return Some(Step::Spend);
        }
        (overhead.nanos > 0.0).then(|| self.start_up(rank, overhead))
    }

    /// Where there is rendezvous: notes for later waits who sent; whether the sender has to stop.
    #[inline(never)]
    fn note_send(&mut self, message: &mut Message, state: u8) -> bool {
        let slot = message.slot;
        self.slots.note_send(message.from, slot);
        let cost = self.cost(message);
        if !cost.rendezvous || state != state::EMPTY && cost.held == 0.0 {
            self.slots.releases[slot as usize] = Release::Released;
            return false;
        }
        if self.program.classes()[message.class as usize].mode.non_blocking {
            return false;
        }
        message.mark(Mark::HoldsSender);
        self.ranks[message.from as usize].before = self.pending.now();
        let number = self.messages.add(*message);
        if state == state::EMPTY {
            self.slots.wait(slot, number);
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
    pub(super) fn hand_over(&mut self, number: u32) {
        let now = self.pending.now();
        if O::WATCHES {
            self.messages.set_asked(number, now);
            let message = &self.messages[number];
            if message.purpose == Purpose::Deliver {
                self.observer.moved(message.slot, now, f64::INFINITY);
            }
        }
        if self.links.request(&mut self.messages, number) {
            self.start_transfer(number);
        }
    }

    /// A receive is posted for a slot that was in this state; a sender that waits for it may start.
    #[inline(always)]
    fn post_receive(&mut self, rank: u32, slot: u32, state: u8) {
        if T::HANDSHAKES && self.post_to_transit(rank, slot, state) {
            return;
        }
        if state == state::PENDING {
            self.meet(self.slots.waiting(slot));
        }
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
    pub(super) fn release_sender(&mut self, number: u32) {
        let message = self.messages[number];
        let Message { slot, from, .. } = message;
        let before = std::mem::replace(&mut self.slots.releases[slot as usize], Release::Released);
        if !message.is(Mark::HoldsSender) && before != Release::Awaited {
            return;
        }
        let now = self.pending.now();
        let state = &mut self.ranks[from as usize];
        let since = state.before;
        self.observer.held(from, slot, since, now);
        self.leave_call(from, now);
        self.advance(from, Place::Front);
    }

    /// A message has all links that it needs.
    #[inline(always)]
    pub(super) fn begin_transfer(&mut self, number: u32) {
        let now = self.pending.now();
        let Message { slot, class, .. } = self.messages[number];
        let moved = Event { kind: Kind::Moved, index: number };
        let number_of_way = self.way_number(slot);
        let way = &self.ways[number_of_way];
        let cost = &way.moves[class as usize];
        let arrival = if T::SHARED && self.routes[number_of_way] == Route::Between {
            self.depart(number, None);
            f64::INFINITY
        } else if self.perturbation.is_some() {
            self.begin_perturbed_transfer(number, number_of_way)
        } else if way.has_latency {
            let arrival = now + cost.arrives.nanos;
            self.pending.at(now + cost.bytes, moved);
            self.pending.at(arrival, Event { kind: Kind::Arrived, index: number });
            arrival
        } else {
            cost.arrives.schedule(&mut self.pending, moved)
        };
        if O::WATCHES {
            self.observer.moved(slot, now, arrival);
            let asked = self.messages.asked(number);
            if asked < now {
                self.observer.queued(slot, asked);
            }
        }
    }

    /// A transfer whose bandwidth varies; gives the time of its arrival.
    #[cold]
    fn begin_perturbed_transfer(&mut self, number: u32, way: usize) -> f64 {
        let now = self.pending.now();
        let class = self.messages[number].class as usize;
        let size = self.program.classes()[class].size.0 as f64;
        let cost = self.ways[way].moves[class];
        let perturbation = self.perturbation.as_mut().expect("costs vary");
        let factors = perturbation.transfer(now, way, self.routes[way], size);
        let latency = cost.arrives.nanos - cost.bytes;
        let arrival = now + (cost.bytes * factors.until_there + latency);
        self.pending.at(now + cost.bytes * factors.on_links, Event { kind: Kind::Moved, index: number });
        if self.arrives_later(way) {
            self.pending.at(arrival, Event { kind: Kind::Arrived, index: number });
        }
        arrival
    }

    /// Whether messages of a way arrive later than they leave the links.
    #[inline(always)]
    fn arrives_later(&self, way: usize) -> bool {
        self.ways[way].has_latency || self.perturbation.is_some() && matches!(self.routes[way], Route::ToSite(_))
    }

    /// A message has left its links.
    #[inline(always)]
    pub(super) fn moved(&mut self, number: u32) {
        self.links.release(&mut self.messages, number);
        self.start_granted();
        let message = self.messages[number];
        if message.purpose != Purpose::Deliver {
            let (_, flight) = self.messages.part(number);
            match (flight, message.purpose) {
                (0.0, _) => self.arrived(number),
                (_, Purpose::Transfer) => {}
                _ => self.pending.at(self.pending.now() + flight, Event { kind: Kind::Arrived, index: number }),
            }
            return;
        }
        if self.slots.has_rendezvous() {
            let cost = self.cost(&message);
            if cost.rendezvous && cost.held > 0.0 {
                self.release_sender(number);
            }
        }
        if !self.arrives_later(self.way_number(message.slot)) {
            self.arrived(number);
        }
    }

    /// A message is there; a receiver that waits for it goes on.
    #[inline(always)]
    pub(super) fn arrived(&mut self, number: u32) {
        let Message { slot, from, purpose, .. } = self.messages[number];
        if purpose == Purpose::Transfer {
            return self.transferred(number);
        }
        self.messages.remove(number);
        if purpose == Purpose::Part {
            return self.part_arrived(from, slot);
        }
        if std::mem::replace(&mut self.slots.states[slot as usize], state::ARRIVED) != state::AWAITED {
            return;
        }
        let receiver = self.slots.receiver(slot);
        match self.take(receiver, slot) {
            Step::Done => self.advance(receiver, Place::Back),
            _ => self.queue(receiver, Place::Back),
        }
    }

    /// A receive (which posts itself) or a wait for one posted before: overhead, then the message is taken or awaited.
    #[inline(always)]
    pub(super) fn receive(&mut self, rank: u32, slot: u32) -> Step {
        let now = self.pending.now();
        if self.ranks[rank as usize].phase == Phase::Begin {
            self.enter_call(rank);
            let before = self.way(slot).before;
            let before = self.start_up_on(slot, before);
            self.begin_call(rank, before.nanos);
            if before.nanos > 0.0 {
                return self.start_up(rank, before);
            }
        }
        self.ranks[rank as usize].before = now;
        let state = self.slots.states[slot as usize];
        if state == state::ARRIVED {
            return self.take(rank, slot);
        }
        self.slots.states[slot as usize] = state::AWAITED;
        self.post_receive(rank, slot, state);
        Step::Wait
    }

    /// Takes a message that is there.
    #[inline(always)]
    fn take(&mut self, rank: u32, slot: u32) -> Step {
        let now = self.pending.now();
        let after = self.way(slot).received_after(self.costs, slot);
        let state = &mut self.ranks[rank as usize];
        state.next_slot += u32::from(slot == state.next_slot);
        let RankState { call, before, waited: processor, .. } = *state;
        self.observer.received(rank, slot, Received { call, processor, before, taken: now, end: now + after.nanos });
        self.leave_call(rank, now + after.nanos);
        if after.nanos > 0.0 {
            self.ranks[rank as usize].overhead += after.nanos;
            self.start_up(rank, after);
            self.ranks[rank as usize].phase = Phase::Finish;
            return Step::Spend;
        }
        Step::Done
    }

    /// A non-blocking receive.
    #[inline(always)]
    pub(super) fn post(&mut self, rank: u32) -> Step {
        let state = &mut self.ranks[rank as usize];
        let slot = state.next_slot;
        state.next_slot += 1;
        self.observer.posted(slot, self.pending.now());
        let state = self.slots.states[slot as usize];
        if state != state::ARRIVED {
            self.slots.states[slot as usize] = state::POSTED;
        }
        self.post_receive(rank, slot, state);
        Step::Done
    }

    /// A wait for a send, which costs nothing.
    pub(super) fn wait_send(&mut self, rank: u32, ago: u32) -> Step {
        let Some(slot) = self.slots.sent(rank, ago) else { return Step::Skip };
        let release = &mut self.slots.releases[slot as usize];
        if *release == Release::Released {
            self.leave_call(rank, self.pending.now());
            return Step::Skip;
        }
        *release = Release::Awaited;
        self.ranks[rank as usize].before = self.pending.now();
        Step::Wait
    }
}
