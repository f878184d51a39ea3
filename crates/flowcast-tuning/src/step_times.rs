//! Times of operations' steps on a machine with given costs.

use std::{collections::BTreeMap, sync::Arc};

use crate::collective::{
    CollectivePlan, MessageCosts, MessageSize, SharedPorts, StepCosts, slowest_rank,
};
use flowcast_network::{
    algorithm::{AlgorithmTable, RuleExtent},
    collective_costs::{CollectiveCosts, MAPPED_FROM},
};
use flowcast_place::rank_place::RankPlace;
use flowcast_program::{
    expand::group::{Stage, uniform_stages},
    parallel,
};
use thiserror::Error;

use super::{cases::CollectiveCase, memory::temporaries};

/// Size below which malloc never maps memory for a request (`DEFAULT_MMAP_THRESHOLD`), in bytes.
const TRIMMED_FROM: f64 = 131_072.0;

/// A case and the places of its ranks.
#[derive(Debug, Clone)]
pub struct PlacedCase {
    /// The case.
    pub case: CollectiveCase,
    /// Places, indexed by rank.
    pub places: Arc<[RankPlace]>,
    /// Capacity of the links out of a group of switches, in multiples of a node's interface. Infinite if unknown.
    pub group_links: f64,
}

/// Error: following the messages of an operation needs too much memory and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "an algorithm that sends at most {} messages",
    CollectivePlan::MOST_MESSAGES
)]
pub struct TooManyMessages;

impl CollectiveCase {
    /// Checks that the messages of the operation can be followed.
    ///
    /// # Errors
    /// More messages than fit in memory.
    pub fn check(&self) -> Result<(), TooManyMessages> {
        let is_possible = CollectivePlan::is_possible(&stages(self), self.ranks());
        is_possible.then_some(()).ok_or(TooManyMessages)
    }
}

/// Stages and message sizes of a case.
struct PreparedCase<'a> {
    placed: &'a PlacedCase,
    stages: Vec<Stage>,
    sizes: Vec<MessageSize>,
    ports: Option<SharedPorts>,
}

/// Cases with the same messages.
struct CaseFamily<'a> {
    plan: CollectivePlan,
    cases: Vec<(usize, PreparedCase<'a>)>,
}

/// Cases that are prepared once and timed under many costs.
pub(crate) struct StepTimes<'a> {
    families: Vec<CaseFamily<'a>>,
    count: usize,
}

impl<'a> StepTimes<'a> {
    /// Prepares the cases on up to `threads` threads. Cases with the same messages share a plan.
    pub(crate) fn new(
        cases: impl IntoIterator<Item = &'a PlacedCase>,
        threads: usize,
    ) -> StepTimes<'a> {
        let cases: Vec<&PlacedCase> = cases.into_iter().collect();
        let cases = &cases;
        let families = parallel::map(&families(cases), threads, |places| family(cases, places));
        StepTimes {
            families,
            count: cases.len(),
        }
    }

    /// Time of each case, in seconds.
    pub(crate) fn seconds(&self, costs: &CollectiveCosts, threads: usize) -> Vec<f64> {
        let jobs: Vec<_> = self
            .families
            .iter()
            .flat_map(|family| {
                family
                    .cases
                    .iter()
                    .map(move |(place, case)| (*place, &family.plan, case))
            })
            .collect();
        let times = parallel::map(&jobs, threads, |(_, plan, case)| case.seconds(plan, costs));
        let mut seconds = vec![0.0; self.count];
        for ((place, ..), time) in jobs.iter().zip(times) {
            seconds[*place] = time;
        }
        seconds
    }
}

/// Time of each case, in seconds. Keeps the steps of at most one family per thread.
pub(crate) fn seconds_once(
    cases: &[PlacedCase],
    costs: &CollectiveCosts,
    threads: usize,
) -> Vec<f64> {
    let cases: &Vec<&PlacedCase> = &cases.iter().collect();
    let families = families(cases);
    let times = parallel::map(&families, threads, |places| {
        let CaseFamily { plan, cases } = family(cases, places);
        let times = cases
            .iter()
            .map(|(place, case)| (*place, case.seconds(&plan, costs)));
        times.collect::<Vec<_>>()
    });
    let mut seconds = vec![0.0; cases.len()];
    for (place, time) in times.into_iter().flatten() {
        seconds[place] = time;
    }
    seconds
}

