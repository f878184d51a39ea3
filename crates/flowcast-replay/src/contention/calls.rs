//! Point-to-point calls, and the progress of their messages.

use super::{
    super::{
        observer::{Observer, ReceivedMessage, Sent},
        routes::Route,
        transit::Transit,
    },
    engine::{ContentionEngine, TurnEnd},
    events::{Event, EventKind},
    messages::{ContendedMessage, Purpose},
    processors::Place,
    ranks::{ContendedRank, RankPhase, Step},
    route_costs::{Delay, Move, RouteCosts},
};
use crate::{costs::ClassCost, walk::Known};
use flowcast_program::{opcodes, slot::Slot};
use flowcast_traffic::queues::lanes::Lane;
use flowcast_units::{Rank, Time};

/// Maximum number of receives that are posted together.
const MOST_TOGETHER: usize = 1 << 16;

impl<O: Observer, T: Transit> ContentionEngine<'_, O, T> {
    #[inline(always)]
    fn route_costs(&self, slot: Slot) -> &RouteCosts {
        &self.route_costs[self.route_number(slot)]
    }

    #[inline(always)]
    pub(super) fn route_number(&self, slot: Slot) -> usize {
        let number = self.route_of.get(slot.index());
        number.map_or(0, |number| usize::from(*number))
    }

    /// Start-up of a message on its route, with a random deviation if costs vary.
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

    /// Executes a send. After the overhead, the message goes to the network or waits for its receiver.
    #[inline(always)]
    pub(super) fn send(&mut self, rank: Rank, class: u32, slot: Slot) -> Step {
        let now = self.pending.now();
        if self.ranks[rank].phase == RankPhase::Begin {
            let Move { send, cost, .. } = self.route_costs(slot).moves[class as usize];
            let overhead = self.start_up_on(slot, send);
            if let Some(step) = self.begin_send(rank, overhead, cost) {
                return step;
            }
        }
        let cost = self.route_costs(slot).moves[class as usize].cost;
        let rendezvous = cost.rendezvous;
        let ContendedRank {
            call,
            before: start,
            waited: processor,
            departs,
            ..
        } = self.ranks[rank];
        let departs = if cost.queues && departs > now {
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
            departs + cost.leaves()
        };
        self.leaving.push(rank, left);
        self.sent.push(rank, Some(slot));
        let receiver = self.program.receiver(slot);
        let number = self
            .messages
            .add(ContendedMessage::new(slot, rank, class, Purpose::Deliver));
        let route = self.routes[self.route_number(slot)];
        self.links
            .route(&mut self.messages[number], receiver, route);
        if self.has_rendezvous && !rendezvous {
            self.handshakes.skip(slot);
        }
        if departs > now {
            self.pending.at(departs, EventKind::Departs.event(number));
        } else if rendezvous {
            return self.send_rendezvous(number);
        } else {
            self.hand_over(number);
        }
        Step::Done
    }

    #[inline(never)]
    fn send_rendezvous(&mut self, number: u32) -> Step {
        let ContendedMessage {
            slot, from, class, ..
        } = self.messages[number];
        self.launch(number);
        if self.program.class(class).mode.non_blocking || !self.handshakes.holds(slot) {
            return Step::Done;
        }
        self.wait_for_release(from, slot)
    }

    fn wait_for_release(&mut self, rank: Rank, slot: Slot) -> Step {
        self.handshakes.released.wait(slot, rank.0);
        self.ranks[rank].before = self.pending.now();
        Step::Wait
    }

    /// Starts a message whose interface is free, or lets it wait for its receiver.
    #[inline(never)]
    pub(super) fn launch(&mut self, number: u32) {
        let message = self.messages[number];
        if !self.cost(&message).rendezvous {
            return self.hand_over(number);
        }
        if T::HANDSHAKES && self.routes[self.route_number(message.slot)] == Route::Between {
            return self.depart_with_rts(number);
        }
        match self.handshakes.posted.look(message.slot) {
            Known::Time(_) => self.meet(number),
            _ => self.handshakes.posted.wait(message.slot, number),
        }
    }

    /// Starts the processor's part of a call; returns the step if that part takes time.
    #[inline(always)]
    pub(super) fn begin_call(&mut self, rank: Rank, overhead: Delay) -> Option<Step> {
        let state = &mut self.ranks[rank];
        state.call = self.pending.now();
        state.waited = Time::ZERO;
        state.overhead += overhead.time;
        (overhead.time > Time::ZERO).then(|| self.start_up(rank, overhead))
    }

    /// Starts the processor's part of a send; returns the step if that part takes time. If the interface does not queue
    /// messages, the processor first waits until the interface is free.
    #[inline(always)]
    pub(super) fn begin_send(
        &mut self,
        rank: Rank,
        overhead: Delay,
        cost: ClassCost,
    ) -> Option<Step> {
        let now = self.pending.now();
        let state = &mut self.ranks[rank];
        let free = if state.interface_free > now {
            state.interface_free
        } else {
            now
        };
        let start = if cost.queues { now } else { free };
        state.before = start;
        state.departs = free + overhead.time;
        if cost.busy > Time::ZERO {
            state.interface_free = free + cost.busy;
        }
        let step = self.begin_call(rank, overhead);
        if start == now {
            return step;
        }
        let state = &mut self.ranks[rank];
        state.until = start + overhead.time;
        state.spend = start - now + overhead.time;
        state.lane = Lane::NONE;
        state.phase = RankPhase::StartUp;
        Some(Step::Spend)
    }

    #[inline(always)]
    fn cost(&self, message: &ContendedMessage) -> ClassCost {
        self.route_costs(message.slot).moves[message.class as usize].cost
    }

    /// Requests the links and buses of a message, and starts its transfer if it gets all of them.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, number: u32) {
        let now = self.pending.now();
        if O::WATCHES {
            self.messages.times(number).asked = now;
            let message = &self.messages[number];
            if message.purpose == Purpose::Deliver {
                self.observer.moved(message.slot, now, Time::NEVER);
            }
        }
        if self.links.request(&mut self.messages, number) {
            self.start_transfer(number);
        }
    }

    /// Posts a receive; a sender that waits for it may start.
    #[inline(never)]
    fn post_receive(&mut self, rank: Rank, slot: Slot) {
        let since = self.pending.now();
        let polled = (T::HANDSHAKES && self.routes[self.route_number(slot)] == Route::Between)
            .then(|| self.in_transit.polled[rank]);
        let posted = self.handshakes.post(slot, &[since], polled, self.transit);
        if let Some(number) = posted {
            self.meet(number);
        }
    }

    /// Starts a message whose receiver has become ready.
    #[inline(never)]
    pub(super) fn meet(&mut self, number: u32) {
        self.hand_over(number);
        if self.cost(&self.messages[number]).held == Time::ZERO {
            self.release_sender(number);
        }
    }

    /// Lets the sender of a rendezvous message continue.
    #[inline(never)]
    pub(super) fn release_sender(&mut self, number: u32) {
        let ContendedMessage { slot, from, .. } = self.messages[number];
        if self.handshakes.released.close(slot).is_none() {
            return;
        }
        let (since, now) = (self.ranks[from].before, self.pending.now());
        self.observer.held(from, slot, since, now);
        self.leave_call(from, now);
        self.advance(from, Place::Front);
    }

    /// Starts the transfer of a message that has all links that it needs.
    #[inline(always)]
    pub(super) fn begin_transfer(&mut self, number: u32) {
        let now = self.pending.now();
        let ContendedMessage { slot, class, .. } = self.messages[number];
        let moved = EventKind::Moved.event(number);
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
                .schedule(&mut self.pending, EventKind::Arrived.event(number))
        } else {
            cost.arrives.schedule(&mut self.pending, moved)
        };
        if O::WATCHES {
            self.observer.moved(slot, now, arrival);
            let asked = self.messages.times(number).asked;
            if asked < now {
                self.observer.queued(slot, asked);
            }
        }
    }

    /// Starts a transfer whose bandwidth varies; returns the time of its arrival.
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
        self.pending.at(
            now + bytes * factors.on_links,
            EventKind::Moved.event(number),
        );
        if self.arrives_later(route_number) {
            self.pending.at(arrival, EventKind::Arrived.event(number));
        }
        arrival
    }

    /// `true` if messages of a route arrive later than they leave the links.
    #[inline(always)]
    fn arrives_later(&self, number: usize) -> bool {
        self.route_costs[number].has_latency
            || self.perturbation.is_some() && matches!(self.routes[number], Route::ToSite(_))
    }

    /// Handles a message that has left its links.
    #[inline(always)]
    pub(super) fn moved(&mut self, number: u32) {
        self.links.release(&mut self.messages, number);
        self.start_granted();
        let message = self.messages[number];
        if message.purpose != Purpose::Deliver {
            let (_, flight) = self.messages.times(number).part;
            match (flight, message.purpose) {
                (flight, _) if flight == Time::ZERO => self.arrived(number),
                (_, Purpose::Transfer) => {}
                _ => self.pending.at(
                    self.pending.now() + flight,
                    EventKind::Arrived.event(number),
                ),
            }
            return;
        }
        if self.has_rendezvous {
            let cost = self.cost(&message);
            if cost.rendezvous && cost.held > Time::ZERO {
                self.release_sender(number);
            }
        }
        if !self.arrives_later(self.route_number(message.slot)) {
            self.arrived(number);
        }
    }

    /// Handles the arrival of a message; a receiver that waits for it continues.
    #[inline(always)]
    pub(super) fn arrived(&mut self, number: u32) {
        let ContendedMessage {
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
        let now = self.pending.now();
        let Some(receiver) = self.arrivals.fill(slot, |_| now).map(Rank) else {
            return;
        };
        match self.take(receiver, slot) {
            Step::Done => self.advance(receiver, Place::Back),
            _ => self.queue(receiver, Place::Back),
        }
    }

    /// Executes a blocking receive, which is posted here, or a wait for a receive that was posted before. After the
    /// overhead, the rank takes the message or waits for it.
    #[inline(always)]
    pub(super) fn receive(&mut self, rank: Rank, slot: Slot) -> Step {
        let now = self.pending.now();
        if self.ranks[rank].phase == RankPhase::Begin {
            self.enter_call(rank);
            let before = self.route_costs(slot).before;
            let before = self.start_up_on(slot, before);
            if let Some(step) = self.begin_call(rank, before) {
                return step;
            }
        }
        self.ranks[rank].before = now;
        if let Known::Time(_) = self.arrivals.look(slot) {
            return self.take(rank, slot);
        }
        self.arrivals.wait(slot, rank.0);
        if self.has_rendezvous {
            self.post_receive(rank, slot);
        }
        Step::Wait
    }

    /// Takes a message that has arrived.
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

    /// Posts a non-blocking receive.
    #[inline(always)]
    pub(super) fn post(&mut self, rank: Rank) -> Step {
        let state = &mut self.ranks[rank];
        let slot = state.next_slot;
        state.next_slot += 1;
        self.observer.posted(slot, self.pending.now());
        if self.has_rendezvous {
            self.post_receive(rank, slot);
        }
        Step::Done
    }

    /// `true` if consecutive receives may be posted in one of their turns, all of which have the same time, without an
    /// effect on the result.
    #[inline(always)]
    pub(super) fn may_post_together(&self) -> bool {
        !O::WATCHES
            && !T::SHARED
            && !self.has_rendezvous
            && !self.scheduling.is_used
            && self.processors.are_alone()
    }

    /// Posts consecutive non-blocking receives, starting with the one at `at`, in one step. Their turns become idle turns.
    /// If a computation follows, or the program ends, the last receive keeps a turn of its own, in which the computation
    /// starts or the rank ends.
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
        self.pending
            .push_due_now(Event::turn_after(posted - 1, rank));
        TurnEnd::Keeps
    }

    /// Executes a wait for a send, which takes no processor time.
    #[inline(never)]
    pub(super) fn wait_send(&mut self, rank: Rank, ago: u32) -> Step {
        let now = self.pending.now();
        let Some(&Some(slot)) = self.sent.get(rank, ago) else {
            return Step::Skip;
        };
        if self.has_rendezvous {
            if self.handshakes.holds(slot) {
                return self.wait_for_release(rank, slot);
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
