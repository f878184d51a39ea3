//! How a predicted time depends on a field of the network, as one HTML page that loads nothing from anywhere.

use crate::charts;
use crate::html::escape;

const SCRIPT: &str = include_str!("assets/sensitivity.js");
const STYLE: &str = "body{margin:24px auto;max-width:1100px;font:15px/1.45 system-ui,sans-serif;color:#222;padding:0 16px}\
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:18px 0;font-variant-numeric:tabular-nums}\
th,td{padding:3px 9px;text-align:right;white-space:nowrap}th{font-weight:600;font-size:13px;color:#444}";

/// What a page shows.
#[derive(Debug, Clone, Copy)]
pub struct SensitivityPage<'a> {
    /// The headline, with trace and parameter; escaped here.
    pub title: &'a str,
    /// The answer in words, a paragraph each.
    pub summary: &'a [String],
    /// The table of the curve's pieces: a header, then the rows.
    pub rows: &'a [Vec<String>],
    /// The JSON of the curve, as `flowcast sensitivity --json` prints it.
    pub document: &'a str,
}

impl SensitivityPage<'_> {
    /// The whole document: words, picture, table.
    pub fn to_html(&self) -> String {
        let title = escape(self.title);
        let summary: String = self.summary.iter().map(|line| format!("<p>{}</p>\n", escape(line))).collect();
        let row = |(index, cells): (usize, &Vec<String>)| {
            let tag = if index == 0 { "th" } else { "td" };
            let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().enumerate().map(row).collect();
        [
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width\">\n",
            &format!("<title>{title}</title>\n<style>{}{STYLE}</style>\n<h1>{title}</h1>\n", charts::style()),
            &summary,
            "<div id=\"picture\"></div>\n<div class=\"scroll\"><table>\n",
            &rows,
            "</table></div>\n",
            &format!(
                "<script type=\"application/json\" id=\"curve\">{}</script>\n",
                self.document.replace('<', "\\u003c")
            ),
            &format!("<script>{}\n{SCRIPT}</script>\n</html>\n", charts::script()),
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_words_table_and_curve_and_loads_nothing() {
        let page = SensitivityPage {
            title: "a < b",
            summary: &["1 us more costs 2 us".to_owned()],
            rows: &[vec!["from".to_owned()], vec!["0 ns".to_owned()]],
            document: "{\"network\":\"</script>\"}",
        };
        let html = page.to_html();
        for part in ["<h1>a &lt; b</h1>", "<p>1 us more", "<td>0 ns</td>", "\\u003c/script>\"}</script>"] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("http"));
    }
}
