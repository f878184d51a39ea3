//! From measured operations to what steps cost and leave over.

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
    residuals::{LeftOver, ResidualPlace},
    step_times::{PlacedCase, StepTimes, seconds_once},
};

/// Operations with more messages say nothing that smaller ones do not, and take longer than all others.
const MOST_MESSAGES: u64 = 25_000;
/// The logarithm of a measured time scatters by this much; errors above count less and less (the loss is linear there).
const SCATTER: f64 = 0.2;
/// Parameters are looked for within so many standard deviations of what is known before.
const WIDEST: f64 = 4.0;
/// A step that gains less of the sum of squares ends the search.
const NO_GAIN: f64 = 1e-3;
/// Operations with more messages are not held out: they take too long.
const MOST_HELD_OUT: u64 = 5_000_000;
/// Level of intervals.
const LEVEL: f64 = 0.9;

/// Why measured operations tell nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CollectiveFitError {
    /// No row of the machine.
    #[error("found no row of the system `{system}`, expected some; there are {known}")]
    System {
        /// The machine that was asked for.
        system: String,
        /// Those that are there.
        known: String,
    },
    /// A run whose nodes are not known.
    #[error("found no allocation of the run `{}` of `{}` on {} nodes, expected its rows", .0.run, .0.system, .0.nodes)]
    Allocation(JobKey),
}

/// What was found, and how well it predicts runs that it did not know.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveFit {
    /// For the network file.
    pub measured: MeasuredCollectives,
    /// Errors of runs of the machine, each predicted from runs on fewer nodes, or where all are on as many, from the others.
    pub held_out: Vec<HeldOutError>,
}

/// Fits the costs of a machine; rows of other machines tell what algorithms leave over.
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
        let mut all = LeftOver::default();
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
            widening: widening(&errors.concat(), LEVEL),
            costs: fits[machine.system].costs.clone(),
            spread,
            series: left_over("").series(),
        },
        held_out: own_errors,
    })
}

/// The machine that is fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine<'a> {
    /// Its name in the table.
    pub system: &'a str,
    /// What the links out of a group carry, in interfaces of a node.
    pub group_links: f64,
}

/// The costs of one machine.
struct SystemFit {
    costs: FittedCosts<CollectiveCosts>,
    /// By row; where a label had no effect, the place is that of what the library chose.
    left_over: LeftOver,
    placed: Vec<PlacedCase>,
    /// Logarithms of the measured times.
    logs: Vec<f64>,
    /// Logarithms of the costs.
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

    /// The runs on more than any number of nodes, predicted from those on as many and fewer.
    fn held_out(&self, others: &LeftOver, threads: usize) -> Vec<HeldOut> {
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

    /// What costs that were fitted without some runs leave over.
    fn held_out_jobs(
        &self,
        is_asked: &dyn Fn(&JobKey) -> bool,
        others: &LeftOver,
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

fn left_over(placed: &[PlacedCase], logs: &[f64], seconds: &[f64]) -> LeftOver {
    let places = placed.iter().map(|placed| ResidualPlace::new(&placed.case));
    let values = logs.iter().zip(seconds);
    LeftOver {
        places: places.collect(),
        values: values.map(|(log, seconds)| log - seconds.ln()).collect(),
    }
}

/// The costs under which some cases of a machine are missed least.
struct CostSearch<'a> {
    times: StepTimes<'a>,
    logs: Vec<f64>,
    threads: usize,
}

impl<'a> CostSearch<'a> {
    /// Of the cases with few messages.
    fn new(placed: &'a [PlacedCase], logs: &[f64], threads: usize) -> CostSearch<'a> {
        let cases = placed.iter().zip(logs);
        let small = cases.filter(|(placed, _)| messages(&placed.case) <= MOST_MESSAGES);
        CostSearch {
            times: StepTimes::new(small.clone().map(|(placed, _)| placed), threads),
            logs: small.map(|(_, log)| *log).collect(),
            threads,
        }
    }

    /// By how much each case is missed.
    fn errors(&self, values: &[f64]) -> Vec<f64> {
        let costs = CollectiveCosts::from_values(&exponentials(values));
        let seconds = self.times.seconds(&costs, self.threads);
        let misses = seconds.iter().zip(&self.logs);
        misses
            .map(|(seconds, log)| soft((seconds.ln() - log) / SCATTER))
            .collect()
    }

    /// The logarithms of the costs that miss least, from others on.
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

    /// Standard deviations of the parameters at the lowest place, by how the errors change around it.
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

/// About how many messages a case has.
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

/// Square where small, linear where large, once it is squared (`soft_l1`).
fn soft(error: f64) -> f64 {
    (2.0 * ((1.0 + error * error).sqrt() - 1.0))
        .sqrt()
        .copysign(error)
}
