//! Evidence for a prediction's margin: predictions on drawn networks, and earlier errors of the model.

use flowcast_network::{
    accuracy::{self, Accuracy, CaseKind, residuals, residuals_elsewhere},
    network::Network,
    sharing::{model::Model, protocol::SEGMENT},
};
use flowcast_program::parallel;
use flowcast_replay::{SimulateError, outcome::Outcome};
use flowcast_report::standing::Interval;
use flowcast_statistics::{
    StatsError,
    conformal::{self, Margin},
};
use flowcast_units::{Bytes, Time};

use super::IntervalOptions;
use crate::Error;

/// Number of drawn networks if a walk without events predicts several at the same time.
pub(super) const DRAWS_TOGETHER: usize = 64;
/// Largest and smallest number of drawn networks if they are replayed one by one.
pub(super) const DRAWS_ONE_BY_ONE: (usize, usize) = (16, 4);
/// Approximate time limit for all draws if the caller does not set their number.
const TIMEOUT: Time = Time::from_nanos(10e9);
/// Approximate cost of a message under a fluid model, and of a packet with its acknowledgement.
const PER_MESSAGE: Time = Time::from_nanos(10e3);
const PER_PACKET: Time = Time::from_nanos(150.0);

/// Number of draws that can be replayed in the available time; `None` if there are too few for an interval.
pub(super) fn draws_in_time(
    outcome: &Outcome,
    network: &Network,
    model: Option<Model>,
) -> Option<usize> {
    let segment = network
        .sharing
        .packet
        .segment
        .unwrap_or(Bytes(SEGMENT))
        .0
        .max(1);
    let packets = if model == Some(Model::Packet) {
        outcome.bytes.0 as f64 / segment as f64
    } else {
        0.0
    };
    let one = PER_MESSAGE * outcome.messages as f64 + PER_PACKET * packets;
    let (most, least) = DRAWS_ONE_BY_ONE;
    let draws = (TIMEOUT.as_nanos() / one.as_nanos().max(1.0)).min(most as f64) as usize;
    (draws >= least).then_some(draws)
}

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

/// Predictions on drawn networks.
#[derive(Default)]
pub(super) struct Drawn {
    makespans: Vec<Time>,
    /// Number of networks that the model rejected.
    refused: usize,
    /// `true` if there are intervals to draw from, but a replay takes too long for draws.
    is_too_long: bool,
}

impl Drawn {
    /// Creates the predictions on `of` drawn networks. Networks without a makespan were rejected by the model.
    pub(super) fn some(makespans: Vec<Time>, of: usize) -> Drawn {
        Drawn {
            refused: of - makespans.len(),
            makespans,
            ..Drawn::default()
        }
    }

    pub(super) fn too_long() -> Drawn {
        Drawn {
            is_too_long: true,
            ..Drawn::default()
        }
    }

    /// Replays on each of the networks. `replay` gets the number of a network, and the network.
    pub(super) fn each(
        networks: &[Network],
        options: &IntervalOptions<'_>,
        replay: impl Fn(usize, &Network) -> Result<Outcome, Error> + Sync,
    ) -> Result<Drawn, Error> {
        let numbers: Vec<usize> = (0..networks.len()).collect();
        let mut drawn = Drawn::default();
        let outcomes = parallel::map(&numbers, options.threads, |draw| {
            let outcome = replay(*draw, &networks[*draw]);
            (options.on_draws)(1, networks.len());
            outcome
        });
        for outcome in outcomes {
            match outcome {
                Ok(outcome) => drawn.makespans.push(outcome.makespan()),
                Err(Error::Sharing(_) | Error::Replay(SimulateError::Sharing(_))) => {
                    drawn.refused += 1
                }
                Err(error) => return Err(error),
            }
        }
        Ok(drawn)
    }
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
    pub(super) drawn: &'a Drawn,
    pub(super) errors: &'a ModelErrors<'a>,
}

impl MarginEvidence<'_> {
    /// Interval of a prediction. `single` is the time with which draws are compared.
    pub(super) fn interval(
        &self,
        predicted: Time,
        single: Time,
        level: f64,
    ) -> Result<Option<Interval>, StatsError> {
        let further = self
            .drawn
            .makespans
            .iter()
            .filter(|time: &&Time| **time > Time::ZERO && single > Time::ZERO);
        let further: Vec<f64> = further
            .map(|time| (time.as_nanos() / single.as_nanos()).ln())
            .collect();
        if further.is_empty() && self.errors.residuals.is_empty() {
            return Ok(None);
        }
        let Margin { low, high, level } =
            conformal::margin(&self.errors.residuals, &further, level)?;
        let misfit = 1.0 + self.errors.misfit;
        Ok(Some(Interval {
            predicted,
            low: predicted * low.exp().min(1.0 / misfit),
            high: predicted * high.exp().max(misfit),
            level,
            covers: self.covers(further.len()),
        }))
    }

    fn covers(&self, draws: usize) -> String {
        let parameters = match self.drawn.refused {
            0 => format!("parameters ({draws} draws)"),
            refused => {
                format!(
                    "parameters ({draws} of {} draws, the model has no prediction for the others)",
                    draws + refused
                )
            }
        };
        match (draws, self.errors.covers()) {
            (0, Some(errors)) if self.drawn.is_too_long => {
                format!("{errors}, not the parameters, because replays take long")
            }
            (0, errors) => errors.unwrap_or_default(),
            (_, None) => format!("{parameters}, not the model's own error"),
            (_, Some(errors)) => format!("{parameters} and {errors}"),
        }
    }
}
