//! Schedules that follow from a choice of rails, by the evaluation rule E0.
//!
//! `start = max(rail free, arrival)`, `delivered = start + 2o + L + G(s-1)`, `rail free = start + g + G(s-1)`, messages in
//! order of arrival on each rail. Schedulers are evaluated by this rule, independent of the rule of their choices.

use super::{
    MAX_RAILS, RailId, RailScheduler, RailSet, RailsError, clock::ClockArithmetic,
    discipline::SchedulerName, rail::check_count, turns::Shares,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time};

/// A message to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RailMessage {
    /// Time at which the message is ready.
    pub arrival: Time,
    /// Length of the message.
    pub size: Bytes,
}

/// Rail and delivery of each message.
#[derive(Debug, Clone, PartialEq)]
pub struct RailSchedule {
    /// Rail of each message.
    pub choices: Vec<RailId>,
    /// Delivery time of each message.
    pub delivered: Vec<Time>,
    /// Delivery time of the last message; zero without messages.
    pub makespan: Time,
    /// Mean of the delivery times; zero without messages.
    pub mean: Time,
}

/// A schedule and the estimates of its scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct BelievedSchedule {
    /// Schedule of the choices, by rule E0.
    pub schedule: RailSchedule,
    /// Virtual finish time of the chosen rail after each choice.
    pub virtual_finish: Vec<Time>,
}

/// Lets a scheduler choose for all messages, each at its arrival, with every rail usable.
///
/// ```
/// use flowcast_scheduler::schedule::{RailMessage, simulate};
/// use flowcast_scheduler::{Rail, RailId, turns::Shares};
/// use flowcast_units::{Bytes, Time};
///
/// let rails = [Rail::parse("a=1,0.001,1,10us")?.cost, Rail::parse("b=1,0.001,1,20us")?.cost];
/// let messages = [RailMessage { arrival: Time::ZERO, size: Bytes(1_000_000) }; 2];
/// let name = "earliest-delivery".parse()?;
/// let schedule = simulate(name, &rails, Shares::by_bandwidth(&rails)?, &messages)?.schedule;
/// assert_eq!(schedule.choices, [RailId(0), RailId(1)]);
/// # Ok::<(), flowcast_scheduler::RailsError>(())
/// ```
///
/// # Errors
/// Rails or shares from which no scheduler can be built, or messages that are not in order of arrival.
pub fn simulate(
    name: SchedulerName,
    rails: &[LogGp],
    shares: Shares,
    messages: &[RailMessage],
) -> Result<BelievedSchedule, RailsError> {
    check_order(messages)?;
    let (choices, virtual_finish) = match name.binary_point() {
        Some(point) => run(
            name.in_steps(rails, shares, point)?.as_mut(),
            point,
            messages,
        ),
        None => run(name.exact(rails, shares)?.as_mut(), (), messages),
    };
    Ok(BelievedSchedule {
        schedule: evaluate(rails, messages, choices)?,
        virtual_finish,
    })
}

/// Lets any scheduler choose for all messages. Returns the rails and their virtual finish times.
pub fn run<M: ClockArithmetic>(
    scheduler: &mut (impl RailScheduler<M> + ?Sized),
    scale: M::Scale,
    messages: &[RailMessage],
) -> (Vec<RailId>, Vec<Time>) {
    messages
        .iter()
        .map(&mut |message: &RailMessage| {
            let rail = scheduler.pick(
                M::from_time(message.arrival, scale),
                message.size,
                RailSet::ALL,
            );
            let rail = rail.expect("a scheduler has at least one rail, and all are usable");
            (rail, scheduler.virtual_finish(rail).time(scale))
        })
        .unzip()
}

/// Computes the arrival of each message on its chosen rail.
///
/// # Errors
/// A number of choices that differs from the number of messages, or a choice of a rail that does not exist.
pub fn evaluate(
    rails: &[LogGp],
    messages: &[RailMessage],
    choices: Vec<RailId>,
) -> Result<RailSchedule, RailsError> {
    check_choices(rails.len(), messages, &choices)?;
    let mut free = [Time::ZERO; MAX_RAILS];
    let mut delivered = Vec::with_capacity(messages.len());
    for (message, rail) in messages.iter().zip(&choices) {
        let cost = &rails[rail.index()];
        let start = message.arrival.max(free[rail.index()]);
        delivered.push(start + cost.one_way(message.size));
        free[rail.index()] = start + cost.spacing(message.size);
    }
    Ok(RailSchedule::new(choices, delivered))
}

impl RailSchedule {
    /// Creates a schedule with the makespan and the mean of these deliveries.
    pub(super) fn new(choices: Vec<RailId>, delivered: Vec<Time>) -> RailSchedule {
        let makespan = delivered.iter().copied().fold(Time::ZERO, Time::max);
        let mean = delivered.iter().copied().sum::<Time>() * (1.0 / delivered.len().max(1) as f64);
        RailSchedule {
            choices,
            delivered,
            makespan,
            mean,
        }
    }
}

/// Fails if the choices do not match the messages or the rails.
pub(super) fn check_choices(
    rails: usize,
    messages: &[RailMessage],
    choices: &[RailId],
) -> Result<(), RailsError> {
    check_count(rails)?;
    check_order(messages)?;
    if choices.len() != messages.len() {
        return Err(RailsError::Choices {
            found: choices.len(),
            messages: messages.len(),
        });
    }
    match choices.iter().position(|rail| rail.index() >= rails) {
        Some(index) => Err(RailsError::Choice {
            index,
            rail: choices[index].0,
            rails,
        }),
        None => Ok(()),
    }
}

/// Fails if the messages are not in order of arrival.
pub(super) fn check_order(messages: &[RailMessage]) -> Result<(), RailsError> {
    match messages
        .windows(2)
        .position(|pair| pair[1].arrival < pair[0].arrival)
    {
        Some(before) => Err(RailsError::Order { index: before + 1 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rail;

    fn message(arrival: f64, size: u64) -> RailMessage {
        RailMessage {
            arrival: Time::from_micros(arrival),
            size: Bytes(size),
        }
    }

    #[test]
    fn a_rail_sends_one_message_after_the_other() {
        let rails = [Rail::parse("a=1,0.1,2,10us").unwrap().cost];
        let messages = [message(0.0, 11), message(0.0, 1), message(5.0, 1)];
        let schedule = evaluate(&rails, &messages, vec![RailId(0); 3]).unwrap();
        let micros: Vec<f64> = schedule
            .delivered
            .iter()
            .map(|time| time.as_micros())
            .collect();
        assert_eq!(micros, [15.0, 16.0, 19.0]);
        assert_eq!(schedule.makespan.as_micros(), 19.0);
        assert!((schedule.mean.as_micros() - 50.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn choices_that_do_not_fit_are_refused() {
        let rails = [Rail::parse("a=1,0.1,2,10us").unwrap().cost];
        let two = [message(1.0, 1), message(0.0, 1)];
        assert_eq!(
            evaluate(&rails, &two, vec![RailId(0); 2]),
            Err(RailsError::Order { index: 1 })
        );
        assert_eq!(
            evaluate(&rails, &two[..1], vec![RailId(1)]),
            Err(RailsError::Choice {
                index: 0,
                rail: 1,
                rails: 1
            })
        );
        assert!(evaluate(&rails, &two[..1], vec![]).is_err());
    }
}
