//! Charts as SVG: points in panels with axes, and a legend below them.

use std::fmt::Write as _;

use flowcast_table::escape;

/// Colours that people with colour blindness can distinguish (Okabe and Ito).
pub(crate) const COLOURS: [&str; 9] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#8c564b",
    "#b8a500",
];
/// Dashes of the legend in turn, to distinguish series that coincide.
const DASHES: [&str; 5] = ["none", "9 5", "3 3", "12 4 3 4", "5 9"];
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 260.0;
/// Margins of a panel, and the height of a line of the legend, in pixels.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const ABOVE: f64 = 36.0;
const BELOW: f64 = 46.0;
const LINE: f64 = 22.0;

/// Axis of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartAxis {
    /// Quantity on the axis, with its unit unless the ticks have units.
    pub title: String,
    /// Start and end of the axis. Values beyond are drawn at the end.
    pub range: [f64; 2],
    /// Values and labels of the ticks.
    pub ticks: Vec<(f64, String)>,
}

impl ChartAxis {
    /// Creates an axis over this range, with about five round ticks, which `show` labels.
    pub fn new(title: &str, range: [f64; 2], show: impl Fn(f64) -> String) -> ChartAxis {
        let [low, high] = range;
        let step = round_step((high - low) / 5.0);
        let ticks = (0..)
            .map(|tick| ((low / step).ceil() + f64::from(tick)) * step)
            .take_while(|place| *place <= high * (1.0 + 1e-9));
        let ticks = ticks.map(|place| (place, show(place))).collect();
        let title = title.to_owned();
        ChartAxis {
            title,
            range,
            ticks,
        }
    }

    /// Position of a value between the start (0) and the end (1) of the axis.
    fn part(&self, value: f64) -> f64 {
        let [low, high] = self.range;
        ((value - low) / (high - low).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }
}

/// A drawing of series over one pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The headline of the panel.
    pub title: String,
    /// The horizontal axis.
    pub x: ChartAxis,
    /// The vertical axis.
    pub y: ChartAxis,
    /// Points of the panel, indexed by the chart's series.
    pub series: Vec<Vec<[f64; 2]>>,
}

/// Panels that show the same series.
///
/// ```
/// use flowcast_report::chart_svg::{ChartAxis, Chart, Panel};
///
/// let axis = ChartAxis::new("time (s)", [0.0, 10.0], |value| value.to_string());
/// assert_eq!(axis.ticks[1], (2.0, "2".to_owned()));
/// let panel = Panel {
///     title: String::new(),
///     x: axis.clone(),
///     y: axis,
///     series: vec![vec![[0.0, 10.0], [10.0, 0.0]]],
/// };
/// let chart = Chart {
///     title: "falling".to_owned(),
///     names: vec!["a".to_owned()],
///     panels: vec![panel],
/// };
/// assert!(chart.to_svg().contains("<circle cx=\"976.0\" cy=\"326.0\""));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The headline of the picture.
    pub title: String,
    /// Name of each series in the legend.
    pub names: Vec<String>,
    /// Panels, drawn in rows of two.
    pub panels: Vec<Panel>,
}

impl Chart {
    /// Returns an SVG document, 1,000 pixels wide.
    pub fn to_svg(&self) -> String {
        let columns = self.panels.len().clamp(1, 2);
        let column = WIDTH / columns as f64;
        let row = ABOVE + HEIGHT + BELOW;
        let bottom = 30.0 + row * self.panels.len().div_ceil(columns) as f64;
        let key = self.key();
        let longest = key.iter().map(|name| name.chars().count()).max();
        let key_columns =
            ((WIDTH - LEFT) / (7.0 * longest.unwrap_or(0) as f64 + 50.0)).clamp(1.0, 4.0);
        let key_columns = key_columns as usize;
        let height = bottom + LINE * key.len().div_ceil(key_columns) as f64 + 10.0;
        let mut svg = opened(&self.title, [WIDTH, height]);
        for (at, panel) in self.panels.iter().enumerate() {
            let left = LEFT + column * (at % columns) as f64;
            let top = 30.0 + ABOVE + row * (at / columns) as f64;
            self.draw(&mut svg, panel, [left, top, column - LEFT - RIGHT]);
        }
        for (at, name) in key.iter().enumerate() {
            let (x, y) = (
                LEFT + (WIDTH - LEFT) / key_columns as f64 * (at % key_columns) as f64,
                bottom + LINE * (at / key_columns + 1) as f64,
            );
            let _ = writeln!(
                svg,
                "<polyline points=\"{x:.1},{above:.1} {right:.1},{above:.1}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1}\" \
                 stroke-dasharray=\"{}\"/>",
                COLOURS[at % COLOURS.len()],
                1.6 + self.width(at),
                DASHES[at % DASHES.len()],
                above = y - 4.0,
                right = x + 26.0
            );
            text(&mut svg, [x + 32.0, y], "start", name);
        }
        svg + "</svg>\n"
    }

