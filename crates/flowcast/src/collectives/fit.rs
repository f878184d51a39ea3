//! From measured operations to what steps cost and leave over.

use std::collections::{BTreeMap, BTreeSet};

use flowcast_model::{
    collective_costs::{COST_PARAMETERS, CollectiveCosts, CostParameter, FittedCosts},
    measured_collectives::{MeasuredCollectives, ResidualSeries, ResidualSpread},
    stats::{linear_system::inverse_of_symmetric, resampling::normal_score, sample::quantile},
};
use thiserror::Error;

use super::{
    allocations::Allocations,
    cases::MeasuredCase,
    job::JobKey,
    labels::without_effect_are_chosen,
    residuals::{ResidualPlace, Residuals, likeliest_spread},
    step_times::{PlacedCase, StepTimes, seconds_once},
};
use crate::calibrate::descent::{Range, descend_until};

/// Operations with more messages say nothing that smaller ones do not, and take longer than all others.
const MOST_MESSAGES: u64 = 25_000;
/// The logarithm of a measured time scatters by this much; errors above count less and less (the loss is linear there).
const SCATTER: f64 = 0.2;
/// Parameters are looked for within so many standard deviations of what is known before.
const WIDEST: f64 = 4.0;
/// A step that gains less of the sum of squares ends the search.
const NO_GAIN: f64 = 1e-3;
/// Growths of what is left over that are tried, by the square root of a doubling of the ranks.
const GROWTHS: [f64; 4] = [0.2, 0.25, 0.3, 0.4];
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

/// What was found, and how well it told runs that it did not know.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectiveFit {
    /// For the network file.
    pub measured: MeasuredCollectives,
    /// Errors of runs, each predicted without it.
    pub left_out: Vec<LeftOut>,
}

