//! What the steps of algorithms leave over: `ln(measured / predicted)` as a Gaussian process over algorithms, operations,
//! machines, runs, sizes and numbers of ranks.
//!
//! The same algorithm errs alike on neighbouring sizes and numbers of ranks, most of all on the same machine; runs differ as a
//! whole, the more the more nodes they have. How much each of these counts is found by likelihood.

use flowcast_model::{
    algorithm::{Base, Choice},
    measured_collectives::{ResidualSeries, ResidualSpread},
    stats::gaussian_process::GaussianProcess,
};
use flowcast_units::{Bytes, CollectiveOp};

use super::{cases::CollectiveCase, job::JobKey};

/// Residuals beyond count as this: a mechanism that the steps lack, or a run that was disturbed.
const LARGEST: f64 = 1.5;
/// A run deviates alike over so many doublings of the size, whatever the algorithm.
const RUN_SIZES: f64 = 1.5;
/// With so many ranks, in doublings, an algorithm leaves over what it leaves with any number.
const FEWEST_RANKS: f64 = 2.0;
/// What is expected of [`ResidualSpread`] before anything is measured; each may be wrong by a factor of 2.7 (one standard
/// deviation of its logarithm).
const PRIOR: ResidualSpread = ResidualSpread {
    algorithm: 0.2,
    algorithm_here: 0.2,
    operation_here: 0.15,
    chosen_here: 0.1,
    growth: 0.18,
    run: 0.05,
    single: 0.1,
    sizes: 2.5,
    ranks: 3.0,
};
/// The likelihood is asked of no more residuals.
const MOST_ASKED: usize = 360;

/// What residuals have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct ResidualPlace {
    job: JobKey,
    op: CollectiveOp,
    choice: Choice,
    is_chosen: bool,
    /// In doublings.
    nodes: f64,
    ranks: f64,
    size: f64,
}

impl ResidualPlace {
    /// The place of a case.
    pub fn new(case: &CollectiveCase) -> ResidualPlace {
        ResidualPlace {
            job: case.job.clone(),
            op: case.op,
            choice: case.choice,
            is_chosen: case.is_chosen,
            nodes: f64::from(case.job.nodes).log2(),
            ranks: f64::from(case.ranks()).log2(),
            size: (case.bytes.0.max(1) as f64).log2(),
        }
    }

    /// The machine and the run.
    pub fn job(&self) -> &JobKey {
        &self.job
    }

    /// A series without residuals, and the size.
    pub(super) fn series(&self) -> (ResidualSeries, Bytes) {
        let series = ResidualSeries {
            system: self.job.system.clone(),
            run: self.job.run.clone(),
            nodes: self.job.nodes,
            ranks: self.ranks.exp2().round() as u32,
            operation: self.op,
            algorithm: self.choice,
            is_chosen: self.is_chosen,
            bytes: Vec::new(),
            factors: Vec::new(),
        };
        (series, Bytes(self.size.exp2().round() as u64))
    }

    /// The covariance of two residuals, without what is only one's own.
    fn covariance(&self, other: &ResidualPlace, spread: &ResidualSpread) -> f64 {
        let size = self.size - other.size;
        let bell = |distance: f64, scale: f64| (-0.5 * (distance / scale).powi(2)).exp();
        let mut covariance = 0.0;
        if self.op == other.op {
            let is_here = self.job.system == other.job.system;
            let mut common = 0.0;
            if self.choice.algorithm == other.choice.algorithm {
                common += spread.algorithm.powi(2);
                common += if is_here {
                    spread.algorithm_here.powi(2)
                } else {
                    0.0
                };
            }
            if is_here {
                common += spread.operation_here.powi(2);
                common += if self.is_chosen && other.is_chosen {
                    spread.chosen_here.powi(2)
                } else {
                    0.0
                };
            }
            common *= bell(self.ranks - other.ranks, spread.ranks);
            if self.choice.algorithm == other.choice.algorithm {
                let doublings = self.ranks.min(other.ranks) - FEWEST_RANKS;
                common += spread.growth.powi(2) * doublings.max(0.0);
            }
            covariance += common * bell(size, spread.sizes);
        }
        if self.job == other.job {
            covariance += spread.run.powi(2) * self.nodes * other.nodes * bell(size, RUN_SIZES);
        }
        covariance
    }
}

/// Residuals and what they say of others.
#[derive(Debug, Clone, PartialEq)]
pub struct Residuals {
    places: Vec<ResidualPlace>,
    spread: ResidualSpread,
    process: Option<GaussianProcess>,
}

/// What is expected of residuals that are not known: their means, and covariances with what is only one's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// By place.
    pub means: Vec<f64>,
    explained: Vec<Vec<f64>>,
}

impl Residuals {
    /// From known ones.
    pub fn new(places: Vec<ResidualPlace>, left_over: &[f64], spread: ResidualSpread) -> Residuals {
        let process = process(&places, left_over, &spread);
        Residuals {
            places,
            spread,
            process,
        }
    }

    /// From the series of a network file.
    pub fn from_series(series: &[ResidualSeries], spread: ResidualSpread) -> Residuals {
        let (mut places, mut left_over) = (Vec::new(), Vec::new());
        for one in series {
            for (bytes, factor) in one.bytes.iter().zip(&one.factors) {
                places.push(place_in(one, *bytes));
                left_over.push(factor.ln());
            }
        }
        Residuals::new(places, &left_over, spread)
    }

