//! Uncertainty of a predicted time, and its rank among other predictions of the same program.

use std::fmt;

use flowcast_units::{Rounded, Time};

/// Interval that is expected to contain the measured time. It is displayed as `397 ms (372 to 421, 90 %)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// The predicted time, between `low` and `high`.
    pub predicted: Time,
    /// Lower end, at most the prediction.
    pub low: Time,
    /// Upper end, at least the prediction.
    pub high: Time,
    /// Probability that the interval contains the measured time. It is below the requested one if the accuracy record has
    /// too few errors.
    pub level: f64,
    /// Description of the included errors: `parameters (slopes of 2 replays) and the model's error on 72 patterns`.
    pub covers: String,
}

/// Rank of a prediction among several. Intervals decide: predictions whose intervals overlap are not distinguished.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// The interval of the prediction ends before all others begin.
    Fastest,
    /// The interval of the prediction overlaps the interval of the shortest prediction. The value is the smaller of the two
    /// probabilities.
    NotDistinguishable(f64),
    /// The shortest prediction, if intervals are unknown.
    Shortest,
    /// Ratio to the fastest prediction.
    TimesFastest(f64),
    /// Ratio to the shortest prediction, which is not proven to be the fastest.
    TimesShortest(f64),
}

use Standing::*;

/// A predicted time, with its interval if one is known.
pub type PredictedTime<'a> = (Time, Option<&'a Interval>);

