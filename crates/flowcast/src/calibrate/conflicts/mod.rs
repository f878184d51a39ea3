//! Fits of the sharing models to measured conflicts, and the model that explains the network best.
//!
//! The time of a flow is the median of its repetitions. Flows alone give latency and rate, flows between racks the backbone
//! (`links`). For each model with parameters, the search minimises the sum of squared `ln(predicted/measured)` over the
//! flows of all conflicts. Intervals are bootstrap percentiles: repetitions are drawn again with replacement within each
//! conflict, and everything is fitted again.
//!
//! Models are compared on data that they were not fitted to: on random patterns, which take part in no fit, on messages that
//! are short compared with a window, and on each conflict after a fit to all others. Errors on long messages do not apply to
//! short ones, which pass through queues one behind the other. The network file therefore states both errors, with the sizes
//! of the messages.
//!
//! It is unknown beforehand if the two directions of a port share it, or cross a bus that is faster than the port. The file
//! states one answer for all models. All models are therefore fitted under each assumption, and the assumption with the best
//! model wins (`duplex`).
//!
//! The transport of the messages decides which models can be compared. If it is known, these include the packet level and,
//! with a known window, the closed loop while its queues fill. Neither has parameters to fit.
//!
//! The simulation of flows is a later stage of this library, so the caller passes it as a [`Predictor`].

mod bootstrap;
mod duplex;
mod links;
mod network;
mod outcome;
mod parameters;
mod search;
mod warnings;

use thiserror::Error;

use super::conflict_samples::{ConflictSamples, MeasuredConflict};
use flowcast_network::{
    cluster::{
        conflicts::{Conflict, ConflictKind},
        flow::{Flow, PatternFlow},
        racks::Racks,
    },
    network::Network,
    sharing::{PacketParameters, SharingError, model::Model},
};
use flowcast_statistics::{StatsError, descent::Lowest, observation::Observations};
use flowcast_units::Time;

use bootstrap::{Replicates, bootstrap, estimate};
use duplex::Assumption;
use links::Ports;
pub use links::{BackboneLimit, PrivateAndSharedLinks, SATURATED};
pub use outcome::{
    BackboneFit, Bound, BoundedEstimate, ConflictFit, ConflictParameter, ModelFit, OtherDuplex,
    Slowdown,
};
use parameters::Needs;
use search::Fitter;
pub use warnings::Warning;

/// Key in the provenance of samples: processors of the single machine that contains all nodes.
pub const PROCESSORS: &str = "shared_processors";

/// Durations of flows under a model.
pub type Predictor<'a> =
    dyn Fn(&[Flow], &Racks, &Network, Model) -> Result<Vec<Time>, SharingError> + 'a;

/// Reason why conflicts give no parameters.
#[derive(Debug, Error)]
pub enum ConflictFitError {
    /// No flow was measured alone.
    #[error("found no conflict of kind `alone`, expected one as the reference for all others")]
    NotAlone,
    /// There are only flows alone, which share nothing.
    #[error("found only single flows, expected conflicts, which need more than two nodes")]
    NoConflict,
    /// Numbers that cannot be summarised.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// Options of the bootstrap, and the known transport.
#[derive(Debug, Clone, PartialEq)]
pub struct ConflictFitOptions {
    /// Number of bootstrap replicates, 200 by default.
    pub replicates: usize,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Transport that carried the messages, as `packet` reads it, if it is known.
    pub transport: Option<PacketParameters>,
}

impl Default for ConflictFitOptions {
    fn default() -> ConflictFitOptions {
        ConflictFitOptions {
            replicates: 200,
            level: 0.95,
            seed: 1,
            transport: None,
        }
    }
}

/// A conflict and the medians of its flows.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    conflict: &'a Conflict,
    medians: Vec<Time>,
}

impl Observed<'_> {
    /// `true` if parameters of models are fitted to it. A flow alone determines latency and rate instead.
    fn is_fitted_to(&self) -> bool {
        self.conflict.kind != ConflictKind::Alone
    }
}

