//! Replay of one program on many networks in one pass; the networks differ only in their parameters.
//!
//! Without contention, the order in which a [`Replay`] runs the ranks does not depend on times. One walk over the
//! instructions therefore serves many networks: every time becomes an array with one *lane* for each network. Each lane
//! performs the same operations as a replay, so that the results are equal to the last bit.
//!
//! Networks share a walk if they place the ranks in the same way and agree on the messages that wait for their receiver;
//! other networks walk separately. If links, buses or processors are limited, the order does depend on times, and each
//! network has its own replay.

use super::{
    ReplayEngine, SimulateError, contention,
    costs::{Costs, Rendezvous},
    observer::Unobserved,
    outcome::{Outcome, RankOutcome},
    placement::Placement,
    routes::route_of_messages,
    transit::Undisturbed,
    walk::{LaneCosts, Replay, Walk, awaited_sends},
};
use flowcast_network::{machine::Mapping, network::Network};
use flowcast_program::program::Program;
use flowcast_units::Time;

/// Maximum number of networks that share a walk.
pub const WIDEST: usize = WIDE;

const WIDE: usize = 32;
const NARROW: usize = 8;

/// One network to replay the program on.
#[derive(Debug, Clone)]
pub struct WhatIf {
    network: Network,
    placement: Placement,
    rendezvous: Rendezvous,
    is_limited: bool,
}

impl WhatIf {
    /// Places the ranks of a program. Without `mapping`, the network's mapping applies.
    ///
    /// # Errors
    /// [`SimulateError::Placement`] if the program does not fit the network's machine.
    pub fn new(
        program: &Program,
        network: Network,
        mapping: Option<&Mapping>,
        rendezvous_from: Option<flowcast_units::Bytes>,
    ) -> Result<WhatIf, SimulateError> {
        let placement = Placement::of_program(&network.machine, mapping, program)?;
        let rendezvous = Rendezvous::from_network(&network, rendezvous_from);
        let is_limited = contention::is_needed(&network, &placement);
        Ok(WhatIf {
            network,
            placement,
            rendezvous,
            is_limited,
        })
    }

    /// Removes contention, whatever the machine limits.
    #[must_use]
    pub fn unlimited(self) -> WhatIf {
        WhatIf {
            is_limited: false,
            ..self
        }
    }

    /// A network with placed ranks and without contention, whatever the machine limits.
    pub fn placed(network: Network, placement: Placement, rendezvous: Rendezvous) -> WhatIf {
        WhatIf {
            network,
            placement,
            rendezvous,
            is_limited: false,
        }
    }

    /// The individual replay on this network.
    ///
    /// # Errors
    /// The same as for [`ReplayEngine::new`].
    pub fn replay<'a>(&self, program: &'a Program) -> Result<ReplayEngine<'a>, SimulateError> {
        if self.is_limited {
            return ReplayEngine::new(
                program,
                &self.network,
                self.placement.clone(),
                self.rendezvous,
            );
        }
        let replay = Replay::new(
            program,
            &self.network,
            self.placement.clone(),
            self.rendezvous,
        )?;
        Ok(replay.into())
    }
}

/// End times of the ranks on one of the networks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SetOutcome {
    /// End of each rank's last record, indexed by rank.
    pub ends: Vec<Time>,
    /// Time of each rank in the program's own computation, indexed by rank.
    pub computes: Vec<Time>,
}

impl SetOutcome {
    /// Time at which the last rank ended.
    pub fn makespan(&self) -> Time {
        self.ends.iter().copied().max().unwrap_or_default()
    }

    /// Fraction of the ranks' time that is not the program's own computation, from 0 to 1.
    pub fn communication_share(&self) -> f64 {
        let total: Time = self.ends.iter().copied().sum();
        let compute: Time = self.computes.iter().copied().sum();
        if total == Time::ZERO {
            0.0
        } else {
            (1.0 - compute.as_nanos() / total.as_nanos()).clamp(0.0, 1.0)
        }
    }
}

