//! Errors for runs on more nodes than a fit has seen. They determine the spread of the residuals.

use std::collections::BTreeMap;

use flowcast_network::measured_collectives::ResidualSpread;
use flowcast_program::parallel;
use flowcast_statistics::{interval::student_score, resampling::normal_score};
use flowcast_units::CollectiveOp;

use super::{
    job::JobKey,
    residuals::{PlacedResiduals, Residuals},
};
use flowcast::calibrate::narrowing::by_smaller_steps;

/// Prior of [`ResidualSpread`]. The disturbance is the difference of two runs of the same case on 8 and on 16 nodes of LUMI,
/// the only runs that were repeated.
const PRIOR: ResidualSpread = ResidualSpread {
    algorithm: 0.2,
    algorithm_here: 0.2,
    operation_here: 0.2,
    shared_node: 0.2,
    run: 0.03,
    single: 0.08,
    disturbance: 0.055,
    sizes: 5.0,
    ranks: 5.0,
};
/// Standard deviations of the prior's logarithms: factors of 2.7, and of 1.2 for the disturbance, on which runs on few nodes
/// give little information.
const DOUBT: ResidualSpread = ResidualSpread {
    algorithm: 1.0,
    algorithm_here: 1.0,
    operation_here: 1.0,
    shared_node: 1.0,
    run: 1.0,
    single: 1.0,
    disturbance: 0.15,
    sizes: 1.0,
    ranks: 1.0,
};
/// Fields that are searched.
const FIELDS: [fn(&mut ResidualSpread) -> &mut f64; 9] = [
    |spread| &mut spread.algorithm,
    |spread| &mut spread.algorithm_here,
    |spread| &mut spread.operation_here,
    |spread| &mut spread.shared_node,
    |spread| &mut spread.run,
    |spread| &mut spread.single,
    |spread| &mut spread.disturbance,
    |spread| &mut spread.sizes,
    |spread| &mut spread.ranks,
];
/// Degrees of freedom of Student's distribution, whose tails the errors have.
const FREEDOM: f64 = 8.0;
/// Largest numbers of known and of predicted cases of a fold while the spread is searched.
const MOST_KNOWN: usize = 250;
const MOST_ASKED: usize = 60;
/// Number of errors that count as one independent case: three sizes of a series, each predicted from two numbers of nodes.
const ALIKE: f64 = 6.0;

/// Residuals of costs that were fitted to some runs of a machine: of these runs, and of runs on more nodes.
pub(super) struct HeldOut {
    /// Known residuals, those of other machines included.
    pub known: PlacedResiduals,
    pub asked: PlacedResiduals,
    /// Indices of the predicted cases among the cases of the machine.
    pub cases: Vec<usize>,
}

/// Error of the prediction for a held-out case.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOutError {
    /// Index among the measured cases of the machine.
    pub case: usize,
    /// `ln(measured / predicted)`.
    pub error: f64,
    /// Predicted standard deviation of the error.
    pub expected: f64,
}

impl HeldOut {
    /// Errors of the predicted cases under a spread.
    pub(super) fn errors(&self, spread: &ResidualSpread) -> Vec<HeldOutError> {
        let residuals = Residuals::new(&self.known, *spread);
        let expected = residuals.expected(&self.asked.places);
        let errors = self
            .cases
            .iter()
            .enumerate()
            .map(|(at, case)| HeldOutError {
                case: *case,
                error: self.asked.values[at] - expected.means[at],
                expected: residuals.deviation(&self.asked.places, &expected, at),
            });
        errors.collect()
    }

    fn thinned(&self) -> HeldOut {
        let every = self.cases.len().div_ceil(MOST_ASKED).max(1);
        HeldOut {
            known: self.known.thinned(MOST_KNOWN),
            asked: self.asked.thinned(MOST_ASKED),
            cases: self.cases.iter().step_by(every).copied().collect(),
        }
    }

    /// Logarithm of the probability density of the errors under a spread.
    fn log_density(&self, spread: &ResidualSpread) -> f64 {
        self.errors(spread)
            .into_iter()
            .map(|error| {
                let score = error.error / error.expected;
                -0.5 * (FREEDOM + 1.0) * (score * score / FREEDOM).ln_1p() - error.expected.ln()
            })
            .sum::<f64>()
            / ALIKE
    }
}

/// The spread under which held-out runs have the highest probability, with its prior.
pub(super) fn best_spread(held_out: &[HeldOut], threads: usize) -> ResidualSpread {
    let thinned: Vec<HeldOut> = held_out.iter().map(HeldOut::thinned).collect();
    let worth = |spread: &ResidualSpread| {
        let densities = parallel::map(&thinned, threads, |one| one.log_density(spread));
        densities.iter().sum::<f64>() - 0.5 * doubts(*spread)
    };
    // Each field in turn goes up or down, in ever smaller steps.
    let start = (PRIOR, worth(&PRIOR));
    let factors = [0.7, 0.1].map(f64::exp);
    by_smaller_steps(start, factors, |(best, best_worth), factor| {
        let before = *best_worth;
        for field in FIELDS {
            for factor in [factor, 1.0 / factor] {
                let mut changed = *best;
                *field(&mut changed) *= factor;
                let worth = worth(&changed);
                if worth > *best_worth {
                    (*best, *best_worth) = (changed, worth);
                    break;
                }
            }
        }
        *best_worth - before >= 0.3
    })
    .0
}

/// Distance of a spread from its prior: the sum of squares, in standard deviations.
fn doubts(mut spread: ResidualSpread) -> f64 {
    let (mut prior, mut doubt) = (PRIOR, DOUBT);
    let away = FIELDS.map(|field| {
        ((*field(&mut spread) / *field(&mut prior)).ln() / *field(&mut doubt)).powi(2)
    });
    away.iter().sum()
}

/// Factor on the half-widths of intervals, at least 1. A fraction `level` of the held-out errors lies within them if each
/// operation of a run has the same weight. Its cases share deviations, so the number of operations and not of cases limits
/// what is known about their spread: Student's t replaces the normal distribution.
pub(super) fn widening(held_out: &[HeldOut], errors: &[Vec<HeldOutError>], level: f64) -> f64 {
    let mut runs: BTreeMap<(&JobKey, CollectiveOp), Vec<f64>> = BTreeMap::new();
    for (one, errors) in held_out.iter().zip(errors) {
        for (place, error) in one.asked.places.iter().zip(errors) {
            let scores = runs.entry((&place.job, place.op)).or_default();
            scores.push((error.error / error.expected).abs());
        }
    }
    let weighted = runs.values().flat_map(|scores| {
        let weight = 1.0 / scores.len() as f64;
        scores.iter().map(move |score| (*score, weight))
    });
    let mut weighted: Vec<(f64, f64)> = weighted.collect();
    weighted.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let count = runs.len() as f64;
    let mut below = level * count;
    let found = weighted.iter().find(|(_, weight)| {
        below -= weight;
        below <= 0.0
    });
    let normal = normal_score(0.5 + level / 2.0);
    found.map_or(1.0, |(found, _)| {
        (found / normal).max(1.0) * student_score(level, FREEDOM + count) / normal
    })
}
