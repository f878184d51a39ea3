//! One procedure for all models. It returns the parameters, each at least 0, with the smallest sum of squared relative
//! errors of all medians.
//!
//! A cost with a maximum of two terms is linear in its parameters once the longer term is known. The procedure therefore
//! solves a least-squares problem without negative values (Lawson and Hanson, "Solving Least Squares Problems", 1974,
//! chapter 23), selects the longer term of each observation with these parameters, and repeats this until nothing changes.
//! It keeps the best parameters on the way.

use flowcast_statistics::{
    linear_fit::add_outer,
    linear_system::{self, Matrix},
};

use super::{ExchangeObservation, ModelCost, OpenSizes, ZooModel, product};

/// Maximum number of rounds. If terms still change after them, the procedure does not converge.
const ROUNDS: usize = 30;
/// Small ridge that keeps a parameter at 0 if no observation determines it.
const RIDGE: f64 = 1e-12;

/// A model with its parameters.
#[derive(Debug)]
pub(super) struct Fitted<'a> {
    pub model: &'a ZooModel,
    pub choice: OpenSizes,
    /// Parameters in the order of the model, in nanoseconds or nanoseconds per byte.
    pub parameters: Vec<f64>,
}

/// Error of a model's prediction for an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct PredictionError {
    /// Index of the exchange.
    pub at: usize,
    /// Number of the part. Exchanges of a part are left out together.
    pub part: usize,
    /// `predicted / measured - 1`.
    pub error: f64,
}

impl Fitted<'_> {
    pub(super) fn error(
        &self,
        at: usize,
        part: usize,
        observed: ExchangeObservation,
    ) -> PredictionError {
        let cost = self.model.cost(&self.choice, observed.exchange);
        PredictionError {
            at,
            part,
            error: cost.at(&self.parameters) / observed.time - 1.0,
        }
    }
}

impl ZooModel {
    /// Returns the best choice of the model's sizes with its best parameters.
    pub(super) fn fit(&self, observed: &[ExchangeObservation]) -> Fitted<'_> {
        let choices = (self.choices)(observed).into_iter();
        let fits = choices.map(|choice| {
            let (parameters, errors) = self.fit_choice(&choice, observed);
            let fitted = Fitted {
                model: self,
                choice,
                parameters,
            };
            (fitted, errors)
        });
        let best = fits.min_by(|one, other| one.1.total_cmp(&other.1));
        best.expect("each model has a choice for any observations")
            .0
    }

    /// Returns the best parameters of a choice, and their sum of squared relative errors.
    pub(super) fn fit_choice(
        &self,
        choice: &OpenSizes,
        observed: &[ExchangeObservation],
    ) -> (Vec<f64>, f64) {
        let costs: Vec<ModelCost> = observed
            .iter()
            .map(|one| self.cost(choice, one.exchange))
            .collect();
        let times: Vec<f64> = observed.iter().map(|one| one.time).collect();
        let count = self.parameters(choice).len();
        // Start with the processor's term for exchanges with a delay, which are there to show the processor, and otherwise
        // with the interface's.
        let mut longest: Vec<usize> = costs
            .iter()
            .map(|cost| match cost.longest_of[0].len() > count {
                true => 0,
                false => cost.longest_of.len() - 1,
            })
            .collect();
        let mut best = (vec![0.0; count], f64::INFINITY);
        for _ in 0..ROUNDS {
            let parameters = least_squares(&costs, &longest, &times, count);
            let errors: f64 = costs
                .iter()
                .zip(&times)
                .map(|(cost, time)| (cost.at(&parameters) / time - 1.0).powi(2))
                .sum();
            let next: Vec<usize> = costs.iter().map(|cost| cost.longest(&parameters)).collect();
            if errors < best.1 {
                best = (parameters, errors);
            }
            if next == longest {
                break;
            }
            longest = next;
        }
        best
    }
}

/// Solves the normal equations of relative errors, with columns scaled to length 1.
fn least_squares(costs: &[ModelCost], longest: &[usize], times: &[f64], count: usize) -> Vec<f64> {
    let mut products = vec![vec![0.0; count]; count];
    let mut right = vec![0.0; count];
    for ((cost, longest), time) in costs.iter().zip(longest).zip(times) {
        let repeated = &cost.longest_of[*longest];
        let constant: f64 = repeated[count..].iter().sum();
        let rest = 1.0 - constant * cost.repeats / time;
        let forms = cost.once.iter().zip(repeated);
        let row: Vec<f64> = forms
            .map(|(once, repeated)| (once + repeated * cost.repeats) / time)
            .collect();
        add_outer(&mut products, &row, 1.0);
        for (sum, column) in right.iter_mut().zip(&row) {
            *sum += column * rest;
        }
    }
    let scale: Vec<f64> = (0..count)
        .map(|at| products[at][at].sqrt())
        .map(|length| if length > 0.0 { 1.0 / length } else { 0.0 })
        .collect();
    for (one, products) in products.iter_mut().enumerate() {
        right[one] *= scale[one];
        for (sum, other) in products.iter_mut().zip(&scale) {
            *sum *= scale[one] * other;
        }
        products[one] += RIDGE;
    }
    let mut values = non_negative_least_squares(&products, &right);
    for (value, scale) in values.iter_mut().zip(scale) {
        *value *= scale;
    }
    values
}

