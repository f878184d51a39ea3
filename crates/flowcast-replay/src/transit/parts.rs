//! A network in parts that share no link, solved by several threads.
//!
//! One thread follows the ranks. A message that a rank sends because of an arrival reaches the links of the network only
//! after the look-ahead: the sender's overhead and the latency. Everything that happens in the network until then is settled
//! (Chandy and Misra, 1979). Each part can therefore be solved independently up to this horizon, by the first free thread.
//! The thread that follows the ranks processes the results of a round in the order of time while the other threads solve the
//! next round. The first of these results determines the horizon of that round.
//!
//! A part solves the same equations in the same order, alone or not. The result is therefore identical to the result of
//! one thread, to the last bit, and observers get the same events in the same order.

use std::{
    cmp::Reverse,
    sync::{
        Mutex, MutexGuard,
        atomic::{
            AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
            Ordering::{AcqRel, Acquire, Release},
        },
    },
};

use super::{Delivery, Departure, Leaving, NextProgress, Progress, Shared, Transit};
use flowcast_network::sharing::SharingError;
use flowcast_program::slot::Slot;
use flowcast_units::Time;

/// Number of parts per thread; several, so that faster threads can help slower ones.
const PARTS: usize = 4;

/// Number of events up to the horizon from which several threads are worthwhile.
const WORTH_MEETING: usize = 16;

/// Number of times that a thread looks for work before it yields to other threads between two looks.
const LOOKS: u32 = 4_000;

/// Number of looks per event of a round, in addition to [`LOOKS`], after which other threads count as late: they have no
/// processor of their own. The next rounds are then solved without them.
const LOOKS_PER_EVENT: usize = 32;

/// Exponent of the maximum number of rounds, a power of two, that are solved without late threads.
const LONGEST_PENALTY: u32 = 10;

/// Part of the network that each message crosses.
#[derive(Debug, Clone)]
pub(crate) struct Division {
    parts: usize,
    of_slot: Vec<u8>,
    look_ahead: LookAhead,
}

impl Division {
    /// Assigns components to parts for this number of threads, with about the same number of messages in each part. Returns
    /// `None` if nearly all messages cross the same part. `components` is indexed by route, `route_of` by slot.
    pub(crate) fn new(
        components: &[u32],
        route_of: &[u32],
        look_ahead: LookAhead,
        threads: usize,
    ) -> Option<Division> {
        if look_ahead.horizon(Time::ZERO) == Time::ZERO {
            return None;
        }
        let mut messages = vec![0u64; 1 + *components.iter().max()? as usize];
        for route in route_of {
            messages[components[*route as usize] as usize] += 1;
        }
        let mut used: Vec<usize> = (0..messages.len())
            .filter(|component| messages[*component] > 0)
            .collect();
        used.sort_by_key(|component| Reverse(messages[*component]));
        let parts = (PARTS * threads).min(used.len()).min(usize::from(u8::MAX));
        let mut dealt = vec![0; parts];
        let mut part_of = vec![0; messages.len()];
        for component in used {
            let least = (0..parts).min_by_key(|part| dealt[*part])?;
            dealt[least] += messages[component];
            part_of[component] = least as u8;
        }
        let is_worth_it = dealt.iter().max()? * 5 <= route_of.len() as u64 * 4;
        is_worth_it.then(|| Division {
            parts,
            of_slot: route_of
                .iter()
                .map(|route| part_of[components[*route as usize] as usize])
                .collect(),
            look_ahead,
        })
    }

    /// Number of parts, at least 2.
    pub(crate) fn parts(&self) -> usize {
        self.parts
    }
}

/// Minimum time from an arrival to the first link of a message that a rank sends because of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookAhead {
    /// Part of it on the sender's processor.
    pub overhead: Time,
    /// Part of it between the processor and the first link.
    pub latency: Time,
}

impl LookAhead {
    /// Time before which everything is settled, if the next event is at `next`. The sum is rounded in the same order as the
    /// message's own sum, so that no message is earlier by a bit.
    fn horizon(self, next: Time) -> Time {
        next + self.overhead + self.latency
    }
}

/// A message that has arrived. It is small, since it usually comes from the cache of another processor.
#[derive(Debug, Clone, Copy)]
struct ArrivedMessage {
    delivery: Delivery,
    /// `true` if it had no bytes to move: it is delivered last among messages that arrive at the same time.
    is_empty: bool,
}

impl ArrivedMessage {
    /// Sort key for the order in which a single thread delivers messages.
    fn order(&self) -> (Time, bool, Slot) {
        (self.delivery.arrival, self.is_empty, self.delivery.slot)
    }
}

