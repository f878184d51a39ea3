//! Conversion between two clocks by a straight line, from which quartz clocks deviate by no more than a part in 10^8 over
//! tens of seconds.

use crate::Time;

/// Reading of another clock as a function of this clock's reading `t`: `t + offset + drift·(t - at)`.
///
/// ```
/// use flowcast_units::{ClockLine, Time};
///
/// let micros = Time::from_micros;
/// // The other clock was ahead by 5 us, and gained 1 us in 100.
/// let line = ClockLine::through((micros(0.0), micros(5.0)), (micros(100.0), micros(106.0)));
/// assert_eq!(line.read(micros(200.0)), micros(207.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ClockLine {
    /// Reading of this clock at the moment at which the offset held.
    pub at: Time,
    /// Lead of the other clock at that moment; below 0 if it was behind.
    pub offset: Time,
    /// Seconds that the other clock gains per second of this one: 1e-4 is 100 ppm. Above -1.
    pub drift: f64,
}

impl ClockLine {
    /// Returns the line through the readings of both clocks at two moments; without drift if the two moments are the same.
    pub fn through((own, other): (Time, Time), (later, later_other): (Time, Time)) -> ClockLine {
        let passed = (later - own).as_nanos();
        let gained = (later_other - other).as_nanos() - passed;
        ClockLine {
            at: own,
            offset: other - own,
            drift: if passed > 0.0 { gained / passed } else { 0.0 },
        }
    }

    /// Returns the other clock's reading when this one shows `own`.
    pub fn read(&self, own: Time) -> Time {
        own + self.offset + (own - self.at) * self.drift
    }

    /// Returns this clock's reading when the other shows `other`.
    pub fn own(&self, other: Time) -> Time {
        self.at + (other - self.at - self.offset) / (1.0 + self.drift)
    }

    /// Returns the line from this clock to a third one, where `next` is the line from the other clock to the third.
    pub fn then(&self, next: &ClockLine) -> ClockLine {
        let offset = next.read(self.read(self.at)) - self.at;
        ClockLine {
            at: self.at,
            offset,
            drift: self.drift + next.drift + self.drift * next.drift,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines() -> impl Strategy<Value = ClockLine> {
        (0.0f64..1e12, -1e12f64..1e12, -1e-3f64..1e-3).prop_map(|(at, offset, drift)| ClockLine {
            at: Time::from_nanos(at),
            offset: Time::from_nanos(offset),
            drift,
        })
    }

    #[test]
    fn a_clock_that_gains_a_hundred_microseconds_in_a_second() {
        let line = ClockLine {
            at: Time::from_seconds(1.0),
            offset: Time::from_seconds(5.0),
            drift: 1e-4,
        };
        assert_eq!(
            line.read(Time::from_seconds(3.0)),
            Time::from_seconds(8.0002)
        );
        let points = |own: f64| (Time::from_seconds(own), line.read(Time::from_seconds(own)));
        let again = ClockLine::through(points(1.0), points(11.0));
        assert!((again.drift - 1e-4).abs() < 1e-12 && again.offset == line.offset);
    }

    proptest! {
        #[test]
        fn reading_and_composing_agree(first in lines(), second in lines(), own in 0.0f64..1e12) {
            let own = Time::from_nanos(own);
            let composed = first.then(&second).read(own);
            prop_assert!((composed - second.read(first.read(own))).as_nanos().abs() < 0.01);
            prop_assert!((first.own(first.read(own)) - own).as_nanos().abs() < 0.01);
        }
    }
}
