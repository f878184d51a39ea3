//! Fit of the costs of steps, and of their residuals, to measured operations.

use std::collections::{BTreeMap, BTreeSet};

use flowcast_network::{
    collective_costs::CollectiveCosts,
    costs::{CostParameters, FittedCosts},
    measured_collectives::MeasuredCollectives,
};
use flowcast_program::parallel;
use flowcast_statistics::{
    descent::{BoundedParameter, descend},
    linear_fit::{LinearFit, LinearRow},
    resampling::normal_score,
};
use thiserror::Error;

use super::{
    allocations::Allocations,
    cases::{CollectiveCase, MeasuredCase},
    held_out::{HeldOut, HeldOutError, best_spread, widening},
    job::JobKey,
    labels::without_effect_are_chosen,
    residuals::{PlacedResiduals, ResidualPlace},
    step_times::{PlacedCase, StepTimes, seconds_once},
};

/// Largest number of messages of an operation in the search. Larger operations take the longest to evaluate and add no
/// information.
const MOST_MESSAGES: u64 = 25_000;
/// Standard deviation of the logarithm of a measured time. The loss is linear for larger errors, so they count less.
const SCATTER: f64 = 0.2;
/// Distance of a parameter's bounds from its prior, in standard deviations.
const WIDEST: f64 = 4.0;
/// Relative reduction of the sum of squares below which the search ends.
const NO_GAIN: f64 = 1e-3;
/// Largest number of messages of an operation in the held-out runs. Larger operations take too long.
const MOST_HELD_OUT: u64 = 5_000_000;
/// Level of the intervals.
const LEVEL: f64 = 0.9;

/// Reasons why measured operations cannot be fitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CollectiveFitError {
    /// The table has no row of the machine.
    #[error("found no row of the system `{system}`, expected one of {known}")]
    System {
        /// Name of the machine that was to be fitted.
        system: String,
        /// Machines in the table.
        known: String,
    },
    /// The nodes of a run are unknown.
    #[error("found no allocation of the run `{}` of `{}` on {} nodes, expected its nodes", .0.run, .0.system, .0.nodes)]
    Allocation(JobKey),
}

/// Fitted costs, and their errors for runs that were held out.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveFit {
    /// Fitted costs and residuals, for the network file.
    pub measured: MeasuredCollectives,
    /// Errors for runs of the machine. Each run is predicted from runs on fewer nodes, or from the other runs if all have
    /// the same number of nodes.
    pub held_out: Vec<HeldOutError>,
}

/// Fits the costs of a machine. Rows of other machines determine the residuals of algorithms.
///
/// # Errors
/// [`CollectiveFitError`].
pub fn fit_collectives(
    measured: &[MeasuredCase],
    allocations: &Allocations,
    machine: &Machine<'_>,
    threads: usize,
) -> Result<CollectiveFit, CollectiveFitError> {
    let systems: BTreeSet<&str> = measured
        .iter()
        .map(|row| row.case.job.system.as_str())
        .collect();
    if !systems.contains(machine.system) {
        let known: Vec<&str> = systems.into_iter().collect();
        return Err(CollectiveFitError::System {
            system: machine.system.to_owned(),
            known: known.join(", "),
        });
    }
    let mut fits: BTreeMap<&str, SystemFit> = BTreeMap::new();
    for system in systems {
        let rows: Vec<&MeasuredCase> = measured
            .iter()
            .filter(|row| row.case.job.system == system)
            .collect();
        let group_links = if system == machine.system {
            machine.group_links
        } else {
            f64::INFINITY
        };
        let fit = SystemFit::new(&rows, allocations, group_links, threads)?;
        fits.insert(system, fit);
    }
    let left_over = |without: &str| {
        let mut all = PlacedResiduals::default();
        for (_, fit) in fits.iter().filter(|(system, _)| **system != without) {
            all.extend(&fit.left_over);
        }
        all
    };
    let mut held_out: Vec<HeldOut> = Vec::new();
    let mut own_held_out = 0..0;
    for (system, fit) in &fits {
        let before = held_out.len();
        held_out.extend(fit.held_out(&left_over(system), threads));
        if *system == machine.system {
            own_held_out = before..held_out.len();
        }
    }
    let spread = best_spread(&held_out, threads);
    let errors = parallel::map(&held_out, threads, |one| one.errors(&spread));
    let own_errors = errors[own_held_out].concat();
    Ok(CollectiveFit {
        measured: MeasuredCollectives {
            system: machine.system.to_owned(),
            widening: widening(&held_out, &errors, LEVEL),
            costs: fits[machine.system].costs.clone(),
            spread,
            series: left_over("").series(),
        },
        held_out: own_errors,
    })
}

