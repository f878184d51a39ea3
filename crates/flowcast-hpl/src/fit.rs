//! The constants of a cluster from runs of HPL.
//!
//! Least squares of `ln(predicted / measured)`, with what is known of each constant before (a log-normal distribution) as further
//! observations: constants of which the runs say nothing stay where they are. Slopes are taken once, over two standard deviations
//! of what is known before: between near values the order of actions changes the times by more than the constants do.

use flowcast_network::{
    costs::{CostParameters, FittedCosts},
    linpack_costs::{FittedLinpack, LinpackCosts},
};
use flowcast_program::parallel;
use flowcast_statistics::linear_fit::{LinearFit, LinearRow};
use flowcast_units::Time;

use super::{
    Cluster, MeasuredRun,
    estimate::{SimulatedExtent, estimate},
};
use flowcast_replay::outcome::{NotFiniteTime, finite_times};

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

/// Fits a cluster's constants, from what is assumed of any cluster; `done` is told of each simulation.
///
/// # Errors
/// [`NotFiniteTime`].
///
/// # Panics
/// If the cluster has too few nodes for a run.
pub fn fit_linpack(
    cluster: &Cluster,
    runs: &[MeasuredRun],
    threads: usize,
    done: &(dyn Fn() + Sync),
) -> Result<LinpackFit, NotFiniteTime> {
    let trials = Trials {
        cluster,
        runs,
        threads,
        done,
    };
    let spreads = LinpackCosts::PARAMETERS.iter().map(|known| known.spread);
    let spreads: Vec<f64> = spreads.collect();
    let mut offsets = vec![0.0; spreads.len()];
    let (mut errors, slopes) = trials.slopes(&spreads)?;
    let mut covariance = Vec::new();
    for _ in 0..STEPS {
        let told = errors.iter().enumerate().map(|(run, error)| {
            let columns: Vec<f64> = slopes.iter().map(|slopes| slopes[run]).collect();
            let reached: f64 = columns.iter().zip(&offsets).map(|(a, b)| a * b).sum();
            LinearRow {
                columns,
                value: reached - error,
                variance: NOISE.powi(2),
            }
        });
        let rows: Vec<LinearRow> = told.chain(LinpackCosts::prior_rows()).collect();
        let fit = LinearFit::new(&rows).expect("what is known before makes it definite");
        (offsets, covariance) = (fit.values, fit.covariance);
        errors = trials.errors(&[costs_at(&offsets)])?.remove(0);
    }
    let moved = |side: f64| {
        let widths = (0..offsets.len()).map(|at| covariance[at][at].sqrt());
        let ends = offsets.iter().zip(widths);
        let ends: Vec<f64> = ends
            .map(|(offset, width)| offset + side * NINETY * width)
            .collect();
        costs_at(&ends)
    };
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    Ok(LinpackFit {
        linpack: FittedLinpack {
            spread: (squares / errors.len() as f64).sqrt().max(NOISE),
            costs: FittedCosts {
                costs: costs_at(&offsets),
                low: moved(-1.0),
                high: moved(1.0),
            },
        },
        errors,
    })
}

/// Constants by the logarithms of how far they are from what is known before.
fn costs_at(offsets: &[f64]) -> LinpackCosts {
    let known = LinpackCosts::PARAMETERS.iter().zip(offsets);
    let values: Vec<f64> = known
        .map(|(known, offset)| known.prior * offset.exp())
        .collect();
    LinpackCosts::from_values(&values)
}

/// Simulations of the measured runs.
struct Trials<'a> {
    cluster: &'a Cluster,
    runs: &'a [MeasuredRun],
    threads: usize,
    done: &'a (dyn Fn() + Sync),
}

impl Trials<'_> {
    /// `ln(predicted / measured)` of each run, by each of the constants.
    fn errors(&self, all: &[LinpackCosts]) -> Result<Vec<Vec<f64>>, NotFiniteTime> {
        let jobs: Vec<(LinpackCosts, &MeasuredRun)> = all
            .iter()
            .flat_map(|costs| self.runs.iter().map(move |run| (*costs, run)))
            .collect();
        let errors = parallel::map(&jobs, self.threads, |(costs, run)| {
            let cluster = Cluster {
                costs: *costs,
                ..self.cluster.clone()
            };
            let machine = cluster.machine(&run.settings, 0);
            let found = estimate(&run.settings, &machine, SimulatedExtent::Full, 1)?.seconds;
            (self.done)();
            let measured = run.time.as_seconds();
            let error = (found / measured).ln();
            finite_times([Time::from_seconds(error)], || {
                format!("a measured time of {measured} s")
            })?;
            Ok(error)
        });
        let errors: Vec<f64> = errors.into_iter().collect::<Result<_, NotFiniteTime>>()?;
        let by_costs = errors.chunks(self.runs.len());
        Ok(by_costs.map(<[f64]>::to_vec).collect())
    }

    /// The errors by what is known before, and by how much each of them changes with each constant, over two standard deviations.
    fn slopes(&self, spreads: &[f64]) -> Result<(Vec<f64>, Vec<Vec<f64>>), NotFiniteTime> {
        let mut tried = vec![costs_at(&vec![0.0; spreads.len()])];
        for (place, spread) in spreads.iter().enumerate() {
            for side in [-spread, *spread] {
                let mut moved = vec![0.0; spreads.len()];
                moved[place] = side;
                tried.push(costs_at(&moved));
            }
        }
        let mut errors = self.errors(&tried)?;
        let sides = errors[1..].chunks(2).zip(spreads);
        let slopes = sides
            .map(|(sides, spread)| {
                let runs = sides[0].iter().zip(&sides[1]);
                runs.map(|(below, above)| (above - below) / (2.0 * spread))
                    .collect()
            })
            .collect();
        Ok((errors.swap_remove(0), slopes))
    }
}
