//! Margins of predictions: intervals that contain the measured time with a given probability.
//!
//! The network file quantifies two sources of uncertainty. The **parameters** have intervals ([`Variation`]). Their effect
//! on the time comes from slopes, which cost at most two further replays ([`slopes`]). The **model** differs from the
//! machine. Its errors on earlier measurements are in the file's [accuracy record](flowcast_network::accuracy). For a
//! program, these are errors on programs, from laboratories if no program ran on this network. No interval is narrower than
//! the misfit of the parameters. Each error is added to each deviation by the parameters. The ends of the interval are the
//! sums with the ranks of split conformal prediction ([`margin`](flowcast_statistics::conformal::margin)). Errors on the
//! predicted case itself are left out. An interval always contains the prediction itself.

mod evidence;
mod slopes;

use flowcast_network::{
    accuracy::CaseKind,
    cluster::pattern::Steps,
    network::Network,
    network_file::intervals::Variation,
    sharing::{model::Model, rates::transient_windows},
};
use flowcast_program::parallel;
use flowcast_replay::outcome::Outcome;
use flowcast_report::standing::Interval;
use flowcast_traffic::flows::concurrent::{FlowsPrediction, predict_ends};
use flowcast_units::Time;

use crate::{Error, Options, PatternPrediction, Prepared, PreparedProgram};
use evidence::{MarginEvidence, ModelErrors, ParameterEffect, relative_times};
pub use evidence::{matters, may_vary};
use slopes::{REACH, ScoreSlope, of_replays, of_walk};

/// Requested properties of an interval.
#[derive(Clone, Copy)]
pub struct IntervalOptions<'a> {
    /// Probability that the interval contains the measured time, above 0 and below 1.
    pub level: f64,
    /// Seed of the random numbers; equal seeds give equal intervals.
    pub seed: u64,
    /// Threads that predict on them; 0 means 1. The interval does not depend on their number.
    pub threads: usize,
    /// Name of the predicted case in the accuracy record, whose own errors are left out; `cg` also leaves out `cg/S/4`.
    pub held_out: Option<&'a str>,
    /// Called with the number of further networks that are done, and the number of networks that are drawn.
    pub on_draws: &'a (dyn Fn(usize, usize) + Sync),
}

impl Default for IntervalOptions<'_> {
    fn default() -> Self {
        IntervalOptions {
            level: 0.9,
            seed: 1,
            threads: 1,
            held_out: None,
            on_draws: &|_, _| (),
        }
    }
}

/// Intervals of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternIntervals {
    /// Interval of the time until the last flow ends.
    pub makespan: Interval,
    /// Interval of each flow's duration, in the pattern's order.
    pub flows: Vec<Interval>,
}

impl Prepared<'_> {
    /// Interval of the makespan of a replay; `None` if the network file gives none
    /// ([`missing_margin_reason`](crate::statements::missing_margin_reason)).
    ///
    /// # Errors
    /// A level outside (0, 1), parameters that cannot be drawn, errors of the replay.
    pub fn interval(
        &self,
        outcome: &Outcome,
        options: &IntervalOptions<'_>,
    ) -> Result<Option<Interval>, Error> {
        let model = self.model().contention.model();
        match self {
            Prepared::Program(program) => program.interval(outcome, options),
            Prepared::Folded(folded) => {
                let margin = MarginSource {
                    network: folded.first().network,
                    model,
                    name: Some(folded.first().name_in_ledger()),
                };
                let replay = |_, network: &Network| folded.outcome_on(network);
                margin.interval(outcome, options, replay, |variation, _| {
                    let slopes = of_walk(&folded.pieces(), variation, None)?;
                    Ok((slopes, Vec::new()))
                })
            }
            Prepared::Schedule(schedule) => {
                // LogGOPSim's parameters, if given, replace those of the network.
                let Some(network) = schedule.network_in_use() else {
                    return Ok(None);
                };
                let margin = MarginSource {
                    network,
                    model,
                    name: model.map(|model| model.name().to_owned()),
                };
                let replay = |_, network: &Network| schedule.outcome_on(network);
                margin.interval(outcome, options, replay, |variation, replays| {
                    let times = replays(&upper_ends(variation)?)?;
                    Ok((one_sided(&times), times))
                })
            }
        }
    }
}

impl PreparedProgram<'_> {
    /// Interval of the makespan of a replay; see [`Prepared::interval`].
    ///
    /// # Errors
    /// Errors of [`Prepared::interval`].
    pub fn interval(
        &self,
        outcome: &Outcome,
        options: &IntervalOptions<'_>,
    ) -> Result<Option<Interval>, Error> {
        if self.further_rails.is_some() {
            return Ok(None);
        }
        let (network, model) = (self.network, self.model().contention.model());
        let margin = MarginSource {
            network,
            model,
            name: Some(self.name_in_ledger()),
        };
        // Hosts that differ slightly run tightly coupled exchanges in another order.
        let replay = |draw: usize, network: &Network| {
            let seed = options.seed + 1 + draw as u64;
            Ok(self.on(network).engine()?.disturbed(seed).run()?)
        };
        margin.interval(outcome, options, replay, |variation, replays| {
            if self.engine()?.is_free() {
                let slopes = of_walk(&[(self, 1)], variation, Some(outcome.makespan()))?;
                return Ok((slopes, Vec::new()));
            }
            let alone = of_walk(&[(self, 1)], variation, None)?;
            of_replays(&alone, variation, replays)
        })
    }

    fn name_in_ledger(&self) -> String {
        format!("{}/{}", self.model().name(), self.collectives.name)
    }
}

