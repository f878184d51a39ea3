//! Predictions of a program or of a communication in steps, on a network, with given options.
//!
//! All predictions use cases. `predict` has one case, and a comparison has a list of cases. The search for a mapping has one
//! case for each mapping, and a validation has one for each measured pattern. Cases are independent of each other. They run
//! on threads ([`flowcast_program::parallel`]) with the same results for any number of threads.

use flowcast_network::{cluster::pattern::Steps, machine::Mapping, network::Network};
use flowcast_program::Trace;
use flowcast_units::{Node, Time};

use crate::{
    Error, Interval, IntervalOptions, Options, Outputs, PatternIntervals, PatternPrediction,
    Prediction, Prepared,
    interval::pattern_intervals,
    pattern::{makespan_of_steps, predict_steps, ranks_of_steps},
};

/// A program, or a communication in steps.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// A program or a schedule.
    Trace(&'a Trace),
    /// Flows in steps: between nodes, or between ranks if there is a mapping.
    Steps(&'a Steps),
}

/// An input on a network, with the options of its prediction.
///
/// ```
/// use flowcast::{Case, Input, Options, model::{builtin, cluster::pattern::Steps}, units::Node};
///
/// let steps = Steps::read("exchange.steps", b"0 -> 2 4MB\nstep\n1 -> 3 4MB\n")?;
/// let network = builtin::network("gige-lam")?;
/// let case = Case::new(Input::Steps(&steps), Some(&network), Options::default());
/// assert_eq!(case.ranks(), 4);
/// // Both messages inside nodes are faster than both between nodes.
/// let [near, far] = [[0, 1, 0, 1], [0, 0, 1, 1]].map(|nodes| case.with_mapping(&nodes.map(Node)).makespan());
/// assert!(near? < far?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Case<'a> {
    /// The program, or the communication in steps.
    pub input: Input<'a>,
    /// The network; `None` for a schedule with LogGOPS parameters of its own.
    pub network: Option<&'a Network>,
    /// Options of the prediction.
    pub options: Options,
}

/// Prediction of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseResult {
    /// Name of the model.
    pub model: &'static str,
    /// Time at which the last rank, or the last flow, ends.
    pub makespan: Time,
    /// Results of each rank, or of each flow.
    pub details: CaseDetails,
}

/// Predictions of the parts of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseDetails {
    /// Prediction of a trace, with the interval of its makespan if it is known and was requested.
    Trace(Box<Prediction>, Option<Interval>),
    /// Prediction of each step, with the intervals if they are known and were requested.
    Steps(Vec<PatternPrediction>, Option<PatternIntervals>),
}

impl<'a> Case<'a> {
    /// Creates a case from its three parts.
    pub fn new(input: Input<'a>, network: Option<&'a Network>, options: Options) -> Case<'a> {
        Case {
            input,
            network,
            options,
        }
    }

    /// Number of ranks; for steps, one more than the highest rank that sends or receives.
    pub fn ranks(&self) -> usize {
        match self.input {
            Input::Trace(trace) => trace.ranks(),
            Input::Steps(steps) => ranks_of_steps(steps),
        }
    }

    /// Returns the case with each rank on the node of this list.
    #[must_use]
    pub fn with_mapping(&self, nodes: &[Node]) -> Case<'a> {
        let mapping = Mapping::List(nodes.iter().map(|node| node.0).collect());
        Case {
            options: Options {
                mapping: Some(mapping),
                ..self.options.clone()
            },
            ..*self
        }
    }

    /// Name of the model that the contention option selects.
    ///
    /// # Errors
    /// Errors of [`Case::predict`].
    pub fn model(&self) -> Result<&'static str, Error> {
        match self.input {
            Input::Trace(trace) => Ok(Prepared::new(trace, self.network, &self.options)?
                .model()
                .name()),
            Input::Steps(_) => Ok(self.options.method(self.on_network()?)?.model.name()),
        }
    }

    /// Time at which the last rank, or the last flow, ends.
    ///
    /// # Errors
    /// Errors of [`Case::predict`].
    pub fn makespan(&self) -> Result<Time, Error> {
        match self.input {
            Input::Trace(_) => Ok(self.predict(Outputs::default(), &[], None)?.makespan),
            Input::Steps(steps) => makespan_of_steps(steps, self.on_network()?, &self.options),
        }
    }

    /// Predicts everything, including the interval if `interval` is given. `outputs` apply to traces. `asked` are the names
    /// of the network's fields that the caller set.
    ///
    /// # Errors
    /// Errors of [`predict`](crate::predict()), [`predict_steps`] and [`Prepared::interval`].
    pub fn predict(
        &self,
        outputs: Outputs,
        asked: &[String],
        interval: Option<&IntervalOptions<'_>>,
    ) -> Result<CaseResult, Error> {
        match self.input {
            Input::Trace(trace) => {
                let prepared = Prepared::new(trace, self.network, &self.options)?;
                let mut prediction = prepared.predict(outputs, asked)?;
                let interval = match interval {
                    Some(asked) => prepared.interval(&prediction.outcome, asked)?,
                    None => None,
                };
                prediction.with_interval(interval.as_ref());
                Ok(CaseResult {
                    model: prediction.model.name(),
                    makespan: prediction.outcome.makespan(),
                    details: CaseDetails::Trace(Box::new(prediction), interval),
                })
            }
            Input::Steps(steps) => {
                let network = self.on_network()?;
                let predicted = predict_steps(steps, network, &self.options)?;
                let intervals = match interval {
                    Some(asked) => {
                        pattern_intervals(steps, network, &self.options, &predicted, asked)?
                    }
                    None => None,
                };
                let last = predicted.last();
                Ok(CaseResult {
                    model: self.options.method(network)?.model.name(),
                    makespan: last.map_or(Time::ZERO, |step| step.prediction.makespan()),
                    details: CaseDetails::Steps(predicted, intervals),
                })
            }
        }
    }

    fn on_network(&self) -> Result<&'a Network, Error> {
        self.network.ok_or(Error::NoNetwork)
    }
}

impl CaseResult {
    /// Interval of the makespan, if it is known and was requested.
    pub fn interval(&self) -> Option<&Interval> {
        match &self.details {
            CaseDetails::Trace(_, interval) => interval.as_ref(),
            CaseDetails::Steps(_, intervals) => Some(&intervals.as_ref()?.makespan),
        }
    }

    /// Prediction of a trace; `None` for steps.
    pub fn of_trace(&self) -> Option<&Prediction> {
        match &self.details {
            CaseDetails::Trace(prediction, _) => Some(prediction),
            CaseDetails::Steps(..) => None,
        }
    }
}
