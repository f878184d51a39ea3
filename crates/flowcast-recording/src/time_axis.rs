//! Common time axis of all ranks: the clock of rank 0's host, from the start of the first rank.
//!
//! A rank's file counts time from its own start. A clock item relates this count to the host's monotonic clock and, if the
//! clocks were synchronised, gives the lead of rank 0's clock. Between the first and the last clock item, times lie on the
//! line through both. This corrects drift and the errors that rounding and folding add to the rank's own count. Ranks whose
//! hosts share a kernel and its clock need no synchronisation.

use flowcast_units::{ClockLine, Rank, Time};

use super::decode::{ClockReading, RankFile};

/// Key of the header line that names the kernel and its clock. Ranks with equal values share a clock.
pub const CLOCK: &str = "clock";

/// Quality of the relation between the clocks of a recording's ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clocks {
    /// All ranks ran under one kernel.
    Shared,
    /// The clocks were synchronised, with this largest error, which includes jitter and asymmetry.
    Synchronised(Time),
    /// The recording has no clock readings, as in earlier versions.
    Unknown,
    /// Number of ranks without a clock that can be compared with rank 0's: times are comparable only within one host.
    Apart(usize),
}

/// The time axis of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeAxis {
    /// Quality of the relation between the clocks.
    pub clocks: Clocks,
    /// Line from each rank's own count to the axis; `None` for ranks that cannot be compared.
    lines: Vec<Option<ClockLine>>,
}

impl TimeAxis {
    /// Computes the axis from the files of all ranks, rank 0's first. The axis begins at the start of the first rank.
    pub fn new(files: &[RankFile]) -> TimeAxis {
        let Some(first) = files.first() else {
            return TimeAxis {
                clocks: Clocks::Shared,
                lines: Vec::new(),
            };
        };
        let shares = |file: &RankFile| {
            let clock = |file: &RankFile| {
                file.header
                    .fields
                    .get(CLOCK)
                    .filter(|name| !name.is_empty())
                    .cloned()
            };
            clock(file).is_some() && clock(file) == clock(first)
        };
        let mut known_to: Option<Time> = None;
        let line = |file: &RankFile| {
            if shares(file) {
                return line(file, |reading| Some(reading.own));
            }
            let line = line(file, |reading| Some(reading.own + reading.reference?.ahead))?;
            let worst = file
                .clocks
                .iter()
                .filter_map(|reading| Some(reading.reference?.known_to))
                .max();
            known_to = known_to.max(worst);
            Some(line)
        };
        let mut lines: Vec<Option<ClockLine>> = files.iter().map(line).collect();
        // No axis exists without rank 0.
        if lines[0].is_none() {
            lines.fill(None);
        }
        let begin = lines
            .iter()
            .flatten()
            .map(|line| line.read(Time::ZERO))
            .min()
            .unwrap_or(Time::ZERO);
        lines
            .iter_mut()
            .flatten()
            .for_each(|line| line.offset = line.offset - begin);
        let apart = lines.iter().filter(|line| line.is_none()).count();
        let clocks = match known_to {
            _ if files.iter().all(|file| file.clocks.is_empty()) => Clocks::Unknown,
            _ if apart > 0 => Clocks::Apart(apart),
            Some(known_to) => Clocks::Synchronised(known_to),
            None => Clocks::Shared,
        };
        TimeAxis { clocks, lines }
    }

    /// Converts a time of a rank's own count to the axis. Returns `None` for a rank whose clock is unknown.
    pub fn at(&self, rank: Rank, own: Time) -> Option<Time> {
        Some(self.lines.get(rank.index())?.as_ref()?.read(own))
    }
}

/// Returns the line from a rank's own count to another clock, through the values that the clock showed at the first and the
/// last clock item.
fn line(file: &RankFile, shown: impl Fn(&ClockReading) -> Option<Time>) -> Option<ClockLine> {
    let mut points = file
        .clocks
        .iter()
        .filter_map(|reading| Some((reading.counted, shown(reading)?)));
    let first = points.next()?;
    Some(ClockLine::through(
        first,
        points.next_back().unwrap_or(first),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Reference;
    use proptest::prelude::*;

    fn seconds(seconds: f64) -> Time {
        Time::from_seconds(seconds)
    }

    /// Creates the file of a rank that started at `begin` of its own clock and counted 10 s; `ahead` is the lead of rank 0's
    /// clock at the start and at the end.
    fn file(clock: &str, begin: f64, ahead: Option<(f64, f64)>) -> RankFile {
        let reading = |counted: f64, ahead: Option<f64>| ClockReading {
            counted: seconds(counted),
            own: seconds(begin + counted),
            reference: ahead.map(|ahead| Reference {
                ahead: seconds(ahead),
                known_to: Time::from_micros(9.0),
            }),
        };
        let mut file = RankFile::default();
        file.header.fields.insert(CLOCK.into(), clock.into());
        file.clocks = vec![
            reading(0.0, ahead.map(|both| both.0)),
            reading(10.0, ahead.map(|both| both.1)),
        ];
        file
    }

    #[test]
    fn ranks_of_one_kernel_share_its_clock() {
        let axis = TimeAxis::new(&[file("a", 5.0, None), file("a", 4.0, None)]);
        assert_eq!(
            (axis.clocks, axis.at(Rank(0), seconds(2.0))),
            (Clocks::Shared, Some(seconds(3.0)))
        );
        assert_eq!(
            (axis.at(Rank(1), Time::ZERO), axis.at(Rank(2), Time::ZERO)),
            (Some(Time::ZERO), None)
        );
    }

    #[test]
    fn unsynchronised_hosts_have_separate_axes_and_old_recordings_are_unknown() {
        let axis = TimeAxis::new(&[file("a", 5.0, None), file("b", 4.0, None)]);
        assert_eq!(
            (axis.clocks, axis.at(Rank(1), Time::ZERO)),
            (Clocks::Apart(1), None)
        );
        let old = TimeAxis::new(&[RankFile::default(), RankFile::default()]);
        assert_eq!(
            (old.clocks, old.at(Rank(0), Time::ZERO)),
            (Clocks::Unknown, None)
        );
    }

    proptest! {
        #[test]
        fn times_of_hosts_agree_on_the_axis(
            begins in prop::collection::vec((0.0f64..100.0, -1000.0f64..1000.0, -1e-4f64..1e-4), 1..20),
            share in 0.0f64..1.0,
        ) {
            // Clock `k` shows `t + offset + drift t` when rank 0's shows `t`. Each clock ran for 10 s of its own time from
            // some moment on.
            let mut files = vec![file("0", 50.0, Some((0.0, 0.0)))];
            for (number, (begin, offset, drift)) in begins.iter().enumerate() {
                let ahead = |own: f64| (own - offset) / (1.0 + drift) - own;
                let own = begin + offset + drift * begin;
                files.push(file(&format!("{}", number + 1), own, Some((ahead(own), ahead(own + 10.0)))));
            }
            let axis = TimeAxis::new(&files);
            prop_assert_eq!(axis.clocks, Clocks::Synchronised(Time::from_micros(9.0)));
            let first = begins.iter().map(|one| one.0).fold(50.0, f64::min);
            for (rank, (begin, _, drift)) in (1..).zip(&begins) {
                let found = axis.at(Rank(rank), seconds(10.0 * share)).unwrap();
                let truth = seconds(begin - first + 10.0 * share / (1.0 + drift));
                prop_assert!((found - truth).as_nanos().abs() < 1.0, "{} {}", found, truth);
            }
        }
    }
}
