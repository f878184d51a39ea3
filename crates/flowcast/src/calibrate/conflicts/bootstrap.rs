//! Bootstrap intervals from fits to resampled repetitions.

use super::{
    ConflictFitError, ConflictFitOptions,
    duplex::Assumption,
    links::{BackboneLimit, PrivateAndSharedLinks},
    observe,
    outcome::{BackboneFit, BoundedEstimate},
};
use crate::calibrate::conflict_samples::MeasuredConflict;
use flowcast_statistics::{
    descent::Lowest,
    resampling::{Resampler, percentile_interval},
};
use flowcast_units::{Rate, Time};

/// A fit to resampled repetitions.
pub(super) struct Replicate {
    pub links: PrivateAndSharedLinks,
    /// Result of the search for each candidate, indexed by candidate.
    pub found: Vec<Lowest>,
    /// Medians by conflict, then by flow.
    pub medians: Vec<Vec<Time>>,
}

/// All replicates, at least one, and the confidence level of their intervals.
pub(super) struct Replicates {
    pub all: Vec<Replicate>,
    pub level: f64,
}

/// Resamples the repetitions, and repeats all fits for each replicate.
pub(super) fn bootstrap(
    assumption: &Assumption<'_>,
    conflicts: &[&MeasuredConflict],
    options: &ConflictFitOptions,
) -> Result<Replicates, ConflictFitError> {
    let mut resampler = Resampler::from_seed(options.seed);
    let mut all = Vec::with_capacity(options.replicates);
    for _ in 0..options.replicates.max(1) {
        let drawn: Vec<MeasuredConflict> = conflicts
            .iter()
            .map(|measured| redraw(measured, &mut resampler))
            .collect();
        let observed = observe(&drawn.iter().collect::<Vec<_>>());
        let (links, found) = assumption.near(&observed)?;
        all.push(Replicate {
            links,
            found,
            medians: observed.into_iter().map(|one| one.medians).collect(),
        });
    }
    Ok(Replicates {
        all,
        level: options.level,
    })
}

/// Resamples whole repetitions, because the flows of a repetition belong together.
fn redraw(measured: &MeasuredConflict, resampler: &mut Resampler) -> MeasuredConflict {
    let places = resampler.draw_places(measured.repetitions());
    MeasuredConflict {
        conflict: measured.conflict.clone(),
        durations: measured
            .durations
            .iter()
            .map(|durations: &Vec<Time>| places.iter().map(|place| durations[*place]).collect())
            .collect(),
    }
}

impl Replicates {
    /// Estimate `value` with its interval. `of_one` returns the number of a replicate, `back` converts it to the type of the
    /// estimate.
    pub(super) fn estimate<T>(
        &self,
        value: T,
        of_one: impl Fn(&Replicate) -> f64,
        back: impl Fn(f64) -> T,
    ) -> Result<BoundedEstimate<T>, ConflictFitError> {
        let values: Vec<f64> = self.all.iter().map(of_one).collect();
        let (low, high) = percentile_interval(&values, self.level)?;
        Ok(BoundedEstimate {
            value,
            low: back(low),
            high: back(high),
        })
    }

    /// Estimate of a rate with its interval. A replicate without the rate counts as having `value`.
    pub(super) fn rate(
        &self,
        value: Rate,
        of_one: impl Fn(&Replicate) -> Option<Rate>,
    ) -> Result<BoundedEstimate<Rate>, ConflictFitError> {
        self.estimate(
            value,
            |one: &Replicate| of_one(one).unwrap_or(value).as_bytes_per_second(),
            Rate::from_bytes_per_second,
        )
    }

    /// Estimates of a backbone's limit with their intervals.
    pub(super) fn backbone(&self, limit: BackboneLimit) -> Result<BackboneFit, ConflictFitError> {
        let from =
            |one: &Replicate| f64::from(one.links.backbone.map_or(limit.from, |limit| limit.from));
        Ok(BackboneFit {
            rate: self.rate(limit.rate, |one| one.links.backbone.map(|limit| limit.rate))?,
            from: self.estimate(limit.from, from, |from| from.round() as u32)?,
        })
    }
}

/// Estimate `value` with the interval of the drawn values.
pub(super) fn estimate(
    value: f64,
    drawn: &[f64],
    level: f64,
) -> Result<BoundedEstimate<f64>, ConflictFitError> {
    let (low, high) = percentile_interval(drawn, level)?;
    Ok(BoundedEstimate { value, low, high })
}
