//! Arithmetic of virtual finish times: 64-bit ticks for the message path, floats, exact integers as a reference for both,
//! and the scaled integers of the thesis (section 4.4.8).
//!
//! Every rule is written once over [`ClockArithmetic`], so that the same source runs in each arithmetic.

use std::fmt::Debug;

use flowcast_units::{Time, TimePerByte};

/// An instant or a duration since the clock's zero.
pub trait ClockArithmetic: Copy + Debug + Send + 'static {
    /// Time per byte, in the precision that this arithmetic needs.
    type PerByte: Copy + Debug + Send;
    /// Meaning of one unit, if it is not fixed.
    type Scale: Copy + Debug + Send;
    /// The clock's zero.
    const ZERO: Self;

    /// Converts a time to units of this arithmetic; `scale` has no effect if the unit is fixed.
    fn from_time(time: Time, scale: Self::Scale) -> Self;
    /// Converts a time per byte.
    fn per_byte(per_byte: TimePerByte, scale: Self::Scale) -> Self::PerByte;
    /// Converts back to a time.
    fn time(self, scale: Self::Scale) -> Time;
    /// The sum.
    fn plus(self, duration: Self) -> Self;
    /// Time from `earlier` to this instant; zero if `earlier` is not earlier.
    fn since(self, earlier: Self) -> Self;
    /// The later of both.
    fn later(self, other: Self) -> Self;
    /// Returns `true` if this instant is strictly before `other`.
    fn is_before(self, other: Self) -> bool;
    /// Largest number of bytes that [`ClockArithmetic::transfer`] multiplies without overflow.
    fn longest_tail(per_byte: Self::PerByte) -> u64;
    /// Time for `bytes` bytes, of which there are at most [`ClockArithmetic::longest_tail`].
    fn transfer(per_byte: Self::PerByte, bytes: u64) -> Self;
    /// Limits the value to the range in which sums cannot overflow.
    fn bounded(self) -> Self;
}

/// Ticks of 100 femtoseconds (a microsecond is 10^7 ticks, more than 23 bits). The time per byte has 8 more bits.
///
/// The unit is decimal. Parameters printed with up to seven decimals of a microsecond are therefore exact, and decisions
/// equal those of exact arithmetic. The clock and each fixed cost saturate at 2^62 ticks, 5.3 days; a transfer saturates at
/// 2^56 ticks, 2 hours. No sum of a rule can then overflow 64 bits. [`super::RailScheduler::restart_clock`] moves the
/// clock's zero before its range ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticks(u64);

impl Ticks {
    /// The last instant.
    pub(crate) const LAST: Ticks = Ticks(1 << 62);
    const PER_NANO: u64 = 10_000;
    const PER_BYTE_BITS: u32 = 8;

    /// Converts whole nanoseconds of a clock.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Ticks {
        let ticks = nanos.saturating_mul(Ticks::PER_NANO);
        if ticks > Ticks::LAST.0 {
            Ticks::LAST
        } else {
            Ticks(ticks)
        }
    }

    /// Value in nanoseconds, rounded.
    #[inline]
    pub(crate) const fn nanos(self) -> u64 {
        self.0.saturating_add(Ticks::PER_NANO / 2) / Ticks::PER_NANO
    }

    /// The number of ticks.
    #[inline]
    pub const fn count(self) -> u64 {
        self.0
    }

    /// Converts a number of ticks.
    #[inline]
    pub(crate) const fn from_count(count: u64) -> Ticks {
        Ticks(count)
    }
}

impl ClockArithmetic for Ticks {
    type PerByte = u64;
    type Scale = ();
    const ZERO: Ticks = Ticks(0);

