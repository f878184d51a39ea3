//! Text, pictures and tables of one result as a self-contained HTML page.

use std::collections::BTreeMap;

use crate::charts::{self, section, words};
use flowcast_table::{Document, NotFinite, Table, rows};

/// Kind of picture, with the JSON that it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// No picture except the bars of the tables.
    Tables,
    /// A predicted time over a parameter: the JSON of `flowcast sensitivity`.
    Sensitivity,
    /// Models of messages beside the measurements: the JSON of `flowcast fit --model`.
    Models,
    /// The samples of each point: `points`, each with `label`, `times_us`, `low_us` and `high_us`.
    Samples,
    /// The best algorithm for each case: the JSON of `flowcast collectives choose`.
    Algorithms,
    /// Errors and durations of flows: the JSON of `flowcast validate pattern`.
    Flows,
    /// Errors of a program and its regions: the JSON of `flowcast validate app`.
    Program,
    /// Bytes between ranks under mappings: the JSON of `flowcast place` with `matrices`.
    Placement,
}

use Picture::*;

impl Picture {
    /// Number of parts above the picture: the text, and for some kinds a summary of the errors.
    fn place(self) -> usize {
        match self {
            Flows | Program => 2,
            _ => 1,
        }
    }

    fn script(self) -> &'static str {
        match self {
            Tables => "",
            Sensitivity => include_str!("assets/sensitivity.js"),
            Models => include_str!("assets/models.js"),
            Samples => include_str!("assets/samples.js"),
            Algorithms => include_str!("assets/algorithms.js"),
            Flows => include_str!("assets/flows.js"),
            Program => include_str!("assets/program.js"),
            Placement => include_str!("assets/placement.js"),
        }
    }
}

/// Builds the whole page: text, picture, tables, and provenance of the result.
///
/// # Errors
/// A number that is not finite.
pub fn chart_page(
    document: &Document,
    picture: Picture,
    provenance: &BTreeMap<String, String>,
) -> Result<String, NotFinite> {
    let from: Table = rows(provenance)
        .cell("from", |(name, _)| name)
        .cell("", |(_, text)| text)
        .into();
    let tables = document
        .tables()
        .chain([&from])
        .filter(|table| table.rows > 0);
    let mut parts = vec![section("", &words(document))];
    parts.extend(tables.map(|table| section("", &table.to_html())));
    if picture != Tables {
        let at = picture.place().min(parts.len());
        parts.insert(at, section("", "<div id=\"picture\"></div>\n"));
    }
    let json = document.json()?.to_string();
    Ok(charts::page(
        &document.title,
        &parts.concat(),
        &json,
        picture.script(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_words_tables_and_pictures_and_loads_nothing() {
        for picture in [Picture::Tables, Picture::Sensitivity, Picture::Program] {
            let document = Document::new("test")
                .titled("a < b")
                .line("1 us more costs 2 us")
                .field("network", "</script>")
                .shown(rows([1u64]).cell("from", |from| from))
                .shown(rows([2u64]).cell("from", |from| from));
            let host = BTreeMap::from([("host".to_owned(), "h".to_owned())]);
            let html = chart_page(&document, picture, &host).unwrap();
            for part in [
                "<h1>a &lt; b</h1>",
                "<p>1 us more",
                "<td>1</td>",
                "\\u003c/script>\",",
                "<td class=\"words\">h</td>",
            ] {
                assert!(html.contains(part), "{part}");
            }
            assert!(!html.contains("http") && html.matches("<table>").count() == 3);
        }
    }
}
