//! How far a prediction may be off: an interval that holds what is measured with a given probability.
//!
//! Two things are uncertain, and the network file says how much. Its **parameters** lie in their intervals: networks are
//! drawn from these ([`Network::drawn`]) and the prediction is made again on each, 64 times where messages do not meet,
//! because a walk over the program carries 32 networks at once, else up to 16 times. And the **model** is not the
//! machine: its errors on what was measured before stand in the file's [ledger](flowcast_model::ledger). The interval has
//! the ranks of split conformal prediction among the sums of both ([`conformal::margin`]). What was judged under the same
//! name is left out. An interval always holds the prediction itself.

use std::fmt;

use flowcast_flows::concurrent::{self, PredictError};
use flowcast_model::cluster::pattern::Pattern;
use flowcast_model::ledger::{Accuracy, Judged, residuals};
use flowcast_model::network::Network;
use flowcast_model::sharing::LIMITS;
use flowcast_model::sharing::model::{Model, transient_windows};
use flowcast_model::sharing::protocol::SEGMENT;
use flowcast_model::stats::StatsError;
use flowcast_model::stats::conformal::{self, Margin};
use flowcast_replay::outcome::Outcome;
use flowcast_replay::sweep::{self, WhatIf};
use flowcast_replay::{Engine, SimulateError, contention};
use flowcast_units::{Bytes, Time};

use crate::{Contention, Error, PatternOptions, PatternPrediction, Prepared, PreparedProgram, PreparedSchedule};

/// Draws of networks that a walk without events carries together.
const DRAWS_TOGETHER: usize = 64;
/// Draws of networks that are replayed one by one, at most and at least.
const DRAWS_ONE_BY_ONE: (usize, usize) = (16, 4);
/// About how long draws may take together where the caller does not say how many there are to be.
const PATIENCE: Time = Time::from_nanos(20e9);
/// About what a message costs under a fluid model, and a packet with its acknowledgement.
const PER_MESSAGE: Time = Time::from_nanos(10e3);
const PER_PACKET: Time = Time::from_nanos(150.0);
/// Patterns of more flows than this take the fewer draws.
const MANY_FLOWS: usize = 400;

/// What is asked of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalOptions<'a> {
    /// The probability with which it is to hold what is measured, above 0 and below 1.
    pub level: f64,
    /// Start of the random numbers; equal seeds give equal intervals.
    pub seed: u64,
    /// How many networks are drawn; by the work of a replay without it.
    pub draws: Option<usize>,
    /// The name in the ledger of what is predicted, whose own errors are left out; `cg` leaves out `cg/S/4` as well.
    pub judged: Option<&'a str>,
}

impl Default for IntervalOptions<'_> {
    fn default() -> Self {
        IntervalOptions { level: 0.9, seed: 1, draws: None, judged: None }
    }
}

/// Between which times what is measured lies. Shown, it is the sentence `397 ms (372 to 421, 90 %)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// What is predicted.
    pub predicted: Time,
    /// Lower end, at most the prediction.
    pub low: Time,
    /// Upper end, at least the prediction.
    pub high: Time,
    /// With which probability; less than was asked for where the ledger has too few errors.
    pub level: f64,
    /// What it takes into account, in words: `parameters (64 draws) and the model's error on 72 patterns`.
    pub covers: String,
}

/// The intervals of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternIntervals {
    /// Of the time until the last flow ends.
    pub makespan: Interval,
    /// Of each flow's duration, in the pattern's order.
    pub flows: Vec<Interval>,
}

/// The line for a prediction without an interval.
pub fn no_margin(network: &Network) -> &'static str {
    if network.intervals.is_empty() && network.ledger().is_empty() {
        return "no margin known: the network file has neither intervals nor a ledger";
    }
    "no margin known: neither intervals nor ledger of the network file say anything of this model"
}

impl Prepared<'_> {
    /// The interval of the makespan of a replay; none where the network file knows none ([`no_margin`]).
    ///
    /// # Errors
    /// A level outside (0, 1), parameters that cannot be drawn, and those of the replay.
    pub fn interval(&self, outcome: &Outcome, options: &IntervalOptions<'_>) -> Result<Option<Interval>, Error> {
        match self {
            Prepared::Program(program) => program.interval(outcome, options),
            Prepared::Schedule(schedule) => schedule.interval(outcome, options),
        }
    }
}

