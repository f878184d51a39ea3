//! What limits a replay: the chain of causes that ends where the last rank ends.
//!
//! The search begins at the end of the rank that ends last and goes back in time. An interval of the rank's own work
//! leads to the interval's start. A wait leads to what ended it: a wait for a message to its sender at the time when it
//! began to move (past its wait for links, or, if a rendezvous had to wait, to the receiver when that posted its receive),
//! a wait for a late receiver to that receiver, a wait in a collective to the rank that came last. Every nanosecond on this
//! path belongs to one [`TimePart`], so the shares add up to the makespan. The time of a replay is a maximum over such chains (max-plus algebra), hence each share is also
//! a lower bound of what the makespan grows by when the parameter behind it grows.

mod sentences;

use super::{
    costs::PathCosts,
    flights::Flight,
    journal::Journal,
    loggops::{
        costs::{Costs, Travel},
        sends::Sends,
    },
    time_part::TimePart,
    timeline::{Activity, Cause, Interval},
    walk::Replay,
};
use flowcast_trace::slot::Slot;
use flowcast_units::{Bytes, Rank, Time};
use std::cmp::Reverse;

/// A piece of the critical path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The rank that works or waits.
    pub rank: Rank,
    /// Its beginning: the end of the step before.
    pub start: Time,
    /// Its end: the beginning of the step behind it.
    pub end: Time,
    /// What it is spent on.
    pub limit: TimePart,
}

/// One limit's part of the makespan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// What the time is spent on.
    pub limit: TimePart,
    /// How much of it.
    pub time: Time,
    /// Of the makespan, from 0 to 1.
    pub fraction: f64,
}

/// What is counted along the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepCounts {
    /// Messages whose latency is on it.
    pub messages: u64,
    /// Bytes whose transfer is on it.
    pub bytes: Bytes,
    /// Times that a processor handled a message.
    pub overheads: u64,
    /// Times that an interface rested.
    pub gaps: u64,
    /// Collective operations whose time is on it.
    pub collectives: u64,
}

/// The chain of causes behind a makespan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CriticalPath {
    /// When the last rank ended.
    pub makespan: Time,
    /// From the beginning to the makespan without gaps.
    pub steps: Vec<Step>,
    /// What lies on it.
    pub counts: StepCounts,
}

/// The parts of a message's time that no bandwidth would shorten.
#[derive(Debug, Clone, Copy)]
struct Steady {
    latency: Time,
    gap: Time,
}

impl Replay<'_> {
    /// The critical path of the replay that `journal` observed; empty if the journal kept no causes.
    pub fn critical_path(&self, journal: &Journal<'_>) -> CriticalPath {
        search(journal, |slot, _| {
            let path = self.path(slot);
            Steady {
                latency: path.latency,
                gap: path.gap,
            }
        })
    }

    /// What messages cost on the route that this one takes.
    pub(crate) fn path(&self, slot: Slot) -> &PathCosts {
        &self.costs.paths[self
            .route_of
            .get(slot.index())
            .map_or(0, |route| usize::from(*route))]
    }
}

impl Sends<'_> {
    /// The critical path of the replay that `journal` observed; `None` if a rank has several processors, whose intervals
    /// overlap.
    pub fn critical_path(&self, costs: Costs<'_>, journal: &Journal<'_>) -> Option<CriticalPath> {
        (self.cpus() <= 1).then(|| {
            search(journal, |slot: Slot, flight: &Flight| {
                let message = self.sent(flight.from, slot);
                let Travel {
                    latency, interface, ..
                } = costs.travel(flight.from, message.to, message.size);
                Steady {
                    latency,
                    gap: interface.map_or(Time::ZERO, |(gap, _)| gap),
                }
            })
        })
    }
}

/// Follows the causes back from the end of the last rank.
fn search(journal: &Journal<'_>, steady: impl Fn(Slot, &Flight) -> Steady) -> CriticalPath {
    let source = journal.source();
    let intervals = |stream: usize| journal.intervals(Rank(stream as u32));
    let ends = (0..source.ranks()).map(|rank| {
        intervals(rank)
            .last()
            .map_or(Time::ZERO, |last| last.segment.end)
    });
    let ends: Vec<Time> = ends.collect();
    let makespan = ends.iter().copied().max().unwrap_or_default();
    let last = ends.iter().position(|end| *end == makespan).unwrap_or(0);
    let path = CriticalPath {
        makespan,
        ..CriticalPath::default()
    };
    let mut search = CriticalPathSearch {
        journal,
        steady,
        stream: Rank(last as u32),
        at: makespan,
        path,
    };
    // No interval is met twice, since each is left for something that happened before its end.
    let mut left: usize = (0..source.streams())
        .map(|stream| intervals(stream).len())
        .sum();
    while search.at > Time::ZERO {
        match search.interval().filter(|_| left > 0) {
            Some(interval) => search.follow(interval),
            None => search.spend(TimePart::Other, Time::ZERO),
        }
        left = left.saturating_sub(1);
    }
    search.path.steps.reverse();
    search.path
}

struct CriticalPathSearch<'a, S> {
    journal: &'a Journal<'a>,
    steady: S,
    stream: Rank,
    at: Time,
    path: CriticalPath,
}

