//! Dependence of the predicted time on one field of the network, over a range of its values.
//!
//! Without contention between messages, the time is a maximum of linear functions of the field, and the curve is exact
//! ([`flowcast_sensitivity`]): at each value it equals the result of [`predict`](crate::predict()), except for rounding. For
//! a rate, and for the speed of a processor, the parameter is the inverse, because times grow linearly with it. Otherwise
//! the order of events depends on the field. The curve then joins predictions at values that are closer together where it
//! bends ([`Sensitivity::inexact`]).

mod exact;
mod parameter;
mod sampled;
mod selected;
mod words;

use flowcast_network::network::Network;
use flowcast_program::Trace;
use flowcast_sensitivity::{Curve, Piece};
use flowcast_units::Time;
use thiserror::Error;

use crate::{Error, ModelChoice, Options, predict};
pub use parameter::Parameter;

/// Dependence of the predicted time on one field of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitivity {
    /// The field and the range of its values.
    pub parameter: Parameter,
    /// Model of the prediction, on the network as it is.
    pub model: ModelChoice,
    /// Value of the parameter on the network as it is; `None` if the network does not set the field.
    pub base: Option<f64>,
    /// The predicted time on the network as it is.
    pub base_makespan: Time,
    /// The predicted time over the range.
    pub curve: Curve,
    /// Reason why the curve is not exact; `None` if it is exact.
    pub inexact: Option<Inexact>,
    /// The curve for events that keep their order on the network as it is, if the order depends on the field.
    pub fixed_order: Option<Curve>,
    /// Sentences on the basis of the prediction on the network as it is.
    pub notes: Vec<String>,
}

/// Reason why a curve consists of predictions at some values only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Inexact {
    /// Contention between messages depends on the order of events.
    #[error(
        "the order of events under model {0} may depend on the field (--model independent is exact)"
    )]
    Model(&'static str),
    /// Events keep the order and the waiting times of the replay on the network as it is.
    #[error(
        "messages keep the waiting times of the unchanged network under model {0} (--model independent is exact)"
    )]
    FixedOrder(&'static str),
    /// Ranks of a schedule are served in the order of time.
    #[error("the replay of a schedule depends on the order of events")]
    Schedule,
    /// The field takes whole numbers.
    #[error("the field takes whole numbers only")]
    WholeNumbers,
    /// The model, the algorithms of collectives or the places of ranks change within the range.
    #[error("the field determines the model, the algorithms or the mapping of the program")]
    Choice,
    /// A cost is not a linear function of the field.
    #[error("a cost is not a linear function of the field")]
    NotLinear,
    /// The field decides which sends wait for their receivers.
    #[error("the field determines which messages wait for their receiver")]
    Rendezvous,
    /// Files, locks, and messages that move only in calls of MPI are served in the order of time.
    #[error("one-sided transfers, file requests or messages are served in the order of time")]
    Order,
    /// Ranks of a collective give different sizes, and the last rank to arrive decides.
    #[error("the last rank to arrive determines the sizes of a collective")]
    Sizes,
    /// The events of the replay take too much memory.
    #[error("the program has more than {} messages", exact::MOST_MESSAGES)]
    Messages,
    /// A pass found a makespan below a tangent.
    #[error("the makespan is not convex")]
    NotConvex,
    /// The curve may be off by its error: collectives start after whole nanoseconds, or there are more pieces than passes.
    #[error(
        "non-blocking collectives start at whole nanoseconds, or {0} walks find too few pieces"
    )]
    Error(usize),
}

/// Predicts a trace over a range of a field's values. An exact curve takes at most `most_walks` walks.
///
/// # Errors
/// Errors of [`predict`](crate::predict()), at the network's own value or any other value of the range.
pub fn sensitivity(
    trace: &Trace,
    network: &Network,
    parameter: Parameter,
    most_walks: usize,
    options: &Options,
) -> Result<Sensitivity, Error> {
    let trace = &*trace.unfolded()?;
    if let Some(selector) = parameter.selector().cloned() {
        return selected::sensitivity(trace, network, parameter, &selector, most_walks, options);
    }
    let base = predict(trace, network, options)?;
    let found = match trace {
        Trace::Program(_) if parameter.is_whole(network) => Err(Inexact::WholeNumbers),
        Trace::Program(program) => exact::curve(program, network, &parameter, most_walks, options)?,
        _ => Err(Inexact::Schedule),
    };
    let (curve, inexact) = match found {
        Ok(curve) if curve.error > Time::ZERO => (curve, Some(Inexact::Error(most_walks))),
        Ok(curve) => (curve, None),
        Err(reason) => (
            sampled::curve(&parameter, reason == Inexact::WholeNumbers, |at: f64| {
                Ok(predict(trace, &parameter.network(network, at)?, options)?
                    .outcome
                    .makespan())
            })?,
            Some(reason),
        ),
    };
    let depends_on_order = matches!(inexact, Some(Inexact::Model(_)));
    let fixed_order = match depends_on_order {
        true => selected::fixed_order(trace, network, &parameter, most_walks, options)?,
        false => None,
    };
    let value = network
        .quantity(parameter.field())
        .map(|value| parameter.number(value));
    Ok(Sensitivity {
        base: value.filter(|value| value.is_finite()),
        model: base.model,
        base_makespan: base.outcome.makespan(),
        parameter,
        curve,
        inexact,
        fixed_order,
        notes: base.notes,
    })
}

impl Sensitivity {
    /// The value nearest to the network's own at which the predicted time is `factor` times the time on the network as it
    /// is; `None` if the range contains no such value.
    pub fn value_at(&self, factor: f64) -> Option<f64> {
        let base = self.base?;
        let aim = self.base_makespan.as_nanos() * factor;
        let crossings = self.curve.pieces.iter().filter_map(|piece: &Piece| {
            let at = piece.from + (aim - piece.makespan.as_nanos()) / piece.slope;
            // The ends of a piece belong to it, regardless of the rounding of the division.
            let room = 1e-12 * at.abs();
            (piece.slope != 0.0 && piece.from - room <= at && at <= piece.to + room)
                .then(|| at.clamp(piece.from, piece.to))
        });
        crossings.min_by(|a, b| (a - base).abs().total_cmp(&(b - base).abs()))
    }

    /// The piece that contains the network as it is, or the next one at a breakpoint; `None` outside the range.
    pub fn base_piece(&self) -> Option<&Piece> {
        let base = self.base?;
        self.curve
            .pieces
            .iter()
            .rev()
            .find(|piece| (piece.from..=piece.to).contains(&base))
    }

    /// Pieces in which the time changes by more than a hundredth within the smallest step of a sampled curve. The order of
    /// events changes there, and the line between the two values has no meaning.
    pub fn jumps(&self) -> impl Iterator<Item = &Piece> {
        let (from, to) = self.parameter.range();
        let step = (to - from) * sampled::SMALLEST;
        let is_sampled = matches!(self.inexact, Some(Inexact::Model(_) | Inexact::Schedule));
        self.curve.pieces.iter().filter(move |piece| {
            let change = (piece.at(piece.to) - piece.makespan).as_nanos().abs();
            is_sampled
                && piece.to - piece.from <= step * 1.01
                && change > 0.01 * self.base_makespan.as_nanos()
        })
    }

    /// Pieces in which a larger value of the parameter makes the program faster, which a cost alone cannot do. The order of
    /// events changes there.
    pub fn falls(&self) -> impl Iterator<Item = &Piece> {
        self.curve
            .pieces
            .iter()
            .filter(|piece| (piece.at(piece.to) - piece.makespan).as_nanos() < -1.0)
    }
}
