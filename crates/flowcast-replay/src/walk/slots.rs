//! Known times of slots: 64 bits per slot, whatever the number of networks in the walk. With one network, the time is stored
//! directly. With several networks, the times are in a slab, few places of which are in use at the same time, and the slot
//! stores the index of its place.

use super::lanes::Times;
use crate::{prefetch::prefetch_behind, slab::Slab};
use flowcast_program::{opcodes::Op, program::Program, slot::Slot};
use flowcast_units::{Rank, Time};
use std::ops::Range;

/// Knowledge about the time of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// The time is unknown, and nothing waits for it.
    Nothing,
    /// The time is unknown; this rank or pending send waits for it.
    Awaited(u32),
    /// The time is known: its bits (it is not negative) with one network, or its index in the slab.
    Time(u64),
}

/// Code of an unknown time without a waiter. It is zero, so that the system provides the pages of the slots only as they are
/// needed.
const NOTHING: u64 = 0;

/// Sign bit. A known time is stored with all its bits inverted, which sets this bit. A waiter is stored as its number plus
/// 1.
const IS_TIME: u64 = 1 << 63;

/// Code of a time that has been used: it is not later than the time of the rank that looks. It stands for time 0 on all
/// networks.
const PAST: u64 = 0;

/// Number of slots in a cache line. Messages to one receiver fill its slots in order, so that the next line is needed soon.
const SLOTS_AHEAD: usize = 8;

/// A time for each slot, once it is known.
pub(crate) struct Slots<const W: usize> {
    /// Number of the first slot.
    first: Slot,
    known: Vec<u64>,
    times: Slab<Times<W>>,
}

impl<const W: usize> Slots<W> {
    /// Creates slots with unknown times.
    pub(crate) fn new(slots: Range<Slot>) -> Slots<W> {
        let mut times = Slab::default();
        let count = (slots.end - slots.start) as usize;
        let _past = times.insert([Time::ZERO; W]);
        Slots {
            first: slots.start,
            known: vec![NOTHING; count],
            times,
        }
    }

    #[inline(always)]
    fn place(&self, slot: Slot) -> usize {
        slot.0.wrapping_sub(self.first.0) as usize
    }

    /// Knowledge about the time of a slot.
    #[inline(always)]
    pub(crate) fn look(&self, slot: Slot) -> Known {
        match self.known[self.place(slot)] {
            known if known >= IS_TIME => Known::Time(!known),
            NOTHING => Known::Nothing,
            known => Known::Awaited((known - 1) as u32),
        }
    }

    /// Sets the time of a slot, lane by lane. Returns the waiter.
    #[inline(always)]
    pub(crate) fn fill(&mut self, slot: Slot, time: impl Fn(usize) -> Time) -> Option<u32> {
        let known = if W == 1 {
            time(0).as_nanos().to_bits()
        } else {
            let number = self.times.take(|| [Time::ZERO; W]);
            let times = &mut self.times[number];
            (0..W).for_each(|lane| times[lane] = time(lane));
            u64::from(number)
        };
        let place = self.place(slot);
        prefetch_behind(&self.known, place + SLOTS_AHEAD);
        let before = std::mem::replace(&mut self.known[place], !known);
        (before != NOTHING).then(|| (before - 1) as u32)
    }

    /// Removes the time of a slot and returns it for each lane.
    #[inline(always)]
    pub(crate) fn take(&mut self, slot: Slot, known: u64) -> impl Fn(usize) -> Time {
        if W > 1 && known != PAST {
            let place = self.place(slot);
            self.known[place] = !PAST;
            self.times.give_back(known as u32);
        }
        let times = if W > 1 {
            &self.times[known as u32]
        } else {
            &[Time::ZERO; W]
        };
        move |lane| {
            if W == 1 {
                Time::from_nanos(f64::from_bits(known))
            } else {
                times[lane]
            }
        }
    }

    /// Prefetches a slot, which need not be one of these.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: Slot) {
        prefetch_behind(&self.known, self.place(slot));
    }

    /// Closes a slot: from now on only the fact that its time has passed matters. Returns the waiter.
    #[inline(always)]
    pub(crate) fn close(&mut self, slot: Slot) -> Option<u32> {
        let before = self.look(slot);
        let place = self.place(slot);
        self.known[place] = !PAST;
        match before {
            Known::Awaited(who) => return Some(who),
            Known::Time(number) if W > 1 && number != PAST => self.times.give_back(number as u32),
            _ => {}
        }
        None
    }

    /// Records a waiter for the time of a slot.
    #[inline(always)]
    pub(crate) fn wait(&mut self, slot: Slot, who: u32) {
        let place = self.place(slot);
        self.known[place] = u64::from(who) + 1;
    }
}

/// `true` if the sender ever waits for its release, indexed by slot. Otherwise the time of the release need not be stored.
pub(crate) fn awaited_sends(program: &Program) -> Vec<bool> {
    let mut awaited = vec![false; program.messages() as usize];
    let mut sends = Vec::new();
    for rank in Rank::all(program.streams()) {
        sends.clear();
        for (_, op) in program.ops(rank) {
            match op {
                Op::Send { class, slot } => {
                    awaited[slot] = !program.class(class).mode.non_blocking;
                    sends.push(slot);
                }
                Op::WaitSend(ago) => {
                    let asked = sends.len().checked_sub(ago as usize + 1);
                    asked
                        .into_iter()
                        .for_each(|index| awaited[sends[index]] = true);
                }
                _ => {}
            }
        }
    }
    awaited
}
