//! Times, sizes, rates, ranks and nodes as separate types: no bare number crosses a function boundary in Flowcast.
//!
//! A [`Time`] stores nanoseconds in an `f64`. Whole nanoseconds below 2^53 (104 days) are exact. Times that another tool
//! counts in nanoseconds therefore stay equal, and model times between two nanoseconds are not rounded. Text always carries
//! its unit, for input and output; a bare number is an error.
//!
//! ```
//! use flowcast_units::{Bytes, Rate, Time};
//!
//! let latency = Time::parse("4.7us")?;
//! let wire = Rate::parse("1Gbit/s")?.time_for(Bytes::parse("1MB")?);
//! assert_eq!((latency + wire).to_string(), "8.0047ms");
//! assert!(Time::parse("4.7").is_err(), "a time needs its unit");
//! # Ok::<(), flowcast_units::UnitError>(())
//! ```

use std::{
    cmp::Ordering,
    fmt,
    iter::Sum,
    ops::{Add, AddAssign, Div, Mul, Sub},
};

use thiserror::Error;

mod clock_line;
mod collective_op;
mod named;
mod plain_text;
#[cfg(feature = "serde")]
mod serialised;
mod text;

pub use clock_line::ClockLine;
pub use collective_op::CollectiveOp;
pub use plain_text::plain_text;
use text::{BYTE_UNITS, Unit, decimal_text, parse_scaled, within};

/// Error for a text that does not name a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("found `{found}`, expected {expected}")]
pub struct UnitError {
    /// The text as given.
    pub found: String,
    /// Description of a valid text, with an example.
    pub expected: &'static str,
}

/// A point in time or a duration. Totally ordered, never NaN.
///
/// ```
/// use flowcast_units::Time;
///
/// let latency = Time::parse("4.7us")?;
/// assert_eq!((latency * 2.0).as_nanos(), 9400.0);
/// assert!(latency < Time::from_micros(5.0));
/// # Ok::<(), flowcast_units::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(transparent)]
pub struct Time(f64);

impl Time {
    /// 0 ns: no duration, or the instant at which a replay starts.
    pub const ZERO: Time = Time(0.0);
    /// Later than every other time: the time of an event that has not happened yet.
    pub const NEVER: Time = Time(f64::INFINITY);
    /// Longest time that a text may give: products with sizes and sums over a replay then stay finite.
    pub const LONGEST: Time = Time(1e27);

    /// Creates a time from nanoseconds; `nanos` must be a number.
    #[inline]
    pub const fn from_nanos(nanos: f64) -> Time {
        Time(nanos)
    }

    /// Creates a time from microseconds; `micros` must be a number.
    #[inline]
    pub fn from_micros(micros: f64) -> Time {
        Time(micros * 1e3)
    }

    /// Creates a time from seconds; `seconds` must be a number.
    #[inline]
    pub const fn from_seconds(seconds: f64) -> Time {
        Time(seconds * 1e9)
    }

    /// Time in nanoseconds, as stored.
    #[inline]
    pub const fn as_nanos(self) -> f64 {
        self.0
    }

    /// Share of a whole; 0 if the whole is 0.
    pub fn share_of(self, whole: Time) -> f64 {
        if whole > Time::ZERO {
            self.0 / whole.0
        } else {
            0.0
        }
    }

    /// The time in microseconds, 1000 ns each.
    #[inline]
    pub fn as_micros(self) -> f64 {
        self.0 / 1e3
    }

    /// The time in seconds, 10^9 ns each.
    #[inline]
    pub fn as_seconds(self) -> f64 {
        self.0 / 1e9
    }

    /// Time truncated to whole nanoseconds.
    #[inline]
    pub fn whole_nanos(self) -> Time {
        Time(self.0.trunc())
    }

    /// The later of two times.
    #[inline]
    pub fn max(self, other: Time) -> Time {
        if other.0 > self.0 { other } else { self }
    }

    /// The earlier of two times.
    #[inline]
    pub fn min(self, other: Time) -> Time {
        if other.0 < self.0 { other } else { self }
    }

