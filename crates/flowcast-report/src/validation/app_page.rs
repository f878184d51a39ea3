//! A program's validation as one HTML page that loads nothing from anywhere.

use std::fmt::Write;

use super::app::{AppValidation, Fared, Quantity, Row};
use super::page::{begun, escaped, percent, push_provenance, signed};
use super::plot;
use flowcast_model::stats::StatsError;
use flowcast_units::Rounded;

/// More bars than this are not told apart.
const MOST_GROUPS: usize = 40;

/// The page.
///
/// # Errors
/// No run.
pub fn app_html(validation: &AppValidation) -> Result<String, StatsError> {
    let (rows, fared) = (validation.rows()?, validation.fared()?);
    let mut out = begun(&validation.title);
    let _ = writeln!(
        out,
        "<p>{} runs, {} ranks. Errors are (predicted - measured) / measured; intervals are 95 %.</p>",
        validation.runs.len(),
        validation.worked.len()
    );
    push_fared(&mut out, validation, &fared);
    push_chart(&mut out, validation, &rows);
    for (quantity, heading) in [
        (Quantity::Total, "The whole run"),
        (Quantity::Region, "Regions, on the rank that was longest in each"),
        (Quantity::Rank, "Communication of each rank"),
        (Quantity::Call, "Calls, all ranks together"),
    ] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.quantity == quantity).collect();
        if !rows.is_empty() {
            let _ = writeln!(out, "<h2>{heading}</h2>");
            push_rows(&mut out, &validation.predictors, &rows);
        }
    }
    push_provenance(&mut out, &validation.provenance);
    Ok(out + "</html>\n")
}

fn push_fared(out: &mut String, validation: &AppValidation, fared: &[Fared]) {
    out.push_str(
        "<table><tr><th>prediction</th><th>total</th><th>communication</th><th>regions</th><th>within 10 %</th>\
         <th>mean absolute</th><th>worst region</th></tr>\n",
    );
    for (at, (name, fared)) in validation.predictors.iter().zip(fared).enumerate() {
        let _ = write!(
            out,
            "<tr><td><span class=\"key\" style=\"background:{}\"></span>{}</td><td>{}</td><td>{}</td>",
            plot::colour(at),
            escaped(name),
            signed(fared.total),
            signed(fared.communication)
        );
        match &fared.regions {
            Some(regions) => {
                let _ = writeln!(
                    out,
                    "<td>{}</td><td>{}</td><td>{}</td><td>{} ({})</td></tr>",
                    regions.count,
                    percent(regions.within_ten_percent),
                    percent(regions.mean_absolute),
                    signed(regions.worst.1),
                    escaped(&regions.worst.0)
                );
            }
            None => out.push_str("<td>0</td><td></td><td></td><td></td></tr>\n"),
        }
    }
    out.push_str("</table>\n");
}

fn push_chart(out: &mut String, validation: &AppValidation, rows: &[Row]) {
    let shown = rows.iter().filter(|row| matches!(row.quantity, Quantity::Total | Quantity::Region));
    let groups: Vec<(String, Vec<f64>)> =
        shown.filter_map(|row| Some((row.name.clone(), row.errors.clone()?))).collect();
    for part in groups.chunks(MOST_GROUPS) {
        out.push_str(&plot::error_bars("Errors", part, &validation.predictors));
    }
}

fn push_rows(out: &mut String, predictors: &[String], rows: &[&Row]) {
    out.push_str("<table><tr><th></th><th>measured</th><th>interval</th>");
    predictors.iter().for_each(|name| out.push_str(&format!("<th colspan=\"2\">{}</th>", escaped(name))));
    out.push_str("</tr>\n");
    for row in rows {
        let interval =
            row.interval.map_or(String::new(), |(low, high)| format!("{} .. {}", Rounded(low), Rounded(high)));
        let _ = write!(out, "<tr><td>{}</td><td>{}</td><td>{interval}</td>", escaped(&row.name), Rounded(row.measured));
        for (at, predicted) in row.predicted.iter().enumerate() {
            let error = row.errors.as_ref().map_or(String::new(), |errors| signed(errors[at]));
            let range = row.ranges[at]
                .map_or(String::new(), |(low, high)| format!(" title=\"{} .. {}\"", Rounded(low), Rounded(high)));
            let _ = write!(out, "<td{range}>{}</td><td>{error}</td>", Rounded(*predicted));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::super::app::tests::validation;
    use super::*;

    #[test]
    fn the_page_shows_each_row_and_prediction_and_escapes_names() {
        let page = app_html(&validation()).unwrap();
        assert!(page.contains("mpirun &lt;x&gt;") && !page.contains("mpirun <x>"));
        for text in ["limits/formula", "+10.0 %", "-20.0 % (solve)", "<svg", "Bcast", "2.100 s"] {
            assert!(page.contains(text), "{text}");
        }
        assert_eq!(page, app_html(&validation()).unwrap());
    }
}
