//! The schedule that follows from a choice of rails: the evaluation rule E0.
//!
//! `start = max(rail free, arrival)`, `delivered = start + 2o + L + G(s-1)`, `rail free = start + g + G(s-1)`, messages
//! in order of arrival on each rail. Schedulers are evaluated by this rule, whatever rule they choose by.

use super::{
    MAX_RAILS, RailId, RailScheduler, RailSet, RailsError, clock::ClockArithmetic,
    discipline::SchedulerName, rail::check_count, turns::Shares,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time};

/// A message to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RailMessage {
    /// When it is ready.
    pub arrival: Time,
    /// How long it is.
    pub size: Bytes,
}

/// Rails that each message took, and when it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct RailSchedule {
    /// Rail of each message.
    pub choices: Vec<RailId>,
    /// When each message was delivered.
    pub delivered: Vec<Time>,
    /// When the last one was; zero without messages.
    pub makespan: Time,
    /// The mean of the deliveries; zero without messages.
    pub mean: Time,
}

/// A schedule and what its scheduler believed.
#[derive(Debug, Clone, PartialEq)]
pub struct BelievedSchedule {
    /// The choices, by rule E0.
    pub schedule: RailSchedule,
    /// The virtual finish time of the chosen rail after each choice.
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
/// Rails or shares that no scheduler can be made of, or messages that are not in order of arrival.
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

/// Lets any scheduler choose for all messages; gives the rails and their virtual finish times.
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

/// When each message arrives if it takes the rail chosen for it.
///
/// # Errors
/// A choice for each message is needed, each of a rail that is there.
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
    /// With the makespan and the mean of these deliveries.
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

/// Refuses a choice for each message that does not fit the messages or the rails.
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

/// Refuses messages that are not in order of arrival.
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
