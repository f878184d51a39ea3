//! Many flows on few paths in flight: the fast form of [`in_flight`](super::in_flight) for models that allocate by path.
//!
//! Nothing is computed for a flow between its start and its end. Flows of one class, which take the same path, get the same
//! service: the work that each of them has received since some instant. A flow ends when the service has reached its value
//! at the flow's start plus the flow's work. Classes that one link limits have the link's share, so that the link's clock
//! gives the service of all of them (the virtual time of fair queueing: Demers, Keshav and Shenker, 1989). The cost of an
//! event is therefore proportional to the number of link shares that it changes, and of classes whose limiting link changes.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use super::progress::{FlowProgress, RateChange};
use crate::queues::indexed::{IndexedHeap, PartialHeap};
use flowcast_network::sharing::{
    Changes, RateModel, SharingError,
    active_flows::ActiveFlows,
    completion::FlowCompletion,
    fabric::{Fabric, FlowPath, LinkId},
};
use flowcast_units::Time;

/// Value for the link of a class without flows, or whose flows have no share yet.
const NONE: u32 = u32::MAX;

/// Service that the flows limited by a link have received, in time at the share 1.
#[derive(Debug, Clone)]
struct ServiceClock {
    service: Time,
    /// Time at which the clock had this value.
    read: Time,
    share: f64,
    /// Time since which it has had this share.
    steady: Time,
    /// Time at which the next flow ends, as in the heap of ends; never if the heap has no such entry.
    end: Time,
    /// `true` if that time may have changed.
    is_unsettled: bool,
    /// Service at which the next flow of each class ends.
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
        // A link that limits nothing has an infinite share.
        if elapsed > Time::ZERO && self.share < f64::INFINITY {
            self.service += elapsed * self.share;
        }
        self.read = now;
    }

    /// Time at which the next flow ends.
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
    /// Link that limits its flows.
    link: u32,
    /// Time since which that link limits them.
    since: Time,
    /// Service that a flow of the class would have received since the first flow's start, when the clock had the value
    /// `seen`.
    service: Time,
    seen: Time,
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
}

impl Default for FlowClass {
    fn default() -> FlowClass {
        FlowClass {
            link: NONE,
            since: Time::ZERO,
            service: Time::ZERO,
            seen: Time::ZERO,
            next: None,
            others: BinaryHeap::new(),
        }
    }
}

/// End of a flow: bits of the service of its class at that time, followed by the flow's number. The bits of services that
/// are not negative have the order of the services.
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

/// Flows in flight by class. A class has the number of the first flow with the same path.
#[derive(Debug, Clone)]
pub(super) struct FlowClasses {
    active_flows: ActiveFlows,
    /// Number of the class of each flow, indexed by flow.
    class_of: Vec<u32>,
    /// Start and work of each flow, indexed by flow.
    started: Vec<(Time, Time)>,
    /// Flows in flight of each class, indexed by class.
    classes: Vec<FlowClass>,
    /// Service of the flows that each link limits, indexed by link.
    clocks: Vec<ServiceClock>,
    /// Index of each class in the heap of its link, indexed by class.
    indices: Vec<u32>,
    /// Time at which the next flow of each link ends, indexed by link.
    ends: IndexedHeap,
    count: usize,
    changes: Changes,
    /// Links whose next end may have changed.
    unsettled: Vec<u32>,
}

impl FlowClasses {
    /// Creates traffic without flows, on the paths and links of a fabric.
    pub(super) fn new(fabric: &Fabric) -> FlowClasses {
        let (links, flows) = (fabric.link_count(), fabric.paths.len());
        FlowClasses {
            active_flows: ActiveFlows::with_crossings(links),
            class_of: first_with_same_path(&fabric.paths),
            started: vec![(Time::ZERO, Time::ZERO); flows],
            classes: vec![FlowClass::default(); flows],
            clocks: vec![ServiceClock::default(); links],
            indices: Vec::new(),
            ends: IndexedHeap::default(),
            count: 0,
            changes: Changes {
                may_name_links: true,
                ..Changes::default()
            },
            unsettled: Vec::new(),
        }
    }

    fn change_share(&mut self, link: u32, share: f64, now: Time) {
        let clock = &mut self.clocks[link as usize];
        if clock.share != share {
            clock.advance(now);
            (clock.share, clock.steady) = (share, now);
            self.unsettle(link);
        }
    }

    /// Makes this link the limit of a class, so that the link's clock counts the service of the class.
    fn hold(&mut self, class: u32, link: u32, now: Time) {
        let from = self.classes[class as usize].link;
        if from != NONE {
            self.clocks[from as usize].advance(now);
            let own = &mut self.classes[class as usize];
            own.service += self.clocks[from as usize].service - own.seen;
            self.leave_link(class);
        }
        let clock = &mut self.clocks[link as usize];
        clock.advance(now);
        if clock.ends.first().is_none() {
            // Times of a flow without others are then exact.
            clock.service = Time::ZERO;
        }
        let own = &mut self.classes[class as usize];
        (own.link, own.since, own.seen) = (link, now, clock.service);
        self.note_end(class);
    }

