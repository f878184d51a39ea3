//! Rails, their numbers, and sets of them.

use std::fmt;

use thiserror::Error;

use flowcast_network::loggp::LogGp;
use flowcast_units::TimePerByte;

/// Largest number of rails of one scheduler, the same as in the thesis (section 4.4.7).
pub const MAX_RAILS: usize = 16;

/// Reason why rails, shares or messages were refused.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RailsError {
    /// No rail, or too many.
    #[error("rails: found {0}, expected 1 to {MAX_RAILS}")]
    Count(usize),
    /// A text that does not describe a rail.
    #[error(
        "rail: found `{0}`, expected NAME=g,G,o,Lus or NAME=g,G,o,L,Ous in microseconds from 0 to 1e24, such as ib=1.4,0.00103,1.4,2.82us"
    )]
    Malformed(String),
    /// The number of shares does not match the number of rails.
    #[error("shares: found {found}, expected {rails}, one for each rail")]
    Shares {
        /// Number of given shares.
        found: usize,
        /// Number of rails, each of which needs one share.
        rails: usize,
    },
    /// A share outside the allowed range.
    #[error("shares: found {0}, expected 1 to 255")]
    Share(u32),
    /// Unknown name of a scheduler.
    #[error("scheduler: found `{0}`, expected one of {1}")]
    Unknown(String, String),
    /// A message arrives before its predecessor.
    #[error(
        "message {index}: found an arrival before the previous message, expected messages in order of arrival"
    )]
    Order {
        /// Index of the message, from 0.
        index: usize,
    },
    /// A choice of a rail that does not exist.
    #[error("message {index}: found rail {rail}, expected 0 to {last}", last = .rails - 1)]
    Choice {
        /// Index of the message, from 0.
        index: usize,
        /// Index of the rail.
        rail: u8,
        /// Number of rails; valid indices are below it.
        rails: usize,
    },
    /// Lists of different lengths.
    #[error("choices: found {found}, expected one for each of the {messages} messages")]
    Choices {
        /// Number of given choices.
        found: usize,
        /// Number of messages, each of which needs one choice.
        messages: usize,
    },
}

/// A network that messages can take.
#[derive(Debug, Clone, PartialEq)]
pub struct Rail {
    /// Name in tables and messages.
    pub name: String,
    /// Cost of messages on the rail.
    pub cost: LogGp,
    /// `O`: overhead of each byte after the first ([`super::processor`]).
    pub overhead_per_byte: TimePerByte,
}

impl Rail {
    /// Parses `ib=1.4,0.00103,1.4,2.82us`: g, G per byte, o and L in microseconds, and optionally O per byte.
    ///
    /// ```
    /// use flowcast_scheduler::Rail;
    /// use flowcast_units::Time;
    ///
    /// let rail = Rail::parse("ib=1.4,0.00103,1.4,2.82us")?;
    /// assert_eq!((rail.name.as_str(), rail.cost.latency), ("ib", Time::from_micros(2.82)));
    /// # Ok::<(), flowcast_scheduler::RailsError>(())
    /// ```
    ///
    /// # Errors
    /// Another format, or a number that is negative or above 1e24.
    pub fn parse(text: &str) -> Result<Rail, RailsError> {
        let parsed = text.split_once('=').and_then(|(name, numbers)| {
            let numbers = numbers.trim().strip_suffix("us")?;
            let fields: Vec<f64> = numbers
                .split(',')
                .map(parse_micros)
                .collect::<Option<_>>()?;
            let (gap, per_byte, overhead, latency, more) = match fields[..] {
                [gap, per_byte, overhead, latency] => (gap, per_byte, overhead, latency, 0.0),
                [gap, per_byte, overhead, latency, more] => {
                    (gap, per_byte, overhead, latency, more)
                }
                _ => return None,
            };
            let micros = [latency, overhead, gap, per_byte];
            (!name.trim().is_empty()).then(|| Rail {
                name: name.trim().to_owned(),
                cost: LogGp::from_nanos(micros.map(|micros| micros * 1e3)),
                overhead_per_byte: TimePerByte::from_micros(more),
            })
        });
        parsed.ok_or_else(|| RailsError::Malformed(text.to_owned()))
    }
}

/// Longest accepted time. Sums of longer times might not be finite.
const MOST_MICROS: f64 = 1e24;

