//! What a period of a steady state adds to all times and numbers.

use super::picos::Picos;

/// What a period adds to the times and numbers of a connection.
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
