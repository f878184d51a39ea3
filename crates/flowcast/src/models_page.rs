//! Comparison of models for concurrent messages: predictions and errors of each model, the best one, and its differences
//! from the others.

use flowcast_fit::{
    loggp::interval,
    zoo::{
        compare::{CompareOptions, Compared, FittedParameter, Predicted},
        pattern::ZooPattern,
    },
};
use flowcast_network::quantity::Quantity;
use flowcast_table::{
    Document, Rows, Table, Value, figure, or_dash, percent, relative_error, rows,
};
use flowcast_units::Rounded;

/// Number of models whose parameters and residuals are shown to people.
const SHOWN: usize = 4;
/// Number of patterns whose errors are shown on a terminal.
const PATTERNS: usize = 12;
/// Hint below a table at the place of its remaining rows.
const MORE_ROWS_HINT: &str = "--json has";

/// Document of the models, the best first, with the options of their fits.
pub fn models_document(models: &[Compared], options: CompareOptions) -> Document {
    let errors = rows(models)
        .column("model", "model", |model| model.model)
        .column("error_left_out", "held-out sizes", |model| {
            error(model.left_out)
        })
        .column("error_lengths_left_out", "held-out lengths", |model| {
            optional(model.lengths_left_out)
        })
        .column("error_patterns_left_out", "held-out patterns", |model| {
            optional(model.patterns_left_out)
        })
        .column("error_left_out_by_procedure", "published fit", |model| {
            optional(model.left_out_by_procedure)
        })
        .column("error_fitted", "fitted", |model| error(model.fitted))
        .column("choice", "parameter", |model| &model.choice)
        .column("source", "source", |model| model.source)
        .field("aliases", |model| model.aliases.iter().collect::<Value>())
        .field("negative_predictions", |model| model.negative)
        .field("parameters", |model| parameters(model.parameters.iter()))
        .field("by_pattern", |model| patterns(&model.by_pattern))
        .field("by_point", |model| {
            rows(&model.predicted)
                .field("n", |found| found.exchange.messages)
                .field("d_us", |found| found.exchange.delay)
                .field("size_B", |found| found.exchange.size)
                .field("measured_us", |found| found.measured)
                .field("predicted_us", |found| found.predicted)
        })
        .field("by_size", |model| {
            rows(&model.by_size)
                .field("size_B", |(size, _)| size)
                .field("error", |(_, error)| *error)
        });
    let document = Document::new("model-comparison")
        .titled("Comparison of message models")
        .field("level", options.level)
        .field("replicates", options.replicates)
        .field("seed", options.seed)
        .table("models", errors)
        .lines(summary(models));
    let Some(best) = models.first() else {
        return document;
    };
    let shown = &models[..models.len().min(SHOWN)];
    let mut sizes = rows(0..best.by_size.len())
        .heading("Mean error of each held-out size, predicted minus measured")
        .cell("size", |row| best.by_size[row].0);
    for model in shown {
        sizes = sizes.cell(model.model, |row| relative_error(model.by_size[row].1));
    }
    let document = document
        .shown(all_parameters(models, shown, options.level))
        .shown(sizes);
    let parts = best.by_pattern.iter().map(|found| found.part + 1).max();
    document
        .lines(parts.map(|parts| format!("Patterns were held out in {parts} parts.")))
        .shown(left_out_patterns(best, shown))
}

fn optional(found: Option<f64>) -> Value {
    or_dash(found.map(error))
}

fn error(error: f64) -> Value {
    percent(error, 2)
}

/// Table of all parameters, with the name of the model in every row.
fn all_parameters(models: &[Compared], shown: &[Compared], level: f64) -> Table {
    let names = models
        .iter()
        .flat_map(|model| std::iter::repeat_n(model.model, named(model)));
    let names: Vec<&str> = names.collect();
    let most = shown.iter().map(named).sum();
    let all = models.iter().flat_map(|model| &model.parameters);
    rows(all.zip(names))
        .cell("model", |(_, name)| name)
        .cell("parameter", |(fitted, _)| &fitted.symbol)
        .cell("value", |(fitted, _)| figure(text(fitted.value)))
        .cell(format!("{} % interval", level * 100.0), |(fitted, _)| {
            or_dash(
                interval(fitted.interval)
                    .map(|(low, high)| figure(format!("{} .. {}", text(low), text(high)))),
            )
        })
        .most(most, MORE_ROWS_HINT)
        .into()
}

fn named(model: &Compared) -> usize {
    model.parameters.len()
}

fn parameters<'a>(fitted: impl Iterator<Item = &'a FittedParameter>) -> Value {
    rows(fitted)
        .field("symbol", |fitted| &fitted.symbol)
        .field("unit", |fitted| match fitted.value {
            Quantity::TimePerByte(_) => "ns/B",
            _ => "ns",
        })
        .field("value", |fitted| fitted.value.number())
        .field("interval", |fitted| {
            interval(fitted.interval).map(|(low, high)| (low.number(), high.number()))
        })
        .into()
}

fn text(value: Quantity) -> String {
    match value {
        Quantity::TimePerByte(gap) => format!("{:.4} ns/B", gap.as_nanos()),
        value => value.rounded(),
    }
}

