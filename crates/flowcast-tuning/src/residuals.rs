//! Residuals of the predictions from steps: `ln(measured / predicted)` as a Gaussian process over algorithms, operations,
//! machines, runs, sizes and numbers of ranks.
//!
//! An algorithm has similar errors on neighbouring sizes and numbers of ranks, most of all on the same machine. These errors
//! grow with the size and the number of nodes. A run deviates as a whole, and more on more nodes. [Held-out](super::held_out)
//! runs determine the weight of each of these.

use flowcast_network::{
    algorithm::{Base, Choice},
    measured_collectives::{MeasuredCollectives, ResidualSeries, ResidualSpread},
};
use flowcast_statistics::{gaussian_process::GaussianProcess, linear_fit::product};
use flowcast_units::{Bytes, CollectiveOp};

use super::{cases::CollectiveCase, job::JobKey};

/// Residuals are limited to this magnitude. Larger ones come from a mechanism that the steps lack, or from a disturbed run.
const LARGEST: f64 = 1.5;
/// Number of doublings of the size over which a run has similar deviations, for all algorithms.
const RUN_SIZES: f64 = 1.5;
/// Doublings of the size and of the nodes for which the deviations of [`ResidualSpread`] hold: 1 MiB and 32 nodes.
const USUAL_SIZE: f64 = 20.0;
const USUAL_NODES: f64 = 5.0;
/// Doublings of the shortest size. Shorter messages cost the same.
const SHORTEST: f64 = 5.0;

/// Position of a residual: the properties that determine its covariance with others.
#[derive(Debug, Clone, PartialEq)]
pub struct ResidualPlace {
    pub(super) job: JobKey,
    pub(super) op: CollectiveOp,
    choice: Choice,
    /// Base-2 logarithms of the numbers of nodes, ranks and ranks per node, and of the size in bytes (at least 1).
    nodes: f64,
    ranks: f64,
    ranks_per_node: f64,
    size: f64,
}

impl ResidualPlace {
    /// Position of a case.
    pub fn new(case: &CollectiveCase) -> ResidualPlace {
        ResidualPlace {
            job: case.job.clone(),
            op: case.op,
            choice: case.choice,
            nodes: f64::from(case.job.nodes).log2(),
            ranks: f64::from(case.ranks()).log2(),
            ranks_per_node: f64::from(case.ranks_per_node).log2(),
            size: (case.bytes.0.max(1) as f64).log2(),
        }
    }

    /// Factor on the deviations of operations and algorithms. Each doubling of the size adds the same deviation: operations
    /// that three machines had not measured deviated by 0.27 below 8 KiB and by 0.49 from 1 MiB on. Each doubling of the nodes
    /// adds the same variance, as in a random walk. A bounded variance would mean that steps are as accurate on 2,048 nodes as
    /// on 64.
    fn growth(&self) -> f64 {
        let nodes = self.nodes.max(1.0) / USUAL_NODES;
        self.size.max(SHORTEST) / USUAL_SIZE * nodes.sqrt()
    }

    fn empty_series(&self) -> ResidualSeries {
        ResidualSeries {
            system: self.job.system.clone(),
            run: self.job.run.clone(),
            nodes: self.job.nodes,
            ranks: self.ranks.exp2().round() as u32,
            operation: self.op,
            algorithm: self.choice,
            bytes: Vec::new(),
            factors: Vec::new(),
        }
    }

    /// Covariance of two residuals, without each one's own variance.
    fn covariance(&self, other: &ResidualPlace, spread: &ResidualSpread) -> f64 {
        let size = self.size - other.size;
        let mut covariance = 0.0;
        if self.op == other.op {
            let here = f64::from(self.job.system == other.job.system);
            let mut common = here * spread.operation_here.powi(2);
            if self.choice.algorithm == other.choice.algorithm {
                common += spread.algorithm.powi(2) + here * spread.algorithm_here.powi(2);
            }
            common *= bell(self.ranks - other.ranks, spread.ranks);
            common *= self.growth() * other.growth();
            let shared = self.ranks_per_node.min(other.ranks_per_node);
            common += here * spread.shared_node.powi(2) * shared;
            covariance += common * bell(size, spread.sizes);
        }
        if self.job == other.job {
            covariance += spread.run.powi(2) * self.nodes * other.nodes * bell(size, RUN_SIZES);
        }
        covariance
    }

