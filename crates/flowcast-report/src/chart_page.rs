//! Words, pictures and tables of one result as one HTML page that loads nothing from anywhere: how a predicted time depends on a
//! field of the network, which model of messages explains round trips, and what measured samples are worth.

use crate::charts::{self, section};
use flowcast_table::{Document, NotFinite, Table, escape};

/// What is drawn, and of which JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// A predicted time over a parameter: the JSON of `flowcast sensitivity`.
    Sensitivity,
    /// Models of messages beside what was measured: the JSON of `flowcast fit --model`.
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

/// The whole page: words, picture, tables.
///
/// # Errors
/// A time is no finite number.
pub fn chart_page(document: &Document, picture: Picture) -> Result<String, NotFinite> {
    let words = document
        .words()
        .map(|line| format!("<p>{}</p>\n", escape(line)));
    let tables = document
        .tables()
        .map(|table| section("", &Table::to_html(table)));
    let body = [
        section("", &words.collect::<String>()),
        section("", "<div id=\"picture\"></div>\n"),
        tables.collect(),
    ]
    .concat();
    let json = document.json()?.to_string();
    Ok(charts::page(
        &document.title,
        &body,
        (&json, picture.script()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_table::rows;

    #[test]
    fn a_page_holds_words_tables_and_pictures_and_loads_nothing() {
        for picture in [Picture::Sensitivity, Picture::Models, Picture::Samples] {
            let document = Document::new("test")
                .titled("a < b")
                .line("1 us more costs 2 us")
                .field("network", "</script>")
                .shown(rows([1u64]).cell("from", |from| from))
                .shown(rows([2u64]).cell("from", |from| from));
            let html = chart_page(&document, picture).unwrap();
            for part in [
                "<h1>a &lt; b</h1>",
                "<p>1 us more",
                "<td>1</td>",
                "\\u003c/script>\",",
            ] {
                assert!(html.contains(part), "{part}");
            }
            assert!(!html.contains("http") && html.matches("<table>").count() == 2);
        }
    }
}
