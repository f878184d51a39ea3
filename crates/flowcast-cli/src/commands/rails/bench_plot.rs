//! The thesis' Figures 5.8.3.1 to 5.8.6.5 for one pair of rails: rate over size, a panel for each N.

use std::fmt::Write;

use super::bench_results::Point;

const PANEL: [f64; 2] = [420.0, 260.0];
const MARGIN: [f64; 2] = [64.0, 46.0];
const COLOURS: [&str; 10] = [
    "#0b5394", "#38a3a5", "#7a4fb5", "#9c6b30", "#b23a48", "#e07b00", "#5a8f29", "#c26dbc",
    "#4d6a8a", "#999933",
];

/// An SVG picture. The last `alone` names are rails alone: grey and dashed.
pub(super) fn rates(names: &[&str], alone: usize, points: &[Point]) -> String {
    let mut counts: Vec<u32> = points.iter().map(|point| point.messages).collect();
    counts.dedup();
    let rows = counts.len().div_ceil(2);
    let (width, legend) = (
        2.0 * (PANEL[0] + MARGIN[0]) + 30.0,
        24.0 * names.len().div_ceil(4) as f64,
    );
    let height = 40.0 + rows as f64 * (PANEL[1] + 2.0 * MARGIN[1]) + legend;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"12\" y=\"22\" font-size=\"15\">Rate one way in Mbit/s over the size of a message</text>\n"
    );
    for (index, messages) in counts.iter().enumerate() {
        let left = MARGIN[0] + (index % 2) as f64 * (PANEL[0] + MARGIN[0]);
        let top = 40.0 + MARGIN[1] + (index / 2) as f64 * (PANEL[1] + 2.0 * MARGIN[1]);
        let own: Vec<&Point> = points
            .iter()
            .filter(|point| point.messages == *messages)
            .collect();
        panel(&mut svg, [left, top], *messages, &own);
        for subject in 0..names.len() {
            curve(
                &mut svg,
                [left, top],
                &own,
                subject,
                style(subject, names.len() - alone),
            );
        }
    }
    for (index, name) in names.iter().enumerate() {
        let (x, y) = (
            MARGIN[0] + 220.0 * (index % 4) as f64,
            height - legend + 24.0 * (index / 4) as f64,
        );
        let style = style(index, names.len() - alone);
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" {style}/>",
            x + 26.0
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\">{}</text>",
            x + 32.0,
            y + 4.0,
            escaped(name)
        );
    }
    svg + "</svg>\n"
}

/// The columns of the rates.
pub(super) fn table(names: &[&str], points: &[Point]) -> String {
    let mut csv =
        "# {\"schema\":\"flowcast/rails-rates/1\"}\nnumber,messages,size_bytes,scheduler,rate\n"
            .to_owned();
    // Rails are named by the user.
    let names: Vec<String> = names
        .iter()
        .map(|name| name.replace([',', '"'], " "))
        .collect();
    let all = points
        .iter()
        .flat_map(|point| names.iter().enumerate().map(move |named| (point, named)));
    for (number, (point, (subject, name))) in all.enumerate() {
        let _ = writeln!(
            csv,
            "{number},{},{},{name},{}",
            point.messages,
            point.size.0,
            point.rate(subject)
        );
    }
    csv
}

fn style(subject: usize, together: usize) -> String {
    if subject < together {
        let width = if subject == 0 { 3.0 } else { 1.4 };
        // The second time round the colours are dotted.
        let dots = if subject < COLOURS.len() {
            ""
        } else {
            " stroke-dasharray=\"2 2\""
        };
        return format!(
            "fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"{dots}",
            COLOURS[subject % COLOURS.len()]
        );
    }
    let dashes = ["7 4", "2 3", "9 3 2 3"][(subject - together) % 3];
    format!("fill=\"none\" stroke=\"#555\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"")
}

/// The largest rate of a panel.
fn top_rate(points: &[&Point]) -> f64 {
    let rates = points
        .iter()
        .flat_map(|point| (0..point.one_way.len()).map(|subject| point.rate(subject)));
    rates.filter(|rate| rate.is_finite()).fold(1e-9, f64::max) * 1.05
}

fn x(size: f64, points: &[&Point]) -> f64 {
    let octaves = |bytes: f64| bytes.max(1.0).log2();
    let sizes = || points.iter().map(|point| octaves(point.size.0 as f64));
    let (low, high) = (
        sizes().fold(f64::INFINITY, f64::min),
        sizes().fold(0.0, f64::max),
    );
    (octaves(size) - low) / (high - low).max(1.0) * PANEL[0]
}

fn panel(svg: &mut String, [left, top]: [f64; 2], messages: u32, points: &[&Point]) {
    let (right, bottom) = (left + PANEL[0], top + PANEL[1]);
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">N = {messages}</text>",
        top - 10.0
    );
    let largest = top_rate(points);
    let step = round_step(largest / 4.0);
    for rate in (0..)
        .map(|index| f64::from(index) * step)
        .take_while(|rate| *rate <= largest)
    {
        let y = bottom - rate / largest * PANEL[1];
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>"
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{rate}</text>",
            left - 6.0,
            y + 4.0
        );
    }
    for point in points
        .iter()
        .filter(|point| points.len() < 8 || point.size.0.ilog2().is_multiple_of(4))
    {
        let at = left + x(point.size.0 as f64, points);
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 18.0,
            point.size
        );
    }
}

fn curve(
    svg: &mut String,
    [left, top]: [f64; 2],
    points: &[&Point],
    subject: usize,
    style: String,
) {
    let largest = top_rate(points);
    let places: Vec<String> = points
        .iter()
        .map(|point: &&Point| {
            let y = top + PANEL[1] - point.rate(subject) / largest * PANEL[1];
            format!("{:.1},{y:.1}", left + x(point.size.0 as f64, points))
        })
        .collect();
    let _ = writeln!(svg, "<polyline points=\"{}\" {style}/>", places.join(" "));
}

/// 1, 2 or 5 times a power of ten.
fn round_step(about: f64) -> f64 {
    let power = 10f64.powf(about.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= about)
        .unwrap_or(10.0 * power)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast::units::{Bytes, Time};

    #[test]
    fn each_subject_has_a_curve_in_each_panel() {
        let point = |messages, size| Point {
            messages,
            size: Bytes(size),
            one_way: vec![vec![Time::from_micros(10.0)], vec![Time::from_micros(20.0)]],
        };
        let points = [point(1, 1), point(1, 4096), point(8, 1), point(8, 4096)];
        let svg = rates(&["earliest-delivery", "a<b alone"], 1, &points);
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert!(svg.contains("N = 8") && svg.contains("a&lt;b alone"));
        assert_eq!(
            [round_step(0.3), round_step(7.0), round_step(20.0)],
            [0.5, 10.0, 20.0]
        );
    }
}
