//! State and costs of one rail.

use super::clock::ClockArithmetic;
use flowcast_network::loggp::LogGp;

/// One rail: its virtual finish time and its costs.
#[derive(Debug, Clone, Copy)]
pub struct RailEntry<M: ClockArithmetic> {
    /// Time at which the rail will have sent everything assigned to it.
    pub virtual_finish: M,
    /// `2o + L`, the only sum that most rules need (section 4.4.7).
    pub end_to_end: M,
    /// `o`: processor time of a message, on each side.
    pub overhead: M,
    /// `g`: shortest time between the starts of two messages.
    pub gap: M,
    /// `G`: time of each byte after the first.
    pub per_byte: M::PerByte,
}

impl<M: ClockArithmetic> RailEntry<M> {
    /// Creates the entry of an idle rail.
    pub fn new(cost: &LogGp, scale: M::Scale) -> RailEntry<M> {
        RailEntry {
            virtual_finish: M::ZERO,
            end_to_end: M::from_time(cost.overhead * 2.0 + cost.latency, scale).bounded(),
            overhead: M::from_time(cost.overhead, scale).bounded(),
            gap: M::from_time(cost.gap, scale).bounded(),
            per_byte: M::per_byte(cost.gap_per_byte, scale),
        }
    }

    /// Time `G·(s-1)`, where `tail` is `s-1`.
    #[inline]
    pub fn transfer(&self, tail: u64) -> M {
        M::transfer(self.per_byte, tail)
    }

    /// Earliest instant at which the rail can start a message that is ready at `now`.
    #[inline]
    pub fn start(&self, now: M) -> M {
        self.virtual_finish.later(now)
    }
}