/// A case that was predicted by a fit without its run.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// Index into the measured cases of the machine.
    pub case: usize,
    /// `ln(measured / predicted)`.
    pub error: f64,
    /// The standard deviation that the fit expected.
    pub expected: f64,
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
    let mut own = None;
    let (mut known, mut others) = (Known::default(), Known::default());
    for system in systems {
        let rows: Vec<&MeasuredCase> = measured
            .iter()
            .filter(|row| row.case.job.system == system)
            .collect();
        let is_own = system == machine.system;
        let group_links = if is_own {
            machine.group_links
        } else {
            f64::INFINITY
        };
        let fit = SystemFit::new(&rows, allocations, group_links, threads)?;
        let found = Known {
            places: fit.places.clone(),
            left_over: fit.left_over.clone(),
        };
        known.extend(&found);
        match is_own {
            true => own = Some(fit),
            false => others.extend(&found),
        }
    }
    let own = own.expect("the machine is one of the systems");
    let mut spread = likeliest_spread(&known.places, &known.left_over);
    spread.growth = known.growth(&spread);
    let left_out = own.left_out(&others, &spread, threads);
    let widening = widening(&left_out);
    Ok(CollectiveFit {
        measured: MeasuredCollectives {
            system: machine.system.to_owned(),
            widening,
            costs: own.costs,
            spread,
            series: known.series(),
        },
        left_out,
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

/// Residuals of all machines.
#[derive(Default)]
struct Known {
    places: Vec<ResidualPlace>,
    left_over: Vec<f64>,
}

impl Known {
    /// The growth with which intervals of runs on more nodes than known ones would have held: the smallest that does.
    fn growth(&self, spread: &ResidualSpread) -> f64 {
        let mut most: BTreeMap<&str, u32> = BTreeMap::new();
        for place in &self.places {
            let most = most.entry(&place.job().system).or_default();
            *most = place.job().nodes.max(*most);
        }
        let is_large = |at: &usize| {
            let job = self.places[*at].job();
            2 * job.nodes > most[job.system.as_str()]
        };
        let (large, small): (Vec<usize>, Vec<usize>) = (0..self.places.len()).partition(is_large);
        let holds = |growth: &f64| {
            let spread = ResidualSpread {
                growth: *growth,
                ..*spread
            };
            widening(&self.told(&large, &small, &spread)) <= 1.0
        };
        GROWTHS
            .into_iter()
            .find(|growth| holds(growth))
            .unwrap_or(GROWTHS[GROWTHS.len() - 1])
    }

    /// Residuals told by others.
    fn told(&self, asked: &[usize], known: &[usize], spread: &ResidualSpread) -> Vec<LeftOut> {
        let values: Vec<f64> = known.iter().map(|at| self.left_over[*at]).collect();
        let places = |of: &[usize]| {
            of.iter()
                .map(|at| self.places[*at].clone())
                .collect::<Vec<_>>()
        };
        let residuals = Residuals::new(places(known), &values, *spread);
        let at_asked = places(asked);
        let expected = residuals.expected(&at_asked);
        let told = asked.iter().enumerate().map(|(place, at)| LeftOut {
            case: *at,
            error: self.left_over[*at] - expected.means[place],
            expected: residuals.deviation(&at_asked, &expected, place),
        });
        told.collect()
    }

    fn extend(&mut self, others: &Known) {
        self.places.extend(others.places.iter().cloned());
        self.left_over.extend(&others.left_over);
    }

    /// Residuals by run and algorithm.
    fn series(&self) -> Vec<ResidualSeries> {
        let mut series: Vec<ResidualSeries> = Vec::new();
        for (place, left_over) in self.places.iter().zip(&self.left_over) {
            let (own, bytes) = place.series();
            let factor = (left_over.exp() * 1e4).round().max(1.0) / 1e4;
            match series.last_mut().filter(|last| {
                (&last.system, &last.run, last.nodes, last.ranks)
                    == (&own.system, &own.run, own.nodes, own.ranks)
                    && (last.operation, last.algorithm, last.is_chosen)
                        == (own.operation, own.algorithm, own.is_chosen)
            }) {
                Some(last) => {
                    last.bytes.push(bytes);
                    last.factors.push(factor);
                }
                None => series.push(ResidualSeries {
                    bytes: vec![bytes],
                    factors: vec![factor],
                    ..own
                }),
            }
        }
        series
    }
}

/// What the half-widths of intervals have to be multiplied by to hold for as many of the runs that were left out as they say.
fn widening(left_out: &[LeftOut]) -> f64 {
    let parts: Vec<f64> = left_out
        .iter()
        .map(|out| (out.error / out.expected).abs())
        .collect();
    let wanted = normal_score(0.5 + LEVEL / 2.0);
    quantile(&parts, LEVEL).map_or(1.0, |found| (found / wanted).max(1.0))
}

/// The costs of one machine.
struct SystemFit {
    costs: FittedCosts,
    /// By row; where a label had no effect, that of what the library chose.
    places: Vec<ResidualPlace>,
    /// `ln(measured / predicted)` by row.
    left_over: Vec<f64>,
    placed: Vec<PlacedCase>,
    /// Logarithms of the measured times.
    logs: Vec<f64>,
    /// Rows of few messages, which the costs are fitted to.
    small: Vec<usize>,
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
        let small = small_cases(&placed);
        let search = CostSearch::new(&placed, &logs, &small, threads);
        let start: Vec<f64> = CollectiveCosts::prior()
            .values()
            .iter()
            .map(|value| value.ln())
            .collect();
        let at = search.lowest(&start);
        let mut errors = |values: &[f64]| Some(search.errors(values));
        let deviations = deviations(&at, &mut errors);
        let end = |sign: f64| {
            let score = sign * normal_score(0.5 + LEVEL / 2.0);
            let logs: Vec<f64> = at
                .iter()
                .zip(&deviations)
                .map(|(value, deviation)| value + score * deviation)
                .collect();
            CollectiveCosts::from_values(&exponentials(&logs))
        };
        let costs = CollectiveCosts::from_values(&exponentials(&at));
        let seconds = seconds_once(&placed, &costs, threads);
        drop(search);
        Ok(SystemFit {
            small,
            lowest: at.clone(),
            places: placed
                .iter()
                .map(|placed| ResidualPlace::new(&placed.case))
                .collect(),
            left_over: logs
                .iter()
                .zip(seconds)
                .map(|(log, seconds)| log - seconds.ln())
                .collect(),
            costs: FittedCosts {
                costs,
                low: end(-1.0),
                high: end(1.0),
            },
            placed,
            logs,
        })
    }

    /// What costs that were fitted without a run leave over, of each case of few messages.
    fn left_over_without(&self, job: &JobKey, threads: usize) -> Vec<f64> {
        let is_kept = |at: &&usize| self.placed[**at].case.job != *job;
        let kept: Vec<usize> = self.small.iter().filter(is_kept).copied().collect();
        let search = CostSearch::new(&self.placed, &self.logs, &kept, threads);
        let costs = CollectiveCosts::from_values(&exponentials(&search.lowest(&self.lowest)));
        let small: Vec<PlacedCase> = self
            .small
            .iter()
            .map(|at| self.placed[*at].clone())
            .collect();
        let seconds = seconds_once(&small, &costs, threads);
        let left_over = self.small.iter().zip(seconds);
        left_over
            .map(|(at, seconds)| self.logs[*at] - seconds.ln())
            .collect()
    }

    /// Each run told by all others, and by costs that were fitted without it.
    fn left_out(&self, others: &Known, spread: &ResidualSpread, threads: usize) -> Vec<LeftOut> {
        let jobs: BTreeSet<&JobKey> = self.placed.iter().map(|placed| &placed.case.job).collect();
        let mut left_out = Vec::new();
        for job in jobs.iter().filter(|_| jobs.len() > 1) {
            let mut known = Known {
                places: self
                    .small
                    .iter()
                    .map(|at| self.places[*at].clone())
                    .collect(),
                left_over: self.left_over_without(job, threads),
            };
            known.extend(others);
            let (out, kept): (Vec<usize>, Vec<usize>) =
                (0..known.places.len()).partition(|at| known.places[*at].job() == *job);
            for told in known.told(&out, &kept, spread) {
                left_out.push(LeftOut {
                    case: self.small[told.case],
                    ..told
                });
            }
        }
        left_out
    }
}

/// The costs under which some cases of a machine are missed least.
struct CostSearch<'a> {
    times: StepTimes<'a>,
    logs: Vec<f64>,
    threads: usize,
}

