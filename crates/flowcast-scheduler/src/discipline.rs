//! Schedulers by name: parses the names of the rules for the choice of a rail, and creates their schedulers.

use std::{fmt, str::FromStr};

use super::{
    RailScheduler, RailsError,
    clock::{BinaryPoint, ClockArithmetic, ClockSteps, Exact},
    rules::{EarliestDelivery, EarliestOverlap, Gap, Latency, Overlap, Vft, VftClock},
    table::Accounting,
    turns::{
        RoundRobin, Shares, TakingTurns, VirtualTimeRoundRobin, WeightedFairQueuing,
        WeightedRoundRobin,
    },
    virtual_time::VirtualTime,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::named;

/// A scheduler of any kind, which may move to another thread.
pub type BoxedScheduler<M> = Box<dyn RailScheduler<M> + Send>;

named! {
    /// Rule for the choice of a message's rail.
    pub enum Discipline {
        /// Rails in turn, one message each (4.3.4.1).
        RoundRobin = "round-robin",
        /// Rails in turn, several messages in a row (4.3.4.2).
        WeightedRoundRobin = "weighted-round-robin",
        /// Shares, smallest virtual finish time (4.3.4.3).
        WeightedFairQueuing = "wfq",
        /// Shares, in constant time (4.3.4.4).
        VirtualTimeRoundRobin = "vtrr",
        /// 4.4.1: smallest virtual finish time (VFT); every message counts as one gap.
        Gap = "gap",
        /// 4.4.2: smallest virtual finish time (VFT).
        Vft = "vft",
        /// 4.4.3: smallest VFT that is not in the past.
        VftClock = "vft-clock",
        /// 4.4.4: earliest arrival of a message without length.
        Latency = "latency",
        /// 4.4.5: like 4.4.4, but the processor prepares a message while the interface is busy.
        Overlap = "overlap",
        /// 4.4.8: the rule of 4.4.4 in integers.
        FixedPoint = "fixed-point",
        /// Earliest arrival of the whole message; the default.
        EarliestDelivery = "earliest-delivery",
        /// Earliest arrival of the whole message with the overlap of 4.4.5.
        EarliestOverlap = "earliest-overlap",
    }
}

const PRINTED: &str = "-printed";

/// A scheduler's name: `latency`, or `latency-printed` for the thesis' pseudo-code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerName {
    /// Rule for the choice of rails.
    pub discipline: Discipline,
    /// Accounting for the message on the chosen rail. The printed form ignores the clock there, and gives `fixed-point` 10
    /// fractional bits instead of 20.
    pub accounting: Accounting,
}

impl SchedulerName {
    /// The rule according to the text of the thesis.
    pub const fn new(discipline: Discipline) -> SchedulerName {
        SchedulerName {
            discipline,
            accounting: Accounting::FromTheClock,
        }
    }

    /// The rule according to the pseudo-code of the thesis.
    pub const fn printed(discipline: Discipline) -> SchedulerName {
        SchedulerName {
            discipline,
            accounting: Accounting::AsPrinted,
        }
    }

    /// Every name, in both forms.
    pub fn every() -> impl Iterator<Item = SchedulerName> {
        let meant = Discipline::ALL.map(SchedulerName::new);
        meant
            .into_iter()
            .chain(Discipline::ALL.map(SchedulerName::printed))
    }

    /// Schedulers whose choices differ: all except the printed forms of those that do not read the clock (round robin and
    /// its relatives, 4.4.1, 4.4.2), which choose like the corrected forms.
    pub fn distinct() -> impl Iterator<Item = SchedulerName> {
        SchedulerName::every()
            .filter(|name| name.accounting == Accounting::FromTheClock || name.uses_clock())
    }

    fn uses_clock(self) -> bool {
        use Discipline::{
            EarliestDelivery, EarliestOverlap, FixedPoint, Latency, Overlap, VftClock,
        };
        matches!(
            self.discipline,
            VftClock | Latency | Overlap | FixedPoint | EarliestDelivery | EarliestOverlap
        )
    }

    /// Format of the integers of `fixed-point`; `None` for the others.
    pub fn binary_point(self) -> Option<BinaryPoint> {
        let point = match self.accounting {
            Accounting::FromTheClock => BinaryPoint::WIDE,
            Accounting::AsPrinted => BinaryPoint::PRINTED,
        };
        (self.discipline == Discipline::FixedPoint).then_some(point)
    }