/// Indices of cases with the same messages, grouped. Groups with many ranks come first.
fn families(cases: &[&PlacedCase]) -> Vec<Vec<usize>> {
    let mut families: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, PlacedCase { case, .. }) in cases.iter().enumerate() {
        let stages = stages(case);
        let key: Vec<_> = stages
            .iter()
            .map(|stage| (stage.task.op, stage.task.choice, stage.layout.parts()))
            .collect();
        families
            .entry((std::cmp::Reverse(case.ranks()), key))
            .or_default()
            .push(place);
    }
    families.into_values().collect()
}

fn family<'a>(cases: &[&'a PlacedCase], places: &[usize]) -> CaseFamily<'a> {
    let first = cases[places[0]];
    let plan = CollectivePlan::new(&stages(&first.case), first.case.ranks());
    let prepared = places
        .iter()
        .map(|place| (*place, PreparedCase::new(cases[*place], &plan)));
    CaseFamily {
        cases: prepared.collect(),
        plan,
    }
}

fn stages(case: &CollectiveCase) -> Vec<Stage> {
    let extent = RuleExtent::from_buffer(case.op, case.ranks(), case.bytes);
    uniform_stages(case.op, case.choice, &extent, &AlgorithmTable::default())
}

impl<'a> PreparedCase<'a> {
    fn new(placed: &'a PlacedCase, plan: &CollectivePlan) -> PreparedCase<'a> {
        let stages = stages(&placed.case);
        let sizes = plan.sizes(&stages);
        let mut prepared = PreparedCase {
            placed,
            stages,
            sizes,
            ports: None,
        };
        if placed.group_links.is_infinite() {
            prepared.ports = Some(prepared.ports(plan, f64::INFINITY));
        }
        prepared
    }

    fn ports(&self, plan: &CollectivePlan, group_links: f64) -> SharedPorts {
        let bytes: Vec<u64> = self.sizes.iter().map(|size| size.bytes).collect();
        SharedPorts::new(plan, &bytes, &self.placed.places, group_links)
    }

    fn seconds(&self, plan: &CollectivePlan, costs: &CollectiveCosts) -> f64 {
        let step_costs = self.step_costs(costs);
        let shared;
        let ports = match &self.ports {
            Some(ports) => ports,
            None => {
                shared = self.ports(plan, self.placed.group_links * costs.global_share);
                &shared
            }
        };
        slowest_rank(plan, &step_costs, &self.placed.places, ports)
    }

    fn step_costs(&self, costs: &CollectiveCosts) -> StepCosts {
        let case = &self.placed.case;
        let memory_slowdown = (f64::from(case.ranks_per_node) / costs.memory_ranks).max(1.0);
        let bytes = case.bytes.0 as f64;
        let beyond_cache = |bytes: f64| (bytes - costs.cache).max(0.0) * memory_slowdown;
        let combining =
            |bytes: f64| bytes * costs.combine + beyond_cache(bytes) * costs.far_combine;
        let count = temporaries(case.op, case.choice);
        let fresh = if bytes > MAPPED_FROM {
            costs.mapped_memory
        } else if bytes > TRIMMED_FROM && count > 1.0 {
            costs.trimmed_memory
        } else {
            0.0
        };
        let combined_at_end: u64 = self.stages.iter().map(|stage| stage.combined).sum();
        let start = costs.start
            + bytes * (costs.copy + count * fresh)
            + beyond_cache(bytes) * costs.far_copy
            + combining(combined_at_end as f64);
        StepCosts {
            start,
            messages: self
                .sizes
                .iter()
                .map(|size| {
                    let mut message = message_costs(size, costs);
                    if size.is_combined {
                        message.receive += combining(size.bytes as f64);
                    }
                    message
                })
                .collect(),
            noise: costs.noise,
        }
    }
}

fn message_costs(size: &MessageSize, costs: &CollectiveCosts) -> MessageCosts {
    let bytes = size.bytes as f64;
    let is_eager = bytes <= costs.eager_limit;
    let mut both = if bytes > costs.inline_limit {
        costs.beyond_inline
    } else {
        0.0
    };
    if size.is_packed {
        both += bytes * costs.pack;
    }
    if is_eager {
        both += bytes * costs.eager_copy;
    }
    let wire = bytes * costs.gap + (bytes - costs.long_from).max(0.0) * costs.long_gap;
    MessageCosts {
        send: costs.send_overhead + both,
        receive: costs.receive_overhead + both,
        wire: [bytes * costs.node_gap, wire, wire, wire],
        latency: [
            costs.node_latency,
            costs.switch_latency,
            costs.group_latency,
            costs.global_latency,
        ],
        handshake: (!is_eager).then_some(2.0 * costs.handshake),
    }
}
