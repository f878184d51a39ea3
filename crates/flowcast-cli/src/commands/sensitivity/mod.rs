//! `flowcast sensitivity`: how the predicted time depends on a field of the network.

mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::model::quantity::Quantity;
use flowcast::report::sensitivity_page::SensitivityPage;
use flowcast::study::grid::full_name;
use flowcast::trace::Trace;
use flowcast::{Parameter, sensitivity};
use serde::Serialize;

use self::words::Words;
use crate::files::{Output, declare};
use crate::network_args::NetworkArgs;
use crate::output::{Format, Shown, println_out, show, write_page};
use crate::progress::Progress;
use crate::replay_args::ReplayArgs;
use crate::tables::{Most, USUAL_ROWS, table};
use crate::trace_args::{open_trace, print_notes, trace_help};

/// Say how the predicted time depends on a field of the network: the whole curve, its slopes, and how much worse or better
/// the field has to be to be felt; exact where messages do not disturb one another (--model independent)
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter nic.latency --range 0us..1ms
  flowcast sensitivity lu.dim --network gige-tcp --model independent --parameter nic.bandwidth --range 10MB/s..10GB/s -o lu.html
  flowcast sensitivity lu.dim --network gige-tcp --parameter machine.nodes.*.speed --range 0.5..4 --json")]
pub(crate) struct Sensitivity {
    #[arg(help = trace_help())]
    input: PathBuf,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    replay: ReplayArgs,
    /// The field to vary, as for --set, or latency, bandwidth, overhead, gap
    #[arg(long, value_name = "FIELD")]
    parameter: String,
    /// Its values, each with its unit, such as 0us..1ms
    #[arg(long, value_name = "FROM..TO")]
    range: String,
    /// Walks over the program after which the search for further pieces ends
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    most_walks: usize,
    /// Pieces of which the table has a row; or all
    #[arg(long, value_name = "COUNT", help_heading = "Output", default_value = USUAL_ROWS)]
    show_pieces: Most,
    /// Write a self-contained page with the curve, and the JSON beside it
    #[arg(short, long, value_name = "FILE.html", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// By how much longer or shorter a run is to be.
const PARTS: [f64; 4] = [0.01, 0.02, 0.05, 0.1];

/// The curve, in base units.
#[derive(Debug, Serialize)]
struct Document {
    parameter: String,
    unit: &'static str,
    network: String,
    model: &'static str,
    base: Option<f64>,
    base_makespan_s: f64,
    /// Seconds for each unit of the parameter, from the network's own value on.
    base_slope: Option<f64>,
    exact: bool,
    inexact_because: Option<String>,
    /// How far the exact curve may lie below predictions where pieces are missing.
    error_s: f64,
    walks: usize,
    pieces: Vec<PieceRow>,
    tolerance: BTreeMap<String, Option<f64>>,
    improvement: BTreeMap<String, Option<f64>>,
    falls: Vec<Fall>,
    #[serde(skip)]
    lines: Vec<String>,
    #[serde(skip)]
    rows: Vec<Vec<String>>,
    #[serde(skip)]
    shown: Most,
}

#[derive(Debug, Serialize)]
struct PieceRow {
    from: f64,
    to: f64,
    makespan_s_at_from: f64,
    slope: f64,
}

/// A part of the range in which a larger value makes the program faster.
#[derive(Debug, Serialize)]
struct Fall {
    from: f64,
    to: f64,
    by_s: f64,
}

impl Sensitivity {
    /// Predicts over the range and prints.
    pub(crate) fn run(self) -> Result<()> {
        let inputs = [self.input.as_path(), self.network.network.as_ref()];
        let pages = self.output.iter().map(|path| Output { option: "-o", path, endings: &["html"] });
        declare(inputs, pages)?;
        let network = self.network.load()?;
        let parameter = self.parameter()?;
        let options = self.replay.options()?;
        let trace = open_trace(&self.input)?;
        if let Trace::Program(program) = &trace {
            print_notes(program);
        }
        let progress = Progress::without_end(format!("following {}", self.parameter));
        let found = sensitivity(&trace, &network, (parameter, self.most_walks), &options)
            .with_context(|| format!("--parameter {} --range {}", self.parameter, self.range))?;
        drop(progress);
        let words = Words { found: &found, network: &network.name };
        let document = Document { shown: self.show_pieces, ..Document::of(&words) };
        if let Some(path) = &self.output {
            let title = format!("{} over {}", trace.name(), found.parameter.field());
            let json = serde_json::to_string(&document)?;
            let page =
                SensitivityPage { title: &title, summary: &document.lines, rows: &document.rows, document: &json };
            write_page(path, &page.to_html(), &document)?;
        }
        show(&document, self.format)
    }

    fn parameter(&self) -> Result<Parameter> {
        let expected = "expected FROM..TO, each with its unit, such as 0us..1ms";
        let Some((from, to)) = self.range.split_once("..") else {
            bail!("--range: found `{}`, {expected}", self.range)
        };
        let value = |text: &str| {
            Quantity::parse(text.trim()).with_context(|| format!("--range: found `{}`, {expected}", self.range))
        };
        Ok(Parameter::new(&full_name(self.parameter.trim()), value(from)?, value(to)?)?)
    }
}

impl Document {
    fn of(words: &Words<'_>) -> Document {
        let found = words.found;
        let parameter = &found.parameter;
        let at = |value: f64| parameter.in_unit(value);
        let pieces = found.curve.pieces.iter().map(|piece| PieceRow {
            from: at(piece.from),
            to: at(piece.to),
            makespan_s_at_from: piece.makespan.as_seconds(),
            slope: parameter.slope_in_unit(piece.slope),
        });
        let reached = |sign: f64| {
            let of = |part: f64| (part.to_string(), found.value_at(1.0 + sign * part).map(at));
            PARTS.into_iter().map(of).collect()
        };
        let falls = found.falls().map(|piece| Fall {
            from: at(piece.from),
            to: at(piece.to),
            by_s: (piece.makespan - piece.at(piece.to)).as_seconds(),
        });
        Document {
            parameter: parameter.field().to_owned(),
            unit: parameter.unit(),
            network: words.network.to_owned(),
            model: found.model.name(),
            base: found.base.map(at),
            base_makespan_s: found.base_makespan.as_seconds(),
            base_slope: found.base_piece().map(|piece| parameter.slope_in_unit(piece.slope)),
            exact: found.inexact.is_none(),
            inexact_because: found.inexact.map(|reason| reason.to_string()),
            error_s: found.curve.error.as_seconds(),
            walks: found.curve.walks,
            pieces: pieces.collect(),
            tolerance: reached(1.0),
            improvement: reached(-1.0),
            falls: falls.collect(),
            lines: words.lines(),
            rows: words.rows(),
            shown: Most::default(),
        }
    }
}

impl Shown for Document {
    const SCHEMA: &'static str = "flowcast/sensitivity/1";

    fn print(&self) {
        self.lines.iter().for_each(|line| println_out!("{line}"));
        let Some((header, rows)) = self.rows.split_first() else { return };
        let columns: Vec<String> = header.iter().map(|name| format!(">{name}")).collect();
        let mut table = table(&columns);
        for row in self.shown.of(rows) {
            table.add_row(row);
        }
        println_out!("{}", self.shown.shown(&table, rows.len(), "--show-pieces"));
    }
}