/// Fits every model and compares them.
///
/// # Errors
/// No flow alone, no conflict, or invalid options.
pub fn fit_conflicts(
    samples: &ConflictSamples,
    options: ConflictFitOptions,
    predictor: &Predictor<'_>,
) -> Result<ConflictFit, ConflictFitError> {
    let of_kind = |wanted: fn(ConflictKind) -> bool| -> Vec<&MeasuredConflict> {
        samples
            .measured
            .iter()
            .filter(|measured| wanted(measured.conflict.kind))
            .collect()
    };
    let conflicts = of_kind(|kind| !matches!(kind, ConflictKind::Random | ConflictKind::Short));
    let random = observe(&of_kind(|kind| kind == ConflictKind::Random));
    let short = observe(&of_kind(|kind| kind == ConflictKind::Short));
    if conflicts
        .iter()
        .all(|measured| measured.conflict.kind == ConflictKind::Alone)
        && !conflicts.is_empty()
    {
        return Err(ConflictFitError::NoConflict);
    }
    let transport = options.transport.as_ref();
    let observed = observe(&conflicts);
    let assume = |ports: Ports| {
        let candidates = parameters::candidates(transport, ports);
        Assumption::new(
            Fitter {
                racks: &samples.racks,
                predictor,
                transport,
                ports,
                candidates,
            },
            &observed,
        )
    };
    let has_bus = PrivateAndSharedLinks::new(&observed, Ports::Bus)?
        .bus
        .is_some();
    let bus = has_bus.then(|| assume(Ports::Bus)).transpose()?;
    let (best, other_duplex) = duplex::better(assume(Ports::Full)?, assume(Ports::Half)?, bus);
    let replicates = bootstrap(&best, &conflicts, &options)?;
    let mut models = Vec::new();
    for place in 0..best.found.len() {
        models.push(ModelFit {
            held_out: best.on_unseen(place, &random)?,
            short: best.on_unseen(place, &short)?,
            ..best.model_fit(place, &replicates)?
        });
    }
    let links = best.links;
    let backbone = links.backbone.map(|limit| replicates.backbone(limit));
    let processors = samples.provenance.get(PROCESSORS);
    Ok(ConflictFit {
        latency: replicates.estimate(
            links.latency,
            |one| one.links.latency.as_seconds(),
            Time::from_seconds,
        )?,
        rate: replicates.rate(links.rate, |one| Some(one.links.rate))?,
        smallest: links.smallest,
        backbone: backbone.transpose()?,
        duplex: links.duplex,
        bus: links.bus,
        other_duplex,
        best: best_of(&models),
        models,
        slowdowns: best.slowdowns(&replicates)?,
        counts: (
            observed.len(),
            random.len() + short.len(),
            samples
                .measured
                .iter()
                .map(MeasuredConflict::repetitions)
                .sum(),
        ),
        has_racks: samples.racks.count() > 1,
        nodes_per_rack: samples.racks.block().unwrap_or(0),
        processors: processors.and_then(|count| count.parse().ok()).unwrap_or(0),
        options: options.clone(),
    })
}

fn observe<'a>(measured: &[&'a MeasuredConflict]) -> Vec<Observed<'a>> {
    measured
        .iter()
        .map(|measured: &&'a MeasuredConflict| Observed {
            conflict: &measured.conflict,
            medians: measured.medians(),
        })
        .collect()
}

/// Index of the first model with the smallest mean error on data that no fit has seen.
fn best_of(models: &[ModelFit]) -> usize {
    let places = 0..models.len();
    places
        .min_by(|a, b| models[*a].unseen().total_cmp(&models[*b].unseen()))
        .expect("there are models")
}