    /// Creates a scheduler of this name in the arithmetic `M`, which for `fixed-point` should be [`ClockSteps`].
    ///
    /// # Errors
    /// No rail, too many, or shares that do not match the rails.
    pub fn scheduler<M: ClockArithmetic>(
        self,
        rails: &[LogGp],
        shares: Shares,
        scale: M::Scale,
    ) -> Result<BoxedScheduler<M>, RailsError> {
        let found = shares.all().count();
        if found != rails.len() {
            return Err(RailsError::Shares {
                found,
                rails: rails.len(),
            });
        }
        let how = self.accounting;
        Ok(match self.discipline {
            Discipline::RoundRobin => {
                Box::new(TakingTurns::new(RoundRobin::default(), rails, how, scale)?)
            }
            Discipline::WeightedRoundRobin => Box::new(TakingTurns::new(
                WeightedRoundRobin::new(shares),
                rails,
                how,
                scale,
            )?),
            Discipline::WeightedFairQueuing => Box::new(TakingTurns::new(
                WeightedFairQueuing::new(shares),
                rails,
                how,
                scale,
            )?),
            Discipline::VirtualTimeRoundRobin => Box::new(TakingTurns::new(
                VirtualTimeRoundRobin::new(shares),
                rails,
                how,
                scale,
            )?),
            // These two do not use the clock, neither in the text nor in the pseudo-code.
            Discipline::Gap => Box::new(VirtualTime::<Gap, M>::new(
                rails,
                Accounting::AsPrinted,
                scale,
            )?),
            Discipline::Vft => Box::new(VirtualTime::<Vft, M>::new(
                rails,
                Accounting::AsPrinted,
                scale,
            )?),
            Discipline::VftClock => Box::new(VirtualTime::<VftClock, M>::new(rails, how, scale)?),
            Discipline::Latency | Discipline::FixedPoint => {
                Box::new(VirtualTime::<Latency, M>::new(rails, how, scale)?)
            }
            Discipline::Overlap => Box::new(VirtualTime::<Overlap, M>::new(rails, how, scale)?),
            Discipline::EarliestDelivery => {
                Box::new(VirtualTime::<EarliestDelivery, M>::new(rails, how, scale)?)
            }
            Discipline::EarliestOverlap => {
                Box::new(VirtualTime::<EarliestOverlap, M>::new(rails, how, scale)?)
            }
        })
    }

    /// Creates a scheduler in exact arithmetic, for everything except the message path.
    ///
    /// # Errors
    /// The same as for [`SchedulerName::scheduler`].
    pub fn exact(
        self,
        rails: &[LogGp],
        shares: Shares,
    ) -> Result<BoxedScheduler<Exact>, RailsError> {
        self.scheduler(rails, shares, ())
    }

    /// Creates a scheduler that calculates in the scaled integers of the thesis; `point` sets their unit.
    ///
    /// # Errors
    /// The same as for [`SchedulerName::scheduler`].
    pub fn in_steps(
        self,
        rails: &[LogGp],
        shares: Shares,
        point: BinaryPoint,
    ) -> Result<BoxedScheduler<ClockSteps>, RailsError> {
        self.scheduler(rails, shares, point)
    }
}

impl fmt::Display for SchedulerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.accounting == Accounting::AsPrinted {
            PRINTED
        } else {
            ""
        };
        f.pad(&format!("{}{suffix}", self.discipline))
    }
}

impl FromStr for SchedulerName {
    type Err = RailsError;

    fn from_str(text: &str) -> Result<SchedulerName, RailsError> {
        let (name, make): (&str, fn(Discipline) -> SchedulerName) = match text.strip_suffix(PRINTED)
        {
            Some(name) => (name, SchedulerName::printed),
            None => (text, SchedulerName::new),
        };
        let discipline = Discipline::from_name(name).ok_or_else(|| {
            RailsError::Unknown(
                text.to_owned(),
                format!("{}, each also with {PRINTED}", Discipline::names()),
            )
        })?;
        Ok(make(discipline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for name in SchedulerName::every() {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
    }

    #[test]
    fn the_error_for_an_unknown_name_lists_the_known_ones() {
        let message = "fastest".parse::<SchedulerName>().unwrap_err().to_string();
        assert!(message.contains("`fastest`") && message.contains("earliest-delivery"));
    }
}