    /// Reads `4.7us`, `2 ms`, `1e-3s`, `20ns`.
    ///
    /// # Errors
    /// A missing or unknown unit, or a number that is negative or not finite.
    pub fn parse(text: &str) -> Result<Time, UnitError> {
        const UNITS: [Unit; 5] = [
            ("ns", 1.0, 0),
            ("us", 1.0, 3),
            ("µs", 1.0, 3),
            ("ms", 1.0, 6),
            ("s", 1.0, 9),
        ];
        let nanos = parse_scaled(
            text,
            &UNITS,
            "a time with its unit, such as 4.7us (ns, us, ms, s)",
        )?;
        within(text, nanos, "a time of at most 1e18s").map(Time)
    }
}

impl Eq for Time {}

impl Ord for Time {
    #[inline]
    fn cmp(&self, other: &Time) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Time {
    #[inline]
    fn partial_cmp(&self, other: &Time) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // Times are never NaN: comparing the numbers takes one instruction, the total order several.
    #[inline]
    fn lt(&self, other: &Time) -> bool {
        self.0 < other.0
    }

    #[inline]
    fn le(&self, other: &Time) -> bool {
        self.0 <= other.0
    }

    #[inline]
    fn gt(&self, other: &Time) -> bool {
        self.0 > other.0
    }

    #[inline]
    fn ge(&self, other: &Time) -> bool {
        self.0 >= other.0
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl Mul<f64> for Time {
    type Output = Time;
    #[inline]
    fn mul(self, factor: f64) -> Time {
        Time(self.0 * factor)
    }
}

impl Div<f64> for Time {
    type Output = Time;
    #[inline]
    fn div(self, divisor: f64) -> Time {
        Time(self.0 / divisor)
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Time>>(times: I) -> Time {
        times.fold(Time::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    /// Writes the time in the unit that fits its magnitude. Parsing the text returns the same time. [`Rounded`] is for
    /// people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: [(&str, usize); 4] = [("s", 9), ("ms", 6), ("us", 3), ("ns", 0)];
        let fits = |exponent: usize| {
            self.0.abs() >= 10f64.powi(exponent as i32) || (self.0 == 0.0 && exponent == 3)
        };
        let (unit, exponent) = STEPS
            .into_iter()
            .find(|(_, exponent)| fits(*exponent))
            .unwrap_or(("ns", 0));
        write!(f, "{}{unit}", decimal_text(self.0, exponent))
    }
}

/// A quantity shown to people: four significant digits, a fitting unit, and a space between the two.
///
/// ```
/// use flowcast_units::{Bytes, Rate, Rounded, Time, TimePerByte};
///
/// assert_eq!(Rounded(Time::from_nanos(123_456.0)).to_string(), "123.5 us");
/// assert_eq!(Rounded(Bytes(1_697_261_294)).to_string(), "1.697 GB");
/// assert_eq!(Rounded(Rate::from_bytes_per_second(112_200_000.0)).to_string(), "112.2 MB/s");
/// assert_eq!(Rounded(TimePerByte::from_nanos(8.49)).to_string(), "8.49 ns/B");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Rounded<Q = Time>(pub Q);

impl fmt::Display for Rounded<Time> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A difference of equal times may leave a rounding error.
        let nanos = if self.0.as_nanos().abs() < 5e-4 {
            0.0
        } else {
            self.0.as_nanos()
        };
        let (scaled, unit) = match nanos.abs() {
            n if n >= 1e9 => (nanos / 1e9, "s"),
            n if n >= 1e6 => (nanos / 1e6, "ms"),
            n if n >= 1e3 => (nanos / 1e3, "us"),
            _ => (nanos, "ns"),
        };
        let decimals = match scaled.abs() {
            s if s >= 1000.0 || s == 0.0 => 0,
            s if s >= 100.0 => 1,
            s if s >= 10.0 => 2,
            _ => 3,
        };
        f.pad(&format!("{scaled:.decimals$} {unit}"))
    }
}

impl fmt::Display for Rounded<Bytes> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&SizeUnits::for_sizes([self.0]).text(self.0))
    }
}

