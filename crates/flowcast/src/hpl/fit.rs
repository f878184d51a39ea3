//! The constants of a cluster from runs of HPL.
//!
//! Least squares of `ln(predicted / measured)`, with what is known of each constant before (a log-normal distribution) as further
//! observations: constants of which the runs say nothing stay where they are. Slopes are taken once, over two standard deviations
//! of what is known before: between near values the order of actions changes the times by more than the constants do.

use flowcast_model::{
    costs::{Costs, FittedCosts},
    linpack_costs::{FittedLinpack, LinpackCosts},
    stats::linear_system::inverse_of_symmetric,
};
use flowcast_trace::parallel;

use super::{
    Cluster, MeasuredRun,
    estimate::{Extent, estimate},
};

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct LinpackFit {
    /// The constants with their intervals (90 %).
    pub linpack: FittedLinpack,
    /// `ln(predicted / measured)` of each run.
    pub errors: Vec<f64>,
}

/// Standard deviation of a run's time, before it is known from the runs.
const NOISE: f64 = 0.012;
const STEPS: usize = 2;
/// Half-width of an interval (90 %) in standard deviations.
const NINETY: f64 = 1.645;

/// Fits a cluster's constants, from those that it has; `done` is told of each simulation out of how many.
///
/// # Panics
/// If the cluster has too few nodes for a run.
pub fn fit_linpack(
    cluster: &Cluster,
    runs: &[MeasuredRun],
    threads: usize,
    done: &(dyn Fn() + Sync),
) -> LinpackFit {
    let parameters = LinpackCosts::PARAMETERS;
    let errors_of = |all: &[LinpackCosts]| -> Vec<Vec<f64>> {
        let jobs: Vec<(usize, usize)> = (0..all.len())
            .flat_map(|costs| (0..runs.len()).map(move |run| (costs, run)))
            .collect();
        let errors = parallel::map(&jobs, threads, |&(costs, run)| {
            let cluster = Cluster {
                costs: all[costs],
                ..cluster.clone()
            };
            let MeasuredRun { settings, seconds } = &runs[run];
            let machine = cluster.machine(settings, 0);
            let found = estimate(settings, &machine, Extent::Full, 1).seconds;
            done();
            (found / seconds).ln()
        });
        errors.chunks(runs.len()).map(<[f64]>::to_vec).collect()
    };
    let priors = LinpackCosts::prior().values();
    let at = |offsets: &[f64]| {
        let values: Vec<f64> = priors
            .iter()
            .zip(offsets)
            .map(|(prior, offset)| prior * offset.exp())
            .collect();
        LinpackCosts::from_values(&values)
    };
    let mut offsets = vec![0.0; parameters.len()];
    let mut tried = vec![at(&offsets)];
    for (place, parameter) in parameters.iter().enumerate() {
        for side in [-1.0, 1.0] {
            let mut moved = offsets.clone();
            moved[place] += side * parameter.spread;
            tried.push(at(&moved));
        }
    }
    let found = errors_of(&tried);
    let slope = |place: usize, run: usize| {
        let (below, above) = (&found[1 + 2 * place], &found[2 + 2 * place]);
        (above[run] - below[run]) / (2.0 * parameters[place].spread)
    };
    let mut normal = vec![vec![0.0; parameters.len()]; parameters.len()];
    for (row, parameter) in parameters.iter().enumerate() {
        normal[row][row] += parameter.spread.powi(-2);
        for run in 0..runs.len() {
            for (column, entry) in normal[row].iter_mut().enumerate() {
                *entry += slope(row, run) * slope(column, run) / NOISE.powi(2);
            }
        }
    }
    let covariance = inverse_of_symmetric(&normal).expect("priors make it definite");
    let mut errors = found[0].clone();
    for _ in 0..STEPS {
        let right: Vec<f64> = (0..parameters.len())
            .map(|row| {
                let runs = errors.iter().enumerate();
                let pulls: f64 = runs.map(|(run, error)| slope(row, run) * error).sum();
                -offsets[row] / parameters[row].spread.powi(2) - pulls / NOISE.powi(2)
            })
            .collect();
        for (row, offset) in offsets.iter_mut().enumerate() {
            *offset += covariance[row]
                .iter()
                .zip(&right)
                .map(|(a, b)| a * b)
                .sum::<f64>();
        }
        errors = errors_of(&[at(&offsets)]).remove(0);
    }
    let moved = |side: f64| {
        let moved: Vec<f64> = (0..offsets.len())
            .map(|place| offsets[place] + side * NINETY * covariance[place][place].sqrt())
            .collect();
        at(&moved)
    };
    let costs = at(&offsets);
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    LinpackFit {
        linpack: FittedLinpack {
            spread: (squares / errors.len() as f64).sqrt().max(NOISE),
            costs: FittedCosts {
                costs,
                low: moved(-1.0),
                high: moved(1.0),
            },
        },
        errors,
    }
}
