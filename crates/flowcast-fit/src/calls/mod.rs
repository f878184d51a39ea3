//! Times of single MPI calls as a function of message size: lines between knees, for each cluster, experiment and call.
//!
//! A single line misses such times by a quarter: protocols change with the size (eager to rendezvous, with a jump), and
//! caches and pipelines reach their limits. [`fit_calls`] finds the knees by itself ([`piecewise`]). [`CallFit::predict`]
//! returns the median of another size with an interval. [`network::to_network`] returns a network file with the overheads
//! of sender and receiver, latency and bandwidth.
//!
//! [`piecewise`]: flowcast_statistics::piecewise

mod half_trip;
pub mod network;
pub mod table;

use std::collections::BTreeMap;

use flowcast_statistics::{
    StatsError,
    conformal::margin,
    piecewise::{PiecewiseFit, PiecewiseLine, fit_piecewise, residuals_left_out},
    relative_line::relative_line_at_least_zero,
    sample::median,
};
use flowcast_units::{Bytes, Time};

use self::table::{CallName, CallTimes};

/// Number of sizes near the predicted one whose errors determine its interval. With this number, the third from each end
/// gives 90 %.
const NEIGHBOURS: usize = 59;

/// Time of an MPI call as a function of message size.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFit {
    /// Median time in nanoseconds as a function of the size in bytes, 0 or more.
    pub curve: PiecewiseLine,
    /// Errors of the curve and of simpler functions for sizes that are left out of the fit.
    pub errors: CallErrors,
    /// Fitted sizes in ascending order, each with `ln(measured / predicted)` of a fit without it.
    residuals: Vec<(Bytes, f64)>,
    times: BTreeMap<Bytes, Time>,
}

/// Medians of `|predicted / measured - 1|` over the sizes. Each size is predicted by a fit without it and without every
/// fifth other size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallErrors {
    /// Error of the fitted curve, including the choice of its knees.
    pub pieces: f64,
    /// Error of linear interpolation between the next smaller and the next larger size: the error that is due to noise.
    pub neighbours: f64,
    /// Error of a single line over all sizes.
    pub one_line: f64,
}

/// A predicted median, and the interval of the median that a measurement would find.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallTime {
    /// Prediction of the curve, 0 or more.
    pub predicted: Time,
    /// Lower end of the interval, 0 or more.
    pub low: Time,
    /// Upper end of the interval.
    pub high: Time,
    /// Fraction of measured medians that lie in such intervals. It is below the requested level if few sizes were fitted.
    pub level: f64,
}

/// Fits the times of each call by a piecewise linear function of the size, with at most `pieces` pieces.
///
/// # Errors
/// `pieces` is 0, or a call has too few sizes.
pub fn fit_calls(
    times: &CallTimes,
    pieces: usize,
) -> Result<BTreeMap<CallName, CallFit>, CallError> {
    times
        .calls
        .iter()
        .map(|(name, times): (&CallName, &BTreeMap<Bytes, Time>)| {
            let fit = CallFit::new(times, pieces).map_err(|source| CallError::Fit {
                name: Box::new(name.clone()),
                source,
            })?;
            Ok((name.clone(), fit))
        })
        .collect()
}

/// Error for calls that cannot be fitted or do not determine a network.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The sizes of a call do not determine a function.
    #[error("{name}: {source}")]
    Fit {
        /// The call that could not be fitted.
        name: Box<CallName>,
        /// Defect of its sizes.
        source: StatsError,
    },
    /// Several clusters, but a network describes one.
    #[error("found the clusters {0}, expected one for a network file")]
    Clusters(String),
    /// A call that a network file requires was not measured.
    #[error("found no {0}, expected it for a network file")]
    NoCall(CallName),
}

impl CallFit {
    fn new(times: &BTreeMap<Bytes, Time>, pieces: usize) -> Result<CallFit, StatsError> {
        let (x, y): (Vec<f64>, Vec<f64>) = times
            .iter()
            .map(|(size, time)| (size.0 as f64, time.as_nanos()))
            .unzip();
        let between = residuals_left_out(&x, &y, interpolation)?;
        let one_line = residuals_left_out(&x, &y, |x, y| {
            let line = relative_line_at_least_zero(x, y).expect("the points were checked");
            move |size| line.at(size)
        })?;
        let PiecewiseFit { curve, residuals } = fit_piecewise(&x, &y, pieces)?;
        Ok(CallFit {
            errors: CallErrors {
                pieces: median_error(&residuals)?,
                neighbours: median_error(&between)?,
                one_line: median_error(&one_line)?,
            },
            curve,
            residuals: times.keys().copied().zip(residuals).collect(),
            times: times.clone(),
        })
    }