impl From<&Outcome> for SetOutcome {
    fn from(outcome: &Outcome) -> SetOutcome {
        SetOutcome {
            ends: outcome.ranks.iter().map(|rank| rank.end).collect(),
            computes: outcome.ranks.iter().map(|rank| rank.compute).collect(),
        }
    }
}

/// Replays the program on every network; the results are in the order of the networks.
///
/// # Errors
/// The same as for [`ReplayEngine::new`] and [`ReplayEngine::run`].
pub fn run(program: &Program, what_ifs: &[WhatIf]) -> Result<Vec<SetOutcome>, SimulateError> {
    let prepared: Vec<Costs> = what_ifs
        .iter()
        .map(|what_if| {
            Costs::new(
                program,
                &what_if.network,
                &what_if.placement,
                what_if.rendezvous,
            )
        })
        .collect();
    let mut outcomes = vec![SetOutcome::default(); what_ifs.len()];
    for alike in groups(what_ifs, &prepared) {
        let first = &what_ifs[alike[0]];
        let is_alone = first.is_limited || prepared[alike[0]].needs_polling();
        if is_alone || alike.len() == 1 || !program.accesses().is_empty() {
            for index in alike {
                outcomes[index] = SetOutcome::from(&what_ifs[index].replay(program)?.run()?);
            }
            continue;
        }
        let route_of = route_of_messages(program, &first.network, &first.placement)?;
        let waits = prepared[alike[0]].has_rendezvous();
        let awaited = if waits {
            awaited_sends(program)
        } else {
            Vec::new()
        };
        let same = CommonProperties {
            program,
            placement: &first.placement,
            route_of: &route_of,
            awaited: &awaited,
        };
        for pass in alike.chunks(WIDE) {
            let costs: Vec<&Costs> = pass.iter().map(|index| &prepared[*index]).collect();
            let ended = if pass.len() <= NARROW {
                same.walk::<NARROW>(&costs)?
            } else {
                same.walk::<WIDE>(&costs)?
            };
            pass.iter()
                .zip(ended)
                .for_each(|(index, outcome)| outcomes[*index] = outcome);
        }
    }
    Ok(outcomes)
}

/// Common properties of the networks of a walk.
#[derive(Clone, Copy)]
struct CommonProperties<'a> {
    program: &'a Program,
    placement: &'a Placement,
    route_of: &'a [u16],
    awaited: &'a [bool],
}

impl CommonProperties<'_> {
    fn walk<const W: usize>(&self, networks: &[&Costs]) -> Result<Vec<SetOutcome>, SimulateError> {
        let CommonProperties {
            program,
            placement,
            route_of,
            awaited,
        } = *self;
        let costs = LaneCosts::<W>::new(networks);
        let walk = Walk {
            program,
            placement,
            costs: &costs,
            route_of,
            awaited,
        };
        let (mut observer, mut transit) = (Unobserved, Undisturbed);
        let ranks = walk.run(&mut observer, &mut transit)?;
        let ranks = &ranks[..program.ranks()];
        let times = |lane: usize| {
            ranks
                .iter()
                .map(move |rank| RankOutcome::new(rank.time[lane], rank.compute[lane], Time::ZERO))
        };
        Ok((0..networks.len())
            .map(|lane: usize| SetOutcome {
                ends: times(lane).map(|rank| rank.end).collect(),
                computes: times(lane).map(|rank| rank.compute).collect(),
            })
            .collect())
    }
}

/// Groups of networks that may share a walk, as indices.
fn groups(what_ifs: &[WhatIf], costs: &[Costs]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for index in 0..what_ifs.len() {
        match groups.iter_mut().find(|group: &&mut Vec<usize>| {
            let first = group[0];
            what_ifs[first].is_limited == what_ifs[index].is_limited
                && what_ifs[first]
                    .placement
                    .places_like(&what_ifs[index].placement)
                && costs[first].waits_like(&costs[index])
                && costs[first].needs_polling() == costs[index].needs_polling()
                && costs[first].class_of_slot.is_empty() == costs[index].class_of_slot.is_empty()
        }) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}
