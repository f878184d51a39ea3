//! Runs on more nodes than a fit knew: how far what is left over differs is found from how well they are predicted.

use flowcast_network::measured_collectives::ResidualSpread;
use flowcast_program::parallel;
use flowcast_statistics::{resampling::normal_score, sample::quantile};

use super::residuals::{LeftOver, Residuals};
use flowcast::calibrate::narrowing::by_smaller_steps;

/// What is expected of [`ResidualSpread`] before anything is measured. The disturbance is what two runs of the same case on 8
/// and on 16 nodes of LUMI differ by: the only runs that were repeated.
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
/// Standard deviations of the logarithms of what is expected: factors of 2.7, and of 1.2 for the disturbance, of which runs on
/// few nodes say little.
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
/// What is looked for.
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
/// Errors have the tails of Student's distribution with so many degrees of freedom.
const FREEDOM: f64 = 8.0;
/// A fold is asked with no more known and other cases while the spread is looked for.
const MOST_KNOWN: usize = 250;
const MOST_ASKED: usize = 60;
/// So many cases that are sizes of one series count as one.
const ALIKE: f64 = 3.0;

/// What costs that were fitted to some runs of a machine leave over: of what was known, and of runs on more nodes.
pub(super) struct HeldOut {
    /// With the residuals of other machines.
    pub known: LeftOver,
    pub asked: LeftOver,
    /// The asked ones' indices into the cases of the machine.
    pub cases: Vec<usize>,
}

/// How a case that was held out was predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOutError {
    /// Index into the measured cases of the machine.
    pub case: usize,
    /// `ln(measured / predicted)`.
    pub error: f64,
    /// The standard deviation that was expected of it.
    pub expected: f64,
}

impl HeldOut {
    /// The errors under a spread.
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

    /// The logarithm of the errors' density under a spread.
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

/// The spread under which runs that were held out are predicted best, the errors' expected size included.
pub(super) fn best_spread(held_out: &[HeldOut], threads: usize) -> ResidualSpread {
    let thinned: Vec<HeldOut> = held_out.iter().map(HeldOut::thinned).collect();
    let worth = |spread: &ResidualSpread| {
        let densities = parallel::map(&thinned, threads, |one| one.log_density(spread));
        densities.iter().sum::<f64>() - 0.5 * doubts(*spread)
    };
    // Each in turn up and down, in ever smaller steps.
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

/// How far a spread is from what is expected: the sum of squares in standard deviations.
fn doubts(mut spread: ResidualSpread) -> f64 {
    let (mut prior, mut doubt) = (PRIOR, DOUBT);
    let away = FIELDS.map(|field| {
        ((*field(&mut spread) / *field(&mut prior)).ln() / *field(&mut doubt)).powi(2)
    });
    away.iter().sum()
}

/// What the half-widths of intervals have to be multiplied by to hold for as many of the held-out runs as they say.
pub(super) fn widening(errors: &[HeldOutError], level: f64) -> f64 {
    let scores: Vec<f64> = errors
        .iter()
        .map(|one| (one.error / one.expected).abs())
        .collect();
    let wanted = normal_score(0.5 + level / 2.0);
    quantile(&scores, level).map_or(1.0, |found| (found / wanted).max(1.0))
}
