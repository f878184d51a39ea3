//! Latency ordering, the idea of section 4.5 of the thesis: no clock, no acknowledgement.
//!
//! Each message carries the sum of its rail's virtual finish time and end-to-end latency, the instant at which its sender
//! expects it to arrive. As long as the parameters are right, messages arrive in the order of these stamps. If a message has
//! a smaller stamp than an earlier arrival, its rail is slower than estimated by at least the difference, or the other rail
//! is faster; the receiver notifies the sender. The two clocks need not agree: stamps are only compared with stamps.
//!
//! The thesis did not pursue the idea, because inversions need consecutive messages over several rails and give no
//! parameters. Both statements hold. `Adaptive::late` describes the use of inversions.

use flowcast_scheduler::{
    RailId,
    adaptive::Inversion,
    clock::{ClockArithmetic, Ticks},
};

/// A receiver's memory of one sender's stamps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OrderWitness {
    latest: Ticks,
    from: Option<RailId>,
    tolerance: Ticks,
}

impl OrderWitness {
    /// Creates a witness that ignores differences up to `tolerance`.
    pub(crate) fn new(tolerance: Ticks) -> OrderWitness {
        OrderWitness {
            latest: Ticks::ZERO,
            from: None,
            tolerance,
        }
    }

    /// Records the arrival of a message over `rail` with the expected arrival `stamp`.
    #[inline]
    pub(crate) fn arrived(&mut self, rail: RailId, stamp: Ticks) -> Option<Inversion> {
        let by = self.latest.since(stamp);
        if let Some(overtaken_by) = self
            .from
            .filter(|from| self.tolerance.is_before(by) && *from != rail)
        {
            return Some(Inversion {
                rail,
                overtaken_by,
                stamp,
                by,
            });
        }
        if self.latest.is_before(stamp) {
            (self.latest, self.from) = (stamp, Some(rail));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_another_rail_overtakes_is_an_inversion() {
        let mut witness = OrderWitness::new(Ticks::from_nanos(50));
        let mut arrived = |rail, nanos| witness.arrived(RailId(rail), Ticks::from_nanos(nanos));
        assert_eq!(
            [arrived(0, 100), arrived(1, 120), arrived(0, 1000)],
            [None; 3]
        );
        assert_eq!(arrived(1, 960), None, "within the tolerance");
        let [stamp, by] = [400, 600].map(Ticks::from_nanos);
        let expected = Inversion {
            rail: RailId(1),
            overtaken_by: RailId(0),
            stamp,
            by,
        };
        assert_eq!(arrived(1, 400), Some(expected));
        assert_eq!(arrived(1, 1001), None);
    }
}