/// Slopes with equal sides from the relative times at upper ends; no slope where the model rejects the network.
fn one_sided(times: &[Option<f64>]) -> Vec<ScoreSlope> {
    let ends = times.iter().map(|time| time.unwrap_or(1.0));
    ends.map(ScoreSlope::from_end).collect()
}

/// Networks with one uncertain field each at its upper end.
fn upper_ends(variation: &Variation<'_>) -> Result<Vec<Network>, Error> {
    let fields = variation.fields().count();
    let at = |field: usize| {
        let mut scores = vec![0.0; fields];
        scores[field] = REACH;
        Ok(variation.at(&scores)?)
    };
    (0..fields).map(at).collect()
}

/// Replays on networks: times relative to the prediction.
type Replays<'a> = &'a dyn Fn(&[Network]) -> Result<Vec<Option<f64>>, Error>;

/// Sources of a makespan's margin.
struct MarginSource<'a> {
    network: &'a Network,
    model: Option<Model>,
    /// Name of the model in the accuracy record; without it no errors are known.
    name: Option<String>,
}

impl MarginSource<'_> {
    /// `slopes` returns the slopes of the time, and the relative times of the replays that it needed.
    fn interval(
        self,
        outcome: &Outcome,
        options: &IntervalOptions<'_>,
        replay: impl Fn(usize, &Network) -> Result<Outcome, Error> + Sync,
        slopes: impl FnOnce(
            &Variation<'_>,
            Replays<'_>,
        ) -> Result<(Vec<ScoreSlope>, Vec<Option<f64>>), Error>,
    ) -> Result<Option<Interval>, Error> {
        let MarginSource { network, model, .. } = self;
        let makespan = outcome.makespan();
        let mut parameters = ParameterEffect::default();
        if may_vary(network, model) {
            let replays =
                |networks: &[Network]| relative_times(networks, makespan, options, &replay);
            let variation = network.variation(&|field: &str| matters(field, model))?;
            let (slopes, times) = slopes(&variation, &replays)?;
            let what = if times.is_empty() { "walk" } else { "replay" };
            parameters = ParameterEffect::new(&slopes, &times, what, options.seed);
        }
        let errors = &self
            .name
            .map(|name| {
                ModelErrors::from_network(network, &name, CaseKind::Programs, options.held_out)
            })
            .unwrap_or_default();
        let parameters = &parameters;
        Ok(MarginEvidence { parameters, errors }.interval(makespan, options.level)?)
    }
}

/// Intervals of the flows of a pattern and of their makespan; `None` if the network file gives none
/// ([`missing_margin_reason`](crate::statements::missing_margin_reason)), and for several steps.
///
/// # Errors
/// Errors of [`Prepared::interval`].
pub fn pattern_intervals(
    steps: &Steps,
    network: &Network,
    options: &Options,
    predicted: &[PatternPrediction],
    asked: &IntervalOptions<'_>,
) -> Result<Option<PatternIntervals>, Error> {
    let ([flows], [PatternPrediction { prediction, .. }]) = (&steps.steps[..], predicted) else {
        return Ok(None);
    };
    let method = options.method(network)?;
    let is_transient = transient_windows(method.model, network)?.is_some();
    let name = if is_transient {
        "closed-loop/transient"
    } else {
        method.model.name()
    };
    let variation = network.variation(&|field: &str| matters(field, Some(method.model)))?;
    let networks = upper_ends(&variation)?;
    (asked.on_draws)(0, networks.len());
    let varied = parallel::map(&networks, asked.threads, |network| {
        let varied = predict_ends(flows, &steps.racks, network, method);
        (asked.on_draws)(1, networks.len());
        varied.ok()
    });
    // Medians of several seeds differ from the result of a single run, so ends are compared with a single run.
    let single = match options.runs {
        Some(_) if !networks.is_empty() => &predict_ends(flows, &steps.racks, network, method)?,
        _ => prediction,
    };
    let interval = |errors: &ModelErrors<'_>, of: &dyn Fn(&FlowsPrediction) -> Time| {
        let times = varied.iter().map(|one| {
            let time = of(one.as_ref()?);
            Some(time.as_nanos() / of(single).as_nanos())
        });
        let times: Vec<Option<f64>> = times.collect();
        let parameters =
            &ParameterEffect::new(&one_sided(&times), &times, "prediction", asked.seed);
        MarginEvidence { parameters, errors }.interval(of(prediction), asked.level)
    };
    let Some(makespan) = interval(
        &ModelErrors::from_network(network, name, CaseKind::Patterns, asked.held_out),
        &FlowsPrediction::makespan,
    )?
    else {
        return Ok(None);
    };
    let of_flows = ModelErrors::from_network(network, name, CaseKind::Flows, asked.held_out);
    let mut intervals = Vec::new();
    for index in 0..flows.len() {
        intervals.extend(interval(&of_flows, &|one| one.flows[index].duration)?);
    }
    Ok(Some(PatternIntervals {
        makespan,
        flows: intervals,
    }))
}