impl PreparedProgram<'_> {
    /// As [`Prepared::interval`].
    ///
    /// # Errors
    /// As [`Prepared::interval`].
    pub fn interval(&self, outcome: &Outcome, options: &IntervalOptions<'_>) -> Result<Option<Interval>, Error> {
        let drawn = self.drawn_makespans(outcome, options)?;
        let model = format!("{}/{}", self.model().name(), self.collectives);
        let errors = ModelErrors::of(self.network, &model, Judged::Programs, options.judged);
        let makespan = outcome.makespan();
        Ok(Evidence { drawn: &drawn, errors: &errors }.interval(makespan, makespan, options.level)?)
    }

    fn drawn_makespans(&self, outcome: &Outcome, options: &IntervalOptions<'_>) -> Result<Drawn, Error> {
        let matters = |field: &str| matters(field, self.model().contention.model());
        let walks = matches!(self.engine()?, Engine::Free(_)) && !contention::is_needed(self.network, &self.placement);
        let draws = options.draws.or(if walks {
            Some(DRAWS_TOGETHER)
        } else {
            draws_in_time(outcome, self.network, self.model().contention.model())
        });
        let Some(draws) = draws else { return Ok(Drawn::too_long(self.network, matters)) };
        let networks = self.network.drawn(matters, draws, options.seed)?;
        if walks {
            let what_if = |network: Network| {
                let placement = self.placement.on(&network.machine);
                WhatIf::placed(network, placement, self.rendezvous)
            };
            let what_ifs: Vec<WhatIf> = networks.into_iter().map(what_if).collect();
            let outcomes = sweep::run(self.program(), &what_ifs)?;
            return Ok(Drawn::all(outcomes.iter().map(|outcome| outcome.makespan()).collect()));
        }
        Drawn::each(&networks, |network| self.on(network).engine()?.run().map_err(Error::from))
    }
}

impl PreparedSchedule<'_> {
    /// As [`Prepared::interval`].
    ///
    /// # Errors
    /// As [`Prepared::interval`].
    pub fn interval(&self, outcome: &Outcome, options: &IntervalOptions<'_>) -> Result<Option<Interval>, Error> {
        // Parameters of LogGOPSim that are given beside the network take the place of the network's.
        let Some(network) = self.network_in_use() else { return Ok(None) };
        let (model, makespan) = (self.model().contention.model(), outcome.makespan());
        let matters = |field: &str| matters(field, model);
        let drawn = match options.draws.or(draws_in_time(outcome, network, model)) {
            None => Drawn::too_long(network, matters),
            Some(draws) => {
                let networks = network.drawn(matters, draws, options.seed)?;
                Drawn::each(&networks, |network| self.outcome_on(network))?
            }
        };
        let errors = match model {
            Some(model) => ModelErrors::of(network, model.name(), Judged::Programs, options.judged),
            None => ModelErrors::default(),
        };
        Ok(Evidence { drawn: &drawn, errors: &errors }.interval(makespan, makespan, options.level)?)
    }
}

/// The intervals of a pattern's prediction; none where the network file knows none ([`no_margin`]).
///
/// # Errors
/// As [`Prepared::interval`].
pub fn pattern_intervals(
    pattern: &Pattern,
    network: &Network,
    (options, prediction): (&PatternOptions, &PatternPrediction),
    asked: &IntervalOptions<'_>,
) -> Result<Option<PatternIntervals>, Error> {
    let method = options.method(network);
    let transient = transient_windows(method.model, network)?.is_some();
    let is_slow = transient || method.model == Model::Packet || pattern.flows.len() > MANY_FLOWS;
    let usual = if is_slow { DRAWS_ONE_BY_ONE.0 } else { DRAWS_TOGETHER };
    let matters = |field: &str| matters(field, Some(method.model));
    let networks = network.drawn(matters, asked.draws.unwrap_or(usual), asked.seed)?;
    let mut drawn = Vec::with_capacity(networks.len());
    for network in &networks {
        match concurrent::predict(pattern, network, method) {
            Ok(prediction) => drawn.push(prediction),
            Err(PredictError::Sharing(_)) => {}
        }
    }
    // Medians of several seeds are not what a single run gives: draws are held against a single one.
    let single = match options.seeds {
        Some(_) if !drawn.is_empty() => &concurrent::predict(pattern, network, method)?,
        _ => &prediction.prediction,
    };
    let name = if transient { "closed-loop/transient" } else { method.model.name() };
    let interval = |judged: Judged, of: &dyn Fn(&concurrent::Prediction) -> Time| {
        let times = drawn.iter().map(of).collect();
        let drawn = Drawn { makespans: times, refused: networks.len() - drawn.len(), ..Drawn::default() };
        let errors = ModelErrors::of(network, name, judged, asked.judged);
        Evidence { drawn: &drawn, errors: &errors }.interval(of(&prediction.prediction), of(single), asked.level)
    };
    let Some(makespan) = interval(Judged::Patterns, &concurrent::Prediction::makespan)? else { return Ok(None) };
    let of_flow = |index: usize| interval(Judged::Flows, &|prediction| prediction.flows[index].duration);
    let flows: Vec<Option<Interval>> = (0..pattern.flows.len()).map(of_flow).collect::<Result<_, _>>()?;
    Ok(Some(PatternIntervals { makespan, flows: flows.into_iter().flatten().collect() }))
}

/// How many draws can be replayed in the time that there is; none if too few to say anything.
fn draws_in_time(outcome: &Outcome, network: &Network, model: Option<Model>) -> Option<usize> {
    let segment = network.sharing.packet.segment.unwrap_or(Bytes(SEGMENT)).0.max(1);
    let packets = if model == Some(Model::Packet) { outcome.bytes.0 as f64 / segment as f64 } else { 0.0 };
    let one = PER_MESSAGE * outcome.messages as f64 + PER_PACKET * packets;
    let (most, least) = DRAWS_ONE_BY_ONE;
    let draws = (PATIENCE.as_nanos() / one.as_nanos().max(1.0)).min(most as f64) as usize;
    (draws >= least).then_some(draws)
}

