//! Least-squares line through the offsets of several bursts.

use flowcast_units::{ClockLine, Time};
use serde::{Deserialize, Serialize};

/// Reading of another clock relative to this one: the exchange of a burst with the shortest round trip.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BurstReading {
    /// Middle of the exchange, on this clock.
    #[serde(with = "crate::wire")]
    pub own: Time,
    /// Lead of the other clock at this moment.
    #[serde(with = "crate::wire")]
    pub ahead: Time,
    /// Time from the question to the answer; at least 0.
    #[serde(with = "crate::wire")]
    pub round_trip: Time,
}

/// Estimate of another clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LearnedClock {
    /// Line from this clock to the other one.
    #[serde(with = "LineAsNumbers")]
    pub line: ClockLine,
    /// Standard deviation of the offset at `line.at`, the middle of the bursts.
    #[serde(with = "crate::wire")]
    pub deviation: Time,
    /// Standard deviation of the drift, in seconds per second.
    pub drift_deviation: f64,
    /// Half the shortest round trip, summed along the tree: bound for the error of the offset, apart from random errors.
    #[serde(with = "crate::wire")]
    pub asymmetry: Time,
    /// Time spanned by the bursts.
    #[serde(with = "crate::wire")]
    pub span: Time,
}

/// Form of a [`ClockLine`] in messages between processes.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ClockLine")]
pub(crate) struct LineAsNumbers {
    #[serde(with = "crate::wire")]
    at: Time,
    #[serde(with = "crate::wire")]
    offset: Time,
    drift: f64,
}

/// Smallest error of an offset, in nanoseconds, for any round trips: the clock's resolution and the time to read it.
const RESOLUTION: f64 = 20.0;

impl LearnedClock {
    /// Returns the estimate of a clock by itself, which is exact.
    pub fn itself() -> LearnedClock {
        let none = Time::ZERO;
        LearnedClock {
            line: ClockLine::default(),
            deviation: none,
            drift_deviation: 0.0,
            asymmetry: none,
            span: none,
        }
    }

    /// Fits a least-squares line through readings of the other clock. The error of a reading can be half the difference
    /// between its round trip and the shortest one, which determines its weight. Returns `None` without readings.
    pub fn from_glances(glances: &[BurstReading]) -> Option<LearnedClock> {
        let first = glances.first()?;
        let mut round_trips: Vec<f64> = glances
            .iter()
            .map(|glance| glance.round_trip.as_nanos())
            .collect();
        round_trips.sort_unstable_by(f64::total_cmp);
        let (shortest, quarter) = (round_trips[0], round_trips[round_trips.len() / 4]);
        // The shortest round trip is itself longer than the path requires. The excess grows with the spread of the better
        // bursts and falls with their number. The other bursts may all be late on the same side, for example on a busy
        // machine.
        let least = RESOLUTION + (quarter - shortest) / (glances.len() as f64).sqrt();
        let weight = |glance: &BurstReading| {
            ((glance.round_trip.as_nanos() - shortest) / 2.0 + least).powi(-2)
        };
        // Times are relative to the first reading. Otherwise, the squares would lose the nanoseconds.
        let points: Vec<(f64, f64, f64)> = glances
            .iter()
            .map(|glance| {
                (
                    weight(glance),
                    (glance.own - first.own).as_nanos(),
                    (glance.ahead - first.ahead).as_nanos(),
                )
            })
            .collect();
        let all: f64 = points.iter().map(|(weight, ..)| weight).sum();
        let mean = |value: fn(&(f64, f64, f64)) -> f64| {
            points.iter().map(|one| one.0 * value(one)).sum::<f64>() / all
        };
        let (middle, height) = (mean(|one| one.1), mean(|one| one.2));
        let spread: f64 = points
            .iter()
            .map(|(weight, at, _)| weight * (at - middle).powi(2))
            .sum();
        let both: f64 = points
            .iter()
            .map(|(weight, at, ahead)| weight * (at - middle) * (ahead - height))
            .sum();
        let drift = if spread > 0.0 { both / spread } else { 0.0 };
        let freedom = points.len().saturating_sub(2).max(1) as f64;
        // The variance must not be lower than the weights imply: a few bursts may agree by chance.
        let variance = (points
            .iter()
            .map(|(weight, at, ahead)| weight * (ahead - height - drift * (at - middle)).powi(2))
            .sum::<f64>()
            / freedom)
            .max(1.0);
        let last = glances.last().unwrap_or(first);
        Some(LearnedClock {
            line: ClockLine {
                at: first.own + Time::from_nanos(middle),
                offset: first.ahead + Time::from_nanos(height),
                drift,
            },
            deviation: Time::from_nanos((variance / all).sqrt()),
            drift_deviation: if spread > 0.0 {
                (variance / spread).sqrt()
            } else {
                f64::INFINITY
            },
            asymmetry: Time::from_nanos(shortest / 2.0),
            span: last.own - first.own,
        })
    }

    /// Returns the standard deviation of the line's value when this clock shows `own`, without asymmetry.
    pub fn deviation_at(&self, own: Time) -> Time {
        let away = (own - self.line.at).as_nanos();
        let drifted = if away == 0.0 {
            0.0
        } else {
            away * self.drift_deviation
        };
        Time::from_nanos(self.deviation.as_nanos().hypot(drifted))
    }

    /// Returns the estimate relative to rank 0's clock. It was learned from a guide with the estimate `guide`. The line
    /// stays the same, because the guide answered with rank 0's time. The uncertainties add up.
    #[must_use]
    pub fn behind(self, guide: &LearnedClock) -> LearnedClock {
        let on_guides_clock = guide.line.own(self.line.read(self.line.at));
        let inherited = guide.deviation_at(on_guides_clock).as_nanos();
        LearnedClock {
            deviation: Time::from_nanos(self.deviation.as_nanos().hypot(inherited)),
            drift_deviation: self.drift_deviation.hypot(guide.drift_deviation),
            asymmetry: self.asymmetry + guide.asymmetry,
            ..self
        }
    }
}