/// One part with the input and the results of a round.
struct PartRound {
    network: Shared,
    departures: Vec<Leaving>,
    found: Vec<ArrivedMessage>,
    next: Time,
    failure: Option<SharingError>,
}

impl PartRound {
    /// Solves everything that happens before the horizon.
    fn solve(&mut self, horizon: Time) {
        self.failure = self.try_to_solve(horizon).err();
    }

    fn try_to_solve(&mut self, horizon: Time) -> Result<(), SharingError> {
        for leaving in self.departures.drain(..) {
            let route = self.network.routes.of_slot[leaving.slot];
            self.network.leave(leaving, route);
        }
        let limit = Some(Time::from_nanos(horizon.as_nanos().next_down()));
        while let Some(progress) = self.network.deliver(limit)? {
            // No sender is held, and no sender waits for its receiver.
            if let Progress::Arrived(delivery) = progress {
                self.found.push(ArrivedMessage {
                    delivery,
                    is_empty: self.network.are_empty,
                });
            }
        }
        self.next = self.network.next_event().unwrap_or(Time::NEVER);
        Ok(())
    }
}

/// State shared by the threads.
struct ThreadMeeting {
    rounds: Vec<Mutex<PartRound>>,
    /// `true` if no thread has started the part in this round, indexed by part.
    are_open: Vec<AtomicBool>,
    /// Bits of the horizon of this round.
    horizon: AtomicU64,
    /// Number of rounds so far.
    number: AtomicU32,
    /// Number of parts solved in this round.
    solved: AtomicUsize,
    /// `true` if a thread has ended.
    over: AtomicBool,
}

impl ThreadMeeting {
    fn round(&self, part: usize) -> MutexGuard<'_, PartRound> {
        self.rounds[part].lock().expect("no other thread panics")
    }

    /// Starts a round in which other threads may help.
    fn open(&self, horizon: Time) {
        self.horizon.store(horizon.as_nanos().to_bits(), Release);
        self.solved.store(0, Release);
        self.are_open
            .iter()
            .for_each(|is_open| is_open.store(true, Release));
        self.number.fetch_add(1, Release);
    }

    /// Solves a round that is too small for other threads to help.
    fn solve(&self, horizon: Time) {
        let parts = self.rounds.len();
        (0..parts).for_each(|part| self.round(part).solve(horizon));
        self.solved.store(parts, Release);
    }

    /// Solves a part unless another thread has started it.
    fn help_with(&self, part: usize) {
        if self.are_open[part].swap(false, AcqRel) {
            let horizon = f64::from_bits(self.horizon.load(Acquire));
            self.round(part).solve(Time::from_nanos(horizon));
            self.solved.fetch_add(1, Release);
        }
    }

    /// Solves all parts that no other thread has started, beginning with `first`.
    fn help(&self, first: usize) {
        let parts = self.rounds.len();
        (first..parts)
            .chain(0..first)
            .for_each(|part| self.help_with(part));
    }

    /// Helps in every round until a thread ends.
    fn help_always(&self, first: usize) {
        let _over = EndNotice(&self.over);
        let (mut number, mut looks) = (0, 0);
        while !self.over.load(Acquire) {
            let now = self.number.load(Acquire);
            if now == number {
                looks = LOOKS.min(looks + 1);
                match looks {
                    ..LOOKS => std::hint::spin_loop(),
                    _ => std::thread::yield_now(),
                }
            } else {
                (number, looks) = (now, 0);
                self.help(first);
            }
        }
    }

    /// Solves the remaining parts of a round and waits for the other threads. Returns the number of looks during that wait.
    fn close(&self) -> u32 {
        self.help(0);
        let mut looks = 0u32;
        while self.solved.load(Acquire) < self.rounds.len() {
            assert!(!self.over.load(Acquire), "a thread has panicked");
            looks = looks.saturating_add(1);
            match looks {
                ..LOOKS => std::hint::spin_loop(),
                _ => std::thread::yield_now(),
            }
        }
        looks
    }
}

/// Notifies the other threads that this one has ended, even after a panic.
struct EndNotice<'a>(&'a AtomicBool);

impl Drop for EndNotice<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

