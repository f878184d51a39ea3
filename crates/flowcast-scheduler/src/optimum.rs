//! The best schedule of a small set, by branch and bound.
//!
//! Messages are placed in order of arrival, first in, first out on each rail. A branch ends when the remaining messages
//! cannot beat the best schedule so far, because a single message would be too late or because the rails have too little
//! time for all of them ([`super::bound`]). Identical rails are tried once.

use super::{
    MAX_RAILS, RailId, RailsError,
    bound::{Weights, earliest, weights},
    discipline::{Discipline, SchedulerName},
    rail::check_count,
    schedule::{RailMessage, RailSchedule, check_order, evaluate, simulate},
    turns::Shares,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::Time;

/// Quantity to be minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// The delivery of the last message.
    Makespan,
    /// The mean delivery time of all messages.
    Mean,
}

/// The best schedule found.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimum {
    /// Best known schedule, optimal if it is `proven`.
    pub schedule: RailSchedule,
    /// `true` if the search was complete: no schedule is better.
    pub proven: bool,
    /// Number of branches that were examined.
    pub branches: u64,
}

/// Largest set that is searched. Larger ones would make the first branch alone too deep.
const SEARCHED: usize = 256;

/// Searches for the best schedule. Gives up the proof after `limit` branches, and for more than 256 messages.
///
/// # Errors
/// No rail, too many, or messages that are not in order of arrival.
pub fn optimum(
    rails: &[LogGp],
    messages: &[RailMessage],
    objective: Objective,
    limit: u64,
) -> Result<Optimum, RailsError> {
    check_count(rails.len())?;
    check_order(messages)?;
    let mut best = first_guess(rails, messages, objective)?;
    if messages.len() > SEARCHED {
        return Ok(Optimum {
            schedule: best,
            proven: false,
            branches: 0,
        });
    }
    let mut search = OptimumSearch::new(rails, messages, objective, limit, objective.value(&best));
    search.descend(0, Time::ZERO);
    if !search.best_choices.is_empty() {
        best = evaluate(rails, messages, search.best_choices)?;
    }
    Ok(Optimum {
        schedule: best,
        proven: search.branches <= limit,
        branches: search.branches.min(limit),
    })
}

impl Objective {
    /// The value of a schedule.
    pub fn value(self, schedule: &RailSchedule) -> Time {
        match self {
            Objective::Makespan => schedule.makespan,
            Objective::Mean => schedule.mean,
        }
    }
}

/// Returns the best of the default scheduler and each single rail.
fn first_guess(
    rails: &[LogGp],
    messages: &[RailMessage],
    objective: Objective,
) -> Result<RailSchedule, RailsError> {
    let shares = Shares::by_bandwidth(rails)?;
    let greedy = simulate(
        SchedulerName::new(Discipline::EarliestDelivery),
        rails,
        shares,
        messages,
    )?
    .schedule;
    (0..rails.len()).try_fold(greedy, |best, rail| {
        let alone = evaluate(rails, messages, vec![RailId(rail as u8); messages.len()])?;
        Ok(if objective.value(&alone) < objective.value(&best) {
            alone
        } else {
            best
        })
    })
}

struct OptimumSearch<'a> {
    rails: &'a [LogGp],
    messages: &'a [RailMessage],
    objective: Objective,
    limit: u64,
    branches: u64,
    /// Makespan, or sum of the deliveries, to be beaten.
    to_beat: Time,
    best_choices: Vec<RailId>,
    choices: Vec<RailId>,
    free: [Time; MAX_RAILS],
    weights: Vec<Weights>,
    /// Demand of the messages from an index on, for each of the weights.
    demand: Vec<Vec<f64>>,
}

