//! One procedure for all models: the parameters, none below 0, with the smallest sum of squared relative errors of all medians.
//!
//! Under the longer of two terms a cost is linear in its parameters once it is known which term is the longer. So a problem
//! of least squares without negative values is solved (Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter
//! 23), each point takes the term that is the longer with these parameters, queues in patterns become those of these parameters,
//! and again, until nothing changes. The best parameters on the way are kept.

use flowcast_model::stats::linear_system;
use flowcast_units::Time;

use super::{Cost, Instance, Medians, Model, pattern::Pattern};
use crate::prtt::PrttPoint;

/// Terms that still change after so many rounds do so for ever.
const ROUNDS: usize = 30;
/// Relative change of parameters that ends the search.
const SETTLED: f64 = 1e-9;
/// A parameter that all points leave open stays at 0 instead of anywhere.
const RIDGE: f64 = 1e-12;

/// A model with its parameters.
pub struct Fitted {
    /// The choice of the model's sizes.
    pub instance: Instance,
    /// In the order of the instance's, nanoseconds or nanoseconds per byte.
    pub parameters: Vec<f64>,
}

impl Fitted {
    /// What a round trip takes.
    pub fn predict(&self, point: PrttPoint) -> Time {
        Cost::of_round_trip(self.instance.cost.as_ref(), point).at(&self.parameters)
    }

    /// What a pattern takes.
    pub fn predict_pattern(&self, pattern: &Pattern) -> Time {
        self.instance
            .cost
            .pattern(pattern, &self.parameters)
            .at(&self.parameters)
    }
}

/// The best choice of a model's sizes with its best parameters.
pub(crate) fn fit_model(model: &Model, medians: Medians<'_>) -> Fitted {
    let instances = (model.instances)(medians).into_iter();
    let fits = instances.map(|instance| (fit_instance(&instance, medians), instance));
    let best = fits.min_by(|one, other| one.0.errors.total_cmp(&other.0.errors));
    let (fit, instance) = best.expect("each model has an instance for any measurements");
    Fitted {
        instance,
        parameters: fit.parameters,
    }
}

/// The best parameters of a choice.
pub fn parameters_of(instance: &Instance, medians: Medians<'_>) -> Vec<f64> {
    fit_instance(instance, medians).parameters
}

struct Fit {
    parameters: Vec<f64>,
    /// Sum of squared relative errors.
    errors: f64,
}

fn fit_instance(instance: &Instance, medians: Medians<'_>) -> Fit {
    let model = instance.cost.as_ref();
    let count = instance.parameters.len();
    let mut costs: Vec<Cost> = medians
        .points
        .iter()
        .map(|point| Cost::of_round_trip(model, *point))
        .collect();
    let at_rest = vec![0.0; count];
    costs.extend(
        medians
            .patterns
            .iter()
            .map(|pattern| model.pattern(pattern, &at_rest)),
    );
    let times: Vec<f64> = medians
        .times
        .iter()
        .chain(medians.pattern_times)
        .copied()
        .collect();
    // Delays are there to show the processor, messages without one the interface.
    let has_delay = |at: usize| {
        medians
            .points
            .get(at)
            .is_some_and(|point| point.delay > Time::ZERO)
    };
    let mut longest: Vec<usize> = costs
        .iter()
        .enumerate()
        .map(|(at, cost): (usize, &Cost)| {
            if has_delay(at) {
                0
            } else {
                cost.longest_of.len() - 1
            }
        })
        .collect();
    let mut before = at_rest;
    let mut best = Fit {
        parameters: vec![0.0; count],
        errors: f64::INFINITY,
    };
    for _ in 0..ROUNDS {
        let parameters = least_squares(&costs, &longest, &times, count);
        costs.truncate(medians.points.len());
        costs.extend(
            medians
                .patterns
                .iter()
                .map(|pattern| model.pattern(pattern, &parameters)),
        );
        let errors = squared_errors(&costs, &times, &parameters);
        let next: Vec<usize> = costs.iter().map(|cost| cost.longest(&parameters)).collect();
        let is_settled =
            next == longest && (medians.patterns.is_empty() || are_alike(&parameters, &before));
        before.clone_from(&parameters);
        if errors < best.errors {
            best = Fit { parameters, errors };
        }
        if is_settled {
            break;
        }
        longest = next;
    }
    best
}

