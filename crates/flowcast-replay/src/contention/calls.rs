//! Point-to-point calls, and what becomes of their messages.

use super::{
    super::{
        observer::{Observer, ReceivedMessage, Sent},
        routes::Route,
        transit::Transit,
    },
    engine::{Engine, TurnEnd},
    events::{Event, Kind},
    messages::{Message, MessageMark, Purpose},
    processors::Place,
    ranks::{ContendedRank, RankPhase, Step},
    route_costs::{Delay, Move, RouteCosts},
    slots::{Release, state},
};
use flowcast_network::queues::lanes::Lane;
use flowcast_trace::{opcodes, slot::Slot};
use flowcast_units::{Rank, Time};

/// So many receives are posted together at most.
const MOST_TOGETHER: usize = 1 << 16;

/// What becomes of a message while its interface is busy, which rests so long from the start of this one on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Interface {
    /// The rank waits until it is free.
    Awaited(Time),
    /// It sends the message when it is free, and the rank goes on.
    Queues(Time),
}

impl Move {
    #[inline(always)]
    fn interface(&self) -> Interface {
        if self.queues {
            Interface::Queues(self.busy)
        } else {
            Interface::Awaited(self.busy)
        }
    }
}

impl<O: Observer, T: Transit> Engine<'_, O, T> {
    #[inline(always)]
    fn route_costs(&self, slot: Slot) -> &RouteCosts {
        &self.route_costs[self.route_number(slot)]
    }

    #[inline(always)]
    pub(super) fn route_number(&self, slot: Slot) -> usize {
        if self.route_of.is_empty() {
            0
        } else {
            usize::from(self.route_of[slot])
        }
    }

    /// A start-up on the route of a slot.
    #[inline(always)]
    fn start_up_on(&mut self, slot: Slot, delay: Delay) -> Delay {
        let number = self.route_number(slot);
        match &mut self.perturbation {
            Some(perturbation) => {
                Delay::new(perturbation.start_up(delay.time, self.routes[number]))
            }
            None => delay,
        }
    }

    /// A send: overhead first, then the message is handed to the network or waits for its receiver.
    #[inline(always)]
    pub(super) fn send(&mut self, rank: Rank, class: u32, slot: Slot) -> Step {
        let now = self.pending.now();
        if self.ranks[rank].phase == RankPhase::Begin {
            let costs = self.route_costs(slot);
            let (overhead, interface) = (
                costs.sending(class),
                costs.moves[class as usize].interface(),
            );
            let overhead = self.start_up_on(slot, overhead);
            if let Some(step) = self.begin_send(rank, overhead, interface) {
                return step;
            }
        }
        let Move {
            queues,
            rendezvous,
            leaves,
            ..
        } = self.route_costs(slot).moves[class as usize];
        let ContendedRank {
            call,
            before: start,
            waited: processor,
            departs,
            ..
        } = self.ranks[rank];
        let departs = if queues && departs > now {
            departs
        } else {
            now
        };
        let sent = Sent {
            class,
            call,
            start,
            processor,
            end: now,
            departs,
            arrival: Time::NEVER,
        };
        self.observer.sent(rank, slot, sent);
        let left = if rendezvous {
            Time::ZERO
        } else {
            departs + leaves
        };
        self.leaving.push(rank, left);
        self.sent.push(rank, Some(slot));
        let receiver = self.slots.receiver(slot);
        let state = self.slots.states[slot];
        let number = self
            .messages
            .add(Message::new(slot, rank, class, Purpose::Deliver));
        let nodes = (self.processors.node(rank), self.processors.node(receiver));
        let route = if self.route_of.is_empty() {
            Route::Between
        } else {
            self.routes[self.route_number(slot)]
        };
        self.links
            .route(&mut self.messages[number], receiver, nodes, route);
        if departs > now {
            return self.put_off(number, departs);
        }
        if T::HANDSHAKES && route == Route::Between && rendezvous {
            return self.send_rts(number);
        }
        if self.slots.has_rendezvous() && self.note_send(number, state) {
            return Step::Wait;
        }
        if state == state::EMPTY && rendezvous {
            self.slots.wait(slot, number);
        } else {
            self.hand_over(number);
        }
        Step::Done
    }

    /// A non-blocking send whose message the interface sends later.
    #[inline(never)]
    fn put_off(&mut self, number: u32, departs: Time) -> Step {
        let message = self.messages[number];
        if self.slots.has_rendezvous() && !self.cost(&message).rendezvous {
            self.slots.releases[message.slot] = Release::Released;
        }
        self.pending.at(departs, Kind::Departs.event(number));
        Step::Done
    }

    /// The interface is free for a message.
    #[inline(never)]
    pub(super) fn launch(&mut self, number: u32) {
        let message = self.messages[number];
        if !self.cost(&message).rendezvous {
            return self.hand_over(number);
        }
        if T::HANDSHAKES && self.routes[self.route_number(message.slot)] == Route::Between {
            return self.depart_with_rts(number);
        }
        match self.slots.states[message.slot] {
            state::EMPTY => self.slots.wait(message.slot, number),
            _ => self.meet(number),
        }
    }

    /// A call begins that takes the processor for so long.
    #[inline(always)]
    pub(super) fn begin_call(&mut self, rank: Rank, overhead: Time) {
        let state = &mut self.ranks[rank];
        state.call = self.pending.now();
        state.waited = Time::ZERO;
        state.overhead += overhead;
    }

    /// The processor's part of a send; the step if that takes time.
    #[inline(always)]
    pub(super) fn begin_send(
        &mut self,
        rank: Rank,
        overhead: Delay,
        interface: Interface,
    ) -> Option<Step> {
        let now = self.pending.now();
        let state = &mut self.ranks[rank];
        let free = if state.interface_free > now {
            state.interface_free
        } else {
            now
        };
        let (start, busy) = match interface {
            Interface::Awaited(busy) => (free, busy),
            Interface::Queues(busy) => (now, busy),
        };
        state.call = now;
        state.before = start;
        state.departs = free + overhead.time;
        state.waited = Time::ZERO;
        if busy > Time::ZERO {
            state.interface_free = free + busy;
        }
        state.overhead += overhead.time;
        if start > now {
            state.until = start + overhead.time;
            state.spend = start - now + overhead.time;
            state.lane = Lane::NONE;
            state.phase = RankPhase::StartUp;
            return Some(Step::Spend);
        }
        (overhead.time > Time::ZERO).then(|| self.start_up(rank, overhead))
    }

    /// Where there is rendezvous: notes for later waits who sent; whether the sender has to stop.
    #[inline(never)]
    fn note_send(&mut self, number: u32, state: u8) -> bool {
        let message = self.messages[number];
        let slot = message.slot;
        let cost = self.cost(&message);
        if !cost.rendezvous || state != state::EMPTY && cost.held == Time::ZERO {
            self.slots.releases[slot] = Release::Released;
            return false;
        }
        if self.program.class(message.class).mode.non_blocking {
            return false;
        }
        self.messages[number].mark(MessageMark::HoldsSender);
        self.ranks[message.from].before = self.pending.now();
        if state == state::EMPTY {
            self.slots.wait(slot, number);
        } else {
            self.hand_over(number);
        }
        true
    }

    #[inline(always)]
    fn cost(&self, message: &Message) -> Move {
        self.route_costs(message.slot).moves[message.class as usize]
    }

    /// Hands a message to the network.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, number: u32) {
        let now = self.pending.now();
        if O::WATCHES {
            self.messages.set_asked(number, now);
            let message = &self.messages[number];
            if message.purpose == Purpose::Deliver {
                self.observer.moved(message.slot, now, Time::NEVER);
            }
        }
        if self.links.request(&mut self.messages, number) {
            self.start_transfer(number);
        }
    }

    /// A receive is posted for a slot that was in this state; a sender that waits for it may start.
    #[inline(always)]
    fn post_receive(&mut self, rank: Rank, slot: Slot, state: u8) {
        if T::HANDSHAKES && self.post_to_transit(rank, slot, state) {
            return;
        }
        if state == state::PENDING {
            self.meet(self.slots.waiting(slot));
        }
    }

    /// The receiver of a message that waited for it is ready.
    #[inline(never)]
    pub(super) fn meet(&mut self, number: u32) {
        self.hand_over(number);
        if self.cost(&self.messages[number]).held == Time::ZERO {
            self.release_sender(number);
        }
    }

    /// The sender of a rendezvous message may go on.
    #[inline(never)]
    pub(super) fn release_sender(&mut self, number: u32) {
        let message = self.messages[number];
        let Message { slot, from, .. } = message;
        let before = std::mem::replace(&mut self.slots.releases[slot], Release::Released);
        if !message.is(MessageMark::HoldsSender) && before != Release::Awaited {
            return;
        }
        let now = self.pending.now();
        let state = &mut self.ranks[from];
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
        let moved = Kind::Moved.event(number);
        let route_number = self.route_number(slot);
        let costs = &self.route_costs[route_number];
        let cost = &costs.moves[class as usize];
        let arrival = if T::SHARED && self.routes[route_number] == Route::Between {
            self.depart(number, None);
            Time::NEVER
        } else if self.perturbation.is_some() {
            self.begin_perturbed_transfer(number, route_number)
        } else if costs.has_latency {
            cost.bytes.schedule(&mut self.pending, moved);
            cost.arrives
                .schedule(&mut self.pending, Kind::Arrived.event(number))
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
    fn begin_perturbed_transfer(&mut self, number: u32, route_number: usize) -> Time {
        let now = self.pending.now();
        let class = self.messages[number].class as usize;
        let size = self.program.classes()[class].size;
        let cost = self.route_costs[route_number].moves[class];
        let perturbation = self.perturbation.as_mut().expect("costs vary");
        let bytes = cost.bytes.time;
        let factors = perturbation.transfer(now, route_number, self.routes[route_number], size);
        let latency = cost.arrives.time - bytes;
        let arrival = now + (bytes * factors.until_there + latency);
        self.pending
            .at(now + bytes * factors.on_links, Kind::Moved.event(number));
        if self.arrives_later(route_number) {
            self.pending.at(arrival, Kind::Arrived.event(number));
        }
        arrival
    }

    /// Whether messages of a route arrive later than they leave the links.
    #[inline(always)]
    fn arrives_later(&self, number: usize) -> bool {
        self.route_costs[number].has_latency
            || self.perturbation.is_some() && matches!(self.routes[number], Route::ToSite(_))
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
                (flight, _) if flight == Time::ZERO => self.arrived(number),
                (_, Purpose::Transfer) => {}
                _ => self
                    .pending
                    .at(self.pending.now() + flight, Kind::Arrived.event(number)),
            }
            return;
        }
        if self.slots.has_rendezvous() {
            let cost = self.cost(&message);
            if cost.rendezvous && cost.held > Time::ZERO {
                self.release_sender(number);
            }
        }
        if !self.arrives_later(self.route_number(message.slot)) {
            self.arrived(number);
        }
    }

    /// A message is there; a receiver that waits for it goes on.
    #[inline(always)]
    pub(super) fn arrived(&mut self, number: u32) {
        let Message {
            slot,
            from,
            purpose,
            ..
        } = self.messages[number];
        if purpose == Purpose::Transfer {
            return self.transferred(number);
        }
        self.messages.remove(number);
        if purpose == Purpose::Part {
            return self.part_arrived(from, slot.0);
        }
        if std::mem::replace(&mut self.slots.states[slot], state::ARRIVED) != state::AWAITED {
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
    pub(super) fn receive(&mut self, rank: Rank, slot: Slot) -> Step {
        let now = self.pending.now();
        if self.ranks[rank].phase == RankPhase::Begin {
            self.enter_call(rank);
            let before = self.route_costs(slot).before;
            let before = self.start_up_on(slot, before);
            self.begin_call(rank, before.time);
            if before.time > Time::ZERO {
                return self.start_up(rank, before);
            }
        }
        self.ranks[rank].before = now;
        let state = self.slots.states[slot];
        if state == state::ARRIVED {
            return self.take(rank, slot);
        }
        self.slots.states[slot] = state::AWAITED;
        self.post_receive(rank, slot, state);
        Step::Wait
    }

    /// Takes a message that is there.
    #[inline(always)]
    fn take(&mut self, rank: Rank, slot: Slot) -> Step {
        let now = self.pending.now();
        let after = self.route_costs(slot).received_after(self.costs, slot);
        let state = &mut self.ranks[rank];
        state.next_slot += u32::from(slot == state.next_slot);
        let ContendedRank {
            call,
            before,
            waited: processor,
            ..
        } = *state;
        self.observer.received(
            rank,
            slot,
            ReceivedMessage {
                call,
                processor,
                before,
                taken: now,
                end: now + after.time,
            },
        );
        self.leave_call(rank, now + after.time);
        if after.time > Time::ZERO {
            self.ranks[rank].overhead += after.time;
            self.start_up(rank, after);
            self.ranks[rank].phase = RankPhase::Finish;
            return Step::Spend;
        }
        Step::Done
    }

    /// A non-blocking receive.
    #[inline(always)]
    pub(super) fn post(&mut self, rank: Rank) -> Step {
        let state = &mut self.ranks[rank];
        let slot = state.next_slot;
        state.next_slot += 1;
        self.observer.posted(slot, self.pending.now());
        if !T::HANDSHAKES && !self.slots.has_rendezvous() {
            return Step::Done;
        }
        let state = self.slots.states[slot];
        if state != state::ARRIVED {
            self.slots.states[slot] = state::POSTED;
        }
        self.post_receive(rank, slot, state);
        Step::Done
    }

    /// Whether nobody can see at which of several turns of equal time a receive is posted.
    #[inline(always)]
    pub(super) fn may_post_together(&self) -> bool {
        !O::WATCHES
            && !T::SHARED
            && !self.slots.has_rendezvous()
            && self.scheduling.is_none()
            && self.processors.are_alone()
    }

    /// Non-blocking receives that follow each other, the first of them at `at`: they are posted at once, and the turns that
    /// they would take are idle. What another instruction begins with the turn of the last one is left to that turn.
    #[inline(always)]
    pub(super) fn post_together(&mut self, rank: Rank) -> TurnEnd {
        let state = &mut self.ranks[rank];
        let first = state.at;
        let mut end = first as usize + 1;
        while opcodes::is_irecv(state.words, end) && end < first as usize + MOST_TOGETHER {
            end += 1;
        }
        if opcodes::computes(state.words, end) != Some(false) {
            end -= 1;
        }
        state.at = end as u32;
        let posted = state.at - first;
        state.next_slot += posted;
        self.pending.at_once(Event::turn_after(posted - 1, rank));
        TurnEnd::Keeps
    }

    /// A wait for a send, which takes no processor time.
    #[inline(never)]
    pub(super) fn wait_send(&mut self, rank: Rank, ago: u32) -> Step {
        let now = self.pending.now();
        let Some(&Some(slot)) = self.sent.get(rank, ago) else {
            return Step::Skip;
        };
        if self.slots.has_rendezvous() {
            let release = &mut self.slots.releases[slot];
            if *release != Release::Released {
                *release = Release::Awaited;
                self.ranks[rank].before = now;
                return Step::Wait;
            }
            self.leave_call(rank, now);
        }
        match self.leaving.get(rank, ago) {
            Some(&left) if left > now => {
                self.observer.left(rank, slot, now, left);
                self.pending.at(left, Event::turn(rank));
                Step::Asks(RankPhase::Leaving)
            }
            _ => Step::Skip,
        }
    }
}