impl fmt::Display for Rounded<Rate> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/s", in_decimal_units(self.0.0)))
    }
}

impl fmt::Display for Rounded<TimePerByte> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} ns/B", four_digits(self.0.0)))
    }
}

/// Rounds to four significant digits; the text of the result has no zeros at its end.
///
/// ```
/// assert_eq!(flowcast_units::four_digits(0.123456), 0.1235);
/// ```
pub fn four_digits(value: f64) -> f64 {
    let text = format!("{value:.3e}");
    text.parse().expect("a number that was written as one")
}

/// Formats bytes in kB, MB, GB or TB, with four digits.
fn in_decimal_units(bytes: f64) -> String {
    const UNITS: [(f64, &str); 5] = [
        (1e12, "TB"),
        (1e9, "GB"),
        (1e6, "MB"),
        (1e3, "kB"),
        (1.0, "B"),
    ];
    let rounded = four_digits(bytes);
    let (scale, unit) = UNITS
        .into_iter()
        .find(|(scale, _)| rounded >= *scale)
        .unwrap_or(UNITS[4]);
    format!("{} {unit}", four_digits(rounded / scale))
}

/// Family of units for sizes that people see next to each other, as in a column: binary if each size is a whole or half
/// number of KiB, MiB or GiB, otherwise decimal. Decimal sizes are exact below 100 kB and have four significant digits
/// above.
///
/// ```
/// use flowcast_units::{Bytes, SizeUnits};
///
/// let column = [Bytes(640), Bytes(65_536)];
/// assert_eq!(column.map(|size| SizeUnits::for_sizes(column).text(size)), ["640 B", "64 KiB"]);
/// let column = [Bytes(65_537), Bytes(65_536)];
/// assert_eq!(column.map(|size| SizeUnits::for_sizes(column).text(size)), ["65.537 kB", "65.536 kB"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeUnits {
    /// B, KiB, MiB, GiB.
    Binary,
    /// B, kB, MB, GB, TB.
    Decimal,
}

impl SizeUnits {
    /// Returns the units that suit these sizes.
    pub fn for_sizes(sizes: impl IntoIterator<Item = Bytes>) -> SizeUnits {
        match sizes.into_iter().all(|size| is_binary(size.0)) {
            true => SizeUnits::Binary,
            false => SizeUnits::Decimal,
        }
    }

    /// Formats a size in these units.
    pub fn text(self, size: Bytes) -> String {
        const EXACT_BELOW: u64 = 100_000;
        match (self, size.0) {
            (_, bytes) if bytes < 1000 => format!("{bytes} B"),
            (SizeUnits::Binary, bytes) => {
                let (scale, unit) = binary_unit(bytes);
                format!("{} {unit}", bytes as f64 / scale as f64)
            }
            (SizeUnits::Decimal, bytes) if bytes < EXACT_BELOW => {
                format!("{} kB", bytes as f64 / 1e3)
            }
            (SizeUnits::Decimal, bytes) => in_decimal_units(bytes as f64),
        }
    }
}

fn binary_unit(bytes: u64) -> (u64, &'static str) {
    match bytes {
        bytes if bytes >= 1 << 30 => (1 << 30, "GiB"),
        bytes if bytes >= 1 << 20 => (1 << 20, "MiB"),
        _ => (1 << 10, "KiB"),
    }
}

fn is_binary(bytes: u64) -> bool {
    let is_round_in_decimal =
        bytes.is_multiple_of(1000) && four_digits(bytes as f64) == bytes as f64;
    bytes < 1000 || !is_round_in_decimal && bytes.is_multiple_of(binary_unit(bytes).0 / 2)
}

