//! A curve in words, and its pieces as a table.

use flowcast::replay::sensitivity::Piece;
use flowcast::units::{Rounded, Time};
use flowcast::{Inexact, Parameter, Sensitivity};

use crate::quantities::rounded;

/// By which parts the answer in words says how far the field may get worse, or has to get better.
const PARTS: [f64; 2] = [0.01, 0.1];

/// A curve and the network that it is of.
pub(super) struct Words<'a> {
    pub found: &'a Sensitivity,
    pub network: &'a str,
}

impl Words<'_> {
    /// The answer in words, the model, and how the curve was found.
    pub(super) fn lines(&self) -> Vec<String> {
        let Sensitivity { model, curve, inexact, base_makespan, .. } = self.found;
        let (walks, pieces) = (curve.walks, curve.pieces.len());
        let exact = match inexact {
            None => format!("exact: {pieces} {}, found by {walks} walks", plural(pieces, "piece")),
            Some(reason @ Inexact::Error(_)) => {
                let error = Rounded(curve.error);
                format!("exact within {error}: {pieces} {}, found by {walks} walks; {reason}", plural(pieces, "piece"))
            }
            Some(reason) => format!("not exact: {walks} predictions joined by lines, as {reason}"),
        };
        let base = self.found.base.map_or("not set".to_owned(), |base| shown(&self.found.parameter, base));
        let field = self.found.parameter.field();
        let mut lines = vec![
            self.answer(),
            model.to_string(),
            format!("predicted time on {} ({field} {base}): {}", self.network, Rounded(*base_makespan)),
            exact,
        ];
        let falls: Vec<&Piece> = self.found.falls().collect();
        if let Some(first) = falls.first() {
            let where_first = shown(&self.found.parameter, first.from);
            lines.push(format!(
                "the order of events changes so that the time falls in {} {}, first behind {where_first}",
                falls.len(),
                plural(falls.len(), "place")
            ));
        }
        lines
    }

    /// What a little more costs, and where that is felt.
    fn answer(&self) -> String {
        let field = self.found.parameter.field();
        let ranges = || {
            let slower =
                PARTS.iter().filter_map(|part| self.reached(1.0 + part, &format!("{} % slower", part * 100.0)));
            let faster =
                PARTS.iter().filter_map(|part| self.reached(1.0 - part, &format!("{} % faster", part * 100.0)));
            slower.chain(faster)
        };
        let first = match self.found.base_piece() {
            None => format!("{field} on {} lies outside the range", self.network),
            Some(piece) if piece.slope == 0.0 => format!("a little more or less of {field} costs and saves nothing"),
            Some(piece) => self.cost(piece),
        };
        std::iter::once(first).chain(ranges()).collect::<Vec<_>>().join("; ")
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
        format!("{} more {field} costs {}", shown(parameter, step), Rounded(Time::from_nanos(piece.slope * step)))
    }

    fn reached(&self, factor: f64, what: &str) -> Option<String> {
        let at = self.found.value_at(factor)?;
        Some(format!("{what} at {}", shown(&self.found.parameter, at)))
    }

    /// The header and a row for each piece.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let parameter = &self.found.parameter;
        let step = step(parameter);
        let growth = match parameter.is_inverse() {
            true if parameter.unit().is_empty() => format!("each {step} of 1/speed more"),
            true => format!("each {} more", parameter.text(step)),
            false => format!("each {} more", shown(parameter, step)),
        };
        let header = ["from", "to", "time at from", &growth].map(str::to_owned);
        let row = |piece: &Piece| {
            let growth = Time::from_nanos(piece.slope * step);
            vec![
                shown(parameter, piece.from),
                shown(parameter, piece.to),
                Rounded(piece.makespan).to_string(),
                Rounded(growth).to_string(),
            ]
        };
        std::iter::once(header.to_vec()).chain(self.found.curve.pieces.iter().map(row)).collect()
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// A round number of which the range holds at least ten.
fn step(parameter: &Parameter) -> f64 {
    let (from, to) = parameter.range();
    let base = if parameter.is_time() { 1000f64 } else { 10.0 };
    base.powf(((to - from) / 10.0).log(base).floor())
}

/// A value of the field for people.
fn shown(parameter: &Parameter, at: f64) -> String {
    rounded(parameter.value(at))
}
