//! Curves in pages: uPlot, a small charting library, bundled so that pages load nothing. Pages insert [`style`] and
//! [`script`] into their one `<style>` and `<script>`. `drawCurves(element, chart)` and similar functions then draw into an
//! element.

use flowcast_table::{Document, escape};

const LICENCE: &str = include_str!("assets/uplot/LICENSE");
const LIBRARY: &str = include_str!("assets/uplot/uPlot.iife.min.js");
const STYLE: &str = include_str!("assets/uplot/uPlot.min.css");
const DRAWING: &str = include_str!("assets/charts.js");
/// Style sheet of all pages.
pub(crate) const LOOK: &str = include_str!("assets/style.css");

/// Script that marks scrollable tables and drawings, placed behind the script of each page.
pub(crate) const SCROLLS: &str = include_str!("assets/scrolls.js");

/// Style sheet of the library.
pub fn style() -> &'static str {
    STYLE
}

/// The library with its licence, and the functions that draw with it.
pub fn script() -> String {
    // The first line of the library is a comment with an address; pages have no addresses.
    let library = LIBRARY.split_once('\n').map_or(LIBRARY, |(_, code)| code);
    format!("/* uPlot 1.6.32\n{LICENCE}\n*/\n{library}\n{DRAWING}")
}

/// Builds a self-contained page with a title, `body` and `code`. `body` has sections of HTML; the first one has no card.
/// `code` is a script that can use `data` (JSON) and the library. If it is empty, the library is omitted.
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

/// Text of a document, a paragraph for each line.
pub(crate) fn words(document: &Document) -> String {
    let lines = document.words().filter(|line| !line.is_empty());
    lines
        .map(|line| format!("<p>{}</p>\n", escape(line)))
        .collect()
}

/// Section of a page, with a heading unless that is empty. Each section except the first of a page has its own card.
pub(crate) fn section(heading: &str, content: &str) -> String {
    let heading = if heading.is_empty() {
        String::new()
    } else {
        format!("<h2>{heading}</h2>\n")
    };
    format!("<section>\n{heading}{content}</section>\n")
}
