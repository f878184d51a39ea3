//! Models of messages beside each other as a page: what each predicts, by how much it misses, which is best and where it differs.

use flowcast_fit::zoo::compare::Compared;
use flowcast_report::chart_page::{ChartPage, Picture};

/// The page of models, the best first; `document` is their JSON (`flowcast/model-comparison/1`).
pub fn models_page(models: &[Compared], document: &str) -> String {
    let percent = |error: f64| format!("{:.2} %", error * 100.0);
    let optional = |error: Option<f64>| error.map_or("-".to_owned(), percent);
    let header = ["model", "sizes left out", "lengths left out", "published fit", "fitted", "with", "source"];
    let row = |model: &Compared| {
        vec![
            model.model.to_owned(),
            percent(model.left_out),
            optional(model.lengths_left_out),
            optional(model.left_out_by_procedure),
            percent(model.fitted),
            model.choice.clone(),
            model.source.to_owned(),
        ]
    };
    let rows = [vec![header.map(str::to_owned).to_vec()], models.iter().map(row).collect()].concat();
    ChartPage {
        title: "Models of messages, compared",
        summary: &summary(models),
        tables: &[&rows],
        document,
        picture: Picture::Models,
    }
    .to_html()
}

/// Which model is best, and at which size the next one misses by more.
fn summary(models: &[Compared]) -> Vec<String> {
    let [best, others @ ..] = models else { return Vec::new() };
    let percent = |error: f64| format!("{:.2} %", error * 100.0);
    let mut lines = vec![format!(
        "{} explains this network best: it misses sizes that were left out by {} on average.",
        best.model,
        percent(best.left_out)
    )];
    for other in others.iter().take(3) {
        let pairs = best.by_size.iter().zip(&other.by_size);
        let worse =
            pairs.max_by(|one, two| (one.1.1.abs() - one.0.1.abs()).total_cmp(&(two.1.1.abs() - two.0.1.abs())));
        let Some(((size, own), (_, theirs))) = worse else { continue };
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
    use flowcast_units::Bytes;

    fn model(model: &'static str, left_out: f64, by_size: [f64; 2]) -> Compared {
        Compared {
            model,
            source: "a < b",
            choice: String::new(),
            parameters: Vec::new(),
            fitted: 0.0,
            left_out,
            left_out_by_procedure: None,
            lengths_left_out: Some(0.5),
            predicted: Vec::new(),
            by_size: vec![(Bytes(1), by_size[0]), (Bytes(2048), by_size[1])],
        }
    }

    #[test]
    fn the_page_says_which_model_is_best_and_where_the_next_falls_behind() {
        let page = models_page(&[model("loggp", 0.01, [0.01, 0.01]), model("bsp", 0.2, [0.02, -0.38])], "{}");
        assert!(page.contains("loggp explains this network best") && page.contains("a &lt; b"));
        assert!(
            page.contains("bsp misses them by 20.00 %; it falls behind most at 2KiB, off by -38.0 % against +1.0 %.")
        );
    }
}