    /// What is expected at other places.
    pub fn expected(&self, places: &[ResidualPlace]) -> Expected {
        let mut expected = Expected {
            means: Vec::new(),
            explained: Vec::new(),
        };
        for place in places {
            let with_known: Vec<f64> = self
                .places
                .iter()
                .map(|known| place.covariance(known, &self.spread))
                .collect();
            let process = self.process.as_ref();
            expected
                .means
                .push(process.map_or(0.0, |process| process.mean(&with_known)));
            expected
                .explained
                .push(process.map_or_else(Vec::new, |process| process.explained(&with_known)));
        }
        expected
    }

    /// The standard deviation of a residual at one of the places that [`Residuals::expected`] was asked for.
    pub fn deviation(&self, places: &[ResidualPlace], expected: &Expected, at: usize) -> f64 {
        self.covariance(places, expected, [at, at]).sqrt()
    }

    /// The standard deviation of the difference of two such residuals.
    pub fn deviation_between(
        &self,
        places: &[ResidualPlace],
        expected: &Expected,
        pair: [usize; 2],
    ) -> f64 {
        let [one, other] = pair;
        let variance = self.covariance(places, expected, [one, one])
            + self.covariance(places, expected, [other, other])
            - 2.0 * self.covariance(places, expected, pair);
        variance.max(0.0).sqrt()
    }

    fn covariance(
        &self,
        places: &[ResidualPlace],
        expected: &Expected,
        [one, other]: [usize; 2],
    ) -> f64 {
        let before = places[one].covariance(&places[other], &self.spread);
        let known: f64 = expected.explained[one]
            .iter()
            .zip(&expected.explained[other])
            .map(|(a, b)| a * b)
            .sum();
        let own = if one == other {
            self.spread.single.powi(2)
        } else {
            0.0
        };
        (before - known).max(0.0) + own
    }
}

fn place_in(series: &ResidualSeries, bytes: Bytes) -> ResidualPlace {
    let nodes = series.nodes;
    ResidualPlace::new(&CollectiveCase {
        job: JobKey {
            system: series.system.clone(),
            run: series.run.clone(),
            nodes,
        },
        ranks_per_node: (series.ranks / nodes.max(1)).max(1),
        library: Base::default(),
        op: series.operation,
        choice: series.algorithm,
        is_chosen: series.is_chosen,
        bytes,
    })
}

fn process(
    places: &[ResidualPlace],
    left_over: &[f64],
    spread: &ResidualSpread,
) -> Option<GaussianProcess> {
    let mut covariance = vec![vec![0.0; places.len()]; places.len()];
    for (one, place) in places.iter().enumerate() {
        // The lower triangle is all that is looked at.
        for (other, known) in places[..=one].iter().enumerate() {
            covariance[one][other] = place.covariance(known, spread);
        }
        covariance[one][one] += spread.single.powi(2);
    }
    let bounded: Vec<f64> = left_over
        .iter()
        .map(|value| value.clamp(-LARGEST, LARGEST))
        .collect();
    GaussianProcess::new(&covariance, &bounded)
}

/// The spread under which residuals are most likely.
pub fn likeliest_spread(places: &[ResidualPlace], left_over: &[f64]) -> ResidualSpread {
    let every = places.len().div_ceil(MOST_ASKED).max(1);
    let asked: Vec<ResidualPlace> = places.iter().step_by(every).cloned().collect();
    let values: Vec<f64> = left_over.iter().step_by(every).copied().collect();
    let worth = |logs: &[f64; 8]| {
        let likelihood = process(&asked, &values, &from_logs(logs, PRIOR.growth))
            .map(|process| process.log_likelihood());
        let away: f64 = logs
            .iter()
            .zip(to_logs(&PRIOR))
            .map(|(log, prior)| (log - prior).powi(2))
            .sum();
        likelihood.unwrap_or(f64::NEG_INFINITY) - 0.5 * away
    };
    let mut best = to_logs(&PRIOR);
    let mut best_worth = worth(&best);
    // Each in turn up and down, in ever smaller steps.
    let mut step = 0.7;
    while step > 0.05 {
        let before = best_worth;
        for parameter in 0..best.len() {
            for change in [step, -step] {
                let mut changed = best;
                changed[parameter] += change;
                let worth = worth(&changed);
                if worth > best_worth {
                    (best, best_worth) = (changed, worth);
                    break;
                }
            }
        }
        if best_worth - before < 0.05 {
            step /= 2.0;
        }
    }
    from_logs(&best, PRIOR.growth)
}

fn to_logs(spread: &ResidualSpread) -> [f64; 8] {
    let ResidualSpread {
        algorithm,
        algorithm_here,
        operation_here,
        chosen_here,
        growth: _,
        run,
        single,
        sizes,
        ranks,
    } = *spread;
    [
        algorithm,
        algorithm_here,
        operation_here,
        chosen_here,
        run,
        single,
        sizes,
        ranks,
    ]
    .map(f64::ln)
}

fn from_logs(logs: &[f64; 8], growth: f64) -> ResidualSpread {
    let [
        algorithm,
        algorithm_here,
        operation_here,
        chosen_here,
        run,
        single,
        sizes,
        ranks,
    ] = logs.map(f64::exp);
    ResidualSpread {
        algorithm,
        algorithm_here,
        operation_here,
        chosen_here,
        growth,
        run,
        single,
        sizes,
        ranks,
    }
}