impl<'a> CostSearch<'a> {
    fn new(
        placed: &'a [PlacedCase],
        logs: &[f64],
        rows: &[usize],
        threads: usize,
    ) -> CostSearch<'a> {
        CostSearch {
            times: StepTimes::new(rows.iter().map(|at| &placed[*at]), threads),
            logs: rows.iter().map(|at| logs[*at]).collect(),
            threads,
        }
    }

    /// What is missed, and how far the costs are from what is known before.
    fn errors(&self, values: &[f64]) -> Vec<f64> {
        let costs = CollectiveCosts::from_values(&exponentials(values));
        let seconds = self.times.seconds(&costs, self.threads);
        let misses = seconds.iter().zip(&self.logs);
        let misses = misses.map(|(seconds, log)| soft((seconds.ln() - log) / SCATTER));
        let beliefs = COST_PARAMETERS.iter().zip(values);
        let beliefs =
            beliefs.map(|(parameter, value)| (value - parameter.prior.ln()) / parameter.spread);
        misses.chain(beliefs).collect()
    }

    /// The logarithms of the costs that miss least, from others on.
    fn lowest(&self, start: &[f64]) -> Vec<f64> {
        let ranges: Vec<Range> = COST_PARAMETERS.iter().map(range).collect();
        let mut errors = |values: &[f64]| Some(self.errors(values));
        let lowest = descend_until(NO_GAIN, start, &ranges, &mut errors);
        lowest.expect("each case takes a time").at
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

/// Cases of few messages.
fn small_cases(placed: &[PlacedCase]) -> Vec<usize> {
    let is_small = |at: &usize| {
        let case = &placed[*at].case;
        let ranks = u64::from(case.ranks());
        let is_logarithmic = case.choice.algorithm.is_logarithmic();
        let each = if is_logarithmic {
            u64::from(ranks.ilog2())
        } else {
            ranks
        };
        ranks * each <= MOST_MESSAGES
    };
    (0..placed.len()).filter(is_small).collect()
}

fn range(parameter: &CostParameter) -> Range {
    let (middle, wide) = (parameter.prior.ln(), WIDEST * parameter.spread);
    (middle - wide, middle + wide)
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

/// Standard deviations of the parameters at the lowest place, by how the errors change around it.
fn deviations(at: &[f64], errors: &mut dyn FnMut(&[f64]) -> Option<Vec<f64>>) -> Vec<f64> {
    const DIFFERENCE: f64 = 0.02;
    let mut changed = |parameter: usize, change: f64| {
        let mut near = at.to_vec();
        near[parameter] += change;
        errors(&near).unwrap_or_default()
    };
    let slopes: Vec<Vec<f64>> = (0..at.len())
        .map(|parameter| {
            let (up, down) = (
                changed(parameter, DIFFERENCE),
                changed(parameter, -DIFFERENCE),
            );
            up.iter()
                .zip(&down)
                .map(|(up, down)| (up - down) / (2.0 * DIFFERENCE))
                .collect()
        })
        .collect();
    let information: Vec<Vec<f64>> = slopes
        .iter()
        .map(|one| {
            slopes
                .iter()
                .map(|other| one.iter().zip(other).map(|(a, b)| a * b).sum())
                .collect()
        })
        .collect();
    let priors = COST_PARAMETERS.iter().map(|parameter| parameter.spread);
    match inverse_of_symmetric(&information) {
        Some(inverse) => (0..at.len()).map(|at| inverse[at][at].sqrt()).collect(),
        None => priors.collect(),
    }
}
