//! Test that detects as early as possible that measurements no longer agree with a prediction: a mixture sequential test.
//!
//! A prediction gives a range for the median of a quantity. If the median is at most the upper end, no more than half of the
//! measurements exceed that end, for any distribution. If `k` of `n` measurements exceed it, the likelihood of the shares
//! above one half, averaged with equal weights, has this ratio to the likelihood of one half:
//!
//! `K = 2^(n+1) ∫_{1/2}^{1} p^k (1-p)^(n-k) dp`.
//!
//! While the median is not above the end, `K` is a supermartingale that starts at 1. The probability that it ever reaches
//! `1/α` is therefore at most `α`, however often it is checked (Ville's inequality; Robbins, "Statistical Methods Related to
//! the Law of the Iterated Logarithm", 1970, section 3). Four such tests run in parallel: above and below each end.
//!
//! `flowcast measure check`, the Open MPI component and the adaptive scheduler of the rails use this test.

/// Present result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StabilityVerdict {
    /// The median is above the upper end.
    Above,
    /// The median is below the lower end.
    Below,
    /// The median is between the ends.
    Between,
    /// There are too few measurements to decide.
    Open,
}

use StabilityVerdict::*;

/// Test of measurements against the range of a prediction.
///
/// ```
/// use flowcast_statistics::stability::{StillHolds, StabilityVerdict};
///
/// let mut test = StillHolds::new(90.0, 110.0, 0.01);
/// let verdicts: Vec<StabilityVerdict> = (0..20).map(|_| test.observe(150.0)).collect();
/// assert_eq!((verdicts[0], verdicts[19]), (StabilityVerdict::Open, StabilityVerdict::Above));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StillHolds {
    low: f64,
    high: f64,
    /// Logarithm of the likelihood ratio that is required for a verdict.
    needed: f64,
    above: u32,
    below: u32,
    count: u32,
}

impl StillHolds {
    /// Tests if a median lies from `low` to `high`. A false alarm has at most the probability `level`, above 0 and below 1.
    pub fn new(low: f64, high: f64, level: f64) -> StillHolds {
        // Either end may raise the alarm.
        StillHolds {
            low,
            high,
            needed: (2.0 / level).ln(),
            above: 0,
            below: 0,
            count: 0,
        }
    }

    /// Tests if the median of ratios to the expected value lies within this factor of 1. The factor is above 1; `level` has
    /// the same meaning as in [`StillHolds::new`].
    pub fn within(factor: f64, level: f64) -> StillHolds {
        StillHolds::new(1.0 / factor, factor, level)
    }

    /// Ends the window if there is a verdict, or if it has `longest` measurements. Returns the verdict and starts a new
    /// window; `None` if the window continues.
    pub fn end_window(&mut self, longest: u32) -> Option<StabilityVerdict> {
        let verdict = self.verdict();
        if verdict == Open && self.count < longest {
            return None;
        }
        (self.above, self.below, self.count) = (0, 0, 0);
        Some(verdict)
    }

    /// Adds a measurement and returns the present verdict.
    pub fn observe(&mut self, value: f64) -> StabilityVerdict {
        self.count_in(value);
        self.verdict()
    }

    /// Adds a measurement without computing a verdict.
    pub fn count_in(&mut self, value: f64) {
        self.count += 1;
        self.above += u32::from(value > self.high);
        self.below += u32::from(value < self.low);
    }

    /// Verdict on all measurements of the present window; `Open` if they do not suffice.
    pub fn verdict(&self) -> StabilityVerdict {
        let StillHolds {
            above,
            below,
            count,
            ..
        } = *self;
        let shown = |beyond: u32| log_ratio(beyond, count) >= self.needed;
        match () {
            () if shown(above) => Above,
            () if shown(below) => Below,
            () if shown(count - above) && shown(count - below) => Between,
            () => Open,
        }
    }

