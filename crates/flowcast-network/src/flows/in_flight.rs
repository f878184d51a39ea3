//! Flows in flight and how much of each is left; patterns ([`fluid`](super::fluid)) and replays ([`traffic`](super::traffic))
//! use it.
//!
//! Nothing is computed for a flow between its start and its end. Flows of one class, which a model does not tell apart, get
//! the same service: one clock says how much each of them has received, and a flow ends when the clock shows what it
//! showed at the start and the flow's work. Classes that one link holds back have the link's share, so that the link's
//! clock stands for those of all of them (the virtual time of fair queueing: Demers, Keshav and Shenker, 1989). So an event
//! costs as much as the number of shares of links that it changes, and of classes that change their link. A flow that meets
//! no other on its links does not come to the model's notice.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::queues::indexed::{IndexedHeap, PartialHeap};
use flowcast_model::sharing::{
    Changes, RateModel, SharingError,
    active_flows::ActiveFlows,
    fabric::{AllocatedFraction, Allocation, Fabric, Limit, LinkId},
};
use flowcast_units::Time;

/// The clock of a class without flows, or whose flows have no share yet.
const NONE: u32 = u32::MAX;

const NOTHING_YET: Allocation = Allocation {
    share: AllocatedFraction(0.0),
    limit: Limit::Alone,
};

/// How much service each of some classes' flows has received, in time at the share 1.
#[derive(Debug, Clone)]
struct ServiceClock {
    service: Time,
    /// When it showed this.
    read: Time,
    share: f64,
    /// Since when it has had this share.
    steady: Time,
    /// When the next flow ends, as the heap of ends has it; never if it has nothing.
    end: Time,
    /// Whether that may have changed.
    is_unsettled: bool,
    /// The service at which a flow of a class ends next.
    ends: PartialHeap,
}

impl Default for ServiceClock {
    fn default() -> ServiceClock {
        ServiceClock {
            service: Time::ZERO,
            read: Time::ZERO,
            share: 0.0,
            steady: Time::ZERO,
            end: Time::NEVER,
            is_unsettled: false,
            ends: PartialHeap::default(),
        }
    }
}

impl ServiceClock {
    fn advance(&mut self, now: Time) {
        let elapsed = now - self.read;
        // A link that holds nothing back has an infinite share.
        if elapsed > Time::ZERO && self.share < f64::INFINITY {
            self.service += elapsed * self.share;
        }
        self.read = now;
    }

    /// When the next flow ends.
    fn next_end(&self) -> Time {
        match self.ends.first().filter(|_| self.share > 0.0) {
            Some((service, _)) => {
                let left = (service - self.service).max(Time::ZERO);
                self.read + Time::from_nanos(left.as_nanos() / self.share)
            }
            None => Time::NEVER,
        }
    }
}

/// Flows that get the same share.
#[derive(Debug, Clone)]
struct FlowClass {
    /// Whose service its flows get.
    clock: u32,
    /// Since when.
    since: Time,
    /// What a flow of it had received, had it been there since the first one, when the clock showed `seen`.
    service: Time,
    seen: Time,
    /// Only kept where changes are shown flow by flow.
    allocation: Allocation,
    next: Option<FlowEnd>,
    others: BinaryHeap<Reverse<FlowEnd>>,
}

impl FlowClass {
    fn push(&mut self, end: FlowEnd) {
        match self.next {
            None => self.next = Some(end),
            Some(next) if end < next => {
                self.next = Some(end);
                self.others.push(Reverse(next));
            }
            Some(_) => self.others.push(Reverse(end)),
        }
    }

    fn flows(&self) -> impl Iterator<Item = u32> {
        let others = self.others.iter().map(|Reverse(end)| end.flow());
        self.next.iter().map(|end| end.flow()).chain(others)
    }
}

impl Default for FlowClass {
    fn default() -> FlowClass {
        FlowClass {
            clock: NONE,
            since: Time::ZERO,
            service: Time::ZERO,
            seen: Time::ZERO,
            allocation: NOTHING_YET,
            next: None,
            others: BinaryHeap::new(),
        }
    }
}

/// The bits of the class's service at which a flow ends, which order as times do that are not negative, then the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FlowEnd(u128);

impl FlowEnd {
    fn new(service: Time, flow: u32) -> FlowEnd {
        FlowEnd(u128::from(service.as_nanos().to_bits()) << 32 | u128::from(flow))
    }

    fn service(self) -> Time {
        Time::from_nanos(f64::from_bits((self.0 >> 32) as u64))
    }

    fn flow(self) -> u32 {
        self.0 as u32
    }
}

/// A flow that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EndedFlow {
    /// Number of the flow.
    pub flow: u32,
    /// Number of its class.
    pub class: u32,
    /// When its last byte has passed.
    pub end: Time,
    /// The share that it had in the end.
    pub share: AllocatedFraction,
    /// Since when it had this share.
    pub steady: Time,
}

