//! Tables in HTML: heading, picture with bars, and at most 1000 rows.

use crate::table::Table;

/// Largest number of bars in a picture.
const MOST_BARS: usize = 40;

/// Largest number of rows in a table on a page.
const MOST_ROWS: usize = 1000;

/// Escapes text for HTML and SVG, and replaces control characters other than newline and tab.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            control if control.is_control() && !matches!(control, '\n' | '\t') => {
                escaped.push(char::REPLACEMENT_CHARACTER);
            }
            other => escaped.push(other),
        }
    }
    escaped
}

impl Table {
    /// Returns the heading, the picture and the rows as HTML.
    pub fn to_html(&self) -> String {
        let columns = self.shown();
        let row = |tag: &str, cells: &[String]| {
            let cells = columns.iter().zip(cells).map(|((_, column), text)| {
                let class = if column.is_right() {
                    ""
                } else {
                    " class=\"words\""
                };
                format!("<{tag}{class}>{}</{tag}>", escape(text))
            });
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let texts = self.texts(MOST_ROWS);
        let rows = texts[1..].iter();
        let rows: String = rows.map(|cells| row("td", cells)).collect();
        let more = match self.rows.saturating_sub(MOST_ROWS) {
            0 => String::new(),
            more => format!("<p>{more} more rows in the JSON</p>\n"),
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

    /// Draws a bar for each of the first rows, with the row's first cell beside it.
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
        let bars = bars.map(|(bar, row)| {
            let part = match bar.is_finite() {
                true => bar.max(0.0) / longest,
                false => 1.0,
            };
            let name = escape(&row[0]);
            format!(
                "<span>{name}</span><i style=\"width:{:.1}%\"></i>\n",
                100.0 * part
            )
        });
        let bars: String = bars.collect();
        format!("<div class=\"lengths\" aria-hidden=\"true\">\n{bars}</div>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows;

    #[test]
    fn a_table_draws_its_bars_and_escapes_its_text() {
        let table: Table = rows([("a<b", 1u64), ("c", 2)])
            .cell("name", |(name, _)| name)
            .cell("time", |(_, time)| time)
            .bars(|(_, time)| time as f64)
            .into();
        let html = table.to_html();
        for part in ["<td class=\"words\">a&lt;b</td><td>1</td>", "width:100.0%"] {
            assert!(html.contains(part), "{part} in {html}");
        }
    }
}
