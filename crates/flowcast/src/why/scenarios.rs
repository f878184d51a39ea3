//! Named what-ifs of one program, side by side: other networks, faults, noise.

use std::borrow::Cow;

use flowcast_graph::{EventGraph, Selected, To, selector::Selector};
use flowcast_network::network::Network;
use flowcast_program::{Program, Trace, aggregate::aggregated, parallel};
use flowcast_replay::{sweep::SetOutcome, time_part::TimePart};
use flowcast_table::{self as table, Document, fixed, rows, shown};
use flowcast_units::{Bytes, Node, Rank, Time};

use super::{NoiseOptions, Noisy, program_of};
use crate::{
    Error, Interval, IntervalOptions, Options, PreparedProgram,
    statements::{by_name, margin, marked_name, of_predictions, shown_time, stand_ins},
};
use flowcast_replay::outcome::finite_times;

/// A network and the changes of a what-if.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// The network with the fields that the scenario sets.
    pub network: Network,
    /// Model, mapping, collectives, rendezvous.
    pub options: Options,
    /// Nodes with slow ranks, each with the factor by which their computations take longer.
    pub slow_nodes: Vec<(Node, f64)>,
    /// Largest total size of consecutive messages to one receiver that are sent as one ([`aggregated`]).
    pub aggregate: Option<Bytes>,
    /// Costs that differ from the network's.
    pub costs: Vec<Cost>,
    /// Random delays of computations.
    pub noise: Option<NoiseOptions>,
}

/// Costs that differ from the network's.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Selected costs, by node, pair, call, size or kind of link.
    pub selector: Selector,
    /// New costs, as a factor or as a value.
    pub to: To,
}

impl Cost {
    /// Creates a cost that multiplies the rate of messages between this node and other nodes by `rate`.
    ///
    /// # Errors
    /// A rate of 0 or less.
    pub fn slow_link(node: Node, rate: f64) -> Result<Cost, Error> {
        if !(rate > 0.0 && rate.is_finite()) {
            let found = rate.to_string();
            return Err(Error::option(
                "slow_links",
                found,
                "a fraction of the rate, above 0",
            ));
        }
        let selector = Selector::parse(&format!("gap_per_byte[node={node},link=between]"))?;
        Ok(Cost {
            selector,
            to: To::Factor(1.0 / rate),
        })
    }

    /// Costs for messages that take no time on their way, as if all of it were hidden behind computations.
    pub fn perfect_overlap() -> [Cost; 2] {
        [TimePart::Latency, TimePart::Bandwidth].map(|quantity| Cost {
            selector: Selector::all(quantity),
            to: To::Value(0.0),
        })
    }
}

/// Prediction for a scenario.
struct ScenarioResult {
    makespan: Time,
    /// Interval of the makespan, or of the drawn delays; `None` if it is unknown or was not requested, and for changed costs
    /// without delays.
    interval: Option<Interval>,
    /// Sentence on what the interval covers, or on the reason why there is none.
    margin: String,
    notes: Vec<String>,
    communication: f64,
    model: &'static str,
    noisy: Option<Noisy>,
    /// `true` if events keep the order of the replay without the changes, although the changes might alter it.
    keeps_order: bool,
}

/// Predicts the program for each of the scenarios, on as many threads as the options of the first one allow, with intervals
/// if they are requested and known. Ratios are relative to the first scenario.
///
/// # Errors
/// Errors of the first scenario that has one; a schedule; no scenario.
pub fn scenarios(
    trace: &Trace,
    all: &[Scenario],
    interval: Option<&IntervalOptions<'_>>,
) -> Result<Document, Error> {
    let program = &*program_of(trace)?;
    let Some(first) = all.first() else {
        return Err(Error::option(
            "--scenarios",
            "none",
            "at least one [[scenario]]",
        ));
    };
    let found = parallel::map(all, first.options.threads, |one| {
        one.predict(program, interval)
    });
    let found: Vec<ScenarioResult> = found.into_iter().collect::<Result<_, _>>()?;
    let margins = all.iter().zip(&found);
    let margins = margins.map(|(one, found)| (one.name.clone(), found.margin.clone()));
    Ok(answer(trace, all, &found)
        .lines(by_name(&margins.collect::<Vec<_>>()))
        .noted(notes(all, &found)))
}

fn notes(all: &[Scenario], found: &[ScenarioResult]) -> Vec<String> {
    let networks = all.iter().map(|scenario| Some(&scenario.network));
    of_predictions(networks.zip(found.iter().map(|found| &found.notes[..])))
}

impl Scenario {
    fn predict(
        &self,
        program: &Program,
        interval: Option<&IntervalOptions<'_>>,
    ) -> Result<ScenarioResult, Error> {
        let mut prepared = PreparedProgram::new(program, &self.network, &self.options)?;
        if let Some(up_to) = self.aggregate {
            prepared = prepared.aggregated(up_to);
        }
        for (node, factor) in &self.slow_nodes {
            let found = format!("node {node}, {factor} times as long");
            let slow = prepared.slowed(*node, *factor);
            prepared = slow.ok_or_else(|| {
                Error::option(
                    "slow_nodes",
                    found,
                    "a node on which ranks run, and a factor above 0",
                )
            })?;
        }
        let model = prepared.model().name();
        let notes = prepared.notes();
        if self.costs.is_empty() && self.noise.is_none() {
            let outcome = prepared.outcome()?;
            let communication = SetOutcome::from(&outcome).communication_share();
            let found = interval.map(|asked| prepared.interval(&outcome, asked));
            let found = found.transpose()?.flatten();
            return Ok(ScenarioResult {
                makespan: outcome.makespan(),
                margin: margin([&self.network], found.as_ref(), interval.is_some()),
                interval: found,
                notes,
                communication,
                model,
                noisy: None,
                keeps_order: false,
            });
        }
        let engine = prepared.engine()?;
        let (outcome, graph) = EventGraph::record(&engine)?;
        let computes: Time = outcome.ranks.iter().map(|rank| rank.compute).sum();
        let graph = self.changed(graph)?;
        let noisy = self
            .noise
            .as_ref()
            .map(|noise| Noisy::from_graph(&graph, noise));
        let ends: Time = graph.ends().sum();
        let makespan = noisy
            .as_ref()
            .map_or(graph.makespan(), |noisy| noisy.quantile(0.5));
        finite_times([makespan, ends], || format!("the scenario {}", self.name))?;
        let communication = (1.0 - computes.share_of(ends)).clamp(0.0, 1.0);
        let interval = noisy.as_ref().map(Noisy::as_interval);
        Ok(ScenarioResult {
            makespan,
            margin: interval.as_ref().map_or_else(
                || "no margin known: margins are not predicted for changed costs".to_owned(),
                |interval| margin([&self.network], Some(interval), true),
            ),
            interval,
            notes,
            communication,
            model,
            noisy,
            keeps_order: !graph.is_exact(),
        })
    }

