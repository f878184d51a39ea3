//! Whether what is measured is still what was predicted, told as early as the evidence allows: a mixture sequential test.
//!
//! A prediction says between which ends the median of a quantity lies. If it lies at the upper end or below, no more than half of
//! the measurements exceed that end, whatever their distribution. With `k` of `n` above it, the likelihood of the shares above a
//! half, all taken alike, is to that of a half as
//!
//! `K = 2^(n+1) ∫_{1/2}^{1} p^k (1-p)^(n-k) dp`.
//!
//! While the median is not above the end, `K` is a supermartingale that begins at 1, so it ever reaches `1/α` with probability
//! `α` at most, however often one looks (Ville's inequality; Robbins, "Statistical Methods Related to the Law of the Iterated
//! Logarithm", 1970, section 3). Four such tests run beside each other: above and below each end.
//!
//! `flowcast measure check`, the Open MPI component and the adaptive scheduler of the rails use this one.

/// What is known so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StillVerdict {
    /// The median is above the upper end.
    Above,
    /// The median is below the lower end.
    Below,
    /// The median is between the ends.
    Between,
    /// Too few measurements to tell.
    Open,
}

/// Measurements beside the ends of a prediction.
///
/// ```
/// use flowcast_statistics::still::{StillHolds, StillVerdict};
///
/// let mut test = StillHolds::new(90.0, 110.0, 0.01);
/// let verdicts: Vec<StillVerdict> = (0..20).map(|_| test.observe(150.0)).collect();
/// assert_eq!((verdicts[0], verdicts[19]), (StillVerdict::Open, StillVerdict::Above));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StillHolds {
    low: f64,
    high: f64,
    /// Logarithm of what the likelihood ratio has to reach.
    needed: f64,
    above: u32,
    below: u32,
    count: u32,
}

impl StillHolds {
    /// Whether a median lies from `low` to `high`; a wrong alarm has the probability `level` at most, above 0 and below 1.
    pub fn new(low: f64, high: f64, level: f64) -> StillHolds {
        // Either end may give the alarm.
        StillHolds {
            low,
            high,
            needed: (2.0 / level).ln(),
            above: 0,
            below: 0,
            count: 0,
        }
    }

    /// Whether the median of ratios to what is expected lies within this factor of 1, above 1; `level` as in [`StillHolds::new`].
    pub fn within(factor: f64, level: f64) -> StillHolds {
        StillHolds::new(1.0 / factor, factor, level)
    }

    /// Where there is a verdict, or as many measurements as a window has at most: what is known. A new window begins then.
    pub fn end_window(&mut self, longest: u32) -> Option<StillVerdict> {
        let verdict = self.verdict();
        if verdict == StillVerdict::Open && self.count < longest {
            return None;
        }
        (self.above, self.below, self.count) = (0, 0, 0);
        Some(verdict)
    }

    /// Takes a measurement and says what is known now.
    pub fn observe(&mut self, value: f64) -> StillVerdict {
        self.count_in(value);
        self.verdict()
    }

    /// Takes a measurement, for who asks for the verdict later.
    pub fn count_in(&mut self, value: f64) {
        self.count += 1;
        self.above += u32::from(value > self.high);
        self.below += u32::from(value < self.low);
    }

    /// What is known now.
    pub fn verdict(&self) -> StillVerdict {
        let StillHolds {
            above,
            below,
            count,
            ..
        } = *self;
        let shown = |beyond: u32| log_ratio(beyond, count) >= self.needed;
        match () {
            () if shown(above) => StillVerdict::Above,
            () if shown(below) => StillVerdict::Below,
            () if shown(count - above) && shown(count - below) => StillVerdict::Between,
            () => StillVerdict::Open,
        }
    }

    /// Measurements taken in so far.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// `ln K` of `beyond` among `count`.
///
/// The integral of whole powers is a binomial tail: `K = Σ_{i≤k} C(n+1,i) / C(n+1,k) / (n+1-k)`, summed from i = 0 on. More than a
/// float holds is more than any level needs.
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

    /// The integral by a sum over shares: the reference implementation.
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
        // By hand: 2^2 (1/2 - 1/8) = 1.5.
        assert!((log_ratio(1, 1).exp() - 1.5).abs() < 1e-9);
        assert!(log_ratio(5000, 5000) > 700.0 && log_ratio(0, 5000) < 0.0);
    }

    #[test]
    fn eleven_of_eleven_are_enough() {
        let mut test = StillHolds::new(1.0, 2.0, 0.01);
        let first = (1..)
            .find(|_| test.observe(2.1) == StillVerdict::Above)
            .unwrap();
        assert_eq!(
            (first, test.count()),
            (11, 11),
            "2^12/12 is 341 and 2^11/11 186, and 200 are needed"
        );
        let mut test = StillHolds::new(1.0, 2.0, 0.01);
        assert!(
            (0..20).any(|_| test.observe(1.5) == StillVerdict::Between)
                && test.verdict() == StillVerdict::Between
        );
    }

    /// Medians at the end of what was predicted, with measurements that scatter as round trips do; looked at after each.
    #[test]
    fn a_network_that_holds_raises_an_alarm_as_seldom_as_asked_and_one_that_does_not_always() {
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
                all.find(|verdict| [StillVerdict::Above, StillVerdict::Below].contains(verdict))
            };
            alarms += u32::from(looks(1.0).is_some());
            misses += u32::from(looks(1.1) != Some(StillVerdict::Above));
        }
        assert!(alarms <= 20, "{alarms} of 400 at a level of 5 %");
        assert_eq!(misses, 0);
    }
}
