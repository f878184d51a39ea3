//! Curves in pages: uPlot, a small charting library, bundled so that pages load nothing. Pages put [`style`] and
//! [`script`] into their one `<style>` and `<script>`, where `drawCurves(element, chart)` draws into an element.

const LICENCE: &str = include_str!("assets/uplot/LICENSE");
const LIBRARY: &str = include_str!("assets/uplot/uPlot.iife.min.js");
const STYLE: &str = include_str!("assets/uplot/uPlot.min.css");
const DRAWING: &str = include_str!("assets/charts.js");

/// Style sheet of the library.
pub fn style() -> &'static str {
    STYLE
}

/// The library with its licence, and `drawCurves`.
pub fn script() -> String {
    // Its first line is a comment with an address; pages have none.
    let library = LIBRARY.split_once('\n').map_or(LIBRARY, |(_, code)| code);
    format!("/* uPlot 1.6.32\n{LICENCE}\n*/\n{library}\n{DRAWING}")
}