impl Assumption<'_> {
    /// Fits resampled medians of the same conflicts. Each search starts at the known result.
    fn near(
        &self,
        observed: &[Observed<'_>],
    ) -> Result<(PrivateAndSharedLinks, Vec<Lowest>), ConflictFitError> {
        let links = PrivateAndSharedLinks::new(observed, self.fitter.ports)?;
        let mut found = Vec::new();
        for (candidate, known) in self.fitter.candidates.iter().zip(&self.found) {
            found.push(self.fitter.refine(candidate, &known.at, &links, observed));
        }
        Ok((links, found))
    }

    fn network(&self, place: usize) -> Network {
        let candidate = &self.fitter.candidates[place];
        let at = &self.found[place].at;
        self.fitter.network_with(candidate, at, &self.links)
    }

    fn observations<'o, 'c: 'o>(
        &self,
        place: usize,
        observed: impl Iterator<Item = &'o Observed<'c>>,
    ) -> Result<Observations<PatternFlow>, StatsError> {
        let (model, network) = (self.fitter.candidates[place].model, self.network(place));
        Observations::new(observed.flat_map(|one| self.fitter.observations(model, &network, one)))
    }

    fn model_fit(
        &self,
        place: usize,
        replicates: &Replicates,
    ) -> Result<ModelFit, ConflictFitError> {
        let candidate = &self.fitter.candidates[place];
        let mut parameters = Vec::new();
        for (at, parameter) in candidate.parameters.iter().enumerate() {
            let values: Vec<f64> = replicates
                .all
                .iter()
                .map(|one| parameter.in_file(one.found[place].at[at]))
                .collect();
            let value = parameter.in_file(self.found[place].at[at]);
            let estimate = estimate(value, &values, replicates.level)?;
            let is_measured = self.found[place].is_felt[at];
            let bound = parameter.bound(self.found[place].at[at]);
            parameters.push(ConflictParameter {
                field: parameter.field,
                estimate,
                bound,
                is_measured,
            });
        }
        Ok(ModelFit {
            model: candidate.model,
            is_settling: candidate.needs == Needs::Window,
            parameters,
            fitted: self.fitted[place].clone(),
            left_out: self.left_out(place)?,
            held_out: None,
            short: None,
        })
    }

    /// Predictions of patterns that no model was fitted to; `None` if there are no patterns.
    fn on_unseen(
        &self,
        place: usize,
        patterns: &[Observed<'_>],
    ) -> Result<Option<Observations<PatternFlow>>, StatsError> {
        let is_any = !patterns.is_empty();
        is_any
            .then(|| self.observations(place, patterns.iter()))
            .transpose()
    }

    /// Predictions of each conflict after a fit to all others. Flows alone are kept, because without them there is no rate.
    fn left_out(&self, place: usize) -> Result<Observations<PatternFlow>, ConflictFitError> {
        let (fitter, candidate) = (&self.fitter, &self.fitter.candidates[place]);
        let mut held_out = Vec::new();
        for (at, left) in self.observed.iter().enumerate() {
            if !left.is_fitted_to() {
                continue;
            }
            let mut others = self.observed.to_vec();
            others.remove(at);
            let links = PrivateAndSharedLinks::new(&others, fitter.ports)?;
            let found = fitter.refine(candidate, &self.found[place].at, &links, &others);
            let network = fitter.network_with(candidate, &found.at, &links);
            held_out.extend(fitter.observations(candidate.model, &network, left));
        }
        Ok(Observations::new(held_out)?)
    }

    fn slowdowns(&self, replicates: &Replicates) -> Result<Vec<Slowdown>, ConflictFitError> {
        let mut all = Vec::new();
        for (at, one) in self.observed.iter().enumerate() {
            if !one.is_fitted_to() {
                continue;
            }
            let candidates = self.fitter.candidates.iter().enumerate();
            let predicted = candidates.map(|(at, known)| {
                let network = self.network(at);
                self.fitter.durations(known.model, &network, one.conflict)
            });
            let predicted: Vec<_> = predicted.map(Result::ok).collect();
            for (place, flow) in one.conflict.flows.iter().enumerate() {
                let times_alone = |time: Time, links: &PrivateAndSharedLinks| {
                    time.as_seconds() / links.alone(flow.size).as_seconds()
                };
                let drawn: Vec<f64> = replicates
                    .all
                    .iter()
                    .map(|replicate| times_alone(replicate.medians[at][place], &replicate.links))
                    .collect();
                all.push(Slowdown {
                    conflict: one.conflict.name.clone(),
                    kind: one.conflict.kind,
                    flow: *flow,
                    measured: estimate(
                        times_alone(one.medians[place], &self.links),
                        &drawn,
                        replicates.level,
                    )?,
                    predicted: predicted
                        .iter()
                        .map(|durations: &Option<Vec<Time>>| {
                            durations.as_ref().map_or(f64::NAN, |durations| {
                                times_alone(durations[place], &self.links)
                            })
                        })
                        .collect(),
                });
            }
        }
        Ok(all)
    }
}
