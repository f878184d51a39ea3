//! A curve in words, and its pieces as a table.

use std::collections::BTreeMap;

use flowcast_network::{network::Network, quantity::Quantity};
use flowcast_sensitivity::{Curve, Piece};
use flowcast_table::{Document, Rows, Value, figure, rows};
use flowcast_units::{Rounded, Time};

use super::{Inexact, Parameter, Sensitivity};
use crate::statements::marked_name;

/// Relative changes of the time, slower and faster, for which the answer in words states the value of the field.
const PARTS: [f64; 2] = [0.01, 0.1];

/// Relative changes of the time, slower and faster, for which the document states the value of the field.
const REACHED: [f64; 4] = [0.01, 0.02, 0.05, 0.1];

/// A curve and its network.
struct Words<'a> {
    found: &'a Sensitivity,
    network: &'a Network,
    most_rows: usize,
}

impl Sensitivity {
    /// Answer in words on this network, with the document in base units. If there are more pieces than rows, pieces are
    /// joined until each row covers at least its share of the range.
    pub fn answer(&self, trace: &str, network: &Network, most_rows: usize) -> Document {
        let words = Words {
            found: self,
            network,
            most_rows,
        };
        let parameter = &self.parameter;
        let step = step(parameter);
        let pieces = words.joined_pieces();
        let table = rows(&pieces)
            .cell("from", |piece| figure(shown(parameter, piece.from)))
            .cell("to", |piece| figure(shown(parameter, piece.to)))
            .cell("time at from", |piece| piece.makespan)
            .cell(format!("per {}", stretch(parameter, step)), |piece| {
                Time::from_nanos(piece.slope * step)
            });
        self.document(&network.name)
            .titled(format!(
                "predicted time over {}: {trace}",
                parameter.field()
            ))
            .lines(words.lines())
            .noted(&self.notes)
            .shown(table)
    }

    fn document(&self, network: &str) -> Document {
        let parameter = &self.parameter;
        let at = |value: f64| parameter.in_unit(value);
        let pieces = |curve: &Curve| {
            Value::from(
                rows(&curve.pieces)
                    .field("from", |piece| at(piece.from))
                    .field("to", |piece| at(piece.to))
                    .field("makespan_s_at_from", |piece| piece.makespan)
                    .field("slope", |piece| parameter.slope_in_unit(piece.slope)),
            )
        };
        let [tolerance, improvement] = [1.0, -1.0].map(|sign: f64| {
            REACHED
                .into_iter()
                .map(|part: f64| (part.to_string(), self.value_at(1.0 + sign * part).map(at)))
                .collect::<BTreeMap<_, _>>()
        });
        let base_slope = self
            .base_piece()
            .map(|piece| parameter.slope_in_unit(piece.slope));
        Document::new("sensitivity")
            .schema("flowcast/sensitivity/1")
            .field("parameter", parameter.field())
            .field("unit", parameter.unit())
            .field("network", network)
            .field("model", self.model.name())
            .field("base", self.base.map(at))
            .field("base_makespan_s", self.base_makespan)
            .field("base_slope", base_slope)
            .field("exact", self.inexact.is_none())
            .field(
                "inexact_because",
                self.inexact.map(|reason| reason.to_string()),
            )
            .field("error_s", self.curve.error)
            .field("walks", self.curve.walks)
            .field("pieces", pieces(&self.curve))
            .field("fixed_order", self.fixed_order.as_ref().map(pieces))
            .field("tolerance", tolerance)
            .field("improvement", improvement)
            .field("falls", steps(parameter, self.falls()))
            .field("jumps", steps(parameter, self.jumps()))
    }
}

/// Table of the changes of the time within pieces.
fn steps<'a>(parameter: &Parameter, pieces: impl Iterator<Item = &'a Piece>) -> Rows<&'a Piece> {
    rows(pieces)
        .field("from", |piece| parameter.in_unit(piece.from))
        .field("to", |piece| parameter.in_unit(piece.to))
        .field("by_s", |piece| piece.makespan - piece.at(piece.to))
}