/// Rank of each of several predictions; empty for fewer than two, or if the shortest takes no time.
pub fn standings(all: &[PredictedTime<'_>]) -> Vec<Standing> {
    let shortest = (0..all.len()).min_by_key(|at| all[*at].0);
    let Some(shortest) = shortest.filter(|at| all.len() > 1 && all[*at].0 > Time::ZERO) else {
        return Vec::new();
    };
    let (least, own) = all[shortest];
    let overlap = |at: usize| {
        let (own, other) = (own?, all[at].1?);
        let overlaps = at != shortest && other.low <= own.high;
        overlaps.then(|| own.level.min(other.level))
    };
    let level = (0..all.len()).filter_map(overlap).min_by(f64::total_cmp);
    let is_known = all.iter().all(|(_, interval)| interval.is_some());
    (0..all.len())
        .map(|at| {
            let ratio = all[at].0.as_nanos() / least.as_nanos();
            match (overlap(at), level) {
                (Some(level), _) => NotDistinguishable(level),
                (None, Some(level)) if at == shortest => NotDistinguishable(level),
                (None, None) if at == shortest && is_known => Fastest,
                (None, None) if is_known => TimesFastest(ratio),
                _ if ratio < 1.0 + LEAST_DIFFERENCE && !is_known => Shortest,
                _ => TimesShortest(ratio),
            }
        })
        .collect()
}

/// Relative difference below which predictions are shown with the same ratio.
const LEAST_DIFFERENCE: f64 = 0.005;

/// Sentence that names the fastest of several predictions; `None` for fewer than two.
pub fn verdict(names: &[String], all: &[PredictedTime<'_>]) -> Option<String> {
    let standings = standings(all);
    let close = names.iter().zip(&standings);
    let close = close.filter(|(_, of)| matches!(of, NotDistinguishable(_)));
    let close: Vec<&str> = close.map(|(name, _)| &**name).collect();
    let first = standings.iter().position(|of| *of == Fastest);
    let shortest = (0..all.len()).min_by_key(|at| all[*at].0)?;
    let time = all[shortest]
        .1
        .map_or_else(|| Rounded(all[shortest].0).to_string(), Interval::to_string);
    Some(match (first, standings.first()?) {
        (Some(at), _) => format!("{} is the fastest: {time}", names[at]),
        (None, _) if !close.is_empty() => {
            let level = standings.iter().find_map(|of| match of {
                NotDistinguishable(level) => Some(percent(*level)),
                _ => None,
            })?;
            format!(
                "{} are not distinguishable from the fastest at {level} %",
                close.join(" and ")
            )
        }
        _ => format!(
            "shortest prediction: {} {time}; it may not be the fastest, because some predictions have no interval",
            names[shortest]
        ),
    })
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fastest => f.write_str("fastest"),
            NotDistinguishable(level) => {
                let level = percent(*level);
                write!(f, "not distinguishable from the fastest at {level} %")
            }
            Shortest => f.write_str("shortest"),
            TimesFastest(ratio) => write!(f, "{ratio:.2} × the fastest"),
            TimesShortest(ratio) => write!(f, "{ratio:.2} × the shortest"),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.predicted.as_nanos();
        let steps = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
        let (scale, unit) = steps
            .into_iter()
            .find(|(scale, _)| nanos >= *scale)
            .unwrap_or((1.0, "ns"));
        let [predicted, low, high] =
            [self.predicted, self.low, self.high].map(|time| time.as_nanos() / scale);
        let decimals = digits(predicted, 3.0)
            .max(digits(high - low, 1.0))
            .clamp(0.0, 6.0) as usize;
        write!(
            f,
            "{predicted:.decimals$} {unit} ({low:.decimals$} to {high:.decimals$}, {} %)",
            percent(self.level)
        )
    }
}

/// Number of decimals for `count` significant digits. The prediction gets three digits and the width of the interval one, so
/// that its ends differ.
fn digits(of: f64, count: f64) -> f64 {
    if of > 0.0 {
        count - 1.0 - of.log10().floor()
    } else {
        0.0
    }
}

fn percent(level: f64) -> String {
    let percent = format!("{:.1}", level * 100.0);
    percent.strip_suffix(".0").unwrap_or(&percent).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, predicted: f64, high: f64) -> Interval {
        let [predicted, low, high] = [predicted, low, high].map(Time::from_micros);
        Interval {
            predicted,
            low,
            high,
            level: 0.9,
            covers: String::new(),
        }
    }

    fn told(all: &[Option<(f64, f64, f64)>]) -> (Vec<String>, String) {
        let known: Vec<Option<Interval>> = all
            .iter()
            .map(|one| one.map(|(low, predicted, high)| interval(low, predicted, high)))
            .collect();
        let times = (0..all.len()).map(|at| {
            let time = Time::from_micros(100.0 + at as f64);
            let known = known[at].as_ref();
            (known.map_or(time, |of| of.predicted), known)
        });
        let times: Vec<PredictedTime<'_>> = times.collect();
        let names: Vec<String> = ["a", "b", "c"][..all.len()]
            .iter()
            .map(ToString::to_string)
            .collect();
        let each = standings(&times).iter().map(Standing::to_string).collect();
        (each, verdict(&names, &times).unwrap_or_default())
    }

    #[test]
    fn a_prediction_is_the_fastest_if_no_interval_overlaps_its_own() {
        let (each, verdict) = told(&[Some((112.0, 122.0, 169.0)), Some((93.0, 105.0, 111.0))]);
        assert_eq!(each, ["1.16 × the fastest", "fastest"]);
        assert_eq!(verdict, "b is the fastest: 105 us (93 to 111, 90 %)");
    }

    #[test]
    fn overlapping_intervals_are_not_distinguishable() {
        let close = "not distinguishable from the fastest at 90 %";
        let (each, verdict) = told(&[
            Some((112.0, 122.0, 169.0)),
            Some((93.0, 105.0, 138.0)),
            Some((400.0, 420.0, 500.0)),
        ]);
        assert_eq!(each, [close, close, "4.00 × the shortest"]);
        assert_eq!(verdict, format!("a and b are {close}"));
    }

    #[test]
    fn without_intervals_the_shortest_is_not_called_the_fastest() {
        let (each, verdict) = told(&[None, Some((200.0, 220.0, 240.0))]);
        assert_eq!(each, ["shortest", "2.20 × the shortest"]);
        assert!(
            verdict.starts_with("shortest prediction: a 100.0 us;"),
            "{verdict}"
        );
        assert_eq!(told(&[None]), (Vec::new(), String::new()));
    }
}