impl<'a> OptimumSearch<'a> {
    fn new(
        rails: &'a [LogGp],
        messages: &'a [RailMessage],
        objective: Objective,
        limit: u64,
        best: Time,
    ) -> OptimumSearch<'a> {
        let weights = if objective == Objective::Makespan {
            weights(rails, messages)
        } else {
            Vec::new()
        };
        let demand = weights
            .iter()
            .map(|weights: &Weights| {
                let mut left: Vec<f64> = messages
                    .iter()
                    .map(|message| weights.demand(rails, message.size))
                    .collect();
                (0..left.len().saturating_sub(1))
                    .rev()
                    .for_each(|index| left[index] += left[index + 1]);
                left
            })
            .collect();
        let to_beat = if objective == Objective::Mean {
            best * messages.len() as f64
        } else {
            best
        };
        OptimumSearch {
            rails,
            messages,
            objective,
            limit,
            branches: 0,
            to_beat,
            best_choices: Vec::new(),
            choices: Vec::with_capacity(messages.len()),
            free: [Time::ZERO; MAX_RAILS],
            weights,
            demand,
        }
    }

    fn descend(&mut self, index: usize, value: Time) {
        self.branches += 1;
        if self.branches > self.limit || !self.can_win(index, value) {
            return;
        }
        let Some(message) = self.messages.get(index) else {
            self.to_beat = value;
            self.best_choices.clone_from(&self.choices);
            return;
        };
        for rail in self.order(message) {
            let (cost, before) = (&self.rails[rail.index()], self.free[rail.index()]);
            let start = before.max(message.arrival);
            let next = self.joined(value, start + cost.one_way(message.size));
            self.free[rail.index()] = start + cost.spacing(message.size);
            self.choices.push(rail);
            self.descend(index + 1, next);
            self.choices.pop();
            self.free[rail.index()] = before;
        }
    }

    fn joined(&self, value: Time, delivered: Time) -> Time {
        match self.objective {
            Objective::Makespan => value.max(delivered),
            Objective::Mean => value + delivered,
        }
    }

    fn can_win(&self, index: usize, value: Time) -> bool {
        let left = &self.messages[index..];
        let alone = left
            .iter()
            .map(|message| earliest(self.rails, &self.free, message));
        let at_least = alone.fold(value, |value, delivered| self.joined(value, delivered));
        // Sums in another order may differ in the last digits. A bound within that margin proves nothing.
        let margin = 1.0 - 1e-12;
        at_least < self.to_beat * margin
            && self.weights.iter().zip(&self.demand).all(
                |(weights, demand): (&Weights, &Vec<f64>)| {
                    demand.get(index).is_none_or(|d| {
                        d * margin <= weights.supply(self.rails, &self.free, self.to_beat)
                    })
                },
            )
    }

    /// Rails in the order of the message's delivery, without those identical to an earlier one.
    fn order(&self, message: &RailMessage) -> Vec<RailId> {
        let same =
            |a: usize, b: usize| self.rails[a] == self.rails[b] && self.free[a] == self.free[b];
        let mut rails: Vec<usize> = (0..self.rails.len())
            .filter(|rail| !(0..*rail).any(|earlier| same(earlier, *rail)))
            .collect();
        rails.sort_by_key(|rail| {
            message.arrival.max(self.free[*rail]) + self.rails[*rail].one_way(message.size)
        });
        rails.into_iter().map(|rail| RailId(rail as u8)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::bound::lower_bound, *};
    use flowcast_units::{Bytes, TimePerByte};
    use proptest::prelude::*;

    fn any_rail() -> impl Strategy<Value = LogGp> {
        (1u32..5000, 1u32..20, 1u32..9000, 1u32..90_000).prop_map(
            |(gap, per_byte, overhead, latency)| LogGp {
                gap: Time::from_nanos(f64::from(gap)),
                gap_per_byte: TimePerByte::from_nanos(f64::from(per_byte)),
                overhead: Time::from_nanos(f64::from(overhead)),
                latency: Time::from_nanos(f64::from(latency)),
            },
        )
    }

    fn any_messages() -> impl Strategy<Value = Vec<RailMessage>> {
        prop::collection::vec((0u32..30_000, 1u64..50_000), 1..=7).prop_map(|mut pairs| {
            pairs.sort_unstable();
            pairs
                .into_iter()
                .map(|(arrival, size)| RailMessage {
                    arrival: Time::from_nanos(f64::from(arrival)),
                    size: Bytes(size),
                })
                .collect()
        })
    }

    /// Tries every assignment, one after the other.
    fn exhaustive(rails: &[LogGp], messages: &[RailMessage], objective: Objective) -> Time {
        let count = rails.len().pow(messages.len() as u32);
        let digits = |mut number: usize| {
            messages
                .iter()
                .map(|_: &RailMessage| {
                    let rail = RailId((number % rails.len()) as u8);
                    number /= rails.len();
                    rail
                })
                .collect()
        };
        (0..count)
            .map(|number| objective.value(&evaluate(rails, messages, digits(number)).unwrap()))
            .min()
            .unwrap()
    }

    proptest! {
        #[test]
        fn branch_and_bound_equals_exhaustive_search(
            rails in prop::collection::vec(any_rail(), 1..=3),
            messages in any_messages(),
        ) {
            for objective in [Objective::Makespan, Objective::Mean] {
                let found = optimum(&rails, &messages, objective, u64::MAX).unwrap();
                let evident = exhaustive(&rails, &messages, objective);
                prop_assert!(found.proven);
                prop_assert!((objective.value(&found.schedule).as_nanos() / evident.as_nanos() - 1.0).abs() < 1e-9);
            }
        }

        #[test]
        fn no_schedule_beats_the_lower_bound(
            rails in prop::collection::vec(any_rail(), 1..=3),
            messages in any_messages(),
        ) {
            let evident = exhaustive(&rails, &messages, Objective::Makespan).as_nanos();
            let bound = lower_bound(&rails, &messages).unwrap().as_nanos();
            prop_assert!(bound <= evident * (1.0 + 1e-9), "{bound} {evident}");
        }
    }

    #[test]
    fn a_search_that_ends_early_reports_it() {
        let rails = [LogGp {
            gap: Time::from_nanos(10.0),
            ..LogGp::default()
        }; 2];
        let messages = vec![
            RailMessage {
                arrival: Time::ZERO,
                size: Bytes(1)
            };
            9
        ];
        let cut = optimum(&rails, &messages, Objective::Mean, 3).unwrap();
        assert!(!cut.proven);
        assert_eq!(cut.schedule.choices.len(), 9);
    }
}