impl Words<'_> {
    /// The answer in words, the model, and the way in which the curve was found.
    fn lines(&self) -> Vec<String> {
        let Sensitivity {
            model,
            curve,
            inexact,
            base_makespan,
            ..
        } = self.found;
        let (walks, pieces) = (curve.walks, curve.pieces.len());
        let piece_count = count(pieces, "piece");
        let exact = match inexact {
            None => format!("exact: {piece_count}, found by {walks} walks"),
            Some(reason @ Inexact::Error(_)) => {
                let error = Rounded(curve.error);
                format!("exact within {error}: {piece_count}, found by {walks} walks; {reason}")
            }
            Some(reason @ Inexact::FixedOrder(_)) => {
                format!("exact for a fixed order of events: {piece_count}, because {reason}")
            }
            Some(reason) => {
                format!("not exact: {walks} predictions joined by lines, because {reason}")
            }
        };
        let unset = if self.found.parameter.selector().is_some() {
            "with several values"
        } else {
            "not set"
        };
        let base = self
            .found
            .base
            .map_or(unset.to_owned(), |base| shown(&self.found.parameter, base));
        let field = self.found.parameter.field();
        let mut lines = vec![
            self.answer(),
            model.to_string(),
            format!(
                "predicted time on {} ({field} {base}): {}",
                marked_name(self.network),
                Rounded(*base_makespan)
            ),
            exact,
        ];
        let falls: Vec<&Piece> = self.found.falls().collect();
        if let Some(first) = falls.first() {
            let where_first = shown(&self.found.parameter, first.from);
            lines.push(format!(
                "the time falls at {} because the order of events changes, first above {where_first}",
                count(falls.len(), "place")
            ));
        }
        let jumps: Vec<String> = self
            .found
            .jumps()
            .map(|piece| shown(&self.found.parameter, piece.from))
            .collect();
        if !jumps.is_empty() {
            lines.push(format!(
                "the time jumps at {}: above {}",
                count(jumps.len(), "place"),
                jumps.join(", ")
            ));
        }
        let fixed = self.found.fixed_order.as_ref();
        let ends = fixed.and_then(|curve| curve.pieces.first().zip(curve.pieces.last()));
        if let Some((first, last)) = ends {
            let (from, to) = (Rounded(first.makespan), Rounded(last.at(last.to)));
            lines.push(format!(
                "if events kept their order: {from} to {to} over the range"
            ));
        }
        if pieces > self.most_rows {
            let width = stretch(&self.found.parameter, self.least_width());
            lines.push(format!(
                "rows of the table combine pieces to a width of at least {width}"
            ));
        }
        lines
    }

    /// Sentence on the cost of a small increase, and on the values at which the program becomes slower or faster by `PARTS`.
    fn answer(&self) -> String {
        let field = self.found.parameter.field();
        let slower = PARTS
            .iter()
            .filter_map(|part| self.reached(1.0 + part, &format!("{} % slower", part * 100.0)));
        let faster = PARTS
            .iter()
            .filter_map(|part| self.reached(1.0 - part, &format!("{} % faster", part * 100.0)));
        let first = match self.found.base_piece() {
            None if self.found.base.is_none() => {
                format!("{field} on {} has no single value", self.network.name)
            }
            None => format!("{field} on {} lies outside the range", self.network.name),
            Some(piece) if piece.slope == 0.0 => {
                format!("a small change of {field} has no effect")
            }
            Some(piece) => self.cost(piece),
        };
        std::iter::once(first)
            .chain(slower)
            .chain(faster)
            .collect::<Vec<_>>()
            .join("; ")
    }

    fn cost(&self, piece: &Piece) -> String {
        let parameter = &self.found.parameter;
        let field = parameter.field();
        if parameter.is_inverse() {
            let base = self.found.base.unwrap_or_default();
            let more = Time::from_nanos(piece.slope * base * (1.0 / 0.99 - 1.0));
            return format!("1 % less {field} costs {}", Rounded(more));
        }
        let step = step(parameter);
        format!(
            "{} more {field} costs {}",
            shown(parameter, step),
            Rounded(Time::from_nanos(piece.slope * step))
        )
    }

    fn reached(&self, factor: f64, what: &str) -> Option<String> {
        let at = self.found.value_at(factor)?;
        Some(format!("{what} at {}", shown(&self.found.parameter, at)))
    }

    /// The pieces. If there are more pieces than rows, narrow ones are joined with the next.
    fn joined_pieces(&self) -> Vec<Piece> {
        let pieces = &self.found.curve.pieces;
        let least = if pieces.len() > self.most_rows {
            self.least_width()
        } else {
            0.0
        };
        let mut joined: Vec<Piece> = Vec::new();
        for piece in pieces {
            match joined.last_mut() {
                Some(last) if last.to - last.from < least * (1.0 - 1e-9) => {
                    last.to = piece.to;
                    last.slope =
                        (piece.at(piece.to) - last.makespan).as_nanos() / (last.to - last.from);
                }
                _ => joined.push(*piece),
            }
        }
        joined
    }

    /// Smallest width of a row, in the parameter's unit.
    fn least_width(&self) -> f64 {
        let (from, to) = self.found.parameter.range();
        (to - from) / self.most_rows as f64
    }
}

/// A number with its noun, such as `1 piece` and `2 pieces`.
fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A round number that fits at least ten times into the range.
fn step(parameter: &Parameter) -> f64 {
    let (from, to) = parameter.range();
    let base = if parameter.is_time() { 1000f64 } else { 10.0 };
    base.powf(((to - from) / 10.0).log(base).floor())
}

/// A part of the range for people.
fn stretch(parameter: &Parameter, width: f64) -> String {
    match parameter.is_inverse() {
        true if parameter.unit().is_empty() => {
            format!("{} of 1/speed", Quantity::Number(width).rounded())
        }
        true => parameter.text(width),
        false => shown(parameter, width),
    }
}

/// A value of the field for people.
fn shown(parameter: &Parameter, at: f64) -> String {
    parameter.value(at).rounded()
}
