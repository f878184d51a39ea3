//! Margins of predictions: intervals that contain the measured time with a given probability.
//!
//! The network file quantifies two sources of uncertainty. The **parameters** have intervals. Networks are drawn from these
//! ([`Network::drawn`]), and the prediction is repeated on each of them: 64 times if messages do not meet, because a walk
//! over the program predicts 32 networks at the same time, otherwise up to 16 times. The **model** differs from the machine.
//! Its errors on earlier measurements are in the file's [accuracy record](flowcast_network::accuracy). For a program, these
//! are errors on programs, from laboratories if no program ran on this network. No interval is narrower than the misfit of
//! the parameters. Each error is added to each deviation on a drawn network. The ends of the interval are the sums with the
//! ranks of split conformal prediction ([`margin`](flowcast_statistics::conformal::margin)). Errors on the predicted case
//! itself are left out. An interval always contains the prediction itself.

mod evidence;

use flowcast_network::{
    accuracy::CaseKind,
    cluster::pattern::Steps,
    network::Network,
    sharing::{model::Model, rates::transient_windows},
};
use flowcast_program::parallel;
use flowcast_replay::{
    outcome::Outcome,
    sweep::{self, WhatIf},
};
use flowcast_report::standing::Interval;
use flowcast_traffic::flows::concurrent::{self, predict_ends};
use flowcast_units::Time;

use crate::{Error, Options, PatternPrediction, Prepared, PreparedProgram};
use evidence::{
    DRAWS_ONE_BY_ONE, DRAWS_TOGETHER, Drawn, MarginEvidence, ModelErrors, draws_in_time,
};
pub use evidence::{matters, may_vary};

/// Number of flows above which a pattern takes the smaller number of draws.
const MANY_FLOWS: usize = 400;

/// Requested properties of an interval.
#[derive(Clone, Copy)]
pub struct IntervalOptions<'a> {
    /// Probability that the interval contains the measured time, above 0 and below 1.
    pub level: f64,
    /// Seed of the random numbers; equal seeds give equal intervals.
    pub seed: u64,
    /// Number of drawn networks; `None` for a number that depends on the work of a replay.
    pub draws: Option<usize>,
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
            draws: None,
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
                    usual_draws: Some(DRAWS_TOGETHER),
                };
                margin.interval(outcome, options, |networks| {
                    Drawn::each(&networks, options, |_, network| folded.outcome_on(network))
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
                    usual_draws: draws_in_time(outcome, network, model),
                };
                margin.interval(outcome, options, |networks| {
                    Drawn::each(&networks, options, |_, network| {
                        schedule.outcome_on(network)
                    })
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
        let walks = may_vary(network, model) && self.engine()?.is_free();
        let margin = MarginSource {
            network,
            model,
            name: Some(self.name_in_ledger()),
            usual_draws: if walks {
                Some(DRAWS_TOGETHER)
            } else {
                draws_in_time(outcome, network, model)
            },
        };
        margin.interval(outcome, options, |networks| {
            if walks {
                return self.walked(networks);
            }
            // Hosts that differ slightly run tightly coupled exchanges in another order.
            Drawn::each(&networks, options, |draw, network| {
                let seed = options.seed + 1 + draw as u64;
                Ok(self.on(network).engine()?.disturbed(seed).run()?)
            })
        })
    }

    fn name_in_ledger(&self) -> String {
        format!("{}/{}", self.model().name(), self.collectives.name)
    }

    /// Makespans on many networks, from one walk.
    fn walked(&self, networks: Vec<Network>) -> Result<Drawn, Error> {
        let what_ifs: Vec<WhatIf> = networks
            .into_iter()
            .map(|network: Network| {
                let placement = self.placement.on(&network.machine);
                WhatIf::placed(network, placement, self.rendezvous)
            })
            .collect();
        let outcomes = sweep::run(self.program(), &what_ifs)?;
        Ok(Drawn::some(
            outcomes.iter().map(|outcome| outcome.makespan()).collect(),
            what_ifs.len(),
        ))
    }
}

/// Sources of a makespan's margin.
struct MarginSource<'a> {
    network: &'a Network,
    model: Option<Model>,
    /// Name of the model in the accuracy record; without it no errors are known.
    name: Option<String>,
    /// Default number of draws; `None` if a replay takes too long for draws.
    usual_draws: Option<usize>,
}

impl MarginSource<'_> {
    fn interval(
        self,
        outcome: &Outcome,
        options: &IntervalOptions<'_>,
        replay: impl FnOnce(Vec<Network>) -> Result<Drawn, Error>,
    ) -> Result<Option<Interval>, Error> {
        let MarginSource { network, model, .. } = self;
        let drawn = &match options.draws.or(self.usual_draws) {
            _ if !may_vary(network, model) => Drawn::default(),
            None => Drawn::too_long(),
            Some(draws) => {
                (options.on_draws)(0, draws);
                replay(network.drawn(&|field: &str| matters(field, model), draws, options.seed)?)?
            }
        };
        let errors = &self
            .name
            .map(|name| {
                ModelErrors::from_network(network, &name, CaseKind::Programs, options.held_out)
            })
            .unwrap_or_default();
        let makespan = outcome.makespan();
        Ok(MarginEvidence { drawn, errors }.interval(makespan, makespan, options.level)?)
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
    let is_slow = is_transient || method.model == Model::Packet || flows.len() > MANY_FLOWS;
    let draws = asked.draws.unwrap_or(if is_slow {
        DRAWS_ONE_BY_ONE.0
    } else {
        DRAWS_TOGETHER
    });
    let networks = network.drawn(
        &|field: &str| matters(field, Some(method.model)),
        draws,
        asked.seed,
    )?;
    (asked.on_draws)(0, draws);
    let drawn = parallel::map(&networks, asked.threads, |network| {
        let drawn = predict_ends(flows, &steps.racks, network, method);
        (asked.on_draws)(1, draws);
        drawn
    });
    let drawn: Vec<concurrent::FlowsPrediction> = drawn.into_iter().flatten().collect();
    // Medians of several seeds differ from the result of a single run, so draws are compared with a single run.
    let single = match options.runs {
        Some(_) if !drawn.is_empty() => &predict_ends(flows, &steps.racks, network, method)?,
        _ => prediction,
    };
    let interval = |errors: &ModelErrors<'_>, of: &dyn Fn(&concurrent::FlowsPrediction) -> Time| {
        let drawn = &Drawn::some(drawn.iter().map(of).collect(), networks.len());
        MarginEvidence { drawn, errors }.interval(of(prediction), of(single), asked.level)
    };
    let Some(makespan) = interval(
        &ModelErrors::from_network(network, name, CaseKind::Patterns, asked.held_out),
        &concurrent::FlowsPrediction::makespan,
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