    fn leave_link(&mut self, class: u32) {
        let link = std::mem::replace(&mut self.classes[class as usize].link, NONE);
        self.clocks[link as usize]
            .ends
            .remove(&mut self.indices, class);
        self.unsettle(link);
    }

    /// Updates the next end of a class in the heap of its link: the value of the link's clock at which the class's next flow
    /// ends.
    fn note_end(&mut self, class: u32) {
        let own = &self.classes[class as usize];
        let next = own.next.expect("the class has flows");
        let service = own.seen + (next.service() - own.service).max(Time::ZERO);
        let link = own.link;
        self.clocks[link as usize]
            .ends
            .set(&mut self.indices, class, service);
        self.unsettle(link);
    }

    fn unsettle(&mut self, link: u32) {
        if !std::mem::replace(&mut self.clocks[link as usize].is_unsettled, true) {
            self.unsettled.push(link);
        }
    }

    fn settle(&mut self) {
        for link in self.unsettled.drain(..) {
            let clock = &mut self.clocks[link as usize];
            clock.is_unsettled = false;
            let end = clock.next_end();
            if end == clock.end {
                continue;
            }
            clock.end = end;
            if end < Time::NEVER {
                self.ends.set(link, end);
            } else {
                self.ends.remove(link);
            }
        }
    }
}

impl FlowProgress for FlowClasses {
    fn count(&self) -> usize {
        self.count
    }

    fn flows_over(&self, link: LinkId) -> u64 {
        u64::from(self.active_flows.flows_over(link))
    }

    fn next_end(&self) -> Option<Time> {
        self.ends.first().map(|(end, _)| end)
    }

    fn start(&mut self, fabric: &Fabric, flow: u32, now: Time, work: Time) {
        let class = self.class_of[flow as usize];
        self.started[flow as usize] = (now, work);
        self.active_flows
            .insert(class, &fabric.paths[class as usize]);
        self.count += 1;
        let own = &mut self.classes[class as usize];
        let is_held = own.link != NONE;
        if is_held {
            let clock = &mut self.clocks[own.link as usize];
            clock.advance(now);
            own.service += clock.service - own.seen;
            own.seen = clock.service;
        }
        own.push(FlowEnd::new(own.service + work, flow));
        if is_held {
            self.note_end(class);
            self.settle();
        }
    }

    fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<(u32, FlowCompletion)> {
        let (end, link) = self.ends.first().filter(|(end, _)| *end <= limit)?;
        let clock = &mut self.clocks[link as usize];
        let (service, class) = clock
            .ends
            .first()
            .expect("a link with an end holds classes");
        (clock.service, clock.read) = (service, end);
        let own = &mut self.classes[class as usize];
        let ended = own.next.expect("a class with an end has flows");
        own.next = own.others.pop().map(|Reverse(next)| next);
        (own.service, own.seen) = (ended.service(), service);
        let (start, work) = self.started[ended.flow() as usize];
        // The duration of a flow whose share never changed is exact. Other durations depend on the start.
        let duration = if clock.steady.max(own.since) <= start {
            Time::from_nanos(work.as_nanos() / clock.share)
        } else {
            end - start
        };
        self.active_flows
            .remove(class, &fabric.paths[class as usize]);
        self.count -= 1;
        if own.next.is_none() {
            own.service = Time::ZERO;
            self.leave_link(class);
        } else {
            self.note_end(class);
        }
        self.settle();
        Some((ended.flow(), FlowCompletion { end, duration }))
    }

    fn update_rates(
        &mut self,
        fabric: &Fabric,
        model: &mut dyn RateModel,
        now: Time,
        _notify: impl FnMut(RateChange),
    ) -> Result<(), SharingError> {
        if self.active_flows.touched().is_empty() {
            return Ok(());
        }
        let mut changes = std::mem::take(&mut self.changes);
        model.update(fabric, &mut self.active_flows, &mut changes)?;
        self.active_flows.settle();
        for (LinkId(link), share) in changes.links.drain(..) {
            self.change_share(link, share, now);
        }
        for (class, LinkId(link)) in changes.held.drain(..) {
            if self.classes[class as usize].link != link {
                self.hold(class, link, now);
            }
        }
        self.changes = changes;
        self.settle();
        Ok(())
    }
}

fn first_with_same_path(paths: &[FlowPath]) -> Vec<u32> {
    let mut first = HashMap::new();
    let mut classes = Vec::with_capacity(paths.len());
    for (path, flow) in paths.iter().zip(0..) {
        let known: u32 = *first.entry((path.src, path.dst)).or_insert(flow);
        // Another way between the same ends is another class.
        let is_same = paths[known as usize] == *path;
        classes.push(if is_same { known } else { flow });
    }
    classes
}