/// A number of bytes.
///
/// ```
/// use flowcast_units::Bytes;
///
/// assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
/// assert_eq!(Bytes(4_000_000).to_string(), "4MB");
/// assert!(Bytes::parse("0.5B").is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Reads `8192B`, `4MB`, `64KiB`.
    ///
    /// # Errors
    /// A missing or unknown unit, or a number that is not a whole, non-negative number of bytes.
    pub fn parse(text: &str) -> Result<Bytes, UnitError> {
        const EXPECTED: &str =
            "a size with its unit, such as 64KiB or 4MB (B, kB, MB, GB, KiB, MiB, GiB)";
        let bytes = parse_scaled(text, &BYTE_UNITS, EXPECTED)?;
        if bytes.fract() != 0.0 || bytes > 9e15 {
            return Err(UnitError {
                found: text.to_owned(),
                expected: "a whole number of bytes below 9e15",
            });
        }
        Ok(Bytes(bytes as u64))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: [(u64, &str); 6] = [
            (1 << 30, "GiB"),
            (1_000_000_000, "GB"),
            (1 << 20, "MiB"),
            (1_000_000, "MB"),
            (1 << 10, "KiB"),
            (1_000, "kB"),
        ];
        match STEPS
            .iter()
            .find(|(scale, _)| self.0 >= *scale && self.0.is_multiple_of(*scale))
        {
            Some((scale, unit)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// Bytes per second; 0 stands for infinite where a format says so.
///
/// ```
/// use flowcast_units::{Bytes, Rate, Time};
///
/// let rate = Rate::parse("1Gbit/s")?;
/// assert_eq!(rate.time_for(Bytes(125)), Time::from_micros(1.0));
/// # Ok::<(), flowcast_units::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Rate(f64);

impl Rate {
    /// Creates a rate from bytes per second.
    pub const fn from_bytes_per_second(rate: f64) -> Rate {
        Rate(rate)
    }

    /// Creates a rate from Dimemas' megabytes (2^20 bytes) per second.
    pub fn from_mebibytes_per_second(rate: f64) -> Rate {
        Rate(rate * 1_048_576.0)
    }

    /// Rate in bytes per second.
    pub const fn as_bytes_per_second(self) -> f64 {
        self.0
    }

    /// Time to transfer `bytes`; zero at an infinite rate (0).
    #[inline]
    pub fn time_for(self, bytes: Bytes) -> Time {
        if self.0 == 0.0 {
            Time::ZERO
        } else {
            Time(bytes.0 as f64 * 1e9 / self.0)
        }
    }

    /// Reads `112.2MB/s`, `1Gbit/s` (also as `1Gbps` and `1Gb/s`), `87.5MiB/s`; a small `b` is a bit.
    ///
    /// # Errors
    /// A missing or unknown unit, or a number that is negative or not finite.
    pub fn parse(text: &str) -> Result<Rate, UnitError> {
        const UNITS: [Unit; 19] = [
            ("Gbit/s", 0.125, 9),
            ("Mbit/s", 0.125, 6),
            ("kbit/s", 0.125, 3),
            ("bit/s", 0.125, 0),
            ("Gbps", 0.125, 9),
            ("Mbps", 0.125, 6),
            ("kbps", 0.125, 3),
            ("bps", 0.125, 0),
            ("Gb/s", 0.125, 9),
            ("Mb/s", 0.125, 6),
            ("kb/s", 0.125, 3),
            ("b/s", 0.125, 0),
            ("GiB/s", 1_073_741_824.0, 0),
            ("MiB/s", 1_048_576.0, 0),
            ("KiB/s", 1024.0, 0),
            ("GB/s", 1.0, 9),
            ("MB/s", 1.0, 6),
            ("kB/s", 1.0, 3),
            ("B/s", 1.0, 0),
        ];
        const EXPECTED: &str =
            "a rate with its unit, such as 1Gbit/s or 112.2MB/s (also Mbit/s, MiB/s, B/s)";
        parse_scaled(text, &UNITS, EXPECTED).map(Rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}MB/s", decimal_text(self.0, 6))
    }
}

/// Time per byte: the `G` of LogGP, the inverse of a rate.
///
/// ```
/// use flowcast_units::{Rate, TimePerByte};
///
/// let gap = TimePerByte::parse("8ns/B")?;
/// assert_eq!(gap.rate(), Rate::parse("1Gbit/s")?);
/// # Ok::<(), flowcast_units::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct TimePerByte(f64);

impl TimePerByte {
    /// Creates a time per byte from nanoseconds.
    pub const fn from_nanos(nanos: f64) -> TimePerByte {
        TimePerByte(nanos)
    }

    /// Creates a time per byte from microseconds.
    pub fn from_micros(micros: f64) -> TimePerByte {
        TimePerByte(micros * 1e3)
    }

    /// Time per byte, in nanoseconds.
    pub const fn as_nanos(self) -> f64 {
        self.0
    }

    /// Time per byte, in microseconds.
    pub fn as_micros(self) -> f64 {
        self.0 / 1e3
    }

    /// Time to transfer `bytes`.
    #[inline]
    pub fn time_for(self, bytes: Bytes) -> Time {
        Time(self.0 * bytes.0 as f64)
    }

    /// Returns the inverse of a rate; 0 for an infinite rate (0).
    pub fn from_rate(rate: Rate) -> TimePerByte {
        TimePerByte(if rate.0 == 0.0 { 0.0 } else { 1e9 / rate.0 })
    }

    /// Returns the inverse in bytes per second; 0 (infinite) for 0.
    pub fn rate(self) -> Rate {
        Rate(if self.0 == 0.0 { 0.0 } else { 1e9 / self.0 })
    }

    /// Reads `0.00103us/B`, `1.03ns/B`.
    ///
    /// # Errors
    /// A missing or unknown unit, or a number that is negative or not finite.
    pub fn parse(text: &str) -> Result<TimePerByte, UnitError> {
        const UNITS: [Unit; 3] = [("ns/B", 1.0, 0), ("us/B", 1.0, 3), ("s/B", 1.0, 9)];
        let nanos = parse_scaled(
            text,
            &UNITS,
            "a time per byte with its unit, such as 1.03ns/B (ns/B, us/B, s/B)",
        )?;
        within(text, nanos, "a time per byte of at most 1e18s/B").map(TimePerByte)
    }
}

impl fmt::Display for TimePerByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns/B", self.0)
    }
}

/// Upper limit, exclusive, for the ranks of a job, the slots of a node and the nodes of a cluster: larger numbers are
/// considered mistakes.
pub const MOST_RANKS: u32 = 1 << 24;

/// A process of a message-passing program, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rank(pub u32);

impl Rank {
    /// Iterates over the first `ranks` ranks, from 0.
    pub fn all(ranks: usize) -> impl DoubleEndedIterator<Item = Rank> + ExactSizeIterator + Clone {
        (0..ranks as u32).map(Rank)
    }

    /// Index of the rank in per-rank tables.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A node (computer) of a cluster, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Node(pub u32);

impl Node {
    /// Index of the node in per-node tables.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Lets typed numbers index tables: `table[rank]` is `table[rank.index()]`.
#[macro_export]
macro_rules! index_tables {
    ($($number:ident)+) => {
        $($crate::index_tables! { $number: [T], Vec<T> })+
    };
    ($number:ident: $($table:ty),+) => {$(
        impl<T> std::ops::Index<$number> for $table {
            type Output = T;

            #[inline(always)]
            #[track_caller]
            fn index(&self, number: $number) -> &T {
                &self[number.index()]
            }
        }

        impl<T> std::ops::IndexMut<$number> for $table {
            #[inline(always)]
            #[track_caller]
            fn index_mut(&mut self, number: $number) -> &mut T {
                &mut self[number.index()]
            }
        }
    )+};
}

index_tables!(Rank Node);

macro_rules! from_text {
    ($($name:ident),*) => {$(
        impl std::str::FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<$name, UnitError> {
                $name::parse(text)
            }
        }
    )*};
}

from_text!(Time, Bytes, Rate, TimePerByte);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_displayed_time_has_four_digits_and_is_0_if_these_are_0() {
        for (nanos, text) in [
            (613_101_196.5, "613.1 ms"),
            (1e9, "1.000 s"),
            (0.25, "0.250 ns"),
            (1e-7, "0 ns"),
            (-1e-7, "0 ns"),
            (0.0, "0 ns"),
        ] {
            assert_eq!(Rounded(Time::from_nanos(nanos)).to_string(), text);
        }
    }

    #[test]
    fn displayed_sizes_have_a_suitable_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (4097, "4.097 kB"),
            (7680, "7.5 KiB"),
            (64_000, "64 kB"),
            (455_200_000, "455.2 MB"),
            (102_400_000, "102.4 MB"),
            (1 << 20, "1 MiB"),
            (1_697_261_294, "1.697 GB"),
            (999_960, "1 MB"),
            (5 << 30, "5 GiB"),
            (6_000_000_000_000, "6 TB"),
        ] {
            assert_eq!(Rounded(Bytes(bytes)).to_string(), text, "{bytes}");
        }
        assert_eq!(
            [1500.0, 0.5].map(|rate| Rounded(Rate::from_bytes_per_second(rate)).to_string()),
            ["1.5 kB/s", "0.5 B/s"]
        );
    }

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(Time::parse("4.7us").unwrap(), Time::from_nanos(4700.0));
        assert_eq!(Time::parse("1e-3s").unwrap(), Time::from_nanos(1e6));
        assert_eq!(Time::parse("0us").unwrap(), Time::ZERO);
        assert_eq!(Bytes::parse("64KiB").unwrap(), Bytes(65536));
        assert_eq!(Bytes::parse("1000000B").unwrap(), Bytes(1_000_000));
        assert_eq!(
            Rate::parse("1Gbit/s").unwrap().as_bytes_per_second(),
            1.25e8
        );
        for text in ["25Gbit/s", "25Gbps", "25 Gb/s", "25000Mbps", "25e9b/s"] {
            assert_eq!(
                Rate::parse(text).unwrap().as_bytes_per_second(),
                3.125e9,
                "{text}"
            );
        }
        assert_eq!(TimePerByte::parse("0.00103us/B").unwrap().as_nanos(), 1.03);
    }

    #[test]
    fn bare_negative_and_infinite_numbers_are_refused() {
        for text in [
            "4.7", "", "us", "-1us", "infs", "nans", "1e400s", "1 parsec", "--3s",
        ] {
            assert!(Time::parse(text).is_err(), "{text}");
        }
        for text in ["1.5B", "12", "-4kB", "1TB", "1e30GB"] {
            assert!(Bytes::parse(text).is_err(), "{text}");
        }
        for text in ["100Mb", "100Mp/s", "100bps/s", "Gbps"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
        for text in ["1e308ns/B", "1e19s/B"] {
            let refused = TimePerByte::parse(text).unwrap_err().to_string();
            assert_eq!(
                refused,
                format!("found `{text}`, expected a time per byte of at most 1e18s/B")
            );
        }
        assert!(Time::parse("1e19s").is_err() && Time::parse("1e18s").is_ok());
    }

    #[test]
    fn printed_quantities_have_no_rounding_artefacts() {
        assert_eq!(Time::from_nanos(3370.058385).to_string(), "3.370058385us");
        assert_eq!(Time::from_nanos(4165.475).to_string(), "4.165475us");
        assert_eq!(Time::from_nanos(-1_200_000.0).to_string(), "-1.2ms");
        assert_eq!(Time::from_nanos(0.25).to_string(), "0.25ns");
        assert_eq!(Time::ZERO.to_string(), "0us");
        assert_eq!(
            Rate::from_bytes_per_second(112_200_000.0).to_string(),
            "112.2MB/s"
        );
        assert_eq!(
            Rate::from_bytes_per_second(1500.0).to_string(),
            "0.0015MB/s"
        );
    }

    proptest! {
        #[test]
        fn a_printed_quantity_reads_back_equal(nanos in 0.0..1e15f64, bytes in 0u64..1 << 50) {
            let time = Time::from_nanos(nanos);
            let back = Time::parse(&time.to_string()).unwrap();
            prop_assert_eq!(back, time);
            prop_assert_eq!(Bytes::parse(&Bytes(bytes).to_string()).unwrap(), Bytes(bytes));
        }
    }
}
