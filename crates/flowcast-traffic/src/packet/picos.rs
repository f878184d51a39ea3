//! Time in whole picoseconds, so that equal times are equal regardless of the order of summation.
//!
//! A frame of 1538 bytes lasts 123,040 ps at 100 Gbit/s; 2^64 ps are 213 days.

use std::ops::{Add, AddAssign, Mul, Sub};

use flowcast_units::Time;

/// A point in time or a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub(crate) struct Picos(pub u64);

impl Picos {
    /// Start of the simulation.
    pub(crate) const ZERO: Picos = Picos(0);
    /// Later than every other time.
    pub(crate) const NEVER: Picos = Picos(u64::MAX);

    /// Rounds to the nearest whole number of picoseconds.
    pub(crate) fn from_time(time: Time) -> Picos {
        Picos((time.as_nanos() * 1e3).round() as u64)
    }

    /// Creates a time from milliseconds.
    pub(crate) const fn from_millis(millis: u64) -> Picos {
        Picos(millis * 1_000_000_000)
    }

    /// Creates a time from microseconds.
    pub(crate) const fn from_micros(micros: u64) -> Picos {
        Picos(micros * 1_000_000)
    }

    /// Converts to the library's time.
    pub(crate) fn to_time(self) -> Time {
        Time::from_nanos(self.0 as f64 / 1e3)
    }

    /// Time in seconds.
    pub(crate) fn as_seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// Creates a time from seconds; [`Picos::NEVER`] if it does not fit.
    pub(crate) fn from_seconds(seconds: f64) -> Picos {
        Picos((seconds * 1e12).round() as u64)
    }

    /// Returns the time multiplied by a factor.
    pub(crate) fn scaled(self, factor: f64) -> Picos {
        Picos((self.0 as f64 * factor) as u64)
    }

    /// Time from `earlier` to this time; zero if `earlier` is later.
    #[inline]
    pub(crate) fn since(self, earlier: Picos) -> Picos {
        Picos(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Picos {
    type Output = Picos;
    #[inline]
    fn add(self, other: Picos) -> Picos {
        Picos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Picos {
    #[inline]
    fn add_assign(&mut self, other: Picos) {
        *self = *self + other;
    }
}

impl Sub for Picos {
    type Output = Picos;
    #[inline]
    fn sub(self, other: Picos) -> Picos {
        self.since(other)
    }
}

impl Mul<u64> for Picos {
    type Output = Picos;
    #[inline]
    fn mul(self, factor: u64) -> Picos {
        Picos(self.0.saturating_mul(factor))
    }
}