/// Queues of parameters so near to each other do not differ.
fn are_alike(one: &[f64], other: &[f64]) -> bool {
    one.iter()
        .zip(other)
        .all(|(one, other)| (one - other).abs() <= SETTLED * one.abs())
}

fn squared_errors(costs: &[Cost], times: &[f64], parameters: &[f64]) -> f64 {
    costs
        .iter()
        .zip(times)
        .map(|(cost, time)| (cost.at(parameters).as_nanos() / time - 1.0).powi(2))
        .sum()
}

/// Normal equations of relative errors, with columns scaled to the length 1.
fn least_squares(costs: &[Cost], longest: &[usize], times: &[f64], count: usize) -> Vec<f64> {
    let mut products = vec![vec![0.0; count]; count];
    let mut right = vec![0.0; count];
    for ((cost, longest), time) in costs.iter().zip(longest).zip(times) {
        let form = cost.form(*longest);
        let row: Vec<f64> = form
            .coefficients
            .iter()
            .map(|coefficient| coefficient / time)
            .collect();
        let rest = 1.0 - form.constant / time;
        for (one, products) in products.iter_mut().enumerate() {
            right[one] += row[one] * rest;
            products
                .iter_mut()
                .zip(&row)
                .for_each(|(sum, other)| *sum += row[one] * other);
        }
    }
    let lengths: Vec<f64> = (0..count).map(|at| products[at][at].sqrt()).collect();
    let scale = |at: usize| {
        if lengths[at] > 0.0 {
            1.0 / lengths[at]
        } else {
            0.0
        }
    };
    for (one, products) in products.iter_mut().enumerate() {
        right[one] *= scale(one);
        products
            .iter_mut()
            .enumerate()
            .for_each(|(other, sum)| *sum *= scale(one) * scale(other));
        products[one] += RIDGE;
    }
    let scaled = not_negative(&products, &right);
    scaled
        .into_iter()
        .enumerate()
        .map(|(at, value)| value * scale(at))
        .collect()
}

/// Lawson and Hanson's active sets on normal equations.
fn not_negative(products: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let count = right.len();
    let mut values = vec![0.0; count];
    let mut free = vec![false; count];
    // Each round frees one; rounding alone could go on for ever.
    for _ in 0..3 * count {
        let descent = |at: usize| {
            right[at]
                - (0..count)
                    .map(|other| products[at][other] * values[other])
                    .sum::<f64>()
        };
        let steepest = (0..count)
            .filter(|at| !free[*at])
            .max_by(|one, other| descent(*one).total_cmp(&descent(*other)));
        let Some(steepest) = steepest.filter(|at| descent(*at) > 1e-9) else {
            break;
        };
        free[steepest] = true;
        while let Some(wanted) = solve_free(products, right, &free) {
            let blocking = (0..count).filter(|at| free[*at] && wanted[*at] <= 0.0);
            let step = blocking
                .map(|at| values[at] / (values[at] - wanted[at]))
                .fold(1.0, f64::min);
            values
                .iter_mut()
                .zip(&wanted)
                .for_each(|(value, wanted)| *value += step.max(0.0) * (wanted - *value));
            if step >= 1.0 {
                break;
            }
            for at in 0..count {
                if free[at] && values[at] <= 1e-15 {
                    (free[at], values[at]) = (false, 0.0);
                }
            }
        }
    }
    values
}