    /// Names in the legend, with the earlier series that one coincides with in all panels.
    fn key(&self) -> Vec<String> {
        let names = self.names.iter().enumerate().map(|(at, name)| {
            let below = (0..at).find(|other| self.coincide(at, *other));
            match below {
                Some(other) => format!("{name} (coincides with {})", self.names[other]),
                None => name.clone(),
            }
        });
        names.collect()
    }

    /// Returns `true` if the difference between two series is invisible in all panels.
    fn coincide(&self, one: usize, other: usize) -> bool {
        self.panels.iter().all(|panel| {
            let (one, other) = (&panel.series[one], &panel.series[other]);
            let near = |axis: &ChartAxis, one: f64, other: f64| {
                (axis.part(one) - axis.part(other)).abs() <= 0.004
            };
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && !one.is_empty()
                && pairs.all(|(a, b)| near(&panel.x, a[0], b[0]) && near(&panel.y, a[1], b[1]))
        })
    }

    fn draw(&self, svg: &mut String, panel: &Panel, [left, top, width]: [f64; 3]) {
        let (right, bottom) = (left + width, top + HEIGHT);
        text(svg, [left, top - 12.0], "start", &panel.title);
        for (value, label) in &panel.y.ticks {
            let y = bottom - HEIGHT * panel.y.part(*value);
            let _ = writeln!(svg, "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>");
            text(svg, [left - 6.0, y + 4.0], "end", label);
        }
        for (value, label) in &panel.x.ticks {
            let x = left + width * panel.x.part(*value);
            text(svg, [x, bottom + 18.0], "middle", label);
        }
        let middle = [left + width / 2.0, bottom + 36.0];
        text(svg, middle, "middle", &panel.x.title);
        upright(svg, [left - 64.0, top + HEIGHT / 2.0], &panel.y.title);
        for (at, places) in panel.series.iter().enumerate() {
            for value in places {
                let x = left + width * panel.x.part(value[0]);
                let y = bottom - HEIGHT * panel.y.part(value[1]);
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"none\" stroke-width=\"2\" stroke=\"{}\">\
                     <title>{}: {:.3}</title></circle>",
                    4.5 + self.width(at),
                    COLOURS[at % COLOURS.len()],
                    escape(&self.names[at]),
                    value[1]
                );
            }
        }
    }

    /// Additional width of a series relative to the last one, which is drawn above it: up to 1.6 pixels.
    fn width(&self, series: usize) -> f64 {
        let after = self.names.len() - 1 - series;
        1.6 * after as f64 / (self.names.len() - 1).max(1) as f64
    }
}

/// Start of a picture: background and title.
pub(crate) fn opened(title: &str, [width, height]: [f64; 2]) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height:.0}\" width=\"{width}\" \
         height=\"{height:.0}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"600\">{}</text>\n",
        escape(title)
    )
}

/// Writes text that starts, is centred or ends at a point.
pub(crate) fn text(svg: &mut String, [x, y]: [f64; 2], anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(text)
    );
}

/// Writes upward text that is centred at a point.
fn upright(svg: &mut String, [x, y]: [f64; 2], text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} {y:.1})\">{}</text>",
        escape(text)
    );
}

/// Smallest number of at least `about` that is 1, 2 or 5 times a power of ten.
pub(crate) fn round_step(about: f64) -> f64 {
    let power = 10f64.powf(about.max(1e-9).log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let steps = factors.map(|factor| factor * power);
    steps
        .into_iter()
        .find(|step| *step >= about)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let steps = [0.3, 7.0, 20.0].map(round_step);
        assert_eq!(steps, [0.5, 10.0, 20.0]);
        let axis = ChartAxis::new("", [-1.0, 1.0], |value| format!("{value:+.1}"));
        assert_eq!(axis.ticks.first(), Some(&(-1.0, "-1.0".to_owned())));
        assert_eq!(axis.ticks.len(), 5);
        assert_eq!([axis.part(-3.0), axis.part(0.0)], [0.0, 0.5]);
    }

    #[test]
    fn series_that_coincide_differ_in_dash_and_width_and_the_key_says_so() {
        let axis = |title: &str| ChartAxis::new(title, [0.0, 1.0], |value| format!("{value:.1}"));
        let panel = Panel {
            title: String::new(),
            x: axis("size (B)"),
            y: axis("time (us)"),
            series: vec![
                vec![[0.0, 0.0], [1.0, 1.0]],
                vec![[0.0, 1.0], [1.0, 0.0]],
                vec![[0.0, 0.001], [1.0, 0.999]],
            ],
        };
        let chart = Chart {
            title: "three".to_owned(),
            names: ["a", "b", "c"].map(str::to_owned).to_vec(),
            panels: vec![panel],
        };
        let svg = chart.to_svg();
        for part in [
            ">c (coincides with a)<",
            ">b<",
            ">size (B)<",
            ">time (us)<",
            "stroke-width=\"3.2\" stroke-dasharray=\"none\"",
            "stroke-width=\"1.6\" stroke-dasharray=\"3 3\"",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }
}
