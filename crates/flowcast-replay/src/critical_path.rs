//! What limits a replay: the chain of causes that ends where the last rank ends.
//!
//! The walk begins at the end of the rank that ends last and goes back in time. A stretch of the rank's own work
//! leads to its start; a wait leads to what ended it: for a message to its sender at the moment when it began to move
//! (or, if a rendezvous had to wait, to the receiver when it asked), past its wait for links if there was one, for a late receiver to that receiver, for a
//! collective to the rank that came last. Every nanosecond on the way belongs to one [`Limit`], so the shares add up
//! to the makespan. The time of a replay is a maximum over such chains (max-plus algebra), hence each share is also
//! a lower bound of what the makespan grows by when the parameter behind it grows.

mod words;

use super::record::{Cause, Flight, Messages, Recorder, Stretch};
use super::timeline::Activity;
use flowcast_units::{Bytes, Rank, Time};

/// What a part of the critical path is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// The program's own computation.
    Compute,
    /// Processor time for messages (`o` of LogGP, the start-up of Dimemas).
    Overhead,
    /// The rest that an interface takes between two messages (`g` of LogGP).
    Gap,
    /// The part of a message's way that no bandwidth would shorten.
    Latency,
    /// The part of a message's way that grows with its size.
    Bandwidth,
    /// Messages that wait for links or buses which others have.
    Contention,
    /// Collective operations after all have come.
    Collective,
    /// Anything else; a complete record leaves nothing here.
    Other,
}

impl Limit {
    /// All of them, in the order in which equal shares are shown.
    pub const ALL: [Limit; 8] = [
        Limit::Compute,
        Limit::Overhead,
        Limit::Gap,
        Limit::Latency,
        Limit::Bandwidth,
        Limit::Contention,
        Limit::Collective,
        Limit::Other,
    ];

    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::Compute => "compute",
            Limit::Overhead => "overhead",
            Limit::Gap => "gap",
            Limit::Latency => "latency",
            Limit::Bandwidth => "bandwidth",
            Limit::Contention => "contention",
            Limit::Collective => "collective",
            Limit::Other => "other",
        }
    }
}

/// A piece of the critical path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The rank that works or waits.
    pub rank: Rank,
    /// Its beginning: the end of the step before.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// What it is spent on.
    pub limit: Limit,
}

/// One limit's part of the makespan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// What the time is spent on.
    pub limit: Limit,
    /// How much of it.
    pub time: Time,
    /// Of the makespan, from 0 to 1.
    pub fraction: f64,
}

/// What is counted along the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages whose latency is on it.
    pub messages: u64,
    /// Bytes whose transfer is on it.
    pub bytes: Bytes,
    /// Times that a processor handled a message.
    pub overheads: u64,
    /// Times that an interface rested.
    pub gaps: u64,
    /// Collective operations.
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
    pub counts: Counts,
}

/// What no bandwidth would shorten on the way of a message: its latency, and the rest of its interface.
#[derive(Debug, Clone, Copy)]
pub struct Steady {
    /// The latency.
    pub latency: Time,
    /// The rest.
    pub gap: Time,
}

/// Follows the causes back from the end of the last rank; `steady` tells of the way of a message, by slot.
pub fn walk_back<M: Messages>(program: &M, recorder: &Recorder, steady: impl Fn(u32) -> Steady) -> CriticalPath {
    let own = recorder.ranks.iter().take(program.ranks());
    let ends = own.map(|stretches| stretches.last().map_or(Time::ZERO, |last| last.segment.end));
    let ends: Vec<Time> = ends.collect();
    let makespan = ends.iter().copied().fold(Time::ZERO, Time::max);
    let last = ends.iter().position(|end| *end == makespan).unwrap_or(0);
    let path = CriticalPath { makespan, ..CriticalPath::default() };
    let mut walk = Walk { program, recorder, rank: last as u32, at: makespan, path };
    // No stretch can be met twice, since each is left for something that happened before its end.
    let mut left: usize = recorder.ranks.iter().map(Vec::len).sum();
    while walk.at > Time::ZERO {
        match walk.stretch().filter(|_| left > 0) {
            Some(stretch) => walk.follow(stretch, &steady),
            None => walk.spend(Limit::Other, Time::ZERO),
        }
        left = left.saturating_sub(1);
    }
    walk.path.steps.reverse();
    walk.path
}

struct Walk<'a, M> {
    program: &'a M,
    recorder: &'a Recorder,
    rank: u32,
    at: Time,
    path: CriticalPath,
}