/// The equations of the free values alone, the others 0. None where they have no solution.
fn solve_free(products: &[Vec<f64>], right: &[f64], free: &[bool]) -> Option<Vec<f64>> {
    let places: Vec<usize> = (0..right.len()).filter(|at| free[*at]).collect();
    let mut rows = Vec::with_capacity(places.len());
    for row in &places {
        rows.push(
            places
                .iter()
                .map(|column| products[*row][*column])
                .chain([right[*row]])
                .collect(),
        );
    }
    let mut values = vec![0.0; right.len()];
    for (place, solution) in places.iter().zip(linear_system::solve(rows, 0.0)?) {
        values[*place] = solution[0];
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        prtt::prtt,
        zoo::{Cost, lmo, loggp, loggps, logp},
    };
    use flowcast_model::loggp::LogGp;
    use flowcast_units::{Bytes, TimePerByte};
    use proptest::prelude::*;

    fn points() -> Vec<PrttPoint> {
        let sizes = [1, 512, 2048, 8192, 16_384, 65_536].map(Bytes);
        let rows = [(1, 0.0), (16, 0.0), (16, 1e6)];
        sizes
            .into_iter()
            .flat_map(|size| {
                rows.map(|(n, delay)| PrttPoint::new(n, Time::from_nanos(delay), size))
            })
            .collect()
    }

    /// The parameters come back from exact round trips of the model itself.
    fn comes_back(model: &Model, instance: &Instance, parameters: &[f64]) {
        let points = points();
        let times: Vec<f64> = points
            .iter()
            .map(|point: &PrttPoint| {
                Cost::of_round_trip(instance.cost.as_ref(), *point)
                    .at(parameters)
                    .as_nanos()
            })
            .collect();
        let fitted = fit_model(model, Medians::of_round_trips(&points, &times));
        assert_eq!(fitted.instance.choice, instance.choice);
        for (found, parameter) in fitted.parameters.iter().zip(parameters) {
            assert!(
                (found - parameter).abs() <= 1e-6 * parameter.max(1e-3),
                "{found} instead of {parameter}"
            );
        }
    }

    fn instance(model: &Model, choice: &str) -> Instance {
        let points = points();
        (model.instances)(Medians::of_round_trips(&points, &vec![1.0; points.len()]))
            .into_iter()
            .find(|instance| instance.choice == choice)
            .unwrap()
    }

    #[test]
    fn parameters_come_back_from_exact_round_trips() {
        // Gigabit Ethernet of Lichei's Table 3.5.3.1, whose overhead is above its gap.
        comes_back(
            &loggp::MODEL,
            &instance(&loggp::MODEL, ""),
            &[65_400.0, 6100.0, 897.0, 8.49],
        );
        comes_back(
            &loggps::MODEL,
            &instance(&loggps::MODEL, "S 8KiB"),
            &[65_400.0, 2000.0, 2500.0, 8.49],
        );
        comes_back(
            &lmo::MODEL,
            &instance(&lmo::MODEL, ""),
            &[4000.0, 0.3, 50_000.0, 8.0],
        );
        comes_back(
            &logp::MODEL,
            &instance(&logp::MODEL, "packets of 2KiB"),
            &[30_000.0, 1000.0, 4000.0],
        );
    }

    #[test]
    fn the_zoo_s_loggp_is_the_round_trip_of_the_thesis() {
        let network = LogGp {
            latency: Time::from_micros(65.4),
            overhead: Time::from_micros(6.1),
            gap: Time::from_micros(0.897),
            gap_per_byte: TimePerByte::from_micros(0.00849),
        };
        let instance = instance(&loggp::MODEL, "");
        for point in points() {
            let found = Cost::of_round_trip(instance.cost.as_ref(), point)
                .at(&[65_400.0, 6100.0, 897.0, 8.49]);
            assert!((found.as_nanos() / prtt(&network, point).as_nanos() - 1.0).abs() < 1e-12);
        }
    }

    proptest! {
        /// At the best values no allowed step helps: the gradient is 0 where a value is free, and not downhill at 0.
        #[test]
        fn values_without_negative_ones_meet_the_conditions_of_the_best(
            rows in prop::collection::vec(prop::collection::vec(-3.0..3.0f64, 4), 5..9),
            rest in prop::collection::vec(-5.0..5.0f64, 9),
        ) {
            let product = |one: usize, other: usize| rows.iter().map(|row| row[one] * row[other]).sum::<f64>();
            let products: Vec<Vec<f64>> = (0..4).map(|one| (0..4).map(|other| product(one, other)).collect()).collect();
            let right: Vec<f64> =
                (0..4).map(|at| rows.iter().zip(&rest).map(|(row, rest)| row[at] * rest).sum()).collect();
            let values = not_negative(&products, &right);
            for at in 0..4 {
                let descent = right[at] - (0..4).map(|other| products[at][other] * values[other]).sum::<f64>();
                prop_assert!(values[at] >= 0.0 && descent < 1e-6 && (values[at] == 0.0 || descent > -1e-6));
            }
        }
    }
}
