//! Fit of a cluster's costs to runs of HPL.
//!
//! Least squares of `ln(predicted / measured)`. The prior of each cost (a log-normal distribution) counts as a further
//! observation: costs on which the runs give no information keep their priors. Slopes are computed once, over two standard
//! deviations of the prior. Between close values, the order of actions changes the times more than the costs do. Some panels
//! suffice for a slope, because what the others would add to the times of both sides is nearly the same.

use flowcast_network::{
    costs::{CostParameters, FittedCosts},
    linpack_costs::{FittedLinpack, LinpackCosts},
};
use flowcast_program::parallel;
use flowcast_statistics::linear_fit::{LinearFit, LinearRow, product};
use flowcast_units::Time;

use super::{
    Cluster, MeasuredRun,
    estimate::{SimulatedExtent, estimate},
};
use flowcast_replay::outcome::{NotFiniteTime, finite_times};

/// Result of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct LinpackFit {
    /// Costs with their intervals (90 %).
    pub linpack: FittedLinpack,
    /// `ln(predicted / measured)`, indexed by run.
    pub errors: Vec<f64>,
}

/// Assumed standard deviation of a run's time before the fit.
const NOISE: f64 = 0.012;
const STEPS: usize = 2;
/// Part of a run that is simulated for a slope.
const FOR_SLOPES: SimulatedExtent = SimulatedExtent::Windows(4);
/// Half-width of a 90 % interval, in standard deviations.
const NINETY: f64 = 1.645;

/// Fits a cluster's costs, starting from the prior for any cluster. `done` is called after each simulation.
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
    let mut errors = trials.of_whole_runs(&offsets)?;
    let slopes = trials.slopes(&spreads)?;
    let mut covariance = Vec::new();
    for _ in 0..STEPS {
        let told = errors.iter().enumerate().map(|(run, error)| {
            let columns: Vec<f64> = slopes.iter().map(|slopes| slopes[run]).collect();
            let reached = product(&columns, &offsets);
            LinearRow {
                columns,
                value: reached - error,
                variance: NOISE.powi(2),
            }
        });
        let rows: Vec<LinearRow> = told.chain(LinpackCosts::prior_rows()).collect();
        let fit = LinearFit::new(&rows).expect("what is known before makes it definite");
        (offsets, covariance) = (fit.values, fit.covariance);
        errors = trials.of_whole_runs(&offsets)?;
    }
    let moved = |side: f64| {
        let widths = (0..offsets.len()).map(|at| covariance[at][at].sqrt());
        let ends = offsets.iter().zip(widths);
        let ends: Vec<f64> = ends
            .map(|(offset, width)| offset + side * NINETY * width)
            .collect();
        costs_at(&ends)
    };
    let squares = product(&errors, &errors);
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

/// Costs at these logarithmic offsets from the prior.
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
    /// `ln(predicted / measured)` of each run, for each set of costs.
    fn errors(
        &self,
        all: &[LinpackCosts],
        extent: SimulatedExtent,
    ) -> Result<Vec<Vec<f64>>, NotFiniteTime> {
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
            let found = estimate(&run.settings, &machine, extent, 1)?.seconds;
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

    /// `ln(predicted / measured)` of each run, simulated in full, at these logarithmic offsets of the costs.
    fn of_whole_runs(&self, offsets: &[f64]) -> Result<Vec<f64>, NotFiniteTime> {
        let errors = self.errors(&[costs_at(offsets)], SimulatedExtent::Full);
        Ok(errors?.remove(0))
    }

    /// Slope of each error with respect to each cost, over two standard deviations.
    fn slopes(&self, spreads: &[f64]) -> Result<Vec<Vec<f64>>, NotFiniteTime> {
        let mut tried = Vec::new();
        for (place, spread) in spreads.iter().enumerate() {
            for side in [-spread, *spread] {
                let mut moved = vec![0.0; spreads.len()];
                moved[place] = side;
                tried.push(costs_at(&moved));
            }
        }
        let errors = self.errors(&tried, FOR_SLOPES)?;
        let sides = errors.chunks(2).zip(spreads);
        let slopes = sides.map(|(sides, spread)| {
            let runs = sides[0].iter().zip(&sides[1]);
            runs.map(|(below, above)| (above - below) / (2.0 * spread))
                .collect()
        });
        Ok(slopes.collect())
    }
}
