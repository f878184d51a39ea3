//! A network in parts that share no link, solved by several threads.
//!
//! One thread follows the ranks. What they send because a message has arrived reaches the links of the network after the
//! sender's overhead and the latency, the look-ahead: what happens in the network until then is settled (Chandy and Misra,
//! 1979). So up to this horizon each part is solved by itself, by whichever thread comes to it first. The ranks are followed in
//! the order of time through what a round has found while the others solve the next one, whose horizon the first of it gives.
//!
//! A part solves the same equations in the same order whether it is alone or not, so that the result is that of one thread to
//! the last bit, and observers are notified in the same order.

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

use super::{Delivery, Departure, Leaving, Progress, Shared, Transit};
use flowcast_network::sharing::SharingError;
use flowcast_program::slot::Slot;
use flowcast_units::Time;

/// Parts for each thread, so that those that are ahead help the others.
const PARTS: usize = 4;

/// So many events up to the horizon are worth the meeting of two threads.
const WORTH_MEETING: usize = 16;

/// So often a thread looks for work before it lets others run in between.
const LOOKS: u32 = 4_000;

/// Others are late if so many looks for each event of a round were not enough: they have no processor of their own. Then so many
/// rounds at most, as a power of two, are solved without them.
const LOOKS_PER_EVENT: usize = 32;
const LONGEST_PENALTY: u32 = 10;

/// Which part of the network each message crosses.
#[derive(Debug, Clone)]
pub(crate) struct Division {
    parts: usize,
    of_slot: Vec<u8>,
    look_ahead: LookAhead,
}

impl Division {
    /// Components dealt to parts for so many threads, with about as many messages for each; none if nearly all messages cross
    /// one of them. By route the component, by slot the route.
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

    /// How many parts there are, two at least.
    pub(crate) fn parts(&self) -> usize {
        self.parts
    }
}

/// The least time from an arrival to the first link of a message that a rank sends because of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookAhead {
    /// Of the sender's processor.
    pub overhead: Time,
    /// Between the processor and the first link.
    pub latency: Time,
}

impl LookAhead {
    /// What happens before this is settled if nothing has yet to happen before `next`. The sum rounds as that of the message
    /// does, so that the message is not earlier by a bit.
    fn horizon(self, next: Time) -> Time {
        next + self.overhead + self.latency
    }
}

/// A message that has arrived: small, since it mostly has to come from the cache of another processor.
#[derive(Debug, Clone, Copy)]
struct ArrivedMessage {
    delivery: Delivery,
    /// Whether it had nothing to move: of what arrives at the same time, that comes last.
    is_empty: bool,
}

impl ArrivedMessage {
    /// As one thread delivers them.
    fn order(&self) -> (Time, bool, Slot) {
        (self.delivery.arrival, self.is_empty, self.delivery.slot)
    }
}

/// One part, with what it is given and what it finds in a round.
struct PartRound {
    network: Shared,
    departures: Vec<Leaving>,
    found: Vec<ArrivedMessage>,
    next: Time,
    failure: Option<SharingError>,
}

impl PartRound {
    /// Solves all that happens before the horizon.
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
            // No sender is held, and none waits for its receiver.
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

/// What the threads share.
struct ThreadMeeting {
    rounds: Vec<Mutex<PartRound>>,
    /// By part: whether no thread has begun it in this round.
    are_open: Vec<AtomicBool>,
    /// Bits of the horizon of this round.
    horizon: AtomicU64,
    /// How many rounds there were.
    number: AtomicU32,
    /// How many parts are solved in this round.
    solved: AtomicUsize,
    /// Whether a thread has ended.
    over: AtomicBool,
}

impl ThreadMeeting {
    fn round(&self, part: usize) -> MutexGuard<'_, PartRound> {
        self.rounds[part].lock().expect("no other thread panics")
    }

    /// Begins a round, in which other threads may help.
    fn open(&self, horizon: Time) {
        self.horizon.store(horizon.as_nanos().to_bits(), Release);
        self.solved.store(0, Release);
        self.are_open
            .iter()
            .for_each(|is_open| is_open.store(true, Release));
        self.number.fetch_add(1, Release);
    }

    /// Solves a round in which too little happens for others to help.
    fn solve(&self, horizon: Time) {
        let parts = self.rounds.len();
        (0..parts).for_each(|part| self.round(part).solve(horizon));
        self.solved.store(parts, Release);
    }

    /// Solves a part unless another thread has begun it.
    fn help_with(&self, part: usize) {
        if self.are_open[part].swap(false, AcqRel) {
            let horizon = f64::from_bits(self.horizon.load(Acquire));
            self.round(part).solve(Time::from_nanos(horizon));
            self.solved.fetch_add(1, Release);
        }
    }

    /// Solves all parts that no other thread has begun, from one on.
    fn help(&self, first: usize) {
        let parts = self.rounds.len();
        (first..parts)
            .chain(0..first)
            .for_each(|part| self.help_with(part));
    }

    /// Helps in round after round.
    fn help_always(&self, first: usize) {
        let _over = OverAtLast(&self.over);
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

    /// Solves what is left of a round, and waits for the others: how often it has looked whether they are done.
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

/// Tells the other threads that this one has ended, be it by a panic.
struct OverAtLast<'a>(&'a AtomicBool);

impl Drop for OverAtLast<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

/// Follows ranks through a network whose parts are solved by so many threads.
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
        let _over = OverAtLast(&meeting.over);
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

/// A network in parts, as the walk over the ranks sees it. If it fails, one thread has to say why: another part may have failed
/// before.
pub(crate) struct PartedNetwork<'a> {
    meeting: &'a ThreadMeeting,
    division: &'a Division,
    /// By part: what goes there before the next round.
    departures: Vec<Vec<Leaving>>,
    /// How much the next round may have to do.
    expected: usize,
    /// Whether a round has begun of which it is not known what it finds.
    is_open: bool,
    /// How often others were late more often than not, and how many rounds are solved without them for that.
    late: u32,
    alone: u32,
    /// Before this nothing happens in any part, but for what that round finds.
    next: Time,
    /// What was found up to the horizon, the last first.
    found: Vec<ArrivedMessage>,
}

impl PartedNetwork<'_> {
    /// Begins a round if anything may happen in it.
    fn begin_round(&mut self) -> Result<(), SharingError> {
        let found = self.found.last();
        let found = found.map_or(Time::NEVER, |found| found.delivery.arrival);
        let settled = self.next.min(found);
        let horizon = self.division.look_ahead.horizon(settled);
        if self.next == Time::NEVER || settled < self.next && horizon <= self.next {
            return Ok(());
        }
        if horizon <= settled {
            // The look-ahead is lost in the digits of a time as large as this.
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
            // Else the others might do it all while this thread follows ranks.
            self.meeting.help_with(0);
        }
        Ok(())
    }

    /// Takes over what the round has found.
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
        // Merges what each part has in order.
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

    fn deliver(&mut self, limit: Option<Time>) -> Result<Option<Progress>, SharingError> {
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