fn patterns<'a>(
    all: impl IntoIterator<Item = &'a Predicted<ZooPattern>>,
) -> Rows<&'a Predicted<ZooPattern>> {
    rows(all)
        .column("name", "pattern", |found| &found.exchange.name)
        .column("messages", "messages", |found| {
            found.exchange.messages.len()
        })
        .column("size_B", "size", |found| found.exchange.size)
        .column("part", "held out in part", |found| found.part + 1)
        .column("measured_us", "measured", |found| found.measured)
        .field("predicted_us", |found| found.predicted)
}

/// Table of every pattern that was left out, with the errors of the best models. Patterns that the best model misses most
/// come first.
fn left_out_patterns(best: &Compared, shown: &[Compared]) -> Table {
    let mut order: Vec<usize> = (0..best.by_pattern.len()).collect();
    order.sort_by(|one, other| {
        pattern_error(best, *other)
            .abs()
            .total_cmp(&pattern_error(best, *one).abs())
    });
    let mut table: Table = patterns(order.iter().map(|row| &best.by_pattern[*row]))
        .heading("Error of held-out patterns, predicted minus measured, largest errors of the best model first")
        .most(PATTERNS, MORE_ROWS_HINT)
        .into();
    for model in shown {
        let errors = rows(&order).cell(model.model, |row| {
            relative_error(pattern_error(model, *row))
        });
        table.columns.extend(Table::from(errors).columns);
    }
    table
}

fn pattern_error(model: &Compared, row: usize) -> f64 {
    let found = &model.by_pattern[row];
    found.predicted.as_nanos() / found.measured.as_nanos() - 1.0
}

/// Sentences on the best model and on each of the next three models, with the size of its largest gap to the best model.
fn summary(models: &[Compared]) -> Vec<String> {
    let [best, others @ ..] = models else {
        return Vec::new();
    };
    let patterns = best.patterns_left_out.map_or(String::new(), |error| {
        format!(" and {} on held-out patterns", in_percent(error))
    });
    let mut lines = vec![format!(
        "{} explains this network best: its mean error is {} on held-out sizes{patterns}.",
        best.model,
        in_percent(best.left_out)
    )];
    for other in others.iter().take(3) {
        let pairs = best.by_size.iter().zip(&other.by_size);
        let worse = pairs.max_by(|one, two| {
            (one.1.1.abs() - one.0.1.abs()).total_cmp(&(two.1.1.abs() - two.0.1.abs()))
        });
        let Some(((size, own), (_, theirs))) = worse else {
            continue;
        };
        let name = other.model;
        lines.push(format!(
            "{name}: mean error {} on held-out sizes; largest gap to the best model at {}, with {:+.1} % against {:+.1} %.",
            in_percent(other.left_out),
            Rounded(*size),
            theirs * 100.0,
            own * 100.0
        ));
    }
    lines
}

fn in_percent(error: f64) -> String {
    format!("{:.2} %", error * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_report::chart_page::{Picture, chart_page};
    use flowcast_units::{Bytes, Node, Time};

    fn nanos(nanos: f64) -> Quantity {
        Quantity::Time(Time::from_nanos(nanos))
    }

    fn model(model: &'static str, left_out: f64, by_size: [f64; 2]) -> Compared {
        Compared {
            model,
            aliases: &[],
            source: "a < b",
            choice: String::new(),
            parameters: vec![FittedParameter {
                symbol: "L".into(),
                value: nanos(1500.0),
                interval: (nanos(1400.0), nanos(1700.0)),
            }],
            fitted: 0.0,
            left_out,
            negative: 0,
            left_out_by_procedure: None,
            lengths_left_out: Some(0.5),
            patterns_left_out: Some(0.25),
            by_pattern: vec![Predicted {
                exchange: ZooPattern {
                    name: "in-2".into(),
                    size: Bytes(8),
                    messages: vec![(Node(1), Node(0)), (Node(2), Node(0))],
                },
                part: 1,
                measured: Time::from_micros(10.0),
                predicted: Time::from_micros(10.0 * (1.0 + left_out)),
            }],
            predicted: Vec::new(),
            by_size: vec![(Bytes(1), by_size[0]), (Bytes(2048), by_size[1])],
        }
    }

    #[test]
    fn the_page_names_the_best_model_and_the_worst_size_of_the_next() {
        let document = models_document(
            &[
                model("loggp", 0.01, [0.01, 0.01]),
                model("bsp", 0.2, [0.02, -0.38]),
            ],
            CompareOptions {
                replicates: 100,
                level: 0.95,
                seed: 1,
            },
        );
        let page = chart_page(&document, Picture::Models, &Default::default()).unwrap();
        assert!(
            page.contains("L</td><td>1.500 us</td><td>1.400 us .. 1.700 us</td>"),
            "{page}"
        );
        assert!(
            page.contains(
                "in-2</td><td>2</td><td>8 B</td><td>2</td><td>10.00 us</td><td>+1.0 %</td><td>+20.0 %</td>"
            )
        );
        assert!(page.contains("loggp explains this network best") && page.contains("a &lt; b"));
        assert!(
            page.contains(
                "bsp: mean error 20.00 % on held-out sizes; largest gap to the best model at 2 KiB, with -38.0 % against +1.0 %."
            )
        );
    }
}
