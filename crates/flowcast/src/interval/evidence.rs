//! Evidence for a prediction's margin: the effect of uncertain parameters, and earlier errors of the model.

use flowcast_network::{
    accuracy::{self, Accuracy, CaseKind, residuals, residuals_elsewhere},
    network::Network,
    sharing::model::Model,
};
use flowcast_program::parallel;
use flowcast_replay::{SimulateError, outcome::Outcome};
use flowcast_report::standing::Interval;
use flowcast_statistics::{
    StatsError,
    conformal::{self, Margin},
};
use flowcast_units::Time;

use super::{
    IntervalOptions,
    slopes::{ScoreSlope, spread},
};
use crate::Error;

/// `true` if a field of the network file can have an influence under a model.
pub fn matters(field: &str, model: Option<Model>) -> bool {
    let Some(section) = field
        .strip_prefix("sharing.")
        .and_then(|rest| rest.split('.').next())
    else {
        return true;
    };
    let read: &[&str] = match model {
        None | Some(Model::Independent | Model::Fair) => &[],
        Some(Model::FlowCuts) => &["flow_cuts"],
        Some(Model::ClosedLoop) => &["closed_loop", "packet"],
        Some(Model::AlphaFair) => &["alpha_fair", "closed_loop"],
        Some(Model::Asymmetric | Model::DegreeFair) => &["asymmetric"],
        Some(Model::IbPenalty) => &["ib_penalty"],
        Some(Model::Packet) => &["packet"],
    };
    read.contains(&section)
}

/// `true` if a field that has an influence has an interval.
pub fn may_vary(network: &Network, model: Option<Model>) -> bool {
    network.intervals.keys().any(|field| matters(field, model))
}

/// Effect of uncertain parameters on a predicted time.
#[derive(Default)]
pub(super) struct ParameterEffect {
    /// Logarithms of times on networks with other values, relative to the predicted time.
    logarithms: Vec<f64>,
    /// Number of networks that the model rejected.
    rejected: usize,
    /// Origin of the times, such as `slopes of 2 replays`.
    origin: String,
}

impl ParameterEffect {
    /// Effect along independent slopes. `times` are the relative times that they needed, and `what` is the name of one.
    pub(super) fn new(
        slopes: &[ScoreSlope],
        times: &[Option<f64>],
        what: &str,
        seed: u64,
    ) -> ParameterEffect {
        let rejected = times.iter().filter(|time| time.is_none()).count();
        let origin = match times.len() {
            0 | 1 => format!("slopes of a {what}"),
            count => format!("slopes of {count} {what}s"),
        };
        let logarithms = match slopes {
            [] => Vec::new(),
            slopes => spread(slopes, seed),
        };
        ParameterEffect {
            logarithms,
            rejected,
            origin,
        }
    }
}

/// Replays on each of the networks and returns the times relative to `predicted`; `None` for a network that the model
/// rejects. `replay` gets the number of a network, and the network.
pub(super) fn relative_times(
    networks: &[Network],
    predicted: Time,
    options: &IntervalOptions<'_>,
    replay: impl Fn(usize, &Network) -> Result<Outcome, Error> + Sync,
) -> Result<Vec<Option<f64>>, Error> {
    let numbers: Vec<usize> = (0..networks.len()).collect();
    (options.on_draws)(0, networks.len());
    let outcomes = parallel::map(&numbers, options.threads, |number| {
        let outcome = replay(*number, &networks[*number]);
        (options.on_draws)(1, networks.len());
        outcome
    });
    let ratio = |outcome: Outcome| match predicted {
        Time::ZERO => 1.0,
        predicted => outcome.makespan().as_nanos() / predicted.as_nanos(),
    };
    outcomes
        .into_iter()
        .map(|outcome| match outcome {
            Ok(outcome) => Ok(Some(ratio(outcome))),
            Err(Error::Sharing(_) | Error::Replay(SimulateError::Sharing(_))) => Ok(None),
            Err(error) => Err(error),
        })
        .collect()
}

