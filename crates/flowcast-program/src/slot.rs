//! Numbers of messages, as indices into tables.

use std::ops::{Add, AddAssign, Sub};

/// Number of a message's receive, in posting order and counted over the ranks one after another. Each message has its own
/// slot, so slots also number the messages. In a replay of a schedule, a slot is the number of the send among all
/// operations.
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
    /// Index of the slot in tables by slot.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

flowcast_units::index_tables!(Slot);

impl Add<u32> for Slot {
    type Output = Slot;

    /// Returns the slot that is `receives` receives later.
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

    /// Number of receives from `first` to this slot.
    #[inline(always)]
    fn sub(self, first: Slot) -> u32 {
        self.0 - first.0
    }
}
