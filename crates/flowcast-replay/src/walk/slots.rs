//! What is known about the time of each slot: 64 bits a slot, however many networks the walk serves. One network's time
//! stands there itself. Those of several lie in a slab, of which few places are in use at once, and the slot has their
//! number.

use super::lanes::Times;
use crate::{prefetch::prefetch_behind, slab::Slab};
use flowcast_program::{opcodes::Op, program::Program, slot::Slot};
use flowcast_units::{Rank, Time};
use std::ops::Range;

/// What is known about the time of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing, and nobody waits for it.
    Nothing,
    /// Nothing; a rank, or a pending send, waits for it.
    Awaited(u32),
    /// The time: the bits of the only network's, which is not negative, or a number in the slab.
    Time(u64),
}

/// No time, nobody waits: zero, so that the pages of all slots come from the system as they are needed.
const NOTHING: u64 = 0;

/// All bits of a time are inverted where it stands, and then this one, the sign, is set. Else 1 more than who waits.
const IS_TIME: u64 = 1 << 63;

/// The time was used: it is not later than that of the rank that asks. Stands for time 0 on all networks.
const PAST: u64 = 0;

/// Slots in a cache line. What is sent to one receiver fills its slots one after the other, so that the line behind is
/// needed soon.
const SLOTS_AHEAD: usize = 8;

/// A time for each slot, once it is known.
pub(crate) struct Slots<const W: usize> {
    /// The number of the first.
    first: Slot,
    known: Vec<u64>,
    times: Slab<Times<W>>,
}

impl<const W: usize> Slots<W> {
    /// Slots of which nothing is known.
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

    /// What is known.
    #[inline(always)]
    pub(crate) fn look(&self, slot: Slot) -> Known {
        match self.known[self.place(slot)] {
            known if known >= IS_TIME => Known::Time(!known),
            NOTHING => Known::Nothing,
            known => Known::Awaited((known - 1) as u32),
        }
    }

    /// The time of a slot is known now, lane by lane. Gives who waits for it.
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

    /// Uses the time of a slot, which needs it no more: the time of each lane.
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

    /// Asks for what is known of a slot, which need not be one of these.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: Slot) {
        prefetch_behind(&self.known, self.place(slot));
    }

    /// Nobody will ask for more than whether the time is over. Gives who waits.
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

    /// Somebody waits for the time of a slot.
    #[inline(always)]
    pub(crate) fn wait(&mut self, slot: Slot, who: u32) {
        let place = self.place(slot);
        self.known[place] = u64::from(who) + 1;
    }
}

/// By slot: whether its sender ever asks when it may go on. If not, the time of that need not be kept.
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
