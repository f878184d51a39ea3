//! What is known about the time of a slot: 32 bits, however many lanes the time has.

use flowcast_trace::program::Program;
use flowcast_trace::words::Op;
use flowcast_units::Rank;

/// A block of times; or one of the marks below.
pub type Known = u32;

/// Nothing is known yet.
pub const EMPTY: Known = u32::MAX;

/// The time has been used and its block given back: it is not later than the time of the rank that asks.
pub const PAST: Known = u32::MAX - 1;

const WAITING: u32 = 1 << 31;

/// Rank (or pending send) number `index` waits for the time.
pub const fn waiting(index: u32) -> Known {
    WAITING | index
}

/// Who waits for the time that was not known.
pub const fn who(known: Known) -> u32 {
    known & !WAITING
}

/// Whether this is a block of times.
#[inline(always)]
pub const fn is_block(known: Known) -> bool {
    known < WAITING
}

/// A table of slots of which nothing is known.
pub fn table(slots: usize) -> Vec<Known> {
    vec![EMPTY; slots]
}

/// By slot: whether its sender ever asks when it may go on. If not, the time of that need not be kept.
pub fn awaited_sends(program: &Program) -> Vec<bool> {
    let mut awaited = vec![false; program.messages() as usize];
    let mut sends = Vec::new();
    for rank in 0..program.streams() as u32 {
        sends.clear();
        for (_, op) in program.ops(Rank(rank)) {
            match op {
                Op::Send { class, slot } => {
                    awaited[slot as usize] = !program.classes()[class as usize].mode.immediate;
                    sends.push(slot);
                }
                Op::WaitSend(ago) => {
                    let asked = sends.len().checked_sub(ago as usize + 1);
                    asked.into_iter().for_each(|index| awaited[sends[index] as usize] = true);
                }
                _ => {}
            }
        }
    }
    awaited
}
