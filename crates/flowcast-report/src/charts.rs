//! Curves in pages: uPlot, a small charting library, bundled so that pages load nothing. Pages put [`style`] and
//! [`script`] into their one `<style>` and `<script>`, where `drawCurves(element, chart)` and the like draw into an
//! element.

use flowcast_table::{Document, escape};

const LICENCE: &str = include_str!("assets/uplot/LICENSE");
const LIBRARY: &str = include_str!("assets/uplot/uPlot.iife.min.js");
const STYLE: &str = include_str!("assets/uplot/uPlot.min.css");
const DRAWING: &str = include_str!("assets/charts.js");
/// The look of all pages.
pub(crate) const LOOK: &str = include_str!("assets/style.css");

/// What shows where tables and drawings scroll, behind the script of each page.
pub(crate) const SCROLLS: &str = include_str!("assets/scrolls.js");

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

/// A page that loads nothing from anywhere: the title above `body`, sections of HTML of which the first stands on no card,
/// and `code`, which finds `data`, JSON, and the library unless it is empty.
pub(crate) fn page(title: &str, body: &str, data: &str, code: &str) -> String {
    let title = escape(title);
    let data = data.replace('<', "\\u003c");
    let library = match code {
        "" => String::new(),
        _ => script(),
    };
    [
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
        "<meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n",
        &format!("<title>{title}</title>\n<style>{STYLE}{LOOK}</style>\n<body class=\"charts\">\n"),
        "<header>\n<p class=\"brand\" aria-hidden=\"true\"><i></i><i></i><i></i> flowcast</p>\n",
        &format!("<h1>{title}</h1>\n</header>\n<main>\n{body}</main>\n"),
        &format!("<script>{library}\nconst data = {data};\n{code}{SCROLLS}</script>\n</body>\n</html>\n"),
    ]
    .concat()
}

/// The words of a document, a paragraph for each line.
pub(crate) fn words(document: &Document) -> String {
    let lines = document.words().filter(|line| !line.is_empty());
    lines
        .map(|line| format!("<p>{}</p>\n", escape(line)))
        .collect()
}

/// A part of a page, on a card of its own unless it is the first.
pub(crate) fn section(heading: &str, content: &str) -> String {
    let heading = if heading.is_empty() {
        String::new()
    } else {
        format!("<h2>{heading}</h2>\n")
    };
    format!("<section>\n{heading}{content}</section>\n")
}