impl<'a, M: Messages> Walk<'a, M> {
    /// The stretch of the rank that leads to the present time.
    fn stretch(&self) -> Option<&'a Stretch> {
        let stretches = &self.recorder.ranks[self.rank as usize];
        let begun = stretches.partition_point(|stretch| stretch.segment.start < self.at);
        begun.checked_sub(1).map(|index| &stretches[index])
    }

    /// Moves back to `start`; the time between is spent on `limit`.
    fn spend(&mut self, limit: Limit, start: Time) {
        if start < self.at {
            self.path.steps.push(Step { rank: self.program.owner(Rank(self.rank)), start, end: self.at, limit });
            self.at = start;
        }
    }

    fn follow(&mut self, stretch: &Stretch, steady: impl Fn(u32) -> Steady) {
        let segment = stretch.segment;
        if segment.end != self.at {
            // Causes are known for the ends of stretches only.
            let known = if segment.end < self.at { segment.end } else { segment.start };
            return self.spend(Limit::Other, known);
        }
        match stretch.cause {
            Cause::Own => self.follow_own(stretch),
            Cause::Message(slot) => self.follow_message(slot, steady(slot)),
            Cause::Release(slot) => self.follow_release(slot),
            Cause::Receiver(slot) => self.rank = self.receiver(slot),
            Cause::Bytes => self.spend(Limit::Bandwidth, segment.start),
            Cause::Interface(slot) => self.follow_interface(slot, steady(slot)),
            Cause::LastOf(rank, came) => {
                self.path.counts.collectives += u64::from(came < self.at);
                self.spend(Limit::Collective, came);
                self.rank = rank.0;
            }
        }
    }

    fn follow_own(&mut self, stretch: &Stretch) {
        let limit = match stretch.segment.activity {
            Activity::Compute => Limit::Compute,
            Activity::Overhead => Limit::Overhead,
            _ => Limit::Other,
        };
        self.path.counts.overheads += u64::from(limit == Limit::Overhead);
        self.spend(limit, stretch.segment.start);
    }

    fn follow_message(&mut self, slot: u32, steady: Steady) {
        let flight = self.flight(slot);
        let start = Time::from_nanos(flight.start);
        self.spend(Limit::Bandwidth, start + steady.latency);
        self.spend(Limit::Latency, start);
        self.spend(Limit::Contention, Time::from_nanos(flight.asked));
        self.path.counts.messages += 1;
        self.count_bytes(slot);
        self.go_where_it_began(slot, flight);
    }

    /// The sender of a rendezvous waited until its own message had left.
    fn follow_release(&mut self, slot: u32) {
        let flight = self.flight(slot);
        self.spend(Limit::Bandwidth, Time::from_nanos(flight.start));
        self.spend(Limit::Contention, Time::from_nanos(flight.asked));
        self.count_bytes(slot);
        self.go_where_it_began(slot, flight);
    }

    /// The sender waited for its interface, which rested from the start of the message before.
    fn follow_interface(&mut self, slot: u32, steady: Steady) {
        let flight = self.flight(slot);
        let begun = Time::from_nanos(flight.begun);
        self.spend(Limit::Bandwidth, begun + steady.gap);
        self.spend(Limit::Gap, begun);
        self.path.counts.gaps += 1;
        self.count_bytes(slot);
    }

    fn flight(&self, slot: u32) -> &'a Flight {
        &self.recorder.flights[slot as usize]
    }

    fn receiver(&self, slot: u32) -> u32 {
        self.program.message(slot, self.flight(slot)).0.0
    }

    fn count_bytes(&mut self, slot: u32) {
        let (_, Bytes(size), _) = self.program.message(slot, self.flight(slot));
        let Bytes(counted) = &mut self.path.counts.bytes;
        *counted = counted.saturating_add(size);
    }

    fn go_where_it_began(&mut self, slot: u32, flight: &Flight) {
        let waited = flight.asked > flight.ready;
        self.rank = if waited { self.receiver(slot) } else { flight.from };
    }
}

impl CriticalPath {
    /// What the makespan is spent on, largest share first; limits without a share are left out.
    pub fn shares(&self) -> Vec<Share> {
        let share = |limit: Limit| {
            let time = self.steps.iter().filter(|step| step.limit == limit).map(|step| step.end - step.start).sum();
            Share { limit, time, fraction: fraction(time, self.makespan) }
        };
        let mut shares: Vec<Share> =
            Limit::ALL.into_iter().map(share).filter(|share| share.time > Time::ZERO).collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.time));
        shares
    }

    /// The ranks on the path with their time on it, longest first.
    pub fn ranks(&self) -> Vec<(Rank, Time)> {
        let mut times = std::collections::BTreeMap::new();
        for step in &self.steps {
            *times.entry(step.rank).or_insert(Time::ZERO) += step.end - step.start;
        }
        let mut times: Vec<(Rank, Time)> = times.into_iter().collect();
        times.sort_by_key(|(rank, time)| (std::cmp::Reverse(*time), *rank));
        times
    }
}

fn fraction(part: Time, whole: Time) -> f64 {
    if whole > Time::ZERO { part.as_nanos() / whole.as_nanos() } else { 0.0 }
}