    #[inline]
    fn from_time(time: Time, _scale: Self::Scale) -> Ticks {
        Ticks((time.as_nanos() * Ticks::PER_NANO as f64).round() as u64).bounded()
    }
    fn per_byte(per_byte: TimePerByte, _scale: Self::Scale) -> u64 {
        (per_byte.as_nanos() * (Ticks::PER_NANO << Ticks::PER_BYTE_BITS) as f64).round() as u64
    }
    fn time(self, _scale: Self::Scale) -> Time {
        Time::from_nanos(self.0 as f64 / Ticks::PER_NANO as f64)
    }
    #[inline]
    fn plus(self, duration: Ticks) -> Ticks {
        Ticks(self.0.wrapping_add(duration.0))
    }
    #[inline]
    fn since(self, earlier: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(earlier.0))
    }
    #[inline]
    fn later(self, other: Ticks) -> Ticks {
        Ticks(self.0.max(other.0))
    }
    #[inline]
    fn is_before(self, other: Ticks) -> bool {
        self.0 < other.0
    }
    fn longest_tail(per_byte: u64) -> u64 {
        u64::MAX / per_byte.max(1)
    }
    #[inline]
    fn transfer(per_byte: u64, bytes: u64) -> Ticks {
        Ticks(per_byte.wrapping_mul(bytes) >> Ticks::PER_BYTE_BITS)
    }
    #[inline]
    fn bounded(self) -> Ticks {
        Ticks(self.0.min(Ticks::LAST.0))
    }
}

/// Floats: nanoseconds with a precision of 53 bits.
impl ClockArithmetic for Time {
    type PerByte = f64;
    type Scale = ();
    const ZERO: Time = Time::ZERO;

    fn from_time(time: Time, _scale: Self::Scale) -> Time {
        time
    }
    fn per_byte(per_byte: TimePerByte, _scale: Self::Scale) -> f64 {
        per_byte.as_nanos()
    }
    fn time(self, _scale: Self::Scale) -> Time {
        self
    }
    #[inline]
    fn plus(self, duration: Time) -> Time {
        self + duration
    }
    #[inline]
    fn since(self, earlier: Time) -> Time {
        Time::from_nanos((self.as_nanos() - earlier.as_nanos()).max(0.0))
    }
    #[inline]
    fn later(self, other: Time) -> Time {
        self.max(other)
    }
    #[inline]
    fn is_before(self, other: Time) -> bool {
        self.as_nanos() < other.as_nanos()
    }
    fn longest_tail(_: f64) -> u64 {
        u64::MAX
    }
    #[inline]
    fn transfer(per_byte: f64, bytes: u64) -> Time {
        Time::from_nanos(per_byte * bytes as f64)
    }
    #[inline]
    fn bounded(self) -> Time {
        self
    }
}

/// Attoseconds in 128 bits: a slow reference, exact for parameters with up to twelve decimals of a microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exact(i128);

impl ClockArithmetic for Exact {
    type PerByte = i128;
    type Scale = ();
    const ZERO: Exact = Exact(0);

    fn from_time(time: Time, _scale: Self::Scale) -> Exact {
        Exact((time.as_nanos() * 1e9).round() as i128)
    }
    fn per_byte(per_byte: TimePerByte, _scale: Self::Scale) -> i128 {
        (per_byte.as_nanos() * 1e9).round() as i128
    }
    fn time(self, _scale: Self::Scale) -> Time {
        Time::from_nanos(self.0 as f64 / 1e9)
    }
    fn plus(self, duration: Exact) -> Exact {
        Exact(self.0.saturating_add(duration.0))
    }
    fn since(self, earlier: Exact) -> Exact {
        Exact(self.0.saturating_sub(earlier.0).max(0))
    }
    fn later(self, other: Exact) -> Exact {
        Exact(self.0.max(other.0))
    }
    fn is_before(self, other: Exact) -> bool {
        self.0 < other.0
    }
    fn longest_tail(_: i128) -> u64 {
        u64::MAX
    }
    fn transfer(per_byte: i128, bytes: u64) -> Exact {
        Exact(per_byte.saturating_mul(i128::from(bytes)))
    }
    fn bounded(self) -> Exact {
        self
    }
}

/// Rounding of a value between two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the largest step that is not above the value.
    Down,
    /// To the nearest step.
    Nearest,
}

/// Microseconds times a power of two (section 4.4.8). The thesis shifts by 10 bits and truncates, which makes `G` of its
/// three networks 4 to 8 % too small; 20 bits change no choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryPoint {
    /// Fractional bits, at most 32.
    pub bits: u32,
    /// Rounding of the remainder.
    pub rounding: Rounding,
}

impl BinaryPoint {
    /// The printed form: `<< 10`.
    pub(crate) const PRINTED: BinaryPoint = BinaryPoint {
        bits: 10,
        rounding: Rounding::Down,
    };
    /// Wide enough for the parameters of the thesis.
    pub(crate) const WIDE: BinaryPoint = BinaryPoint {
        bits: 20,
        rounding: Rounding::Down,
    };

