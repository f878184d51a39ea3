//! Observations: predictions with their measurements, and the errors between them.
//!
//! Signed error `(predicted - measured) / measured`: -0.8 means that the measured time is five times the predicted one.
//! Errors over a set of flows (RR-5910, Table 3): the mean of the absolute errors, the error of the sums, and the best and
//! worst flow.

use std::collections::BTreeMap;

use super::{StatsError, check, out_of_range, sample::median};

/// A prediction and its measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation<T> {
    /// Subject of the prediction and the measurement.
    pub of: T,
    /// Predicted value, in any unit.
    pub predicted: f64,
    /// Measured value, in the same unit.
    pub measured: f64,
}

impl<T> Observation<T> {
    /// Signed error, as a share of the measured value (0.05 is 5 %).
    pub fn error(&self) -> f64 {
        (self.predicted - self.measured) / self.measured
    }
}

/// One or more observations whose measured values are above 0 and whose errors are finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations<T>(Vec<Observation<T>>);

impl<T> Observations<T> {
    /// Collects observations.
    ///
    /// # Errors
    /// No observation, a measured value that is not finite or not above 0, or an error that is not finite.
    pub fn new(
        all: impl IntoIterator<Item = Observation<T>>,
    ) -> Result<Observations<T>, StatsError> {
        let all: Vec<Observation<T>> = all.into_iter().collect();
        let measured: Vec<f64> = all.iter().map(|one| one.measured).collect();
        check("error", &measured, 1)?;
        if let Some(found) = measured.into_iter().find(|value| *value <= 0.0) {
            return out_of_range("measured", found, "a number above 0");
        }
        let all = Observations(all);
        check("error", &all.errors().collect::<Vec<f64>>(), 1)?;
        Ok(all)
    }

    /// All observations, at least one.
    pub fn all(&self) -> &[Observation<T>] {
        &self.0
    }

    /// Signed relative errors in the order of the observations; -0.1 means 10 % too low.
    pub fn errors(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(Observation::error)
    }

    /// Lowest and highest signed error.
    pub fn range(&self) -> (f64, f64) {
        range(self.errors())
    }

    /// Mean of the absolute errors.
    pub fn mean_absolute(&self) -> f64 {
        self.errors().map(f64::abs).sum::<f64>() / self.0.len() as f64
    }

    /// Median of the absolute errors.
    pub fn median_absolute(&self) -> f64 {
        let absolute: Vec<f64> = self.errors().map(f64::abs).collect();
        median(&absolute).expect("there is an observation, and errors are finite")
    }

    /// Number of observations whose absolute error is at most `most`.
    pub fn count_within(&self, most: f64) -> usize {
        self.errors().filter(|error| error.abs() <= most).count()
    }

    /// Share of the observations whose absolute error is at most `most`.
    pub fn share_within(&self, most: f64) -> f64 {
        self.count_within(most) as f64 / self.0.len() as f64
    }

    /// Absolute error of the sum of all values.
    pub fn global_error(&self) -> f64 {
        let predicted: f64 = self.0.iter().map(|one| one.predicted).sum();
        let measured: f64 = self.0.iter().map(|one| one.measured).sum();
        (predicted - measured).abs() / measured
    }

    /// Observation with the smallest absolute error; the first one of equals.
    pub fn best(&self) -> &Observation<T> {
        self.least_by(f64::abs)
    }

    /// Observation with the largest absolute error; the first one of equals.
    pub fn worst(&self) -> &Observation<T> {
        self.least_by(|error| -error.abs())
    }

    /// Signed errors, grouped by name.
    pub fn errors_by(&self, name: impl Fn(&T) -> String) -> BTreeMap<String, Vec<f64>> {
        let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for one in &self.0 {
            errors.entry(name(&one.of)).or_default().push(one.error());
        }
        errors
    }

    fn least_by(&self, key: fn(f64) -> f64) -> &Observation<T> {
        let keys = self.0.iter();
        let least = keys.min_by(|a, b| key(a.error()).total_cmp(&key(b.error())));
        least.expect("there is an observation")
    }
}

impl<T: Clone> Observations<T> {
    /// Observations grouped by a key, in the order of the first appearance of their keys.
    pub fn grouped<K: PartialEq>(&self, key: impl Fn(&T) -> K) -> Vec<(K, Observations<T>)> {
        let mut groups: Vec<(K, Observations<T>)> = Vec::new();
        for one in &self.0 {
            let own = key(&one.of);
            match groups.iter_mut().rev().find(|(known, _)| *known == own) {
                Some((_, group)) => group.0.push(one.clone()),
                None => groups.push((own, Observations(vec![one.clone()]))),
            }
        }
        groups
    }
}

/// Lowest and highest of some values.
pub fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observations(pairs: &[(f64, f64)]) -> Result<Observations<usize>, StatsError> {
        let all = pairs.iter().enumerate();
        Observations::new(all.map(|(of, &(predicted, measured))| Observation {
            of,
            predicted,
            measured,
        }))
    }

    #[test]
    fn errors_of_four_flows_agree_with_a_hand_calculation() {
        let all = observations(&[(1.0, 1.1), (2.0, 1.9), (3.0, 3.3), (4.0, 4.0)]).unwrap();
        assert!((all.mean_absolute() * 100.0 / 5.861_244_019_138_758 - 1.0).abs() < 1e-9);
        assert!((all.global_error() * 100.0 / 2.912_621_359_223_307 - 1.0).abs() < 1e-9);
        assert_eq!((all.best().of, all.best().error()), (3, 0.0));
        assert_eq!(all.worst().of, 0);
        assert!((all.worst().error() * -100.0 / 9.090_909_090_909_099 - 1.0).abs() < 1e-9);
        assert_eq!(
            (all.share_within(0.06), all.share_within(0.01)),
            (0.5, 0.25)
        );
    }

    #[test]
    fn a_time_five_times_too_short_is_an_error_of_minus_eighty_percent() {
        let all = observations(&[(1.0, 5.0), (2.0, 1.0), (0.5, 1.0)]).unwrap();
        assert_eq!(all.errors().collect::<Vec<_>>(), [-0.8, 1.0, -0.5]);
        assert_eq!((all.range(), all.median_absolute()), ((-0.8, 1.0), 0.8));
    }

    #[test]
    fn groups_are_in_the_order_of_their_first_members() {
        let all = observations(&[(1.0, 2.0), (3.0, 2.0), (2.0, 2.0)]).unwrap();
        let groups = all.grouped(|of| of % 2 == 1);
        let found: Vec<(bool, usize)> = groups
            .iter()
            .map(|(key, group)| (*key, group.all().len()))
            .collect();
        assert_eq!(found, [(false, 2), (true, 1)]);
        let named = all.errors_by(|of| format!("{}", of % 2));
        assert_eq!(named["0"], [-0.5, 0.0]);
    }

    #[test]
    fn measured_times_of_zero_have_no_relative_error() {
        assert_eq!(
            observations(&[(1.0, 0.0)]).unwrap_err().to_string(),
            "measured: found 0, expected a number above 0"
        );
        assert!(observations(&[(f64::NAN, 1.0)]).is_err());
        assert!(observations(&[(1.0, 1e-320)]).is_err());
        assert!(observations(&[]).is_err());
    }
}