    /// Number of measurements so far.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// `ln K` for `beyond` of `count` measurements.
///
/// The integral of integer powers is a binomial tail: `K = Σ_{i≤k} C(n+1,i) / C(n+1,k) / (n+1-k)`, summed from i = 0 on. If
/// it overflows, it exceeds the ratio that any level requires.
fn log_ratio(beyond: u32, count: u32) -> f64 {
    let all = f64::from(count) + 1.0;
    let sum = (1..=beyond).fold(1.0, |sum, at| {
        1.0 + sum * f64::from(at) / (all + 1.0 - f64::from(at))
    });
    (sum / (all - f64::from(beyond))).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resampling::{Resampler, normal_score};

    /// Reference implementation: the integral as a sum over shares.
    fn summed(beyond: u32, count: u32) -> f64 {
        const PARTS: u32 = 20_000;
        let part = |at: u32| 0.5 + 0.5 * (f64::from(at) + 0.5) / f64::from(PARTS);
        let value = |p: f64| p.powi(beyond as i32) * (1.0 - p).powi((count - beyond) as i32);
        (0..PARTS).map(|at| value(part(at))).sum::<f64>() / (2.0 * f64::from(PARTS))
            * 2f64.powi(count as i32 + 1)
    }

    #[test]
    fn the_ratio_is_the_integral() {
        for (beyond, count) in [(0, 0), (1, 1), (0, 1), (7, 10), (50, 60), (20, 60)] {
            let (ratio, truth) = (log_ratio(beyond, count).exp(), summed(beyond, count));
            assert!(
                (ratio / truth - 1.0).abs() < 1e-3,
                "{beyond} of {count}: {ratio} {truth}"
            );
        }
        // Computed by hand: 2^2 (1/2 - 1/8) = 1.5.
        assert!((log_ratio(1, 1).exp() - 1.5).abs() < 1e-9);
        assert!(log_ratio(5000, 5000) > 700.0 && log_ratio(0, 5000) < 0.0);
    }

    #[test]
    fn eleven_of_eleven_are_enough() {
        let mut test = StillHolds::new(1.0, 2.0, 0.01);
        let first = (1..)
            .find(|_| test.observe(2.1) == StabilityVerdict::Above)
            .unwrap();
        assert_eq!(
            (first, test.count()),
            (11, 11),
            "2^12/12 is 341 and 2^11/11 186, and 200 are needed"
        );
        let mut test = StillHolds::new(1.0, 2.0, 0.01);
        assert!(
            (0..20).any(|_| test.observe(1.5) == StabilityVerdict::Between)
                && test.verdict() == StabilityVerdict::Between
        );
    }

    /// The median is the upper end of the predicted range, and the measurements scatter like round trips. The verdict is
    /// read after each measurement.
    #[test]
    fn an_unchanged_network_raises_alarms_at_the_requested_rate_and_a_changed_one_always() {
        let mut scores: Vec<f64> = (0..400)
            .map(|at| normal_score((f64::from(at) + 0.5) / 400.0))
            .collect();
        let (mut alarms, mut misses) = (0, 0);
        for seed in 0..400 {
            Resampler::from_seed(seed).shuffle(&mut scores);
            let mut drawn = Vec::new();
            Resampler::from_seed(seed + 1000).draw_into(&scores, &mut drawn);
            let looks = |factor: f64| {
                let mut test = StillHolds::new(90.0, 100.0, 0.05);
                let mut all = drawn
                    .iter()
                    .map(|score| test.observe(100.0 * factor * (0.1 * score.max(-0.5)).exp()));
                all.find(|verdict| {
                    [StabilityVerdict::Above, StabilityVerdict::Below].contains(verdict)
                })
            };
            alarms += u32::from(looks(1.0).is_some());
            misses += u32::from(looks(1.1) != Some(StabilityVerdict::Above));
        }
        assert!(alarms <= 20, "{alarms} of 400 at a level of 5 %");
        assert_eq!(misses, 0);
    }
}