    /// Number of steps in `nanos` nanoseconds. Computed from femtoseconds, so that a decimal that is a whole number of steps
    /// stays exact.
    fn steps(self, nanos: f64) -> u64 {
        let scaled = ((nanos * 1e6).round() as u128) << self.bits.min(32);
        let half = match self.rounding {
            Rounding::Down => 0,
            Rounding::Nearest => 500_000_000,
        };
        ((scaled + half) / 1_000_000_000) as u64
    }

    /// Stored `G`, in steps.
    pub fn stored_per_byte(self, per_byte: TimePerByte) -> u64 {
        self.steps(per_byte.as_nanos())
    }

    /// Relative error of a stored `G`.
    pub fn error_of(self, per_byte: TimePerByte) -> f64 {
        self.stored_per_byte(per_byte) as f64
            / 2f64.powi(self.bits.min(32) as i32)
            / per_byte.as_micros()
            - 1.0
    }
}

/// A number of steps of a [`BinaryPoint`]; sums saturate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockSteps(pub u64);

impl ClockArithmetic for ClockSteps {
    type PerByte = u64;
    type Scale = BinaryPoint;
    const ZERO: ClockSteps = ClockSteps(0);

    fn from_time(time: Time, scale: BinaryPoint) -> ClockSteps {
        ClockSteps(scale.steps(time.as_nanos()))
    }
    fn per_byte(per_byte: TimePerByte, scale: BinaryPoint) -> u64 {
        scale.stored_per_byte(per_byte)
    }
    fn time(self, scale: BinaryPoint) -> Time {
        Time::from_micros(self.0 as f64 / 2f64.powi(scale.bits.min(32) as i32))
    }
    #[inline]
    fn plus(self, duration: ClockSteps) -> ClockSteps {
        ClockSteps(self.0.saturating_add(duration.0))
    }
    #[inline]
    fn since(self, earlier: ClockSteps) -> ClockSteps {
        ClockSteps(self.0.saturating_sub(earlier.0))
    }
    #[inline]
    fn later(self, other: ClockSteps) -> ClockSteps {
        ClockSteps(self.0.max(other.0))
    }
    #[inline]
    fn is_before(self, other: ClockSteps) -> bool {
        self.0 < other.0
    }
    fn longest_tail(_: u64) -> u64 {
        u64::MAX
    }
    #[inline]
    fn transfer(per_byte: u64, bytes: u64) -> ClockSteps {
        ClockSteps(per_byte.saturating_mul(bytes))
    }
    #[inline]
    fn bounded(self) -> ClockSteps {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_bits_cut_the_gap_per_byte_by_several_percent() {
        let per_byte = TimePerByte::from_micros(0.00849);
        assert_eq!(BinaryPoint::PRINTED.stored_per_byte(per_byte), 8);
        assert!((BinaryPoint::PRINTED.error_of(per_byte) + 0.0797997644287396).abs() < 1e-12);
        assert_eq!(
            BinaryPoint {
                rounding: Rounding::Nearest,
                ..BinaryPoint::PRINTED
            }
            .stored_per_byte(per_byte),
            9
        );
    }

    #[test]
    fn printed_parameters_are_whole_ticks() {
        assert_eq!(
            Ticks::from_time(Time::from_micros(0.897), ()),
            Ticks(8_970_000)
        );
        assert_eq!(
            Ticks::transfer(Ticks::per_byte(TimePerByte::from_micros(0.00103), ()), 1000),
            Ticks(10_300_000)
        );
    }

    #[test]
    fn ticks_stop_at_the_end_of_their_range() {
        assert_eq!(Ticks::from_time(Time::from_seconds(1e9), ()), Ticks::LAST);
        assert_eq!(Ticks::from_nanos(u64::MAX), Ticks::LAST);
        let slow = Ticks::per_byte(TimePerByte::from_nanos(1e30), ());
        let all = Ticks::LAST
            .plus(Ticks::LAST)
            .plus(Ticks::LAST)
            .plus(Ticks::transfer(slow, Ticks::longest_tail(slow)));
        assert!(
            Ticks::LAST.is_before(all),
            "the largest sum of a rule does not wrap"
        );
        assert_eq!(all.bounded(), Ticks::LAST);
    }
}
