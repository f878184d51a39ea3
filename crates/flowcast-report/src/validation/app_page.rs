//! A program's validation as one HTML page that loads nothing from anywhere.

use super::{
    app::{AppValidation, Fared, Quantity, Row},
    page::{key, page, percent, provenance, signed, table},
    plot,
};
use crate::charts::section;
use flowcast_model::stats::StatsError;
use flowcast_table::escape;
use flowcast_units::{Rounded, Time};
use serde_json::json;

/// More points than this cannot be told apart.
const MOST_GROUPS: usize = 40;

/// The page.
///
/// # Errors
/// No run.
pub fn app_html(validation: &AppValidation) -> Result<String, StatsError> {
    let (rows, fared) = (validation.rows()?, validation.fared()?);
    let (runs, ranks) = (validation.runs.len(), validation.worked.len());
    let summary = format!(
        "<p>{runs} runs, {ranks} ranks. Errors are (predicted - measured) / measured; intervals are 95 %.</p>\n"
    );
    let drawn = format!(
        "{}<div id=\"points\"></div>\n",
        predictors(validation, &fared)
    );
    let mut out = section("", &summary) + &section("Errors", &drawn);
    for (quantity, heading) in [
        (Quantity::Total, "The whole run"),
        (
            Quantity::Region,
            "Regions, on the rank that was longest in each",
        ),
        (Quantity::Rank, "Communication of each rank"),
        (Quantity::Call, "Calls, all ranks together"),
    ] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.quantity == quantity).collect();
        if !rows.is_empty() {
            out += &section(heading, &quantities(&validation.predictors, &rows));
        }
    }
    out += &provenance(&validation.provenance);
    Ok(page(
        &validation.title,
        &out,
        &json!({"points": errors(validation, &rows)}),
    ))
}

fn predictors(validation: &AppValidation, fared: &[Fared]) -> String {
    let head = [
        "prediction",
        "total",
        "communication",
        "regions",
        "within 10 %",
        "mean absolute",
        "worst region",
    ];
    table(
        &head,
        validation.predictors.iter().zip(fared).enumerate().map(
            |(at, (name, fared)): (usize, (&String, &Fared))| {
                let regions = fared.regions.as_ref().map_or(
                    ["0".into(), String::new(), String::new(), String::new()],
                    |regions| {
                        let (worst, error) = &regions.worst;
                        let worst = format!("{} ({})", signed(*error), escape(worst));
                        [
                            regions.count.to_string(),
                            percent(regions.within_ten_percent),
                            percent(regions.mean_absolute),
                            worst,
                        ]
                    },
                );
                [
                    key(at, name),
                    signed(fared.total),
                    signed(fared.communication),
                ]
                .into_iter()
                .chain(regions)
                .collect()
            },
        ),
    )
}

fn errors(validation: &AppValidation, rows: &[Row]) -> Vec<plot::Points> {
    let shown = rows
        .iter()
        .filter(|row| matches!(row.quantity, Quantity::Total | Quantity::Region));
    let groups: Vec<(String, Vec<f64>)> = shown
        .filter_map(|row| Some((row.name.clone(), row.errors.clone()?)))
        .collect();
    groups
        .chunks(MOST_GROUPS)
        .enumerate()
        .map(|(at, part)| {
            let first = at * MOST_GROUPS + 1;
            let label = format!(
                "Runs and regions {first} to {} of {}",
                first + part.len() - 1,
                groups.len()
            );
            plot::errors(label, part, &validation.predictors)
        })
        .collect()
}

fn quantities(predictors: &[String], rows: &[&Row]) -> String {
    let names = predictors
        .iter()
        .flat_map(|name| [escape(name), "error".to_owned()]);
    let head: Vec<String> = ["", "measured", "interval"]
        .map(str::to_owned)
        .into_iter()
        .chain(names)
        .collect();
    let range = |(low, high)| format!("{} .. {}", Rounded(low), Rounded(high));
    table(
        &head,
        rows.iter().map(|row: &&Row| {
            let first = [
                escape(&row.name),
                Rounded(row.measured).to_string(),
                row.interval.map_or(String::new(), range),
            ];
            first
                .into_iter()
                .chain(row.predicted.iter().enumerate().flat_map(
                    |(at, predicted): (usize, &Time)| {
                        let time = match row.ranges[at] {
                            Some(times) => format!(
                                "<span title=\"{}\">{}</span>",
                                range(times),
                                Rounded(*predicted)
                            ),
                            None => Rounded(*predicted).to_string(),
                        };
                        [
                            time,
                            row.errors
                                .as_ref()
                                .map_or(String::new(), |errors| signed(errors[at])),
                        ]
                    },
                ))
                .collect()
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::{super::app::tests::validation, *};

    #[test]
    fn the_page_shows_each_row_and_prediction_and_escapes_names() {
        let page = app_html(&validation()).unwrap();
        assert!(page.contains("mpirun &lt;x&gt;") && !page.contains("mpirun <x>"));
        for text in [
            "limits/formula",
            "+10.0 %",
            "-20.0 % (solve)",
            "\"isShare\":true",
            "Bcast",
            "2.100 s",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(page.contains("<p class=\"brand\"") && page.contains("\"what\":\"region\""));
        assert!(
            !page.contains("<tr></tr>")
                && page.contains("\"label\":\"Runs and regions 1 to 2 of 2\"")
        );
        assert_eq!(page, app_html(&validation()).unwrap());
    }
}