/// Lawson and Hanson's active-set method on normal equations.
fn non_negative_least_squares(products: &Matrix, right: &[f64]) -> Vec<f64> {
    let count = right.len();
    let mut values = vec![0.0; count];
    let mut free = vec![false; count];
    // Each round frees one parameter. Rounding errors could otherwise continue this forever.
    for _ in 0..3 * count {
        let steepest = (0..count)
            .filter(|at| !free[*at])
            .map(|at| (at, right[at] - product(&products[at], &values)))
            .max_by(|one, other| one.1.total_cmp(&other.1))
            .filter(|(_, descent)| *descent > 1e-9);
        let Some((steepest, _)) = steepest else {
            break;
        };
        free[steepest] = true;
        while let Some(wanted) = solve_free(products, right, &free) {
            let step = (0..count)
                .filter(|at| free[*at] && wanted[*at] <= 0.0)
                .map(|at| values[at] / (values[at] - wanted[at]))
                .fold(1.0, f64::min);
            for (value, wanted) in values.iter_mut().zip(&wanted) {
                *value += step.max(0.0) * (wanted - *value);
            }
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

/// Solves the equations of the free values, with the others 0. `None` if there is no solution.
fn solve_free(products: &Matrix, right: &[f64], free: &[bool]) -> Option<Vec<f64>> {
    let places = 0..right.len();
    let rows = places.clone().map(|row| {
        let columns = places
            .clone()
            .map(|column| match free[row] && free[column] {
                true => products[row][column],
                false => f64::from(u8::from(row == column)),
            });
        columns
            .chain([right[row] * f64::from(u8::from(free[row]))])
            .collect()
    });
    Some(linear_system::solve(rows.collect(), 0.0)?.concat())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{MODELS, TimedExchange},
        *,
    };
    use crate::prtt::{PrttPoint, prtt};
    use flowcast_network::loggp::LogGp;
    use flowcast_units::{Bytes, Time, TimePerByte};
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

    fn model(name: &str) -> &'static ZooModel {
        MODELS.iter().find(|model| model.name == name).unwrap()
    }

    /// Checks that a fit to exact round trips of the model returns its parameters.
    fn comes_back(name: &str, choice: OpenSizes, parameters: &[f64]) {
        let model = model(name);
        let exchanges: Vec<TimedExchange> =
            points().into_iter().map(TimedExchange::RoundTrip).collect();
        let observed: Vec<ExchangeObservation> = exchanges
            .iter()
            .map(|exchange| ExchangeObservation {
                exchange,
                time: model.cost(&choice, exchange).at(parameters),
            })
            .collect();
        let fitted = model.fit(&observed);
        assert_eq!(fitted.choice, choice);
        for (found, parameter) in fitted.parameters.iter().zip(parameters) {
            assert!(
                (found - parameter).abs() <= 1e-6 * parameter.max(1e-3),
                "{found} instead of {parameter}"
            );
        }
    }

    #[test]
    fn exact_round_trips_recover_the_parameters() {
        // Gigabit Ethernet in Lichei's Table 3.5.3.1 has an overhead above its gap.
        comes_back(
            "loggp",
            OpenSizes::Nothing,
            &[65_400.0, 6100.0, 897.0, 8.49],
        );
        let threshold = OpenSizes::Threshold(Bytes(8192));
        comes_back("loggps", threshold, &[65_400.0, 2000.0, 2500.0, 8.49]);
        comes_back("lmo", OpenSizes::Nothing, &[4000.0, 0.3, 50_000.0, 8.0]);
        let packets = OpenSizes::Packets(Bytes(2048));
        comes_back("logp", packets, &[30_000.0, 1000.0, 4000.0]);
    }

    #[test]
    fn the_zoo_s_loggp_is_the_round_trip_of_the_thesis() {
        let network = LogGp {
            latency: Time::from_micros(65.4),
            overhead: Time::from_micros(6.1),
            gap: Time::from_micros(0.897),
            gap_per_byte: TimePerByte::from_micros(0.00849),
        };
        for point in points() {
            let parameters = [65_400.0, 6100.0, 897.0, 8.49];
            let exchange = TimedExchange::RoundTrip(point);
            let cost = model("loggp").cost(&OpenSizes::Nothing, &exchange);
            let found = cost.at(&parameters);
            assert!((found / prtt(&network, point).as_nanos() - 1.0).abs() < 1e-12);
        }
    }

    proptest! {
        /// At the optimum, no allowed step helps: the gradient is 0 for a free value and does not point downhill for a
        /// value at 0.
        #[test]
        fn non_negative_least_squares_meet_the_optimality_conditions(
            rows in prop::collection::vec(prop::collection::vec(-3.0..3.0f64, 4), 5..9),
            rest in prop::collection::vec(-5.0..5.0f64, 9),
        ) {
            let product = |one: usize, other: usize| rows.iter().map(|row| row[one] * row[other]).sum::<f64>();
            let products: Vec<Vec<f64>> = (0..4).map(|one| (0..4).map(|other| product(one, other)).collect()).collect();
            let right: Vec<f64> =
                (0..4).map(|at| rows.iter().zip(&rest).map(|(row, rest)| row[at] * rest).sum()).collect();
            let values = non_negative_least_squares(&products, &right);
            for at in 0..4 {
                let descent = right[at] - (0..4).map(|other| products[at][other] * values[other]).sum::<f64>();
                prop_assert!(values[at] >= 0.0 && descent < 1e-6 && (values[at] == 0.0 || descent > -1e-6));
            }
        }
    }
}
