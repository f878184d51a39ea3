//! What is known of a prediction's margin: what it would be on networks that were drawn, and the model's earlier errors.

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

/// Draws of networks that a walk without events carries together.
pub(super) const DRAWS_TOGETHER: usize = 64;
/// Draws of networks that are replayed one by one, at most and at least.
pub(super) const DRAWS_ONE_BY_ONE: (usize, usize) = (16, 4);
/// About how long draws may take together where the caller does not say how many there are to be.
const TIMEOUT: Time = Time::from_nanos(10e9);
/// About what a message costs under a fluid model, and a packet with its acknowledgement.
const PER_MESSAGE: Time = Time::from_nanos(10e3);
const PER_PACKET: Time = Time::from_nanos(150.0);

/// How many draws can be replayed in the time that there is; none if too few to say anything.
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

/// Whether a field of the network file can play a part under a model.
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

/// Whether a field that plays a part has an interval.
pub fn may_vary(network: &Network, model: Option<Model>) -> bool {
    network.intervals.keys().any(|field| matters(field, model))
}

/// What is predicted on networks that were drawn.
#[derive(Default)]
pub(super) struct Drawn {
    makespans: Vec<Time>,
    /// Networks that the model refused.
    refused: usize,
    /// Whether there are intervals to draw from, but a replay takes too long for that.
    is_too_long: bool,
}

impl Drawn {
    /// Those that a model did not refuse, of so many.
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

    /// Replays on each of the networks, which `replay` gets with its number.
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

/// The errors of a model, as far as they count.
#[derive(Default)]
pub(super) struct ModelErrors<'a> {
    entries: Vec<&'a Accuracy>,
    /// `ln(measured / predicted)`.
    residuals: Vec<f64>,
    /// The model as it is asked for.
    model: String,
    /// Whether they are of programs in laboratories, and none is of this network.
    are_from_elsewhere: bool,
    /// By how much the network misses what it was fitted to.
    misfit: f64,
}

impl<'a> ModelErrors<'a> {
    /// For a program the errors on programs: those on this network, else those in laboratories, since patterns do not say how
    /// well a program is predicted. Nothing is known of a network that says neither how sure its numbers are nor how well they
    /// did.
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
                "at least {of} on {}, none of them on this network",
                first.validated_on
            ),
            (false, true) => format!("{of} on {count} {what} that it was fitted to"),
            (false, false) => format!("{of} on {count} {what}"),
        })
    }
}

/// What is known of a prediction's margin.
pub(super) struct MarginEvidence<'a> {
    pub(super) drawn: &'a Drawn,
    pub(super) errors: &'a ModelErrors<'a>,
}

impl MarginEvidence<'_> {
    /// The interval of a prediction; `single` is what draws are held against.
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
                    "parameters ({draws} of {} draws, the model has no answer for the others)",
                    draws + refused
                )
            }
        };
        match (draws, self.errors.covers()) {
            (0, Some(errors)) if self.drawn.is_too_long => {
                format!("{errors}, not the parameters, as replays take long")
            }
            (0, errors) => errors.unwrap_or_default(),
            (_, None) => format!("{parameters}, not the model's own error"),
            (_, Some(errors)) => format!("{parameters} and {errors}"),
        }
    }
}