fn parse_micros(text: &str) -> Option<f64> {
    let number = text.trim().parse().ok();
    number.filter(|number: &f64| (0.0..=MOST_MICROS).contains(number) && !number.is_sign_negative())
}

/// Fails if there are no rails or too many.
pub(super) fn check_count(rails: usize) -> Result<(), RailsError> {
    if (1..=MAX_RAILS).contains(&rails) {
        Ok(())
    } else {
        Err(RailsError::Count(rails))
    }
}

/// Index of a rail in the list from which its scheduler was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RailId(pub u8);

impl RailId {
    /// Index into lists of rails.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for RailId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of rails, such as those that reach a destination or those that are up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RailSet(u16);

impl RailSet {
    /// All rails that a set can hold, including those that do not exist.
    pub const ALL: RailSet = RailSet(u16::MAX);
    /// The empty set of rails.
    pub const NONE: RailSet = RailSet(0);

    /// The first `count` rails; `count` is at most [`MAX_RAILS`].
    #[inline]
    pub const fn first(count: usize) -> RailSet {
        RailSet(((1u32 << count) - 1) as u16)
    }

    /// Creates a set from a bit for each rail, rail 0 lowest.
    #[inline]
    pub const fn from_bits(bits: u16) -> RailSet {
        RailSet(bits)
    }

    /// A bit for each rail, rail 0 lowest.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The set with `rail` added.
    #[inline]
    #[must_use]
    pub const fn with(self, rail: RailId) -> RailSet {
        RailSet(self.0 | 1 << rail.0)
    }

    /// The set without `rail`; unchanged if `rail` is not in it.
    #[inline]
    #[must_use]
    pub const fn without(self, rail: RailId) -> RailSet {
        RailSet(self.0 & !(1 << rail.0))
    }

    /// Intersection of both sets.
    #[inline]
    #[must_use]
    pub const fn and(self, other: RailSet) -> RailSet {
        RailSet(self.0 & other.0)
    }

    /// Returns `true` if `rail` is in the set.
    #[inline]
    pub const fn contains(self, rail: RailId) -> bool {
        self.0 >> rail.0 & 1 == 1
    }

    /// Returns `true` if the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The rail with the lowest number, or `None` if the set is empty.
    #[inline]
    pub const fn lowest(self) -> Option<RailId> {
        if self.0 == 0 {
            None
        } else {
            Some(RailId(self.0.trailing_zeros() as u8))
        }
    }
}

impl Iterator for RailSet {
    type Item = RailId;

    #[inline]
    fn next(&mut self) -> Option<RailId> {
        let rail = self.lowest()?;
        self.0 &= self.0 - 1;
        Some(rail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::Time;

    #[test]
    fn a_rail_is_read_from_four_numbers() {
        let rail = Rail::parse("ib=1.4, 0.00103,1.4,2.82us").unwrap();
        assert_eq!(rail.name, "ib");
        assert_eq!(rail.cost.gap, Time::from_nanos(1400.0));
        assert_eq!(rail.cost.latency, Time::from_nanos(2820.0));
        assert!((rail.cost.gap_per_byte.as_nanos() - 1.03).abs() < 1e-12);
        assert_eq!(rail.overhead_per_byte, TimePerByte::from_nanos(0.0));
        assert_eq!(
            Rail::parse("ib=1,2,3,4,0.5us").unwrap().overhead_per_byte,
            TimePerByte::from_nanos(500.0)
        );
    }

    #[test]
    fn invalid_rails_are_refused_and_quoted() {
        for text in [
            "ib",
            "ib=1,2,3,4",
            "=1,2,3,4us",
            "ib=1,2,3us",
            "ib=1,2,3,4,5,6us",
            "ib=1,-2,3,4us",
            "ib=1,nan,3,4us",
            "ib=1,2,3,1e308us",
        ] {
            assert!(
                Rail::parse(text)
                    .unwrap_err()
                    .to_string()
                    .contains(&format!("`{text}`"))
            );
        }
    }

    #[test]
    fn a_set_lists_its_rails_from_the_lowest() {
        let set = RailSet::first(3).without(RailId(1)).with(RailId(9));
        assert_eq!(set.collect::<Vec<_>>(), [RailId(0), RailId(2), RailId(9)]);
        assert_eq!(RailSet::first(16), RailSet::ALL);
        assert!(RailSet::NONE.lowest().is_none());
    }
}