/// Errors of a model that apply to a prediction.
#[derive(Default)]
pub(super) struct ModelErrors<'a> {
    entries: Vec<&'a Accuracy>,
    /// `ln(measured / predicted)`.
    residuals: Vec<f64>,
    /// Name of the requested model.
    model: String,
    /// `true` if the errors come from programs in laboratories, and none of them from this network.
    are_from_elsewhere: bool,
    /// Error of the network on the data that it was fitted to.
    misfit: f64,
}

impl<'a> ModelErrors<'a> {
    /// Selects the errors for a prediction. For a program, these are errors on programs, because errors on patterns do not
    /// show how well a program is predicted. They come from this network, or else from laboratories. A network with neither
    /// intervals nor an accuracy record has no errors.
    pub(super) fn from_network(
        network: &'a Network,
        model: &str,
        wanted: CaseKind,
        held_out: Option<&str>,
    ) -> ModelErrors<'a> {
        let mut entries = network.accuracy_record().by_model(model, wanted);
        let of_programs = entries
            .iter()
            .any(|entry| entry.judged == Some(CaseKind::Programs));
        let mut are_from_elsewhere = false;
        if wanted == CaseKind::Programs && network.has_margins() && !of_programs {
            let elsewhere = accuracy::of_programs_in_laboratories().by_model(model, wanted);
            if !elsewhere.is_empty() {
                (entries, are_from_elsewhere) = (elsewhere, true);
            }
        }
        let misfit = network.fit.misfit.unwrap_or(0.0);
        let residuals = if are_from_elsewhere {
            residuals_elsewhere(&entries, held_out)
        } else {
            residuals(&entries, held_out)
        };
        ModelErrors {
            residuals,
            entries,
            model: model.to_owned(),
            are_from_elsewhere,
            misfit,
        }
    }

    fn covers(&self) -> Option<String> {
        let first = self
            .entries
            .first()
            .filter(|_| !self.residuals.is_empty())?;
        let of = if first.model == self.model {
            "the model's error".to_owned()
        } else {
            format!("the error of {}", first.model)
        };
        let what = first.judged.map_or("cases", CaseKind::name);
        let count = self.residuals.len();
        Some(match (self.are_from_elsewhere, first.fitted) {
            (true, _) => format!(
                "at least {of} on {}, not measured on this network",
                first.validated_on
            ),
            (false, true) => format!("{of} on {count} {what} that it was fitted to"),
            (false, false) => format!("{of} on {count} {what}"),
        })
    }
}

/// Evidence for a prediction's margin.
pub(super) struct MarginEvidence<'a> {
    pub(super) parameters: &'a ParameterEffect,
    pub(super) errors: &'a ModelErrors<'a>,
}

impl MarginEvidence<'_> {
    /// Interval of a prediction.
    pub(super) fn interval(
        &self,
        predicted: Time,
        level: f64,
    ) -> Result<Option<Interval>, StatsError> {
        let further = &self.parameters.logarithms;
        if further.is_empty() && self.errors.residuals.is_empty() {
            return Ok(None);
        }
        let Margin { low, high, level } =
            conformal::margin(&self.errors.residuals, further, level)?;
        let misfit = 1.0 + self.errors.misfit;
        Ok(Some(Interval {
            predicted,
            low: predicted * low.exp().min(1.0 / misfit),
            high: predicted * high.exp().max(misfit),
            level,
            covers: self.covers(),
        }))
    }

    fn covers(&self) -> String {
        let ParameterEffect {
            logarithms,
            rejected,
            origin,
        } = self.parameters;
        let parameters = match rejected {
            0 => format!("parameters ({origin})"),
            rejected => {
                format!("parameters ({origin}; the model has no prediction for {rejected} of them)")
            }
        };
        match (logarithms.is_empty(), self.errors.covers()) {
            (true, errors) => errors.unwrap_or_default(),
            (false, None) => format!("{parameters}, not the model's own error"),
            (false, Some(errors)) => format!("{parameters} and {errors}"),
        }
    }
}
