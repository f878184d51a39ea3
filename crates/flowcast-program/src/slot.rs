//! The places of messages in tables.

use std::ops::{Add, AddAssign, Sub};

/// Where a message is received: the number of its receive in the order of posting, counted over all ranks one behind the
/// other. Every message has its own, so that slots number the messages too. In a replay of a schedule it is the number of
/// the send among all operations.
///
/// ```
/// use flowcast_program::slot::Slot;
///
/// assert_eq!(Slot(3) + 2, Slot(5));
/// assert_eq!(Slot(5) - Slot(3), 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Slot(pub u32);

impl Slot {
    /// As an index into tables by slot.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

flowcast_units::index_tables!(Slot);

impl Add<u32> for Slot {
    type Output = Slot;

    /// The slot so many receives later.
    #[inline(always)]
    fn add(self, receives: u32) -> Slot {
        Slot(self.0 + receives)
    }
}

impl AddAssign<u32> for Slot {
    #[inline(always)]
    fn add_assign(&mut self, receives: u32) {
        self.0 += receives;
    }
}

impl Sub for Slot {
    type Output = u32;

    /// How many receives later than `first`.
    #[inline(always)]
    fn sub(self, first: Slot) -> u32 {
        self.0 - first.0
    }
}
