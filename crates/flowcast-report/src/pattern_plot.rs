//! Concurrent flows over time as a drawing: one row for each flow, and a bar for each interval whose height and darkness
//! show the flow's share (RR-5910, Figures 6, 8 and 9). A grey line below shows the flow's time without contention.

use std::fmt::Write;

use crate::chart_svg::{opened, round_step, text};
use flowcast_table::escape;
use flowcast_traffic::flows::concurrent::FlowsPrediction;
use flowcast_units::{Rounded, Time};

/// Largest number of flows in a drawing.
pub const MOST_FLOWS: usize = 5000;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 64.0;

/// Draws the flows as an SVG document.
pub fn svg(prediction: &FlowsPrediction, title: &str) -> String {
    let scale = Scale::new(prediction);
    let height = TOP + scale.row * prediction.flows.len() as f64 + BOTTOM;
    let mut out = opened(title, [WIDTH, height]);
    draw_legend(&mut out);
    draw_axis(&mut out, &scale, height);
    draw_titles(&mut out, height);
    for flow in 0..prediction.flows.len() {
        draw_flow(&mut out, prediction, &scale, flow);
    }
    out.push_str("</svg>\n");
    out
}

struct Scale {
    /// Pixels per nanosecond.
    per_nano: f64,
    end: Time,
    row: f64,
}

impl Scale {
    fn new(prediction: &FlowsPrediction) -> Scale {
        // The last interval and the time alone may end after the last flow by a latency.
        let end = (0..prediction.flows.len())
            .map(|index| {
                let flow = &prediction.flows[index];
                let intervals = prediction
                    .intervals_of(index)
                    .iter()
                    .map(|interval| interval.to);
                intervals.fold(flow.flow.start + flow.alone, Time::max)
            })
            .fold(prediction.makespan(), Time::max);
        let row = if prediction.flows.len() <= 60 {
            24.0
        } else {
            (1440.0 / prediction.flows.len() as f64).max(3.0)
        };
        let per_nano = (WIDTH - LEFT - RIGHT) / end.as_nanos().max(f64::MIN_POSITIVE);
        Scale { per_nano, end, row }
    }

    fn x(&self, time: Time) -> f64 {
        LEFT + time.as_nanos() * self.per_nano
    }

    fn has_labels(&self) -> bool {
        self.row >= 10.0
    }
}

fn draw_flow(out: &mut String, prediction: &FlowsPrediction, scale: &Scale, index: usize) {
    let predicted = &prediction.flows[index];
    let flow = &predicted.flow;
    let bottom = TOP + scale.row * (index as f64 + 1.0);
    if scale.has_labels() {
        let label = format!(
            "{}: {} → {}  {}",
            flow.id,
            flow.src,
            flow.dst,
            Rounded(flow.size)
        );
        text(out, [LEFT - 8.0, bottom - scale.row * 0.35], "end", &label);
    }
    for interval in prediction.intervals_of(index) {
        let share = interval.share.0;
        let height = (scale.row * 0.72 * share.min(1.0)).max(1.0);
        let (x, y) = (scale.x(interval.from), bottom - scale.row * 0.16 - height);
        let width = (scale.x(interval.to) - x).max(0.3);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{}\" stroke=\"#fff\" \
             stroke-width=\"0.5\"><title>flow {}: {} to {}, share {share:.3}, {}</title></rect>",
            colour(share),
            flow.id,
            Rounded(interval.from),
            Rounded(interval.to),
            escape(&prediction.reason(index, interval.limit)),
        );
    }
    let (from, to) = (scale.x(flow.start), scale.x(flow.start + predicted.alone));
    let y = bottom - scale.row * 0.08;
    let _ = writeln!(
        out,
        "<path d=\"M{from:.2} {y:.2}H{to:.2}\" stroke=\"#999\" stroke-width=\"1.5\"/>"
    );
}

fn draw_axis(out: &mut String, scale: &Scale, height: f64) {
    let step = Time::from_nanos(round_step((scale.end.as_nanos() / 8.0).max(1e-3)));
    let base = height - BOTTOM;
    for tick in 0.. {
        let time = step * f64::from(tick);
        if time > scale.end {
            break;
        }
        let x = scale.x(time);
        let label = if tick == 0 {
            "0".to_owned()
        } else {
            tick_text(time)
        };
        let _ = writeln!(out, "<path d=\"M{x:.1} {TOP}V{base}\" stroke=\"#ddd\"/>");
        text(out, [x, base + 18.0], "middle", &label);
    }
    let _ = writeln!(
        out,
        "<path d=\"M{LEFT} {base}H{}\" stroke=\"#666\"/>",
        WIDTH - RIGHT
    );
}

fn draw_titles(out: &mut String, height: f64) {
    let middle = (WIDTH + LEFT - RIGHT) / 2.0;
    text(
        out,
        [middle, height - 24.0],
        "middle",
        "time since the start",
    );
    text(out, [LEFT - 8.0, TOP], "end", "flow: from → to  size");
}

fn draw_legend(out: &mut String) {
    let left = LEFT + 70.0;
    text(out, [16.0, 53.0], "start", "share of its uncontended rate");
    for step in 1..=10 {
        let share = f64::from(step) / 10.0;
        let (x, height) = (left + 20.0 * f64::from(step), 14.0 * share);
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"19\" height=\"{height:.1}\" fill=\"{}\"/>",
            56.0 - height,
            colour(share)
        );
    }
    text(out, [left + 14.0, 53.0], "end", "0.1");
    text(out, [left + 228.0, 53.0], "start", "1");
    let _ = writeln!(
        out,
        "<path d=\"M{} 49h26\" stroke=\"#999\" stroke-width=\"1.5\"/>",
        left + 280.0
    );
    text(out, [left + 312.0, 53.0], "start", "alone");
}

/// Colour of a share, from amber (little) to blue (all), also distinct for colour-blind readers.
fn colour(share: f64) -> String {
    const STOPS: [(f64, [f64; 3]); 5] = [
        (0.0, [190.0, 50.0, 30.0]),
        (0.34, [236.0, 140.0, 40.0]),
        (0.5, [236.0, 200.0, 90.0]),
        (0.67, [130.0, 185.0, 215.0]),
        (1.0, [25.0, 80.0, 150.0]),
    ];
    let share = share.clamp(0.0, 1.0);
    let upper = STOPS
        .iter()
        .position(|(at, _)| *at >= share)
        .unwrap_or(STOPS.len() - 1)
        .max(1);
    let ((low, from), (high, to)) = (STOPS[upper - 1], STOPS[upper]);
    let part = (share - low) / (high - low);
    let [red, green, blue] = [0, 1, 2]
        .map(|channel: usize| (from[channel] + (to[channel] - from[channel]) * part).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn tick_text(time: Time) -> String {
    let time = Rounded(time).to_string();
    let (number, unit) = time.split_once(' ').unwrap_or((&time, ""));
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number} {unit}")
}