/// A flow's new allocation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateChange {
    /// Number of the flow whose allocation changes.
    pub flow: u32,
    /// Its share, and what limits it.
    pub allocation: Allocation,
}

/// The flows in flight.
#[derive(Debug, Clone, Default)]
pub struct FlowsInFlight {
    active_flows: ActiveFlows,
    classes: Vec<FlowClass>,
    /// Those of the links, then each class's own.
    clocks: Vec<ServiceClock>,
    links: u32,
    /// By link: the class of the only flow over it, if that is alone on all of its links; empty if the model has to know of
    /// such flows.
    lone: Vec<u32>,
    /// By class: its index in the heap of its clock.
    indices: Vec<u32>,
    /// By clock.
    ends: IndexedHeap,
    count: usize,
    changes: Changes,
    shows_changes: bool,
    /// Clocks whose next end may have changed.
    unsettled: Vec<u32>,
    /// Flows that have started and whose share was not shown yet; empty if changes are not shown.
    fresh: Vec<(u32, u32)>,
}

impl FlowsInFlight {
    /// No flows, on the links of a fabric; `shows_changes`: whether [`FlowsInFlight::update_rates`] is to show the
    /// changes flow by flow, which takes as much time as there are.
    pub fn new(fabric: &Fabric, model: &dyn RateModel, shows_changes: bool) -> FlowsInFlight {
        let links = fabric.link_count();
        FlowsInFlight {
            active_flows: ActiveFlows::within(links, model.reach()),
            clocks: vec![ServiceClock::default(); links],
            links: links as u32,
            lone: if model.is_by_path() && !shows_changes {
                vec![NONE; links]
            } else {
                Vec::new()
            },
            changes: Changes {
                may_name_links: !shows_changes,
                ..Changes::default()
            },
            shows_changes,
            ..FlowsInFlight::default()
        }
    }

    /// How many flows there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The next end at the rates of now; flows of classes that have just started have none before
    /// [`FlowsInFlight::update_rates`].
    pub fn next_end(&self) -> Option<Time> {
        self.ends.first().map(|(end, _)| end)
    }

    /// A flow starts on the path that its class has in the fabric, with this much time at the share 1 to go. Only models that
    /// allocate by path take several flows of a class at a time.
    pub fn start(&mut self, fabric: &Fabric, flow: u32, class: u32, now: Time, work: Time) {
        if self.classes.len() <= class as usize {
            self.classes
                .resize_with(class as usize + 1, FlowClass::default);
        }
        self.count += 1;
        let is_lone = self.is_lone(fabric, class);
        if !is_lone {
            self.active_flows
                .insert(class, &fabric.paths[class as usize]);
        }
        if self.shows_changes {
            self.fresh.push((class, flow));
        }
        let own = &mut self.classes[class as usize];
        if own.clock != NONE {
            let clock = &mut self.clocks[own.clock as usize];
            clock.advance(now);
            own.service += clock.service - own.seen;
            own.seen = clock.service;
        }
        own.push(FlowEnd::new(own.service + work, flow));
        if is_lone {
            let share = fabric.uncontended_share(&fabric.paths[class as usize]);
            self.give_own_share(class, share.0, now);
            self.settle();
        } else if own.clock != NONE {
            self.note_end(class);
            self.settle();
        }
    }

    /// Whether a flow that starts shares no link. Lone flows that it meets come to the model's notice.
    fn is_lone(&mut self, fabric: &Fabric, class: u32) -> bool {
        if self.lone.is_empty() {
            return false;
        }
        let links = fabric.paths[class as usize].data();
        let mut is_lone = true;
        for link in links {
            let lone = self.lone[link.index()];
            if lone != NONE {
                self.forget_lone(fabric, lone);
                self.active_flows.insert(lone, &fabric.paths[lone as usize]);
            }
            is_lone &= self.active_flows.flows_over(*link) == 0;
        }
        if is_lone {
            for link in links {
                self.lone[link.index()] = class;
            }
        }
        is_lone
    }

    fn forget_lone(&mut self, fabric: &Fabric, class: u32) {
        for link in fabric.paths[class as usize].data() {
            self.lone[link.index()] = NONE;
        }
    }

    /// Ends the next flow if its end is not after `limit`.
    pub fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<EndedFlow> {
        let (end, number) = self.ends.first().filter(|(end, _)| *end <= limit)?;
        let clock = &mut self.clocks[number as usize];
        let (service, class) = clock.ends.first().expect("a clock with an end has classes");
        (clock.service, clock.read) = (service, end);
        let own = &mut self.classes[class as usize];
        let ended = own.next.expect("a class with an end has flows");
        own.next = own.others.pop().map(|Reverse(next)| next);
        (own.service, own.seen) = (ended.service(), service);
        let ended = EndedFlow {
            flow: ended.flow(),
            class,
            end,
            share: AllocatedFraction(clock.share),
            steady: clock.steady.max(own.since),
        };
        self.count -= 1;
        let path = &fabric.paths[class as usize];
        let is_empty = own.next.is_none();
        if self.lone.get(path.out().index()) == Some(&class) {
            self.forget_lone(fabric, class);
        } else {
            self.active_flows.remove(class, path);
        }
        if is_empty {
            self.leave_clock(class);
            let own = &mut self.classes[class as usize];
            (own.service, own.allocation) = (Time::ZERO, NOTHING_YET);
        } else {
            self.note_end(class);
        }
        self.settle();
        Some(ended)
    }