/// Machine whose costs are fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine<'a> {
    /// Name of the machine in the table.
    pub system: &'a str,
    /// Capacity of the links out of a group, in multiples of a node's interface.
    pub group_links: f64,
}

/// Fitted costs of one machine.
struct SystemFit {
    costs: FittedCosts<CollectiveCosts>,
    /// Residuals, indexed by row. If a label had no effect, the residual belongs to the algorithm that the library chose.
    left_over: PlacedResiduals,
    placed: Vec<PlacedCase>,
    /// Logarithms of the measured times.
    logs: Vec<f64>,
    /// Logarithms of the fitted costs.
    lowest: Vec<f64>,
}

impl SystemFit {
    fn new(
        rows: &[&MeasuredCase],
        allocations: &Allocations,
        group_links: f64,
        threads: usize,
    ) -> Result<SystemFit, CollectiveFitError> {
        let mut placed = rows
            .iter()
            .map(|row| place(row, allocations, group_links))
            .collect::<Result<Vec<_>, _>>()?;
        without_effect_are_chosen(rows, &mut placed, threads);
        let logs: Vec<f64> = rows
            .iter()
            .map(|row| row.median.as_seconds().ln())
            .collect();
        let search = CostSearch::new(&placed, &logs, threads);
        let start: Vec<f64> = CollectiveCosts::prior()
            .values()
            .iter()
            .map(|value| value.ln())
            .collect();
        let at = search.lowest(&start);
        let deviations = search.deviations(&at);
        let [low, high] = [-1.0, 1.0].map(|sign: f64| {
            let score = sign * normal_score(0.5 + LEVEL / 2.0);
            let logs: Vec<f64> = at
                .iter()
                .zip(&deviations)
                .map(|(value, deviation)| value + score * deviation)
                .collect();
            CollectiveCosts::from_values(&exponentials(&logs))
        });
        let costs = CollectiveCosts::from_values(&exponentials(&at));
        let seconds = seconds_once(&placed, &costs, threads);
        drop(search);
        Ok(SystemFit {
            lowest: at.clone(),
            left_over: left_over(&placed, &logs, &seconds),
            costs: FittedCosts { costs, low, high },
            placed,
            logs,
        })
    }

    /// Held-out runs: for each number of nodes, the runs on more nodes, predicted from those on at most as many.
    fn held_out(&self, others: &PlacedResiduals, threads: usize) -> Vec<HeldOut> {
        let jobs: BTreeSet<&JobKey> = self.placed.iter().map(|placed| &placed.case.job).collect();
        let nodes: BTreeSet<u32> = jobs.iter().map(|job| job.nodes).collect();
        if nodes.len() == 1 {
            return jobs
                .iter()
                .filter(|_| jobs.len() > 1)
                .map(|job| self.held_out_jobs(&|own| own == *job, others, threads))
                .collect();
        }
        nodes
            .iter()
            .take(nodes.len() - 1)
            .map(|most| self.held_out_jobs(&|job| job.nodes > *most, others, threads))
            .collect()
    }

    /// Residuals of costs that were fitted without the runs for which `is_asked` holds.
    fn held_out_jobs(
        &self,
        is_asked: &dyn Fn(&JobKey) -> bool,
        others: &PlacedResiduals,
        threads: usize,
    ) -> HeldOut {
        let all =
            (0..self.placed.len()).filter(|at| messages(&self.placed[*at].case) <= MOST_HELD_OUT);
        let (asked, known): (Vec<usize>, Vec<usize>) =
            all.partition(|at| is_asked(&self.placed[*at].case.job));
        let [(placed_known, logs_known), (placed_asked, logs_asked)] =
            [&known, &asked].map(|of| -> (Vec<PlacedCase>, Vec<f64>) {
                of.iter()
                    .map(|at| (self.placed[*at].clone(), self.logs[*at]))
                    .unzip()
            });
        let search = CostSearch::new(&placed_known, &logs_known, threads);
        let costs = CollectiveCosts::from_values(&exponentials(&search.lowest(&self.lowest)));
        let seconds = seconds_once(&placed_known, &costs, threads);
        let mut known = left_over(&placed_known, &logs_known, &seconds);
        known.extend(others);
        let seconds = seconds_once(&placed_asked, &costs, threads);
        HeldOut {
            known,
            asked: left_over(&placed_asked, &logs_asked, &seconds),
            cases: asked,
        }
    }
}

