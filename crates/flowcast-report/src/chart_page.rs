//! Words, pictures and tables of one result as one HTML page that loads nothing from anywhere: how a predicted time depends on a
//! field of the network, which model of messages explains round trips, and what measured samples are worth.

use crate::charts::{self, section};
use crate::escape::escape;

/// What is drawn, and of which JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// A predicted time over a parameter: the JSON of `flowcast sensitivity`.
    Sensitivity,
    /// Models of messages beside what was measured: the JSON of `flowcast fit --models`.
    Models,
    /// The samples of each point: `points`, each with `label`, `times_us`, `low_us` and `high_us`.
    Samples,
}

impl Picture {
    fn script(self) -> &'static str {
        match self {
            Picture::Sensitivity => include_str!("assets/sensitivity.js"),
            Picture::Models => include_str!("assets/models.js"),
            Picture::Samples => include_str!("assets/samples.js"),
        }
    }
}

/// What a page shows.
///
/// ```
/// use flowcast_report::chart_page::{ChartPage, Picture};
///
/// let page = ChartPage {
///     title: "Samples",
///     summary: &["all are alike".to_owned()],
///     tables: &[],
///     document: r#"{"points":[]}"#,
///     picture: Picture::Samples,
/// };
/// assert!(page.to_html().contains("<p>all are alike</p>"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ChartPage<'a> {
    /// The headline; escaped here.
    pub title: &'a str,
    /// The answer in words, a paragraph each.
    pub summary: &'a [String],
    /// Tables: of each a header, then the rows.
    pub tables: &'a [&'a [Vec<String>]],
    /// The JSON that is drawn.
    pub document: &'a str,
    /// How it is drawn.
    pub picture: Picture,
}

impl ChartPage<'_> {
    /// The whole document: words, picture, tables.
    pub fn to_html(&self) -> String {
        let summary: String = self
            .summary
            .iter()
            .map(|line| format!("<p>{}</p>\n", escape(line)))
            .collect();
        let tables: String = self.tables.iter().map(|rows| table(rows)).collect();
        let body = [
            section("", &summary),
            section("", "<div id=\"picture\"></div>\n"),
            tables,
        ]
        .concat();
        charts::page(self.title, &body, (self.document, self.picture.script()))
    }
}

fn table(rows: &[Vec<String>]) -> String {
    let rows: String = rows
        .iter()
        .enumerate()
        .map(|(index, cells)| {
            let tag = if index == 0 { "th" } else { "td" };
            let cells: String = cells
                .iter()
                .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)))
                .collect();
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    section(
        "",
        &format!("<div class=\"scroll\"><table>\n{rows}</table></div>\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_words_tables_and_pictures_and_loads_nothing() {
        for picture in [Picture::Sensitivity, Picture::Models, Picture::Samples] {
            let rows = [vec!["from".to_owned()], vec!["0 ns".to_owned()]];
            let page = ChartPage {
                title: "a < b",
                summary: &["1 us more costs 2 us".to_owned()],
                tables: &[&rows, &rows],
                document: "{\"network\":\"</script>\"}",
                picture,
            };
            let html = page.to_html();
            for part in [
                "<h1>a &lt; b</h1>",
                "<p>1 us more",
                "<td>0 ns</td>",
                "\\u003c/script>\"};",
            ] {
                assert!(html.contains(part), "{part}");
            }
            assert!(!html.contains("http") && html.matches("<table>").count() == 2);
        }
    }
}
