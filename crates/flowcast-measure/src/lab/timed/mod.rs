//! Measurement of patterns on a real network: sends flows of given sizes at given times and records start and end of each.
//!
//! All times refer to one clock and are relative to the common start of a repetition. A flow starts when its sender hands
//! over the first byte and ends when its receiver has the last. Repetitions follow one another over the same connections.
//! The first repetitions are warm-ups. The others continue until the mean duration of every flow is known precisely enough
//! (Student's t), or until the largest number of repetitions is reached.

mod hosts;
mod tcp;

use std::time::Duration;

use flowcast_network::cluster::flow::Flow;
use flowcast_statistics::interval::{Decision, StoppingRule};
use flowcast_units::Time;

use crate::lab::{error::LabError, running::Lab};

pub use hosts::{Hosts, Introduction, NodeOf, orders, serve as serve_host};
pub use tcp::TcpCarrier;

/// Carrier of a pattern.
pub trait Carrier {
    /// Carries the pattern once and returns start and end of each flow, in the pattern's order.
    ///
    /// # Errors
    /// A connection breaks, or a flow makes no progress.
    fn carry(&mut self) -> Result<Vec<FlowTimes>, LabError>;
}

/// Start and end of a flow, relative to the common start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowTimes {
    /// Time at which the sender hands over the first byte.
    pub start: Time,
    /// Time at which the receiver has the last byte.
    pub end: Time,
}

impl FlowTimes {
    /// Time from start to end.
    pub fn duration(self) -> Time {
        self.end - self.start
    }
}

/// Flows that share a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlowConnections {
    /// None: flows between the same two nodes are in flight at the same time.
    #[default]
    EachFlow,
    /// Flows from one node to the same other node: they are sent one after the other, in the order of their starts.
    EachPair,
}

/// Options for running a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatternOptions {
    /// Flows that share a connection.
    pub connections: FlowConnections,
    /// Number of repetitions that are not counted.
    pub warm_ups: usize,
    /// Rule that ends the counted repetitions.
    pub rule: StoppingRule,
    /// Pause between two repetitions, 20 ms by default.
    pub pause: Duration,
    /// Longest time that a flow may make no progress; a longer one is an error.
    pub timeout: Duration,
}

impl Default for PatternOptions {
    fn default() -> PatternOptions {
        let rule = StoppingRule {
            min_repetitions: 3,
            max_repetitions: 20,
            ..StoppingRule::default()
        };
        PatternOptions {
            connections: FlowConnections::EachFlow,
            warm_ups: 2,
            rule,
            pause: Duration::from_millis(20),
            timeout: Duration::from_secs(20),
        }
    }
}

/// Results of a pattern that was carried several times.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PatternRun {
    /// Times by repetition, without the warm-ups, and by flow.
    pub repetitions: Vec<Vec<FlowTimes>>,
    /// `true` if the duration of every flow is as precise as the rule requires.
    pub is_precise: bool,
}

impl PatternRun {
    /// Returns all durations of a flow.
    pub fn durations_of(&self, flow: usize) -> Vec<Time> {
        self.repetitions
            .iter()
            .map(|repetition| repetition[flow].duration())
            .collect()
    }
}

/// Carries a pattern over TCP between nodes of a lab, on its first rail, until its durations are known.
///
/// # Errors
/// A flow names a node that the lab does not have, a connection fails, or a flow makes no progress.
pub fn run_pattern(
    lab: &Lab,
    flows: &[Flow],
    options: &PatternOptions,
) -> Result<PatternRun, LabError> {
    let mut carrier = TcpCarrier::connect(lab, flows, options)?;
    repeat(&mut carrier, options)
}

/// Carries a pattern until its durations are known.
///
/// # Errors
/// The errors of the carrier.
pub fn repeat(carrier: &mut dyn Carrier, options: &PatternOptions) -> Result<PatternRun, LabError> {
    for _ in 0..options.warm_ups {
        carrier.carry()?;
        std::thread::sleep(options.pause);
    }
    let mut run = PatternRun::default();
    loop {
        run.repetitions.push(carrier.carry()?);
        if let Some(is_precise) = is_precise(&run, &options.rule)? {
            return Ok(PatternRun { is_precise, ..run });
        }
        std::thread::sleep(options.pause);
    }
}

/// Returns `true` if the duration of every flow is as precise as the rule requires, and `None` if the rule requires more
/// repetitions.
fn is_precise(run: &PatternRun, rule: &StoppingRule) -> Result<Option<bool>, LabError> {
    let mut is_precise = true;
    for flow in 0..run.repetitions[0].len() {
        let seconds: Vec<f64> = run
            .durations_of(flow)
            .iter()
            .map(|time| time.as_seconds())
            .collect();
        match rule.decide(&seconds)? {
            Decision::Continue => return Ok(None),
            Decision::Precise(_) => {}
            Decision::GaveUp(_) => is_precise = false,
        }
    }
    Ok(Some(is_precise))
}

#[cfg(test)]
mod tests {
    use flowcast_statistics::sample::median;

    use super::*;

    /// Carrier of two flows; the duration of the second flow comes from a list.
    struct Listed(Vec<f64>, usize);

    impl Carrier for Listed {
        fn carry(&mut self) -> Result<Vec<FlowTimes>, LabError> {
            let millis = self.0[self.1];
            self.1 += 1;
            let carried = |start: f64, millis: f64| FlowTimes {
                start: Time::from_micros(start),
                end: Time::from_micros(start + millis * 1e3),
            };
            Ok(vec![carried(0.0, 100.0), carried(500.0, millis)])
        }
    }

    fn options(warm_ups: usize, max_repetitions: usize) -> PatternOptions {
        let rule = StoppingRule {
            min_repetitions: 3,
            max_repetitions,
            ..StoppingRule::default()
        };
        PatternOptions {
            warm_ups,
            rule,
            pause: Duration::ZERO,
            ..PatternOptions::default()
        }
    }

    fn median_of(run: &PatternRun, flow: usize) -> f64 {
        let durations = run.durations_of(flow).into_iter();
        median(&durations.map(Time::as_seconds).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn repetitions_end_when_the_least_certain_flow_is_precise_and_exclude_warm_ups() {
        let mut carrier = Listed(
            vec![900.0, 800.0, 50.0, 60.0, 50.2, 50.1, 50.0, 50.1, 50.0, 50.1],
            0,
        );
        let run = repeat(&mut carrier, &options(2, 5)).unwrap();
        assert_eq!((run.repetitions.len(), run.is_precise), (5, false));
        assert!((median_of(&run, 1) - 0.0501).abs() < 1e-9);
        let mut carrier = Listed(vec![50.0, 50.2, 50.1, 77.0], 0);
        let run = repeat(&mut carrier, &options(0, 5)).unwrap();
        assert_eq!((run.repetitions.len(), run.is_precise), (3, true));
        assert!((median_of(&run, 0) - 0.1).abs() < 1e-9);
    }
}
