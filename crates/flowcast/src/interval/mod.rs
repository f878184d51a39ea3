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
use evidence::{MarginEvidence, ModelErrors};
pub use evidence::{matters, may_vary};
use slopes::{Slopes, relative_times, upper_ends};

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
}

impl Default for IntervalOptions<'_> {
    fn default() -> Self {
        IntervalOptions {
            level: 0.9,
            seed: 1,
            threads: 1,
            held_out: None,
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
                let first = folded.first();
                let name = Some(first.name_in_record());
                makespan_interval(first.network, model, name, outcome, options, |variation| {
                    Slopes::of_walk(&folded.pieces(), variation, None)
                })
            }
            Prepared::Schedule(schedule) => {
                // LogGOPSim's parameters, if given, replace those of the network.
                let Some(network) = schedule.network_in_use() else {
                    return Ok(None);
                };
                let name = model.map(|model| model.name().to_owned());
                makespan_interval(network, model, name, outcome, options, |variation| {
                    let (ends, makespan) = (upper_ends(variation)?, outcome.makespan());
                    let times = relative_times(&ends, makespan, options, |_, network| {
                        schedule.outcome_on(network)
                    })?;
                    Ok(Slopes::of_fields(&times, "replay"))
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
        let model = self.model().contention.model();
        let name = Some(self.name_in_record());
        makespan_interval(self.network, model, name, outcome, options, |variation| {
            let makespan = outcome.makespan();
            if self.engine()?.is_free() {
                return Slopes::of_walk(&[(self, 1)], variation, Some(makespan));
            }
            let alone = Slopes::of_walk(&[(self, 1)], variation, None)?;
            alone.with_contention(variation, |networks| {
                // Hosts that differ slightly run tightly coupled exchanges in another order.
                relative_times(networks, makespan, options, |number, network| {
                    let seed = options.seed + 1 + number as u64;
                    Ok(self.on(network).engine()?.disturbed(seed).run()?)
                })
            })
        })
    }

    fn name_in_record(&self) -> String {
        format!("{}/{}", self.model().name(), self.collectives.name)
    }
}

/// Interval of a makespan. `name` is the model in the accuracy record; without it no errors are known.
fn makespan_interval(
    network: &Network,
    model: Option<Model>,
    name: Option<String>,
    outcome: &Outcome,
    options: &IntervalOptions<'_>,
    slopes: impl FnOnce(&Variation<'_>) -> Result<Slopes, Error>,
) -> Result<Option<Interval>, Error> {
    let mut found = Slopes::default();
    if may_vary(network, model) {
        found = slopes(&network.variation(&|field: &str| matters(field, model))?)?;
    }
    let errors = name.map(|name| {
        ModelErrors::from_network(network, &name, CaseKind::Programs, options.held_out)
    });
    let evidence = MarginEvidence {
        slopes: &found,
        errors: &errors.unwrap_or_default(),
    };
    Ok(evidence.interval(outcome.makespan(), options)?)
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
    let varied = parallel::map(&networks, asked.threads, |network| {
        predict_ends(flows, &steps.racks, network, method).ok()
    });
    // Medians of several seeds differ from the result of a single run, so ends are compared with a single run.
    let single = match options.runs {
        Some(_) if !networks.is_empty() => &predict_ends(flows, &steps.racks, network, method)?,
        _ => prediction,
    };
    let interval = |errors: &ModelErrors<'_>, of: &dyn Fn(&FlowsPrediction) -> Time| {
        let mut slopes = Slopes::default();
        if !varied.is_empty() {
            let times = varied.iter().map(|one: &Option<FlowsPrediction>| {
                Some(of(one.as_ref()?).as_nanos() / of(single).as_nanos())
            });
            slopes = Slopes::of_fields(&times.collect::<Vec<_>>(), "prediction");
        }
        let slopes = &slopes;
        MarginEvidence { slopes, errors }.interval(of(prediction), asked)
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
