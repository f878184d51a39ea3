//! Round robin: one rail after the other (section 4.3.4.1).
//!
//! All destinations share the position in the list. Open MPI keeps one position for each destination, so that `n` first
//! messages to `n` destinations all take the first rail.

use super::{RailId, RailSet, Turn};

/// State of round robin: the rail after the last one used.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundRobin {
    next: u32,
}

impl Turn for RoundRobin {
    #[inline]
    fn next(&mut self, usable: RailSet) -> Option<RailId> {
        let after =
            RailSet::from_bits(usable.bits() & u16::MAX.checked_shl(self.next).unwrap_or(0));
        let rail = after.lowest().or(usable.lowest())?;
        self.next = u32::from(rail.0) + 1;
        Some(rail)
    }
}
