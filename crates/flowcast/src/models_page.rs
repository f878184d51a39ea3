//! Models of messages beside each other as a page: what each predicts, by how much it misses, which is best and where it differs.

use flowcast_fit::loggp::interval;
use flowcast_fit::zoo::Unit;
use flowcast_fit::zoo::compare::{Compared, FittedParameter};
use flowcast_report::chart_page::{ChartPage, Picture};
use flowcast_units::{Rounded, Time};

/// Models of which the page has the errors of patterns.
const SHOWN: usize = 4;

/// The page of models, the best first; `document` is their JSON (`flowcast/model-comparison/1`).
pub fn models_page(models: &[Compared], document: &str) -> String {
    let percent = |error: f64| format!("{:.2} %", error * 100.0);
    let optional = |error: Option<f64>| error.map_or("-".to_owned(), percent);
    let header = [
        "model",
        "sizes left out",
        "lengths left out",
        "patterns left out",
        "published fit",
        "fitted",
        "with",
        "source",
    ];
    let row = |model: &Compared| {
        vec![
            model.model.to_owned(),
            percent(model.left_out),
            optional(model.lengths_left_out),
            optional(model.patterns_left_out),
            optional(model.left_out_by_procedure),
            percent(model.fitted),
            model.choice.clone(),
            model.source.to_owned(),
        ]
    };
    let rows = [
        vec![header.map(str::to_owned).to_vec()],
        models.iter().map(row).collect(),
    ]
    .concat();
    let (parameters, patterns) = (parameters(models), patterns(models));
    let mut tables: Vec<&[Vec<String>]> = vec![&rows, &parameters];
    if patterns.len() > 1 {
        tables.push(&patterns);
    }
    ChartPage {
        title: "Models of messages, compared",
        summary: &summary(models),
        tables: &tables,
        document,
        picture: Picture::Models,
    }
    .to_html()
}

/// Every model's parameters with their intervals.
fn parameters(models: &[Compared]) -> Vec<Vec<String>> {
    let text = |fitted: &FittedParameter, value: f64| match fitted.parameter.unit {
        Unit::Time => Rounded(Time::from_nanos(value)).to_string(),
        Unit::TimePerByte => format!("{value:.4} ns/B"),
    };
    let mut rows = vec![
        ["model", "parameter", "value", "from", "to"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for model in models {
        for fitted in &model.parameters {
            let ends = interval(fitted.interval)
                .map(|(low, high)| [low, high].map(|end| text(fitted, end)));
            let [low, high] = ends.unwrap_or_else(|| ["-", "-"].map(str::to_owned));
            let symbol = fitted.parameter.symbol.clone();
            rows.push(vec![
                model.model.to_owned(),
                symbol,
                text(fitted, fitted.value),
                low,
                high,
            ]);
        }
    }
    rows
}

/// Every pattern that was left out with the errors of the best models; a header alone where none was.
fn patterns(models: &[Compared]) -> Vec<Vec<String>> {
    let shown = &models[..models.len().min(SHOWN)];
    let head = [
        "pattern",
        "messages",
        "size",
        "left out in part",
        "measured",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut rows = vec![
        [
            head,
            shown.iter().map(|model| model.model.to_owned()).collect(),
        ]
        .concat(),
    ];
    let Some(best) = models.first() else {
        return rows;
    };
    for (at, found) in best.by_pattern.iter().enumerate() {
        let of = |model: &Compared| {
            let own = &model.by_pattern[at];
            format!(
                "{:+.1} %",
                (own.predicted.as_nanos() / own.measured.as_nanos() - 1.0) * 100.0
            )
        };
        let own = [
            found.pattern.name.clone(),
            found.pattern.messages.len().to_string(),
            found.pattern.size.to_string(),
            (found.part + 1).to_string(),
            Rounded(found.measured).to_string(),
        ];
        rows.push(own.into_iter().chain(shown.iter().map(of)).collect());
    }
    rows
}

/// Which model is best, and at which size the next one misses by more.
fn summary(models: &[Compared]) -> Vec<String> {
    let [best, others @ ..] = models else {
        return Vec::new();
    };
    let percent = |error: f64| format!("{:.2} %", error * 100.0);
    let mut lines = vec![format!(
        "{} explains this network best: it misses sizes that were left out by {} on average.",
        best.model,
        percent(best.left_out)
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
            "{name} misses them by {}; it falls behind most at {size}, off by {:+.1} % against {:+.1} %.",
            percent(other.left_out),
            theirs * 100.0,
            own * 100.0
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_fit::zoo::Parameter;
    use flowcast_fit::zoo::compare::PredictedPattern;
    use flowcast_fit::zoo::pattern::Pattern;
    use flowcast_units::{Bytes, Node};

    fn model(model: &'static str, left_out: f64, by_size: [f64; 2]) -> Compared {
        Compared {
            model,
            source: "a < b",
            choice: String::new(),
            parameters: vec![FittedParameter {
                parameter: Parameter {
                    symbol: "L".into(),
                    unit: Unit::Time,
                },
                value: 1500.0,
                interval: (1400.0, 1700.0),
            }],
            fitted: 0.0,
            left_out,
            negative: 0,
            left_out_by_procedure: None,
            lengths_left_out: Some(0.5),
            patterns_left_out: Some(0.25),
            by_pattern: vec![PredictedPattern {
                pattern: Pattern {
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
    fn the_page_says_which_model_is_best_and_where_the_next_falls_behind() {
        let page = models_page(
            &[
                model("loggp", 0.01, [0.01, 0.01]),
                model("bsp", 0.2, [0.02, -0.38]),
            ],
            "{}",
        );
        assert!(
            page.contains("<td>L</td><td>1.500 us</td><td>1.400 us</td><td>1.700 us</td>"),
            "{page}"
        );
        assert!(
            page.contains(
                "<td>in-2</td><td>2</td><td>8B</td><td>2</td><td>10.00 us</td><td>+1.0 %</td><td>+20.0 %</td>"
            )
        );
        assert!(page.contains("loggp explains this network best") && page.contains("a &lt; b"));
        assert!(
            page.contains("bsp misses them by 20.00 %; it falls behind most at 2KiB, off by -38.0 % against +1.0 %.")
        );
    }
}
