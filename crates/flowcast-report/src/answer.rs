//! What a question about a program is answered with: words, tables, a document for programs; and all of it as one page
//! that loads nothing from anywhere.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write as _};

use serde_json::Value;

use crate::escape::escape;

const STYLE: &str = "body{margin:24px auto;max-width:1100px;font:15px/1.45 system-ui,sans-serif;color:#222;padding:0 16px}\
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:18px 0;font-variant-numeric:tabular-nums}\
th,td{padding:3px 9px;text-align:right;white-space:nowrap}th{font-weight:600;font-size:13px;color:#444}\
.words{text-align:left}svg{max-width:100%}footer{color:#666;font-size:13px}";

/// Bars that a picture has at most.
const MOST_BARS: usize = 40;

/// Rows that a table on a page has at most.
const MOST_ROWS: usize = 1000;

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Name and version of the document, such as `flowcast/slack/1`.
    pub schema: &'static str,
    /// The headline of a page.
    pub title: String,
    /// The answer in words, then what it rests on.
    pub lines: Vec<String>,
    /// In the order in which they are read.
    pub tables: Vec<AnswerTable>,
    /// For programs; times in seconds.
    pub document: Value,
}

/// A count for people: digits in groups of three.
#[derive(Debug, Clone, Copy)]
pub struct Grouped(pub u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let first = (digits.len() + 2) % 3 + 1;
        let groups = digits.as_bytes()[first..]
            .chunks(3)
            .map(|group| String::from_utf8_lossy(group));
        let text = std::iter::once(digits[..first].into())
            .chain(groups)
            .collect::<Vec<_>>()
            .join(",");
        f.pad(&text)
    }
}

/// A table of an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnswerTable {
    /// Heading of the table on the page.
    pub heading: String,
    /// Names of columns; those that begin with `>` are aligned to the right.
    pub columns: Vec<String>,
    /// As many cells as columns.
    pub rows: Vec<Vec<String>>,
    /// By row: the length of its bar in a picture; none if empty.
    pub bars: Vec<f64>,
}

impl Answer {
    /// The document with its schema.
    pub fn document(&self) -> Value {
        let mut document = self.document.clone();
        document["schema"] = self.schema.into();
        document
    }

    /// The whole page: words, tables and pictures, and where the result comes from.
    pub fn to_html(&self, provenance: &BTreeMap<String, String>) -> String {
        let title = escape(&self.title);
        let words: String = self
            .lines
            .iter()
            .map(|line| format!("<p>{}</p>\n", escape(line)))
            .collect();
        let tables: String = self.tables.iter().map(AnswerTable::to_html).collect();
        let from: Vec<String> = provenance
            .iter()
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        [
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width\">\n",
            &format!(
                "<title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n{words}{tables}"
            ),
            &format!("<footer>{}</footer>\n", escape(&from.join("; "))),
            &format!(
                "<script type=\"application/json\" id=\"answer\">{}</script>\n</html>\n",
                in_script(&self.document())
            ),
        ]
        .concat()
    }
}

/// JSON that stands inside a script.
fn in_script(document: &Value) -> String {
    document.to_string().replace('<', "\\u003c")
}

impl AnswerTable {
    /// A table with these columns and no row.
    pub fn new(heading: &str, columns: &[&str]) -> AnswerTable {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        AnswerTable {
            heading: heading.to_owned(),
            columns,
            ..AnswerTable::default()
        }
    }

    /// The names of the columns, then the rows.
    pub fn head_and_rows(&self) -> Vec<Vec<String>> {
        let head = self
            .columns
            .iter()
            .map(|column| column.trim_start_matches('>').to_owned())
            .collect();
        [vec![head], self.rows.clone()].concat()
    }

    fn to_html(&self) -> String {
        let row = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
            let cell = |(column, text): (&String, &str)| {
                let class = if column.starts_with('>') {
                    ""
                } else {
                    " class=\"words\""
                };
                format!(
                    "<{tag}{class}>{}</{tag}>",
                    escape(text.trim_start_matches('>'))
                )
            };
            format!(
                "<tr>{}</tr>\n",
                self.columns.iter().zip(cells).map(cell).collect::<String>()
            )
        };
        let head = row("th", &mut self.columns.iter().map(String::as_str));
        let shown = self.rows.iter().take(MOST_ROWS);
        let rows: String = shown
            .map(|cells| row("td", &mut cells.iter().map(String::as_str)))
            .collect();
        let more = match self.rows.len().saturating_sub(MOST_ROWS) {
            0 => String::new(),
            more => format!("<p>{more} more rows: in the JSON</p>\n"),
        };
        let heading = if self.heading.is_empty() {
            String::new()
        } else {
            format!("<h2>{}</h2>\n", escape(&self.heading))
        };
        format!(
            "{heading}{}<div class=\"scroll\"><table>\n{head}{rows}</table></div>\n{more}",
            self.picture()
        )
    }

    /// A bar for each of the first rows, with the row's first cell beside it.
    fn picture(&self) -> String {
        let longest = self
            .bars
            .iter()
            .copied()
            .filter(|bar| bar.is_finite())
            .fold(0.0, f64::max);
        if longest <= 0.0 {
            return String::new();
        }
        let bars = self.bars.iter().zip(&self.rows).take(MOST_BARS);
        let height = 20 * bars.len() + 6;
        let mut picture = format!(
            "<svg role=\"img\" viewBox=\"0 0 900 {height}\" width=\"900\" height=\"{height}\">\n"
        );
        for (index, (bar, row)) in bars.enumerate() {
            let (y, name) = (20 * index, escape(row.first().map_or("", String::as_str)));
            let width = 560.0
                * if bar.is_finite() {
                    bar.max(0.0) / longest
                } else {
                    1.0
                };
            let _ = writeln!(
                picture,
                "<text x=\"310\" y=\"{}\" text-anchor=\"end\" font-size=\"13\">{name}</text>\
                 <rect x=\"320\" y=\"{}\" width=\"{width:.1}\" height=\"14\" fill=\"#0b57a4\"/>",
                y + 15,
                y + 4
            );
        }
        picture + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_words_tables_and_bars_and_loads_nothing() {
        let rows = vec![
            vec!["a<b".to_owned(), "1".to_owned()],
            vec!["c".to_owned(), "2".to_owned()],
        ];
        let table = AnswerTable {
            rows,
            bars: vec![1.0, 2.0],
            ..AnswerTable::new("what", &["name", ">time"])
        };
        let document = serde_json::json!({"name": "</script>"});
        let answer = Answer {
            schema: "flowcast/test/1",
            title: "t".into(),
            lines: vec!["2 > 1".into()],
            tables: vec![table],
            document,
        };
        let html = answer.to_html(&BTreeMap::from([("host".to_owned(), "h".to_owned())]));
        for part in [
            "<p>2 &gt; 1</p>",
            "<td class=\"words\">a&lt;b</td><td>1</td>",
            "width=\"560.0\"",
            "host: h",
            "\\u003c/script>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        assert!(!html.contains("http"));
    }
}
