//! A curve in words, and its pieces as a table.

use std::collections::BTreeMap;

use flowcast_model::quantity::Quantity;
use flowcast_replay::sensitivity::Piece;
use flowcast_report::answer::{Answer, AnswerTable};
use flowcast_report::chart_page::{ChartPage, Picture};
use flowcast_units::{Rounded, Time};
use serde_json::{Value, json};

use super::{Inexact, Parameter, Sensitivity};

/// By which parts the answer in words says how far the field may get worse, or has to get better.
const PARTS: [f64; 2] = [0.01, 0.1];

/// By how much longer or shorter a run is to be, for programs.
const REACHED: [f64; 4] = [0.01, 0.02, 0.05, 0.1];

/// A curve and the network that it is of.
struct Words<'a> {
    found: &'a Sensitivity,
    network: &'a str,
    most_rows: usize,
}

impl Sensitivity {
    /// What it says, on the network of this name; the document in base units. More pieces than rows are joined to rows of
    /// their share of the range at least.
    pub fn answer(&self, network: &str, most_rows: usize) -> Answer {
        let words = Words {
            found: self,
            network,
            most_rows,
        };
        let mut rows = words.rows();
        let columns = rows.remove(0);
        Answer {
            schema: "flowcast/sensitivity/1",
            title: format!("predicted time over {}", self.parameter.field()),
            lines: words.lines(),
            tables: vec![AnswerTable {
                columns,
                rows,
                ..AnswerTable::default()
            }],
            document: self.document(network),
        }
    }

    /// The answer on the trace of this name as a page with the curve.
    pub fn page(&self, trace: &str, answer: &Answer) -> String {
        let tables: Vec<_> = answer
            .tables
            .iter()
            .map(AnswerTable::head_and_rows)
            .collect();
        let page = ChartPage {
            title: &format!("{trace} over {}", self.parameter.field()),
            summary: &answer.lines,
            tables: &tables.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            document: &answer.document().to_string(),
            picture: Picture::Sensitivity,
        };
        page.to_html()
    }

    fn document(&self, network: &str) -> Value {
        let parameter = &self.parameter;
        let at = |value: f64| parameter.in_unit(value);
        let pieces = |pieces: &[Piece]| -> Value {
            let piece = |piece: &Piece| {
                json!({
                    "from": at(piece.from),
                    "to": at(piece.to),
                    "makespan_s_at_from": piece.makespan.as_seconds(),
                    "slope": parameter.slope_in_unit(piece.slope),
                })
            };
            pieces.iter().map(piece).collect()
        };
        let reached = |sign: f64| {
            let of = |part: f64| (part.to_string(), self.value_at(1.0 + sign * part).map(at));
            REACHED.into_iter().map(of).collect::<BTreeMap<_, _>>()
        };
        let change = |piece: &Piece| {
            let by = (piece.makespan - piece.at(piece.to)).as_seconds();
            json!({"from": at(piece.from), "to": at(piece.to), "by_s": by})
        };
        json!({
            "parameter": parameter.field(),
            "unit": parameter.unit(),
            "network": network,
            "model": self.model.name(),
            "base": self.base.map(at),
            "base_makespan_s": self.base_makespan.as_seconds(),
            "base_slope": self.base_piece().map(|piece| parameter.slope_in_unit(piece.slope)),
            "exact": self.inexact.is_none(),
            "inexact_because": self.inexact.map(|reason| reason.to_string()),
            "error_s": self.curve.error.as_seconds(),
            "walks": self.curve.walks,
            "pieces": pieces(&self.curve.pieces),
            "fixed_order": self.fixed_order.as_ref().map(|curve| pieces(&curve.pieces)),
            "tolerance": reached(1.0),
            "improvement": reached(-1.0),
            "falls": self.falls().map(change).collect::<Vec<_>>(),
            "jumps": self.jumps().map(change).collect::<Vec<_>>(),
        })
    }
}

impl Words<'_> {
    /// The answer in words, the model, and how the curve was found.
    fn lines(&self) -> Vec<String> {
        let Sensitivity {
            model,
            curve,
            inexact,
            base_makespan,
            ..
        } = self.found;
        let (walks, pieces) = (curve.walks, curve.pieces.len());
        let exact = match inexact {
            None => format!(
                "exact: {pieces} {}, found by {walks} walks",
                plural(pieces, "piece")
            ),
            Some(reason @ Inexact::Error(_)) => {
                let error = Rounded(curve.error);
                format!(
                    "exact within {error}: {pieces} {}, found by {walks} walks; {reason}",
                    plural(pieces, "piece")
                )
            }
            Some(reason @ Inexact::FixedOrder(_)) => {
                format!(
                    "exact for a fixed order of events: {pieces} {}, as {reason}",
                    plural(pieces, "piece")
                )
            }
            Some(reason) => format!("not exact: {walks} predictions joined by lines, as {reason}"),
        };
        let unset = if self.found.parameter.selector().is_some() {
            "of several values"
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
                self.network,
                Rounded(*base_makespan)
            ),
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
        let jumps: Vec<String> = self
            .found
            .jumps()
            .map(|piece| shown(&self.found.parameter, piece.from))
            .collect();
        if !jumps.is_empty() {
            let count = jumps.len();
            lines.push(format!(
                "the time jumps in {count} {}: behind {}",
                plural(count, "place"),
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
                "rows of the table join pieces until they are {width} wide"
            ));
        }
        lines
    }

    /// What a little more costs, and where that is felt.
    fn answer(&self) -> String {
        let field = self.found.parameter.field();
        let ranges = || {
            let slower = PARTS
                .iter()
                .filter_map(|part| self.reached(1.0 + part, &format!("{} % slower", part * 100.0)));
            let faster = PARTS
                .iter()
                .filter_map(|part| self.reached(1.0 - part, &format!("{} % faster", part * 100.0)));
            slower.chain(faster)
        };
        let first = match self.found.base_piece() {
            None if self.found.base.is_none() => {
                format!("{field} on {} has no single value", self.network)
            }
            None => format!("{field} on {} lies outside the range", self.network),
            Some(piece) if piece.slope == 0.0 => {
                format!("a little more or less of {field} costs and saves nothing")
            }
            Some(piece) => self.cost(piece),
        };
        std::iter::once(first)
            .chain(ranges())
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

    /// The header and a row for each piece.
    fn rows(&self) -> Vec<Vec<String>> {
        let parameter = &self.found.parameter;
        let step = step(parameter);
        let growth = format!("each {} more", stretch(parameter, step));
        let header = ["from", "to", "time at from", &growth].map(|name| format!(">{name}"));
        let row = |piece: &Piece| {
            let growth = Time::from_nanos(piece.slope * step);
            vec![
                shown(parameter, piece.from),
                shown(parameter, piece.to),
                Rounded(piece.makespan).to_string(),
                Rounded(growth).to_string(),
            ]
        };
        std::iter::once(header.to_vec())
            .chain(self.joined_pieces().iter().map(row))
            .collect()
    }

    /// The pieces, those that are narrow one with the next where there are more than rows.
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

    /// Of a row, in the parameter's unit.
    fn least_width(&self) -> f64 {
        let (from, to) = self.found.parameter.range();
        (to - from) / self.most_rows as f64
    }
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        noun.to_owned()
    } else {
        format!("{noun}s")
    }
}

/// A round number of which the range holds at least ten.
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