fn left_over(placed: &[PlacedCase], logs: &[f64], seconds: &[f64]) -> PlacedResiduals {
    let places = placed.iter().map(|placed| ResidualPlace::new(&placed.case));
    let values = logs.iter().zip(seconds);
    PlacedResiduals {
        places: places.collect(),
        values: values.map(|(log, seconds)| log - seconds.ln()).collect(),
    }
}

/// Search for the costs with the smallest errors for cases of a machine.
struct CostSearch<'a> {
    times: StepTimes<'a>,
    logs: Vec<f64>,
    threads: usize,
}

impl<'a> CostSearch<'a> {
    /// Uses only the cases with few messages.
    fn new(placed: &'a [PlacedCase], logs: &[f64], threads: usize) -> CostSearch<'a> {
        let cases = placed.iter().zip(logs);
        let small = cases.filter(|(placed, _)| messages(&placed.case) <= MOST_MESSAGES);
        CostSearch {
            times: StepTimes::new(small.clone().map(|(placed, _)| placed), threads),
            logs: small.map(|(_, log)| *log).collect(),
            threads,
        }
    }

    /// Error of each case, in units of `SCATTER`, with large ones damped.
    fn errors(&self, values: &[f64]) -> Vec<f64> {
        let costs = CollectiveCosts::from_values(&exponentials(values));
        let seconds = self.times.seconds(&costs, self.threads);
        let misses = seconds.iter().zip(&self.logs);
        misses
            .map(|(seconds, log)| soft((seconds.ln() - log) / SCATTER))
            .collect()
    }

    /// Logarithms of the costs with the smallest errors, searched from `start`.
    fn lowest(&self, start: &[f64]) -> Vec<f64> {
        let known = CollectiveCosts::PARAMETERS.iter();
        let known: Vec<BoundedParameter> = known
            .map(|known| BoundedParameter::around(known.prior.ln(), known.spread, WIDEST))
            .collect();
        let lowest = descend(start, &known, NO_GAIN, &mut |values: &[f64]| {
            Some(self.errors(values))
        });
        lowest.expect("each case takes a time").at
    }

    /// Standard deviations of the parameters at the minimum, from the changes of the errors around it.
    fn deviations(&self, at: &[f64]) -> Vec<f64> {
        const DIFFERENCE: f64 = 0.02;
        let sides = (0..at.len()).map(|parameter| {
            [DIFFERENCE, -DIFFERENCE].map(|change| {
                let mut near = at.to_vec();
                near[parameter] += change;
                self.errors(&near)
            })
        });
        let sides: Vec<[Vec<f64>; 2]> = sides.collect();
        let told = (0..self.logs.len()).map(|case| LinearRow {
            columns: sides
                .iter()
                .map(|[up, down]| (up[case] - down[case]) / (2.0 * DIFFERENCE))
                .collect(),
            value: 0.0,
            variance: 1.0,
        });
        let rows: Vec<LinearRow> = told.chain(CollectiveCosts::prior_rows()).collect();
        let known = CollectiveCosts::PARAMETERS.iter();
        match LinearFit::new(&rows) {
            Some(fit) => (0..known.len())
                .map(|at| fit.covariance[at][at].sqrt())
                .collect(),
            None => known.map(|known| known.spread).collect(),
        }
    }
}

fn place(
    row: &MeasuredCase,
    allocations: &Allocations,
    group_links: f64,
) -> Result<PlacedCase, CollectiveFitError> {
    let case = row.case.clone();
    let places = allocations
        .places(&case.job, case.ranks_per_node)
        .ok_or_else(|| CollectiveFitError::Allocation(case.job.clone()))?;
    Ok(PlacedCase {
        case,
        places: places.into(),
        group_links,
    })
}

/// Approximate number of messages of a case.
fn messages(case: &CollectiveCase) -> u64 {
    let ranks = u64::from(case.ranks());
    if case.choice.algorithm.is_logarithmic() {
        ranks * u64::from(ranks.ilog2())
    } else {
        ranks * ranks
    }
}

fn exponentials(logs: &[f64]) -> Vec<f64> {
    logs.iter().map(|log| log.exp()).collect()
}

/// Error whose square is quadratic for small errors and linear for large ones (`soft_l1`).
fn soft(error: f64) -> f64 {
    (2.0 * ((1.0 + error * error).sqrt() - 1.0))
        .sqrt()
        .copysign(error)
}