    /// Lets the model allocate anew what the last starts and ends have changed; each change goes to `notify` if changes are
    /// shown.
    ///
    /// # Errors
    /// Those of the model.
    pub fn update_rates(
        &mut self,
        fabric: &Fabric,
        model: &mut dyn RateModel,
        now: Time,
        mut notify: impl FnMut(RateChange),
    ) -> Result<(), SharingError> {
        if self.active_flows.touched().is_empty() {
            return Ok(());
        }
        let mut changes = std::mem::take(&mut self.changes);
        model.update(fabric, &mut self.active_flows, &mut changes)?;
        self.active_flows.settle();
        for (link, share) in changes.links.drain(..) {
            self.change_share(link.0, share, now);
        }
        for (class, LinkId(link)) in changes.held.drain(..) {
            self.hold(class, link, now);
        }
        for (class, allocation) in changes.flows.drain(..) {
            self.allocate(class, allocation, now, &mut notify);
        }
        for (class, flow) in self.fresh.drain(..) {
            let allocation = self.classes[class as usize].allocation;
            notify(RateChange { flow, allocation });
        }
        self.changes = changes;
        self.settle();
        Ok(())
    }

    /// A class gets a share of its own.
    fn allocate(
        &mut self,
        class: u32,
        allocation: Allocation,
        now: Time,
        notify: &mut impl FnMut(RateChange),
    ) {
        let own = &mut self.classes[class as usize];
        if own.next.is_none() || own.allocation == allocation {
            return;
        }
        own.allocation = allocation;
        if self.shows_changes {
            for flow in own.flows() {
                notify(RateChange { flow, allocation });
            }
        }
        self.give_own_share(class, allocation.share.0, now);
    }

    fn give_own_share(&mut self, class: u32, share: f64, now: Time) {
        let clock = self.links + class;
        if self.clocks.len() <= clock as usize {
            self.clocks
                .resize_with(clock as usize + 1, ServiceClock::default);
        }
        self.change_share(clock, share, now);
        self.hold(class, clock, now);
    }

    fn change_share(&mut self, number: u32, share: f64, now: Time) {
        let clock = &mut self.clocks[number as usize];
        if clock.share != share {
            clock.advance(now);
            (clock.share, clock.steady) = (share, now);
            if clock.ends.first().is_some() {
                self.unsettle(number);
            }
        }
    }

    fn unsettle(&mut self, number: u32) {
        if !std::mem::replace(&mut self.clocks[number as usize].is_unsettled, true) {
            self.unsettled.push(number);
        }
    }

    /// A class gets the service that this clock shows.
    fn hold(&mut self, class: u32, number: u32, now: Time) {
        let from = self.classes[class as usize].clock;
        if from == number {
            return;
        }
        if from != NONE {
            self.clocks[from as usize].advance(now);
            let own = &mut self.classes[class as usize];
            own.service += self.clocks[from as usize].service - own.seen;
            self.leave_clock(class);
        }
        let clock = &mut self.clocks[number as usize];
        clock.advance(now);
        if clock.ends.first().is_none() {
            // So that times of a flow without others are exact.
            clock.service = Time::ZERO;
        }
        let own = &mut self.classes[class as usize];
        (own.clock, own.since, own.seen) = (number, now, clock.service);
        self.note_end(class);
    }

    fn leave_clock(&mut self, class: u32) {
        let number = std::mem::replace(&mut self.classes[class as usize].clock, NONE);
        let clock = &mut self.clocks[number as usize];
        clock.ends.remove(&mut self.indices, class);
        self.unsettle(number);
    }

    /// The next end of a class comes at another service of its clock.
    fn note_end(&mut self, class: u32) {
        let own = &self.classes[class as usize];
        let next = own.next.expect("the class has flows");
        let service = own.seen + (next.service() - own.service).max(Time::ZERO);
        let number = own.clock;
        self.clocks[number as usize]
            .ends
            .set(&mut self.indices, class, service);
        self.unsettle(number);
    }

    fn settle(&mut self) {
        for number in self.unsettled.drain(..) {
            let clock = &mut self.clocks[number as usize];
            clock.is_unsettled = false;
            let end = clock.next_end();
            if end == clock.end {
                continue;
            }
            clock.end = end;
            if end < Time::NEVER {
                self.ends.set(number, end);
            } else {
                self.ends.remove(number);
            }
        }
    }
}
