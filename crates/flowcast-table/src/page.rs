//! A document as one page that loads nothing from anywhere.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    document::{Document, Part},
    table::Table,
    value::NotFinite,
};

const STYLE: &str = "body{margin:24px auto;max-width:1100px;font:15px/1.45 system-ui,sans-serif;color:#222;padding:0 16px}\
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:18px 0;font-variant-numeric:tabular-nums}\
th,td{padding:3px 9px;text-align:right;white-space:nowrap}th{font-weight:600;font-size:13px;color:#444}\
.words{text-align:left}svg{max-width:100%}footer{color:#666;font-size:13px}";

/// Bars that a picture has at most.
const MOST_BARS: usize = 40;

/// Rows that a table on a page has at most.
const MOST_ROWS: usize = 1000;

/// Text for HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

impl Document {
    /// The whole page: words, tables and pictures, and where the result comes from.
    ///
    /// # Errors
    /// A time is no finite number.
    pub fn to_html(&self, provenance: &BTreeMap<String, String>) -> Result<String, NotFinite> {
        let title = escape(&self.title);
        let parts: String = self
            .parts
            .iter()
            .map(|part| match part {
                Part::Line(line) => format!("<p>{}</p>\n", escape(line)),
                Part::Table(table) => table.to_html(),
            })
            .collect();
        let from: Vec<String> = provenance
            .iter()
            .map(|(key, value)| format!("{key}: {value}"))
            .collect();
        Ok([
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width\">\n",
            &format!("<title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n{parts}"),
            &format!("<footer>{}</footer>\n", escape(&from.join("; "))),
            &format!(
                "<script type=\"application/json\" id=\"answer\">{}</script>\n</html>\n",
                // JSON that stands inside a script.
                self.json()?.to_string().replace('<', "\\u003c")
            ),
        ]
        .concat())
    }
}

impl Table {
    /// Heading, picture and rows.
    pub fn to_html(&self) -> String {
        let row = |tag: &str, cells: &[String]| {
            let cells = self.shown().zip(cells).map(|((_, column), text)| {
                let class = if column.is_right() {
                    ""
                } else {
                    " class=\"words\""
                };
                format!("<{tag}{class}>{}</{tag}>", escape(text))
            });
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let texts = self.texts();
        let rows = texts[1..].iter().take(MOST_ROWS);
        let rows: String = rows.map(|cells| row("td", cells)).collect();
        let more = match self.rows.saturating_sub(MOST_ROWS) {
            0 => String::new(),
            more => format!("<p>{more} more rows: in the JSON</p>\n"),
        };
        let heading = match self.heading.as_str() {
            "" => String::new(),
            heading => format!("<h2>{}</h2>\n", escape(heading)),
        };
        format!(
            "{heading}{}<div class=\"scroll\"><table>\n{}{rows}</table></div>\n{more}",
            self.picture(&texts),
            row("th", &texts[0])
        )
    }

    /// A bar for each of the first rows, with the row's first cell beside it.
    fn picture(&self, texts: &[Vec<String>]) -> String {
        let longest = self
            .bars
            .iter()
            .copied()
            .filter(|bar| bar.is_finite())
            .fold(0.0, f64::max);
        if longest <= 0.0 {
            return String::new();
        }
        let bars = self.bars.iter().zip(&texts[1..]).take(MOST_BARS);
        let height = 20 * bars.len() + 6;
        let mut picture = format!(
            "<svg role=\"img\" viewBox=\"0 0 900 {height}\" width=\"900\" height=\"{height}\">\n"
        );
        for (index, (bar, row)) in bars.enumerate() {
            let (y, name) = (20 * index, escape(&row[0]));
            let part = if bar.is_finite() {
                bar.max(0.0) / longest
            } else {
                1.0
            };
            let _ = writeln!(
                picture,
                "<text x=\"310\" y=\"{}\" text-anchor=\"end\" font-size=\"13\">{name}</text>\
                 <rect x=\"320\" y=\"{}\" width=\"{:.1}\" height=\"14\" fill=\"#0b57a4\"/>",
                y + 15,
                y + 4,
                560.0 * part
            );
        }
        picture + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows;

    #[test]
    fn a_page_holds_words_tables_and_bars_and_loads_nothing() {
        let table = rows([("a<b", 1u64), ("c", 2)])
            .cell("name", |(name, _)| name)
            .cell("time", |(_, time)| time)
            .bars(|(_, time)| time as f64);
        let document = Document::new("test")
            .titled("t")
            .line("2 > 1")
            .field("name", "</script>")
            .shown(table);
        let html = document
            .to_html(&BTreeMap::from([("host".to_owned(), "h".to_owned())]))
            .unwrap();
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