    /// Returns the median time of a size.
    pub fn at(&self, size: Bytes) -> Time {
        Time::from_nanos(self.curve.at(size.0 as f64))
    }

    /// Returns the median time of a size with its interval, which comes from the errors of nearby sizes in fits without
    /// them.
    ///
    /// # Errors
    /// A level outside (0, 1).
    pub fn predict(&self, size: Bytes, level: f64) -> Result<CallTime, StatsError> {
        // Sizes are sorted, so the nearest ones are on both sides of the predicted size.
        let at = self.residuals.partition_point(|(other, _)| *other < size);
        let end = self.residuals.len().min(at + NEIGHBOURS);
        let mut nearest = self.residuals[at.saturating_sub(NEIGHBOURS)..end].to_vec();
        nearest.sort_by(|one, other| ratio(one.0, size).total_cmp(&ratio(other.0, size)));
        let errors: Vec<f64> = nearest
            .iter()
            .take(NEIGHBOURS)
            .map(|(_, error)| *error)
            .collect();
        let margin = margin(&errors, &[], level)?;
        let predicted = self.at(size);
        let [low, high] = [margin.low, margin.high].map(|end| predicted * end.exp());
        Ok(CallTime {
            predicted,
            low,
            high,
            level: margin.level,
        })
    }
}

/// Distance of two sizes as the logarithm of their ratio.
fn ratio(one: Bytes, other: Bytes) -> f64 {
    ((one.0 as f64 + 1.0) / (other.0 as f64 + 1.0)).ln().abs()
}

fn median_error(residuals: &[f64]) -> Result<f64, StatsError> {
    // The residual ln(measured / predicted) becomes predicted / measured - 1.
    median(
        &residuals
            .iter()
            .map(|error| (-error).exp_m1().abs())
            .collect::<Vec<f64>>(),
    )
}

/// Interpolates linearly between the points. The function is constant beyond them.
fn interpolation(x: &[f64], y: &[f64]) -> impl Fn(f64) -> f64 + use<> {
    let (x, y) = (x.to_vec(), y.to_vec());
    move |at| {
        let above = x.partition_point(|x| *x < at);
        match above {
            0 => y[0],
            above if above == x.len() => y[above - 1],
            above => {
                let share = (at - x[above - 1]) / (x[above] - x[above - 1]);
                y[above - 1] + share * (y[above] - y[above - 1])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_calls_of_any_table_are_fitted_or_refused(
            medians in prop::collection::btree_map(any::<u64>(), -320.0..308.0f64, 1..12),
            pieces in 1..4usize,
        ) {
            let rows: String = medians.iter().map(|(size, power)| format!("k,e,c,{size},{:e}\n", 10f64.powf(*power))).collect();
            let Ok(times) = CallTimes::from_csv(&format!("cluster,experiment,call,bytes,median_ns\n{rows}")) else {
                return Ok(());
            };
            let Ok(fits) = fit_calls(&times, pieces) else { return Ok(()) };
            for fit in fits.values() {
                prop_assert!(medians.keys().all(|size| fit.at(Bytes(*size)).as_nanos() >= 0.0));
            }
        }

        #[test]
        fn medians_within_the_bounds_are_fitted(
            medians in prop::collection::btree_map(any::<u64>(), -9.0..24.0f64, 2..12),
        ) {
            let sizes = medians.iter().map(|(size, power)| (Bytes(*size), Time::from_nanos(10f64.powf(*power))));
            let times = CallTimes { calls: BTreeMap::from([(CallName::new("k", "e", "c"), sizes.collect())]) };
            let fits = fit_calls(&times, 3).unwrap();
            prop_assert!(medians.keys().all(|size| fits.values().all(|fit| fit.at(Bytes(*size)).as_nanos() >= 0.0)));
        }
    }
}
