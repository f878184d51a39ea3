//! The last sends of each rank, for later waits.
//!
//! A wait identifies a message by the number of sends since then, and the program knows how far back the waits of each rank
//! reach. Each rank has a ring for that number of sends, so a wait never needs a send that the ring no longer contains.

use flowcast_program::program::Program;
use flowcast_units::Rank;

/// A value for each of the last sends of all ranks: the time at which its message leaves the interface, or its slot.
#[derive(Debug, Clone)]
pub(crate) struct LastSends<T> {
    /// The rings, one after the other.
    known: Vec<T>,
    /// Ring of each rank, indexed by rank; empty if no values are stored.
    rings: Vec<SendRing>,
}

/// The last sends of a rank.
#[derive(Debug, Clone, Copy)]
struct SendRing {
    first: usize,
    /// Length minus 1; the length is a power of two.
    mask: u32,
    /// Number of sends of the rank so far.
    sent: u32,
}

impl<T: Copy> LastSends<T> {
    /// Creates the rings of ranks that have sent nothing yet, filled with `nothing`; no rings unless sends `matter`.
    pub(crate) fn new(program: &Program, nothing: T, matter: bool) -> LastSends<T> {
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
        LastSends {
            known: vec![nothing; first],
            rings,
        }
    }

    /// Records a send of a rank, if sends are stored.
    #[inline(always)]
    pub(crate) fn push(&mut self, rank: Rank, known: T) {
        let Some(ring) = self.rings.get_mut(rank.index()) else {
            return;
        };
        self.known[ring.first + (ring.sent & ring.mask) as usize] = known;
        ring.sent = ring.sent.wrapping_add(1);
    }

    /// The send of a rank `ago` sends before its last one; `None` if sends are not stored.
    #[inline(always)]
    pub(crate) fn get(&self, rank: Rank, ago: u32) -> Option<&T> {
        let ring = self.rings.get(rank.index())?;
        let number = ring.sent.wrapping_sub(ago + 1);
        Some(&self.known[ring.first + (number & ring.mask) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_one_of_the_last_sends_in_each_place() {
        let ring = SendRing {
            first: 1,
            mask: 3,
            sent: u32::MAX - 1,
        };
        let mut sends = LastSends {
            known: vec![0; 5],
            rings: vec![ring],
        };
        (1..=5).for_each(|known| sends.push(Rank(0), known));
        let kept = (0..4).map(|ago| *sends.get(Rank(0), ago).unwrap());
        assert_eq!(kept.collect::<Vec<_>>(), [5, 4, 3, 2]);
        assert_eq!((sends.known[0], sends.get(Rank(1), 0)), (0, None));
    }
}