/// Follows ranks through a network whose parts are solved by this number of threads.
pub(crate) fn side_by_side<R>(
    parts: Vec<Shared>,
    division: &Division,
    threads: usize,
    follow: impl FnOnce(&mut PartedNetwork<'_>) -> R,
) -> R {
    let count = parts.len();
    let meeting = ThreadMeeting {
        rounds: parts
            .into_iter()
            .map(|network| PartRound {
                network,
                departures: Vec::new(),
                found: Vec::new(),
                next: Time::NEVER,
                failure: None,
            })
            .map(Mutex::new)
            .collect(),
        are_open: (0..count).map(|_| AtomicBool::new(false)).collect(),
        horizon: AtomicU64::new(0),
        number: AtomicU32::new(0),
        solved: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let _over = EndNotice(&meeting.over);
        for thread in 1..threads.min(count) {
            let meeting = &meeting;
            scope.spawn(move || meeting.help_always(thread * count / threads));
        }
        follow(&mut PartedNetwork {
            meeting: &meeting,
            division,
            departures: vec![Vec::new(); count],
            expected: 0,
            is_open: false,
            late: 0,
            alone: 0,
            next: Time::NEVER,
            found: Vec::new(),
        })
    })
}

/// A network in parts, as seen by the walk over the ranks. After a failure, a single thread has to find the error again:
/// another part may have failed at an earlier time.
pub(crate) struct PartedNetwork<'a> {
    meeting: &'a ThreadMeeting,
    division: &'a Division,
    /// Departures into each part before the next round, indexed by part.
    departures: Vec<Vec<Leaving>>,
    /// Expected number of events of the next round.
    expected: usize,
    /// `true` if a round has started whose results have not been collected.
    is_open: bool,
    /// Measure of the lateness of other threads: late rounds increase it, other rounds decrease it. `alone` is the number of
    /// the next rounds that are solved without them.
    late: u32,
    alone: u32,
    /// Time before which nothing happens in any part, apart from the results of the round in progress.
    next: Time,
    /// Arrivals up to the horizon, the last one first.
    found: Vec<ArrivedMessage>,
}

impl PartedNetwork<'_> {
    /// Starts a round if anything may happen in it.
    fn begin_round(&mut self) -> Result<(), SharingError> {
        let found = self.found.last();
        let found = found.map_or(Time::NEVER, |found| found.delivery.arrival);
        let settled = self.next.min(found);
        let horizon = self.division.look_ahead.horizon(settled);
        if self.next == Time::NEVER || settled < self.next && horizon <= self.next {
            return Ok(());
        }
        if horizon <= settled {
            // The look-ahead is less than the precision of such a large time.
            let seconds = settled.as_seconds();
            return Err(SharingError::TooLong {
                seconds,
                most: seconds,
            });
        }
        for (part, departures) in self.departures.iter_mut().enumerate() {
            std::mem::swap(&mut self.meeting.round(part).departures, departures);
        }
        self.next = Time::NEVER;
        self.is_open = true;
        if std::mem::take(&mut self.expected) < WORTH_MEETING || self.alone > 0 {
            self.alone = self.alone.saturating_sub(1);
            self.meeting.solve(horizon);
        } else {
            self.meeting.open(horizon);
            // Otherwise other threads might solve all parts while this thread follows ranks.
            self.meeting.help_with(0);
        }
        Ok(())
    }

    /// Collects the results of the round.
    fn end_round(&mut self) -> Result<(), SharingError> {
        let looks = self.meeting.close();
        self.is_open = false;
        for part in 0..self.departures.len() {
            let mut round = self.meeting.round(part);
            if let Some(failure) = round.failure.take() {
                return Err(failure);
            }
            self.next = self.next.min(round.next);
            self.found.append(&mut round.found);
        }
        self.expected += self.found.len();
        self.late = self.late.saturating_sub(1);
        if looks as usize > LOOKS as usize + LOOKS_PER_EVENT * self.found.len() {
            self.late = LONGEST_PENALTY.min(self.late + 2);
            self.alone = 1 << self.late;
        }
        // Merges the arrivals of the parts, each of which is in order.
        self.found.sort_by_key(|found| Reverse(found.order()));
        Ok(())
    }
}

impl Transit for PartedNetwork<'_> {
    const SHARED: bool = true;

    fn depart(&mut self, departure: Departure) {
        let leaving = Leaving::new(&departure);
        self.next = self.next.min(leaving.comes());
        self.expected += 1;
        let part = self.division.of_slot[leaving.slot];
        self.departures[usize::from(part)].push(leaving);
    }

    fn deliver(&mut self, limit: Option<Time>) -> NextProgress {
        debug_assert_eq!(limit, None, "programs with accesses are not divided");
        loop {
            if let Some(ArrivedMessage { delivery, .. }) = self.found.pop() {
                return Ok(Some(Progress::Arrived(delivery)));
            }
            if !self.is_open {
                self.begin_round()?;
            }
            if !self.is_open {
                return Ok(None);
            }
            self.end_round()?;
            if self.found.len() >= WORTH_MEETING {
                self.begin_round()?;
            }
        }
    }
}