    /// Variance of a residual that is independent of all others.
    fn own_variance(&self, spread: &ResidualSpread) -> f64 {
        spread.single.powi(2) + (spread.disturbance * self.nodes).powi(2)
    }
}

fn bell(distance: f64, scale: f64) -> f64 {
    (-0.5 * (distance / scale).powi(2)).exp()
}

/// Residuals and their positions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlacedResiduals {
    /// Positions, in the order of the values.
    pub places: Vec<ResidualPlace>,
    /// `ln(measured / predicted)` of each residual.
    pub values: Vec<f64>,
}

impl PlacedResiduals {
    /// Residuals from a network file.
    pub fn from_series(series: &[ResidualSeries]) -> PlacedResiduals {
        let mut left_over = PlacedResiduals::default();
        for one in series {
            for (bytes, factor) in one.bytes.iter().zip(&one.factors) {
                left_over.places.push(place_in(one, *bytes));
                left_over.values.push(factor.ln());
            }
        }
        left_over
    }

    /// Series for a network file: consecutive residuals of the same run and algorithm form a series.
    pub(super) fn series(&self) -> Vec<ResidualSeries> {
        let mut series: Vec<ResidualSeries> = Vec::new();
        for (place, value) in self.places.iter().zip(&self.values) {
            let factor = (value.exp() * 1e4).round().max(1.0) / 1e4;
            let own = ResidualSeries {
                bytes: vec![Bytes(place.size.exp2().round() as u64)],
                factors: vec![factor],
                ..place.empty_series()
            };
            match series.last_mut().filter(|last| is_same_series(last, &own)) {
                Some(last) => {
                    last.bytes.extend(own.bytes);
                    last.factors.push(factor);
                }
                None => series.push(own),
            }
        }
        series
    }

    pub(super) fn extend(&mut self, others: &PlacedResiduals) {
        self.places.extend(others.places.iter().cloned());
        self.values.extend(&others.values);
    }

    /// At most `most` residuals, evenly spaced.
    pub(super) fn thinned(&self, most: usize) -> PlacedResiduals {
        let every = self.values.len().div_ceil(most).max(1);
        PlacedResiduals {
            places: self.places.iter().step_by(every).cloned().collect(),
            values: self.values.iter().step_by(every).copied().collect(),
        }
    }
}

fn is_same_series(one: &ResidualSeries, other: &ResidualSeries) -> bool {
    (&one.system, &one.run, one.nodes, one.ranks)
        == (&other.system, &other.run, other.nodes, other.ranks)
        && (one.operation, one.algorithm) == (other.operation, other.algorithm)
}

/// Predictor of unknown residuals from known ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Residuals {
    places: Vec<ResidualPlace>,
    spread: ResidualSpread,
    widening: f64,
    process: Option<GaussianProcess>,
}

/// Prediction of unknown residuals: their means, and the part of their covariances that the known residuals explain.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Means of `ln(measured / predicted)`, in the order of the requested positions.
    pub means: Vec<f64>,
    explained: Vec<Vec<f64>>,
}

impl Residuals {
    /// Builds the predictor from known residuals.
    pub fn new(known: &PlacedResiduals, spread: ResidualSpread) -> Residuals {
        Residuals {
            places: known.places.clone(),
            spread,
            widening: 1.0,
            process: process(known, &spread),
        }
    }

    /// Builds the predictor from the residuals of a network file. Its deviations include the widening of the file.
    pub fn from_measured(measured: &MeasuredCollectives) -> Residuals {
        Residuals {
            widening: measured.widening,
            ..Residuals::new(
                &PlacedResiduals::from_series(&measured.series),
                measured.spread,
            )
        }
    }