impl<'a, S: Fn(Slot, &Flight) -> Steady> CriticalPathSearch<'a, S> {
    /// The interval of the rank that leads to the present time.
    fn interval(&self) -> Option<&'a Interval> {
        let intervals = self.journal.intervals(self.stream);
        let begun = intervals.partition_point(|interval| interval.segment.start < self.at);
        begun.checked_sub(1).map(|index| &intervals[index])
    }

    /// Moves back to `start`; the time between is spent on `limit`.
    fn spend(&mut self, limit: TimePart, start: Time) {
        if start < self.at {
            let rank = self.journal.source().owner(self.stream);
            self.path.steps.push(Step {
                rank,
                start,
                end: self.at,
                limit,
            });
            self.at = start;
        }
    }

    fn follow(&mut self, interval: &Interval) {
        let segment = interval.segment;
        if segment.end != self.at {
            // Causes are known for the ends of intervals only.
            let known = if segment.end < self.at {
                segment.end
            } else {
                segment.start
            };
            return self.spend(TimePart::Other, known);
        }
        match interval.cause {
            Cause::Own => self.follow_own(interval),
            Cause::Message(slot) => self.follow_message(slot),
            Cause::Release(slot) => self.follow_release(slot),
            Cause::Receiver(slot) => self.stream = self.receiver(slot),
            Cause::Bytes => self.spend(TimePart::Bandwidth, segment.start),
            Cause::Interface(slot) => self.follow_interface(slot),
            Cause::LastOf(rank, came) => {
                self.path.counts.collectives += u64::from(came < self.at);
                self.spend(TimePart::Collective, came);
                self.stream = rank;
            }
        }
    }

    fn follow_own(&mut self, interval: &Interval) {
        let limit = match interval.segment.activity {
            Activity::Compute => TimePart::Compute,
            Activity::Overhead => TimePart::Overhead,
            Activity::ProcessorWait => TimePart::Processor,
            _ => TimePart::Other,
        };
        self.path.counts.overheads += u64::from(limit == TimePart::Overhead);
        self.spend(limit, interval.segment.start);
    }

    fn follow_message(&mut self, slot: Slot) {
        let flight = self.journal.flight(slot);
        let start = flight.start.unwrap_or(self.at);
        self.spend(
            TimePart::Bandwidth,
            start + (self.steady)(slot, &flight).latency,
        );
        self.spend(TimePart::Latency, start);
        self.path.counts.messages += 1;
        self.leave_message(slot, flight);
    }

    /// The sender waited until its own message had left.
    fn follow_release(&mut self, slot: Slot) {
        let flight = self.journal.flight(slot);
        self.spend(TimePart::Bandwidth, flight.start.unwrap_or(self.at));
        self.leave_message(slot, flight);
    }

    /// From the start of a message past its wait for links to the rank that let it begin.
    fn leave_message(&mut self, slot: Slot, flight: Flight) {
        self.spend(TimePart::Contention, flight.asked.unwrap_or(self.at));
        self.count_bytes(slot, &flight);
        self.stream = flight.from;
        if flight.asked > flight.departs {
            // Where ranks progress messages in calls alone, it may have waited for its sender to come to one.
            let receiver = self.receiver(slot);
            let is_of_sender = self.ends_now(flight.from) && !self.ends_now(receiver);
            self.stream = if is_of_sender { flight.from } else { receiver };
            return;
        }
        if let Some(before) = flight.behind {
            self.path.counts.overheads += 1;
            self.spend(TimePart::Overhead, flight.started().unwrap_or(self.at));
            self.follow_interface(before);
        }
    }

    /// A message waited for the interface, which rested from the start of the message before; and so on up to the message for
    /// which it was free.
    fn follow_interface(&mut self, slot: Slot) {
        let mut next = Some(slot);
        while let Some(slot) = next {
            let flight = self.journal.flight(slot);
            let begun = flight.started().unwrap_or(self.at);
            self.spend(
                TimePart::Bandwidth,
                begun + (self.steady)(slot, &flight).gap,
            );
            self.spend(TimePart::Gap, begun);
            self.path.counts.gaps += 1;
            self.count_bytes(slot, &flight);
            next = flight.behind;
        }
    }

    /// Whether something that a rank did ends at the present time.
    fn ends_now(&self, stream: Rank) -> bool {
        let intervals = self.journal.intervals(stream);
        let index = intervals.partition_point(|interval| interval.segment.end < self.at);
        intervals
            .get(index)
            .is_some_and(|interval| interval.segment.end == self.at)
    }

    fn receiver(&self, slot: Slot) -> Rank {
        self.journal.message(slot, &self.journal.flight(slot)).to
    }

    fn count_bytes(&mut self, slot: Slot, flight: &Flight) {
        let Bytes(size) = self.journal.message(slot, flight).size;
        let Bytes(counted) = &mut self.path.counts.bytes;
        *counted = counted.saturating_add(size);
    }
}

impl CriticalPath {
    /// What the makespan is spent on, largest share first; limits without a share are left out.
    pub fn shares(&self) -> Vec<Share> {
        let share = |limit: TimePart| {
            let time = self
                .steps
                .iter()
                .filter(|step| step.limit == limit)
                .map(|step| step.end - step.start)
                .sum();
            Share {
                limit,
                time,
                fraction: fraction(time, self.makespan),
            }
        };
        let mut shares: Vec<Share> = TimePart::LIMITS
            .into_iter()
            .map(share)
            .filter(|share| share.time > Time::ZERO)
            .collect();
        shares.sort_by_key(|share| Reverse(share.time));
        shares
    }

    /// The ranks on the path with their time on it, longest first.
    pub fn ranks(&self) -> Vec<(Rank, Time)> {
        let mut times = std::collections::BTreeMap::new();
        for step in &self.steps {
            *times.entry(step.rank).or_insert(Time::ZERO) += step.end - step.start;
        }
        let mut times: Vec<(Rank, Time)> = times.into_iter().collect();
        times.sort_by_key(|(rank, time)| (Reverse(*time), *rank));
        times
    }
}

fn fraction(part: Time, whole: Time) -> f64 {
    if whole > Time::ZERO {
        part.as_nanos() / whole.as_nanos()
    } else {
        0.0
    }
}
