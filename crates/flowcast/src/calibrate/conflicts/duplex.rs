//! Sharing between the two directions of a port: fits of all models under each assumption, and the choice of the assumption
//! that explains more.

use super::{
    ConflictFitError, Observed, OtherDuplex, PrivateAndSharedLinks, outcome::name_of,
    parameters::Needs, search::Fitter,
};
use flowcast_network::cluster::flow::PatternFlow;
use flowcast_statistics::{descent::Lowest, observation::Observations};

/// Half duplex, or a bus, is chosen if the best model's error on the conflicts is below this fraction of the error without
/// it.
const CLEARLY: f64 = 0.9;

/// All models under one assumption about the ports.
pub(super) struct Assumption<'a> {
    pub fitter: Fitter<'a>,
    pub observed: &'a [Observed<'a>],
    pub links: PrivateAndSharedLinks,
    /// Best parameters of each candidate, indexed by candidate.
    pub found: Vec<Lowest>,
    /// Predictions of the conflicts that each candidate was fitted to, indexed by candidate.
    pub fitted: Vec<Observations<PatternFlow>>,
}

impl<'a> Assumption<'a> {
    pub(super) fn new(
        fitter: Fitter<'a>,
        observed: &'a [Observed<'a>],
    ) -> Result<Assumption<'a>, ConflictFitError> {
        let links = PrivateAndSharedLinks::new(observed, fitter.ports)?;
        let candidates = fitter.candidates.iter();
        let mut assumption = Assumption {
            found: candidates
                .map(|candidate| fitter.search(candidate, &links, observed))
                .collect(),
            links,
            fitter,
            observed,
            fitted: Vec::new(),
        };
        for place in 0..assumption.found.len() {
            let contended = observed.iter().filter(|one| one.is_fitted_to());
            let fitted = assumption.observations(place, contended)?;
            assumption.fitted.push(fitted);
        }
        Ok(assumption)
    }

    /// Smallest error of all models if `of_all` is `true`, otherwise of the models without parameters to fit. The error of a
    /// model is the mean over the conflicts of the absolute mean error of their flows. Single flows are not compared because
    /// their order on a bus is not modelled.
    fn least_by_conflict(&self, of_all: bool) -> f64 {
        let mut least = f64::INFINITY;
        for (candidate, fitted) in self.fitter.candidates.iter().zip(&self.fitted) {
            if of_all || candidate.parameters.is_empty() {
                let by_conflict = fitted.errors_by(|of| of.pattern.clone());
                let of_conflicts: f64 = by_conflict
                    .values()
                    .map(|flows| (flows.iter().sum::<f64>() / flows.len() as f64).abs())
                    .sum();
                least = least.min(of_conflicts / by_conflict.len() as f64);
            }
        }
        least
    }

    /// The model with the smallest error on the conflicts.
    fn best(&self) -> OtherDuplex {
        let models = self.fitter.candidates.iter().zip(&self.fitted);
        let best = models.min_by(|(_, a), (_, b)| a.mean_absolute().total_cmp(&b.mean_absolute()));
        let (candidate, fitted) = best.expect("there are models");
        let model = name_of(candidate.model, candidate.needs == Needs::Window);
        OtherDuplex {
            duplex: self.links.duplex,
            model,
            mean_absolute: fitted.mean_absolute(),
        }
    }
}

/// Returns the better assumption of full and half duplex, and the best model under the other one. A bus replaces the better
/// assumption if it clearly reduces the error of the models without parameters to fit, and does not increase the error of
/// all models.
pub(super) fn better<'a>(
    full: Assumption<'a>,
    half: Assumption<'a>,
    bus: Option<Assumption<'a>>,
) -> (Assumption<'a>, OtherDuplex) {
    let bests = (full.best(), half.best());
    let is_half = bests.1.mean_absolute < CLEARLY * bests.0.mean_absolute;
    let (better, other) = if is_half {
        (half, bests.0)
    } else {
        (full, bests.1)
    };
    (
        bus.filter(|bus: &Assumption<'_>| {
            bus.least_by_conflict(false) < CLEARLY * better.least_by_conflict(false)
                && bus.least_by_conflict(true) <= better.least_by_conflict(true)
        })
        .unwrap_or(better),
        other,
    )
}