    fn changed<'g>(&self, graph: EventGraph<'g>) -> Result<EventGraph<'g>, Error> {
        let changes: Vec<(Selected, To)> = self
            .costs
            .iter()
            .map(|cost: &Cost| -> Result<(Selected, To), Error> {
                let selected = graph.selected(&cost.selector);
                let is_all = cost.selector.conditions.is_empty();
                if selected.is_empty() && !is_all {
                    let found = format!(
                        "no costs `{}` in the program (scenario `{}`)",
                        cost.selector, self.name
                    );
                    return Err(Error::option("costs", found, "costs that occur in it"));
                }
                Ok((selected, cost.to))
            })
            .collect::<Result<_, _>>()?;
        Ok(graph.changed(&changes))
    }
}

impl PreparedProgram<'_> {
    /// Merges consecutive messages to one receiver. Collectives must be carried out before, because this matches all
    /// messages again by their tags, and a merged message keeps only one of its tags.
    fn aggregated(self, up_to: Bytes) -> Self {
        PreparedProgram {
            program: Cow::Owned(aggregated(&self.program, up_to)),
            ..self
        }
    }

    /// Returns the program with the ranks of a node `factor` times as slow in computing; `None` if the node has no ranks, or
    /// if the factor is not finite and above 0.
    fn slowed(&self, node: Node, factor: f64) -> Option<Self> {
        let ranks = Rank::all(self.program().ranks());
        let own: Vec<Rank> = ranks
            .filter(|rank| self.placement.node(*rank) == node)
            .collect();
        let is_factor = factor > 0.0 && factor.is_finite();
        (is_factor && !own.is_empty()).then(|| {
            own.into_iter().fold(self.clone(), |prepared, rank| {
                prepared.paced(rank, 1.0 / factor)
            })
        })
    }
}

fn answer(trace: &Trace, all: &[Scenario], found: &[ScenarioResult]) -> Document {
    let base = found[0].makespan;
    let (mut shortest, mut longest) = (0, 0);
    for (at, one) in found.iter().enumerate() {
        if one.makespan < found[shortest].makespan {
            shortest = at;
        }
        if one.makespan > found[longest].makespan {
            longest = at;
        }
    }
    let [shortest, longest] = [shortest, longest].map(|at| {
        format!(
            "`{}`, {} ({:.3} times `{}`)",
            all[at].name,
            found[at].time(),
            found[at].makespan.share_of(base),
            all[0].name
        )
    });
    let mut models: Vec<&str> = found.iter().map(|found| found.model).collect();
    models.sort_unstable();
    models.dedup();
    let kept: Vec<String> = all
        .iter()
        .zip(found)
        .filter(|(_, found)| found.keeps_order)
        .map(|(scenario, _)| format!("`{}`", scenario.name))
        .collect();
    let table = rows(all.iter().zip(found))
        .column("name", "scenario", |(scenario, _)| &scenario.name)
        .field("network", |(scenario, _)| &scenario.network.name)
        .cell("network", |(scenario, _)| marked_name(&scenario.network))
        .field("stand_ins", |(scenario, _)| stand_ins(&scenario.network))
        .field("model", |(_, found)| found.model)
        .column("makespan_s", "predicted time", |(_, found)| {
            shown(found.makespan, found.time())
        })
        .field("interval_s", |(_, found)| {
            found.interval.as_ref().map(|of| (of.low, of.high))
        })
        .field("interval_level", |(_, found)| {
            found.interval.as_ref().map(|of| of.level)
        })
        .field("margin", |(_, found)| &found.margin)
        .column("ratio", "ratio to first", |(_, found)| {
            fixed(found.makespan.share_of(base), 3)
        })
        .column("communication_share", "in communication", |(_, found)| {
            table::percent(found.communication, 1)
        })
        .field("noise", |(_, found)| {
            found.noisy.as_ref().map(Noisy::document)
        })
        .field("keeps_order", |(_, found)| found.keeps_order)
        .bars(|(_, found)| found.makespan.share_of(base));
    Document::new("scenarios")
        .titled(format!("{}: scenarios", trace.name()))
        .line(format!("shortest: {shortest}; longest: {longest}"))
        .line(format!("by model {}", models.join(", ")))
        .lines((!kept.is_empty()).then(|| {
            format!(
                "events keep the order of the unchanged replay in: {}",
                kept.join(", ")
            )
        }))
        .table("scenarios", table)
}

impl ScenarioResult {
    /// The predicted time, with its interval if one is known.
    fn time(&self) -> String {
        shown_time(self.makespan, self.interval.as_ref())
    }
}
