//! What the ranks' interfaces have to send: an interface takes messages at once, and sends one after the other.
//!
//! A wait names a message by how many sends ago it was sent, and a program says how far back the waits of each rank reach. So
//! each rank has a ring of as many of its last messages, and nothing is ever asked for that the ring no longer has.

use flowcast_trace::program::Program;
use flowcast_units::{Rank, Time};

/// When the last messages of all ranks leave their interfaces, on so many networks.
#[derive(Debug, Clone)]
pub(crate) struct SendQueues<const W: usize> {
    /// The rings, one behind the other.
    left: Vec<[Time; W]>,
    /// By rank; empty where nobody waits for a message to leave.
    rings: Vec<SendRing>,
}

/// The last messages of a rank.
#[derive(Debug, Clone, Copy)]
struct SendRing {
    first: usize,
    /// Its length, a power of two, less 1.
    mask: u32,
    sent: u32,
}

impl<const W: usize> SendQueues<W> {
    /// Of a program that has sent nothing; none where that does not matter.
    pub(crate) fn new(program: &Program, matter: bool) -> SendQueues<W> {
        let streams = if matter { program.streams() as u32 } else { 0 };
        let mut rings = Vec::with_capacity(streams as usize);
        let mut first = 0;
        for rank in (0..streams).map(Rank) {
            let length = program.awaited_sends(rank).next_power_of_two();
            rings.push(SendRing {
                first,
                mask: length - 1,
                sent: 0,
            });
            first += length as usize;
        }
        SendQueues {
            left: vec![[Time::ZERO; W]; first],
            rings,
        }
    }

    /// A rank sends a message that leaves at `left`. Whether that matters.
    #[inline(always)]
    pub(crate) fn push(&mut self, rank: Rank, left: [Time; W]) -> bool {
        let Some(ring) = self.rings.get_mut(rank.index()) else {
            return false;
        };
        self.left[ring.first + (ring.sent & ring.mask) as usize] = left;
        ring.sent = ring.sent.wrapping_add(1);
        true
    }

    /// When the message leaves that the rank sent so many sends ago; 0 if nothing was, or if that does not matter.
    #[inline(always)]
    pub(crate) fn left(&self, rank: Rank, ago: u32) -> Option<&[Time; W]> {
        let ring = self.rings.get(rank.index())?;
        let number = ring.sent.wrapping_sub(ago + 1);
        Some(&self.left[ring.first + (number & ring.mask) as usize])
    }
}
