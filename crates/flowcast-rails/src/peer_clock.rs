//! The other end's clock in terms of ours.
//!
//! Acknowledgements tell when a message arrived on the receiver's clock. The smallest difference between that and the
//! expected arrival on ours is taken for the offset of the clocks: no message is faster than its rail. The offset may
//! rise by 100 us in a second, more than quartzes differ. Errors of the parameters end in it, too: what remains is by
//! how much a message was later than the least late one.

use flowcast::rails::moment::{Moment, Ticks};

/// Nanoseconds.
const RISE: i64 = 10_000;

/// The offset of the other end's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct PeerClock {
    offset: Option<(i64, i64)>,
}

impl PeerClock {
    /// When, on our clock, a message arrived that was expected at `expected` and arrived at `arrived` nanoseconds of the
    /// other clock.
    pub fn seen(&mut self, arrived: u64, expected: Ticks) -> Ticks {
        let arrived = arrived as i64;
        let expected = expected.time(()).as_nanos() as i64;
        let difference = arrived - expected;
        let offset = match self.offset {
            Some((offset, at)) => difference.min(offset + (expected - at).max(0) / RISE),
            None => difference,
        };
        self.offset = Some((offset, expected));
        Ticks::from_nanos((arrived - offset).max(0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_told_apart_from_the_offset_of_the_clocks() {
        let mut clock = PeerClock::default();
        let micros = |micros: u64| Ticks::from_nanos(micros * 1000);
        let mut seen = |arrived: u64, given: u64| clock.seen(arrived * 1000, micros(given + 100));
        assert_eq!(seen(50_130, 0), micros(100), "30 us late or 50,030 us off: not known yet");
        assert_eq!(seen(50_200, 100), micros(200));
        assert_eq!(seen(50_900, 200), Ticks::from_nanos(899_990), "600 us late; the offset may have risen by 10 ns");
    }
}
