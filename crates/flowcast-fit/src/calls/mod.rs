//! What single calls of MPI take by the size of their message: lines between knees, for each cluster, experiment and call.
//!
//! One line misses such times by a quarter: protocols change with the size (eager to rendezvous, with a jump), caches and
//! pipelines end. [`fit_calls`] finds the knees by itself ([`piecewise`]); [`CallFit::predict`] gives the median of another
//! size with an interval, [`network::to_network`] a network file with the overheads of sender and receiver, latency and bandwidth.
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

/// Sizes near the predicted one whose errors make its interval: the third from each end of them holds 90 %.
const NEIGHBOURS: usize = 59;

/// The time of one call as a function of size.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFit {
    /// The median time in nanoseconds over the size in bytes, 0 or more.
    pub curve: PiecewiseLine,
    /// How far the curve and simpler functions miss sizes that are left out.
    pub errors: CallErrors,
    /// Sizes that were fitted, ascending, with `ln(measured / predicted)` of fits without them.
    residuals: Vec<(Bytes, f64)>,
    times: BTreeMap<Bytes, Time>,
}

/// Medians of `|predicted / measured - 1|` over the sizes, each predicted by a fit without it and every fifth other one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallErrors {
    /// Of the curve that was fitted, knees and all.
    pub pieces: f64,
    /// Of interpolating between the sizes below and above, a line between two points: what noise leaves.
    pub neighbours: f64,
    /// Of one line over all sizes.
    pub one_line: f64,
}

/// A predicted median, and the interval of the median that would be measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallTime {
    /// What the curve says, 0 or more.
    pub predicted: Time,
    /// The interval's lower end, 0 or more.
    pub low: Time,
    /// The interval's upper end.
    pub high: Time,
    /// Share of measured medians that lie in such intervals; less than was asked for where few sizes were fitted.
    pub level: f64,
}

/// Fits each call of a table with at most `pieces` lines.
///
/// # Errors
/// No piece; a call with one size alone.
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

/// Why calls cannot be fitted, or make no network.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The sizes of a call make no function.
    #[error("{name}: {source}")]
    Fit {
        /// The call whose sizes were to be fitted.
        name: Box<CallName>,
        /// What its sizes lack.
        source: StatsError,
    },
    /// A network is one cluster's.
    #[error("found the clusters {0}, expected one for a network file")]
    Clusters(String),
    /// A call that a network file rests on was not measured.
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

    /// The median time of a size.
    pub fn at(&self, size: Bytes) -> Time {
        Time::from_nanos(self.curve.at(size.0 as f64))
    }

    /// The median time of a size with its interval, of the errors of nearby sizes in fits without them.
    ///
    /// # Errors
    /// A level outside (0, 1).
    pub fn predict(&self, size: Bytes, level: f64) -> Result<CallTime, StatsError> {
        // Sizes ascend, so that the nearest stand on both sides of the predicted one.
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

/// How far apart two sizes are, as a ratio.
fn ratio(one: Bytes, other: Bytes) -> f64 {
    ((one.0 as f64 + 1.0) / (other.0 as f64 + 1.0)).ln().abs()
}

fn median_error(residuals: &[f64]) -> Result<f64, StatsError> {
    // predicted / measured - 1, of ln(measured / predicted).
    median(
        &residuals
            .iter()
            .map(|error| (-error).exp_m1().abs())
            .collect::<Vec<f64>>(),
    )
}

/// Straight lines from point to point, level beyond them.
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
        fn whatever_a_table_holds_its_calls_are_fitted_or_refused(
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
