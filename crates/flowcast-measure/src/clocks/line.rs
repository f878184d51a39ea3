//! The line through the offsets of several bursts, by least squares.

use flowcast_units::{ClockLine, Time};
use serde::{Deserialize, Serialize};

/// How the other clock stood beside this one: the exchange of a burst with the shortest round trip.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Glance {
    /// The middle of the exchange, on this clock.
    #[serde(with = "crate::wire")]
    pub own: Time,
    /// By how much the other clock was ahead then.
    #[serde(with = "crate::wire")]
    pub ahead: Time,
    /// From the question to the answer; 0 or more.
    #[serde(with = "crate::wire")]
    pub round_trip: Time,
}

/// What is known of another clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// The other clock in terms of this one.
    #[serde(with = "LineAsNumbers")]
    pub line: ClockLine,
    /// Standard deviation of the offset at `line.at`, the middle of the bursts.
    #[serde(with = "crate::wire")]
    pub deviation: Time,
    /// Standard deviation of the drift, seconds in a second.
    pub drift_deviation: f64,
    /// Half the shortest round trip, summed along the tree: the offset is wrong by no more than this and chance.
    #[serde(with = "crate::wire")]
    pub asymmetry: Time,
    /// Time over which the bursts were spread.
    #[serde(with = "crate::wire")]
    pub span: Time,
}

/// The form of a [`ClockLine`] between processes.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ClockLine")]
pub(crate) struct LineAsNumbers {
    #[serde(with = "crate::wire")]
    at: Time,
    #[serde(with = "crate::wire")]
    offset: Time,
    drift: f64,
}

/// An offset is known no better than this, whatever the round trips: the clock's resolution and the time of reading it.
const RESOLUTION: f64 = 20.0;

impl Learned {
    /// The clock is this one itself.
    pub fn itself() -> Learned {
        let none = Time::ZERO;
        Learned {
            line: ClockLine::default(),
            deviation: none,
            drift_deviation: 0.0,
            asymmetry: none,
            span: none,
        }
    }

    /// The line of least squares through at least one glance. One whose round trip is longer than the shortest may be wrong
    /// by half of what it is longer, and weighs accordingly.
    pub fn from_glances(glances: &[Glance]) -> Option<Learned> {
        let first = glances.first()?;
        let mut round_trips: Vec<f64> = glances
            .iter()
            .map(|glance| glance.round_trip.as_nanos())
            .collect();
        round_trips.sort_unstable_by(f64::total_cmp);
        let (shortest, quarter) = (round_trips[0], round_trips[round_trips.len() / 4]);
        // The shortest is itself longer than the way needs: the more so the more the better bursts differ, the less the more there
        // are. The others may all be late on the same side, as where a machine is busy.
        let least = RESOLUTION + (quarter - shortest) / (glances.len() as f64).sqrt();
        let weight =
            |glance: &Glance| ((glance.round_trip.as_nanos() - shortest) / 2.0 + least).powi(-2);
        // Counted from the first glance on, or the squares would swallow the nanoseconds.
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
        // Not below what the weights stand for: a few bursts may agree by chance.
        let variance = (points
            .iter()
            .map(|(weight, at, ahead)| weight * (ahead - height - drift * (at - middle)).powi(2))
            .sum::<f64>()
            / freedom)
            .max(1.0);
        let last = glances.last().unwrap_or(first);
        Some(Learned {
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

    /// Standard deviation of what the line reads when this clock shows `own`, without asymmetry.
    pub fn deviation_at(&self, own: Time) -> Time {
        let away = (own - self.line.at).as_nanos();
        let drifted = if away == 0.0 {
            0.0
        } else {
            away * self.drift_deviation
        };
        Time::from_nanos(self.deviation.as_nanos().hypot(drifted))
    }

    /// As known from a guide whose own clock was learned as `guide` from rank 0's. Its time was used, so the line stands; what
    /// is not known adds up.
    #[must_use]
    pub fn behind(self, guide: &Learned) -> Learned {
        let on_guides_clock = guide.line.own(self.line.read(self.line.at));
        let inherited = guide.deviation_at(on_guides_clock).as_nanos();
        Learned {
            deviation: Time::from_nanos(self.deviation.as_nanos().hypot(inherited)),
            drift_deviation: self.drift_deviation.hypot(guide.drift_deviation),
            asymmetry: self.asymmetry + guide.asymmetry,
            ..self
        }
    }
}
