//! A sweep as one self-contained HTML page: curves over one field, and a heat map over two.
//!
//! The page contains the CSV unchanged and draws it in the browser, so that [`csv_of`] can extract it.

use serde_json::{Value, json};

use crate::charts::{self, section};
use flowcast_table::escape;

const SCRIPT: &str = include_str!("assets/sweep.js");
const BEGIN: &str = "<script type=\"text/csv\" id=\"rows\">";
const END: &str = "</script>";

/// Builds the page of a sweep with the lines `csv`: a comment, the columns (`set`, the fields, `makespan_s`,
/// `communication_share`, and optionally `low_s` and `high_s`), then a line for each set.
pub fn html(title: &str, csv: &str) -> String {
    let results = json!([
        {"name": "predicted time", "column": "makespan_s", "show": "seconds"},
        {"name": "share of communication", "column": "communication_share", "show": "share"},
    ]);
    let words = match &*notes(csv) {
        "" => String::new(),
        some => section("", some),
    };
    let choice = section("", "<div id=\"choose\" class=\"toolbar\"></div>\n");
    let curves =
        "<div id=\"curves\"></div>\n<div class=\"scroll\"><table id=\"map\"></table></div>\n";
    let body = format!(
        "{words}{choice}{}{BEGIN}{}{END}\n",
        section("", curves),
        csv.replace('<', "&lt;")
    );
    charts::page(title, &body, &results.to_string(), SCRIPT)
}

/// Notes about all rows, from the description in the first line.
fn notes(csv: &str) -> String {
    let first = csv.lines().next().unwrap_or_default();
    let description: Value =
        serde_json::from_str(first.trim_start_matches("# ")).unwrap_or_default();
    let notes = description["notes"].as_array().into_iter().flatten();
    let notes = notes.filter_map(Value::as_str);
    notes
        .map(|note| format!("<p>{}</p>\n", escape(note)))
        .collect()
}

/// Extracts the CSV of a page, or returns `None` if it is not the page of a sweep.
///
/// ```
/// use flowcast_report::sweep_page::{csv_of, html};
///
/// let rows = "# {}\nset,makespan_s,communication_share\n0,0.5,0.25\n";
/// assert_eq!(csv_of(&html("A sweep", rows)).as_deref(), Some(rows));
/// ```
pub fn csv_of(page: &str) -> Option<String> {
    let (_, rest) = page.split_once(BEGIN)?;
    Some(rest.split_once(END)?.0.replace("&lt;", "<"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_returns_its_lines() {
        let csv = "# {\"trace\":\"</script>\"}\nset,nic.latency_s,makespan_s,communication_share\n0,1e-6,0.5,0.25\n";
        let page = html("a < b", csv);
        assert_eq!(csv_of(&page).as_deref(), Some(csv));
        assert!(
            page.contains("<h1>a &lt; b</h1>") && !page.contains("http"),
            "{}",
            &page[..200]
        );
        assert_eq!(csv_of("<html></html>"), None);
    }
}