/// Whether a field of the network file can play a part under a model.
fn matters(field: &str, model: Option<Model>) -> bool {
    let Some(section) = field.strip_prefix("sharing.").and_then(|rest| rest.split('.').next()) else { return true };
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

fn name_of(contention: Contention) -> &'static str {
    contention.model().map_or(LIMITS, Model::name)
}

/// What is predicted on networks that were drawn.
#[derive(Default)]
struct Drawn {
    makespans: Vec<Time>,
    /// Networks that the model refused.
    refused: usize,
    /// Whether there are intervals to draw from, but a replay takes too long for that.
    is_too_long: bool,
}

impl Drawn {
    fn all(makespans: Vec<Time>) -> Drawn {
        Drawn { makespans, ..Drawn::default() }
    }

    fn too_long(network: &Network, matters: impl Fn(&str) -> bool) -> Drawn {
        Drawn { is_too_long: network.intervals.keys().any(|field| matters(field)), ..Drawn::default() }
    }

    fn each(networks: &[Network], replay: impl Fn(&Network) -> Result<Outcome, Error>) -> Result<Drawn, Error> {
        let mut drawn = Drawn::default();
        for network in networks {
            match replay(network) {
                Ok(outcome) => drawn.makespans.push(outcome.makespan()),
                Err(Error::Sharing(_) | Error::Replay(SimulateError::Sharing(_))) => drawn.refused += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(drawn)
    }
}

/// The errors of a model, as far as they count.
#[derive(Default)]
struct ModelErrors<'a> {
    entries: Vec<&'a Accuracy>,
    /// `ln(measured / predicted)`.
    residuals: Vec<f64>,
    /// The model as it is asked for.
    model: String,
}

impl<'a> ModelErrors<'a> {
    fn of(network: &'a Network, model: &str, wanted: Judged, judged: Option<&str>) -> ModelErrors<'a> {
        let entries = network.ledger().of(model, wanted);
        ModelErrors { residuals: residuals(&entries, judged), entries, model: model.to_owned() }
    }

    fn covers(&self) -> Option<String> {
        let first = self.entries.first().filter(|_| !self.residuals.is_empty())?;
        let of = if first.model == self.model {
            "the model's error".to_owned()
        } else {
            format!("the error of {}", first.model)
        };
        let what = first.judged.map_or("cases", Judged::name);
        let fitted = if first.is_fitted { " that it was fitted to" } else { "" };
        Some(format!("{of} on {} {what}{fitted}", self.residuals.len()))
    }
}

/// What is known of a prediction's margin.
struct Evidence<'a> {
    drawn: &'a Drawn,
    errors: &'a ModelErrors<'a>,
}

impl Evidence<'_> {
    /// The interval of a prediction; `single` is what draws are held against.
    fn interval(&self, predicted: Time, single: Time, level: f64) -> Result<Option<Interval>, StatsError> {
        let is_there = |time: &&Time| **time > Time::ZERO && single > Time::ZERO;
        let further = self.drawn.makespans.iter().filter(is_there);
        let further: Vec<f64> = further.map(|time| (time.as_nanos() / single.as_nanos()).ln()).collect();
        if further.is_empty() && self.errors.residuals.is_empty() {
            return Ok(None);
        }
        let Margin { low, high, level } = conformal::margin(&self.errors.residuals, &further, level)?;
        Ok(Some(Interval {
            predicted,
            low: predicted * low.exp().min(1.0),
            high: predicted * high.exp().max(1.0),
            level,
            covers: self.covers(further.len()),
        }))
    }

    fn covers(&self, draws: usize) -> String {
        let parameters = match self.drawn.refused {
            0 => format!("parameters ({draws} draws)"),
            refused => {
                format!("parameters ({draws} of {} draws, the model has no answer for the others)", draws + refused)
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

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.predicted.as_nanos();
        let steps = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
        let (scale, unit) = steps.into_iter().find(|(scale, _)| nanos >= *scale).unwrap_or((1.0, "ns"));
        let [predicted, low, high] = [self.predicted, self.low, self.high].map(|time| time.as_nanos() / scale);
        // Three digits of the prediction, and more where the ends would otherwise be the same.
        let digits = |of: f64, count: f64| if of > 0.0 { count - 1.0 - of.log10().floor() } else { 0.0 };
        let decimals = digits(predicted, 3.0).max(digits(high - low, 1.0)).clamp(0.0, 6.0) as usize;
        write!(f, "{predicted:.decimals$} {unit} ({low:.decimals$} to {high:.decimals$}, {} %)", percent(self.level))
    }
}

fn percent(level: f64) -> String {
    let percent = format!("{:.1}", level * 100.0);
    percent.strip_suffix(".0").unwrap_or(&percent).to_owned()
}
