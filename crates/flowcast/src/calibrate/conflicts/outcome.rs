//! Result of a fit to conflicts.

use super::ConflictFitOptions;
use flowcast_network::{
    cluster::{
        conflicts::ConflictKind,
        flow::{Flow, PatternFlow},
    },
    network::Duplex,
    sharing::model::Model,
};
use flowcast_statistics::observation::Observations;
use flowcast_units::{Bytes, Rate, Time, named};

/// A number and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundedEstimate<T> {
    /// The estimate from all repetitions together.
    pub value: T,
    /// Lower end of the interval.
    pub low: T,
    /// Upper end of the interval.
    pub high: T,
}

impl<T: Copy + PartialEq> BoundedEstimate<T> {
    /// Interval of the number; `None` if all replicates gave the same number. This happens with a single repetition, at a
    /// bound of the range, and for a parameter without influence.
    pub fn interval(&self) -> Option<[T; 2]> {
        (self.low != self.high).then_some([self.low, self.high])
    }
}

/// Parameters of the network from conflicts, and how well each model explains the conflicts.
#[derive(Debug, Clone, PartialEq)]
pub struct ConflictFit {
    /// Start-up of a message.
    pub latency: BoundedEstimate<Time>,
    /// Rate of a flow alone.
    pub rate: BoundedEstimate<Rate>,
    /// Size and time of the smallest flow that was alone.
    pub smallest: (Bytes, Time),
    /// The backbone, if it was saturated.
    pub backbone: Option<BackboneFit>,
    /// Sharing between the two directions of a port, under the better assumption.
    pub duplex: Duplex,
    /// Goodput of a medium in each node that both directions cross, if there is one.
    pub bus: Option<Rate>,
    /// The best model that assumes the other duplex.
    pub other_duplex: OtherDuplex,
    /// The models, the simpler ones first.
    pub models: Vec<ModelFit>,
    /// Index in `models` of the model that explains the network best.
    pub best: usize,
    /// Slowdown of each flow of each conflict, relative to the flow alone.
    pub slowdowns: Vec<Slowdown>,
    /// Options of the fit.
    pub options: ConflictFitOptions,
    /// Number of conflicts in the fit (flows alone included), number of random patterns and conflicts of short messages, and
    /// total number of repetitions.
    pub counts: (usize, usize, usize),
    /// `true` if the nodes are in more than one rack.
    pub has_racks: bool,
    /// Nodes in each rack, if they are in node order; otherwise 0.
    pub nodes_per_rack: u32,
    /// Processors that all nodes share, as in a lab; otherwise 0.
    pub processors: u32,
}

/// The best model under the other assumption about the ports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OtherDuplex {
    /// Sharing between the two directions of a port under that assumption.
    pub duplex: Duplex,
    /// Name of the model.
    pub model: &'static str,
    /// Its mean absolute error on the conflicts, as a fraction.
    pub mean_absolute: f64,
}

/// Rate of the backbone, and the smallest number of flows that saturate it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackboneFit {
    /// Total rate of all flows over it.
    pub rate: BoundedEstimate<Rate>,
    /// Smallest number of flows that saturate it.
    pub from: BoundedEstimate<u32>,
}

/// Result of the fit of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFit {
    /// The model; if `is_settling` is set, the closed loop in its transient form.
    pub model: Model,
    /// `true` for the closed loop in its transient form, while queues fill (`sharing.transient`).
    pub is_settling: bool,
    /// Fitted parameters; empty for a model without parameters.
    pub parameters: Vec<ConflictParameter>,
    /// Predictions of the conflicts that it was fitted to.
    pub fitted: Observations<PatternFlow>,
    /// Predictions of each conflict by a fit to all others.
    pub left_out: Observations<PatternFlow>,
    /// Predictions of the random patterns; `None` without such patterns.
    pub held_out: Option<Observations<PatternFlow>>,
    /// Predictions of messages shorter than a window; `None` without such messages.
    pub short: Option<Observations<PatternFlow>>,
}

impl ModelFit {
    /// Mean error on data that no fit has seen.
    pub fn unseen(&self) -> f64 {
        self.held_out
            .as_ref()
            .unwrap_or(&self.left_out)
            .mean_absolute()
    }

    /// Name in tables and files.
    pub fn name(&self) -> &'static str {
        name_of(self.model, self.is_settling)
    }
}

/// A parameter of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConflictParameter {
    /// Dotted name of the field in the network file.
    pub field: &'static str,
    /// Value and interval; `low` and `high` are `value` if no measurement depends on it.
    pub estimate: BoundedEstimate<f64>,
    /// Bound of its range, if the value has reached one.
    pub bound: Option<Bound>,
    /// `true` if any conflict depends on it.
    pub is_measured: bool,
}

named! {
    /// One end of a parameter's range.
    pub enum Bound {
        /// The least value that the fit tries.
        Lower = "lower",
        /// The greatest value that the fit tries.
        Upper = "upper",
    }
}

/// Slowdown of a flow, relative to the flow alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdown {
    /// Name of the conflict.
    pub conflict: String,
    /// Kind of the conflict: neither a flow alone nor a random pattern.
    pub kind: ConflictKind,
    /// The flow in the conflict.
    pub flow: Flow,
    /// Measured duration divided by the duration of the flow alone; 1 is no slowdown.
    pub measured: BoundedEstimate<f64>,
    /// Slowdown that each model predicts, in the order of [`ConflictFit::models`]; NaN if a model predicts nothing.
    pub predicted: Vec<f64>,
}

/// Name of a model in tables and files.
pub(super) const fn name_of(model: Model, is_settling: bool) -> &'static str {
    if is_settling {
        "closed-loop-transient"
    } else {
        model.name()
    }
}
