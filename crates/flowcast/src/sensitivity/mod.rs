//! How the predicted time depends on one field of the network, over a range of its values.
//!
//! Where messages do not disturb one another the time is a maximum of linear functions of the field, and the curve is found
//! exactly ([`flowcast_sensitivity`]): at each value it equals what [`predict`](crate::predict()) says there, but
//! for rounding. Of a rate, and of the speed of a processor, the inverse is the parameter: times grow with it linearly.
//! Elsewhere the order of events depends on the field, and the curve joins predictions at values that are chosen closer
//! together where it bends ([`Sensitivity::inexact`]).

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

/// How the predicted time depends on one field of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitivity {
    /// The field and the range of its values.
    pub parameter: Parameter,
    /// By which model, on the network as it is.
    pub model: ModelChoice,
    /// The parameter's value on the network as it is; none if the network does not set the field.
    pub base: Option<f64>,
    /// The predicted time on the network as it is.
    pub base_makespan: Time,
    /// The predicted time over the range.
    pub curve: Curve,
    /// Why the curve is not exact; none if it is.
    pub inexact: Option<Inexact>,
    /// What the curve would be if events kept the order that they have on the network as it is; where the order depends on
    /// the field.
    pub fixed_order: Option<Curve>,
    /// Sentences on what the prediction on the network as it is rests on.
    pub notes: Vec<String>,
}

/// Why a curve is made of predictions at some values only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Inexact {
    /// What messages do to each other depends on the order of events.
    #[error("under model {0} the order of events may depend on it (--model independent: exact)")]
    Model(&'static str),
    /// Events keep the order and the waiting times of the replay on the network as it is.
    #[error(
        "under model {0} messages wait for one another as on the network as it is (--model independent: exact)"
    )]
    FixedOrder(&'static str),
    /// Ranks of a schedule are served in the order of time.
    #[error("the replay of a schedule depends on the order of events")]
    Schedule,
    /// The field takes whole numbers.
    #[error("the field takes whole numbers only")]
    WholeNumbers,
    /// The model, the algorithms of collectives or the places of ranks change within the range.
    #[error("it decides by which model, by which algorithms or where the program runs")]
    Choice,
    /// A cost is no linear function of the field.
    #[error("a cost is no linear function of it")]
    NotLinear,
    /// It decides which sends wait for their receivers.
    #[error("it decides which messages wait for their receiver")]
    Rendezvous,
    /// Files, locks, and messages that move in MPI calls alone are served in the order of time.
    #[error("one-sided communication, files or messages are served in the order of time")]
    Order,
    /// Ranks of a collective give different sizes, and the last to come decides.
    #[error("the rank that comes last decides the sizes of a collective")]
    Sizes,
    /// The events of the replay take too much memory.
    #[error("the program has more than {} messages", exact::MOST_MESSAGES)]
    Messages,
    /// A pass found a makespan below a tangent.
    #[error("the makespan turned out not to be convex")]
    NotConvex,
    /// The curve may be off by its error: collectives start after whole nanoseconds, or there are more pieces than passes.
    #[error(
        "collectives that do not block start after whole nanoseconds, or {0} walks find too few pieces"
    )]
    Error(usize),
}

/// Predicts a trace over a range of a field's values; an exact curve takes at most `most_walks` walks.
///
/// # Errors
/// As [`predict`](crate::predict()), at the network's own value or any other of the range.
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
    /// The value nearest to the network's own at which the predicted time is `factor` times that of the network as it is;
    /// none within the range.
    pub fn value_at(&self, factor: f64) -> Option<f64> {
        let base = self.base?;
        let aim = self.base_makespan.as_nanos() * factor;
        let crossings = self.curve.pieces.iter().filter_map(|piece: &Piece| {
            let at = piece.from + (aim - piece.makespan.as_nanos()) / piece.slope;
            // The ends of a piece belong to it, whatever the division rounds to.
            let room = 1e-12 * at.abs();
            (piece.slope != 0.0 && piece.from - room <= at && at <= piece.to + room)
                .then(|| at.clamp(piece.from, piece.to))
        });
        crossings.min_by(|a, b| (a - base).abs().total_cmp(&(b - base).abs()))
    }

    /// The piece on which the network as it is lies, the one behind it at a breakpoint; none outside the range.
    pub fn base_piece(&self) -> Option<&Piece> {
        let base = self.base?;
        self.curve
            .pieces
            .iter()
            .rev()
            .find(|piece| (piece.from..=piece.to).contains(&base))
    }

    /// Where the time changes by more than a hundredth within the smallest step of a sampled curve: the order of events
    /// changes there, and the line between the two values says nothing.
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

    /// Where a larger value of the parameter makes the program faster, which no cost alone can do: the order of events
    /// changes there.
    pub fn falls(&self) -> impl Iterator<Item = &Piece> {
        self.curve
            .pieces
            .iter()
            .filter(|piece| (piece.at(piece.to) - piece.makespan).as_nanos() < -1.0)
    }
}