    /// Factor on the deviation at a position. Held-out runs, which have more nodes than their fits, determine the widening.
    /// It holds from twice the fitted nodes on. Its square root is enough for fitted numbers of nodes, as predictions of each
    /// run from all others show.
    fn widened(&self, place: &ResidualPlace) -> f64 {
        let here = self
            .places
            .iter()
            .filter(|known| known.job.system == place.job.system);
        let fitted = here.map(|known| known.nodes).fold(0.0, f64::max);
        self.widening
            .powf(f64::midpoint(1.0, place.nodes - fitted).clamp(0.5, 1.0))
    }

    /// Predicts the residuals at other positions.
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

    /// Standard deviation of the residual at one of the positions that were passed to [`Residuals::expected`].
    pub fn deviation(&self, places: &[ResidualPlace], expected: &Expected, at: usize) -> f64 {
        self.covariance(places, expected, [at, at]).sqrt() * self.widened(&places[at])
    }

    /// Standard deviation of the difference of two such residuals.
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
        variance.max(0.0).sqrt() * self.widened(&places[one])
    }

    fn covariance(
        &self,
        places: &[ResidualPlace],
        expected: &Expected,
        [one, other]: [usize; 2],
    ) -> f64 {
        let before = places[one].covariance(&places[other], &self.spread);
        let known = product(&expected.explained[one], &expected.explained[other]);
        let own = if one == other {
            places[one].own_variance(&self.spread)
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
        bytes,
    })
}

fn process(known: &PlacedResiduals, spread: &ResidualSpread) -> Option<GaussianProcess> {
    let count = known.places.len();
    let mut covariance = vec![vec![0.0; count]; count];
    for (one, place) in known.places.iter().enumerate() {
        // Only the lower triangle is read.
        for (other, before) in known.places[..=one].iter().enumerate() {
            covariance[one][other] = place.covariance(before, spread);
        }
        covariance[one][one] += place.own_variance(spread);
    }
    let bounded: Vec<f64> = known
        .values
        .iter()
        .map(|value| value.clamp(-LARGEST, LARGEST))
        .collect();
    GaussianProcess::new(&covariance, &bounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_network::algorithm::Algorithm;

    #[test]
    fn deviations_grow_with_the_size_and_beyond_the_fitted_nodes() {
        let spread = ResidualSpread {
            algorithm: 0.2,
            algorithm_here: 0.2,
            operation_here: 0.2,
            shared_node: 0.2,
            run: 0.0,
            single: 0.0,
            disturbance: 0.0,
            sizes: 5.0,
            ranks: 5.0,
        };
        let place = |operation, nodes, bytes| {
            let series = ResidualSeries {
                system: "machine".to_owned(),
                run: "run".to_owned(),
                nodes,
                ranks: nodes,
                operation,
                algorithm: Choice::plain(Algorithm::Binomial),
                bytes: Vec::new(),
                factors: Vec::new(),
            };
            place_in(&series, Bytes(bytes))
        };
        let known = PlacedResiduals {
            places: vec![place(CollectiveOp::Bcast, 32, 1 << 20)],
            values: vec![0.0],
        };
        let residuals = Residuals {
            widening: 1.44,
            ..Residuals::new(&known, spread)
        };
        let deviation = |nodes, bytes| {
            let places = [place(CollectiveOp::Reduce, nodes, bytes)];
            residuals.deviation(&places, &residuals.expected(&places), 0)
        };
        let is_near = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(is_near(deviation(32, 1 << 20), 1.2 * 0.12_f64.sqrt()));
        assert!(is_near(
            2.0 * deviation(32, 1 << 10),
            deviation(32, 1 << 20)
        ));
        assert!(is_near(deviation(1024, 1 << 20), 1.44 * 0.24_f64.sqrt()));
    }
}
