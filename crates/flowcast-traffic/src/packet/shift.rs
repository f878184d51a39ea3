//! Change of all times and numbers in a period of a steady state.

use super::picos::Picos;

/// Change of the times and numbers of a connection in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shift {
    pub time: Picos,
    pub packets: u32,
}

impl Shift {
    pub(super) fn times(self, periods: u32) -> Shift {
        Shift {
            time: self.time * u64::from(periods),
            packets: self.packets * periods,
        }
    }
}
