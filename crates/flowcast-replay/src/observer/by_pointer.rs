//! An observer behind a pointer, for engines whose events cost much more than a virtual call. Such engines are compiled
//! once, not once per observer.

use flowcast_program::slot::Slot;
use flowcast_units::{Rank, Time};

use super::{Accessed, ObservedCollective, Observer, ReceivedMessage, Sent};

macro_rules! as_object {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),+)),+) => {
        /// The methods of an [`Observer`].
        pub(crate) trait Watch {
            $(fn $name(&mut self, $($arg: $type),+);)+
        }

        impl<O: Observer> Watch for O {
            $(fn $name(&mut self, $($arg: $type),+) {
                Observer::$name(self, $($arg),+);
            })+
        }
    };
}

with_methods! { as_object }

/// An observer behind a pointer.
pub(crate) struct ByPointer<'o>(pub &'o mut dyn Watch);

impl Observer for ByPointer<'_> {
    hand_on!(self to [&mut *self.0]);
}
