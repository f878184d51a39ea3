//! Curves in pages: uPlot, a small charting library, bundled so that pages load nothing. Pages put [`style`] and
//! [`script`] into their one `<style>` and `<script>`, where `drawCurves(element, chart)` and the like draw into an
//! element.

use crate::escape::escape;

const LICENCE: &str = include_str!("assets/uplot/LICENSE");
const LIBRARY: &str = include_str!("assets/uplot/uPlot.iife.min.js");
const STYLE: &str = include_str!("assets/uplot/uPlot.min.css");
const DRAWING: &str = include_str!("assets/charts.js");

/// Style sheet of the library.
pub fn style() -> &'static str {
    STYLE
}

/// The library with its licence, and what draws with it.
pub fn script() -> String {
    // Its first line is a comment with an address; pages have none.
    let library = LIBRARY.split_once('\n').map_or(LIBRARY, |(_, code)| code);
    format!("/* uPlot 1.6.32\n{LICENCE}\n*/\n{library}\n{DRAWING}")
}

/// A page that loads nothing from anywhere: the title above `body`, which is HTML, and `code`, which finds `data`, JSON.
pub(crate) fn page(title: &str, style: &str, body: &str, (data, code): (&str, &str)) -> String {
    let title = escape(title);
    let data = data.replace('<', "\\u003c");
    [
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
        "<meta name=\"viewport\" content=\"width=device-width\">\n",
        &format!("<title>{title}</title>\n<style>{STYLE}{style}</style>\n<h1>{title}</h1>\n{body}"),
        &format!("<script>{}\nconst data = {data};\n{code}</script>\n</html>\n", script()),
    ]
    .concat()
}
