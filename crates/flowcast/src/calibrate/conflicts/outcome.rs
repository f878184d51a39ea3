//! What a fit to conflicts says.

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

/// A number and where it lies.
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
    /// Where it lies; `None` if nothing says so, because all replicates gave the same: of one repetition, at a bound of
    /// the range, or for a parameter that nothing depends on.
    pub fn interval(&self) -> Option<[T; 2]> {
        (self.low != self.high).then_some([self.low, self.high])
    }
}

/// What conflicts say about the network, and how well each model explains them.
#[derive(Debug, Clone, PartialEq)]
pub struct ConflictFit {
    /// Start-up of a message.
    pub latency: BoundedEstimate<Time>,
    /// Of a flow alone.
    pub rate: BoundedEstimate<Rate>,
    /// The size of the smallest flow that was alone, and its time.
    pub smallest: (Bytes, Time),
    /// The backbone, if it was saturated.
    pub backbone: Option<BackboneFit>,
    /// What the two directions of a port share: that with which the best model is better.
    pub duplex: Duplex,
    /// Goodput of a medium in each node that both directions cross, if there is one.
    pub bus: Option<Rate>,
    /// The best model that assumes the other duplex.
    pub other_duplex: OtherDuplex,
    /// The models, the simpler ones first.
    pub models: Vec<ModelFit>,
    /// The place in `models` of the one that explains the network best.
    pub best: usize,
    /// How many times longer than alone each flow of each conflict took.
    pub slowdowns: Vec<Slowdown>,
    /// What was asked for.
    pub options: ConflictFitOptions,
    /// Conflicts, random patterns and repetitions of all of them.
    pub counts: (usize, usize, usize),
    /// Where the nodes stand.
    pub has_racks: bool,
    /// Nodes in each rack where they are in node order; else 0.
    pub nodes_per_rack: u32,
    /// Processors that all nodes share, as those of a lab do; else 0.
    pub processors: u32,
}

/// The best model under the other assumption about the ports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OtherDuplex {
    /// What the two directions of a port share under that assumption.
    pub duplex: Duplex,
    /// Name of the model.
    pub model: &'static str,
    /// Its mean absolute error on the conflicts, as a share.
    pub mean_absolute: f64,
}

/// What the backbone carries, and from how many flows on it is the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackboneFit {
    /// What all flows over it get together.
    pub rate: BoundedEstimate<Rate>,
    /// The number of flows from which it is the limit.
    pub from: BoundedEstimate<u32>,
}

/// What conflicts say about a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFit {
    /// The model; where `is_settling` is set, the closed loop in its transient form.
    pub model: Model,
    /// Whether it is the closed loop followed while queues fill (`sharing.transient`).
    pub is_settling: bool,
    /// Its parameters as fitted, empty for a model without any.
    pub parameters: Vec<ConflictParameter>,
    /// Predictions of the conflicts that it was fitted to.
    pub fitted: Observations<PatternFlow>,
    /// Predictions of each conflict by a fit to all others.
    pub left_out: Observations<PatternFlow>,
    /// Predictions of the random patterns; none without such patterns.
    pub held_out: Option<Observations<PatternFlow>>,
    /// Predictions of messages shorter than a window; none without such messages.
    pub short: Option<Observations<PatternFlow>>,
}

impl ModelFit {
    /// Mean error on what no fit has seen.
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
    /// Where it lies; `low` and `high` are `value` if nothing was measured that it matters to.
    pub estimate: BoundedEstimate<f64>,
    /// The bound of its range at which it stands, if it does.
    pub bound: Option<Bound>,
    /// Whether any conflict depends on it.
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

/// How many times longer than alone a flow took.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdown {
    /// Name of the conflict.
    pub conflict: String,
    /// What kind of conflict it is: not a flow alone and not a random pattern.
    pub kind: ConflictKind,
    /// The flow as the conflict has it.
    pub flow: Flow,
    /// Measured duration over that of the flow alone: 1 is no slowdown.
    pub measured: BoundedEstimate<f64>,
    /// The same as predicted by each model, in the order of [`ConflictFit::models`]; NaN where a model predicts nothing.
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
