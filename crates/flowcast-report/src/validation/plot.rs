//! Errors of several programs in one drawing.

use std::fmt::Write;

use flowcast_table::escape;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
/// Names of more groups than this would overlap.
const MOST_NAMES: usize = 16;
/// Told apart by people who do not see all colours (Okabe and Ito).
const COLOURS: [&str; 9] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#8c564b",
    "#b8a500",
];

/// The colour of a model.
pub(super) fn colour(model: usize) -> &'static str {
    COLOURS[model % COLOURS.len()]
}

/// Signed errors side by side: a group of bars for each program or region, a bar in it for each model. Bars that leave
/// the drawing end at its edge; the title of each says its number.
pub fn error_bars(title: &str, groups: &[(String, Vec<f64>)], models: &[String]) -> String {
    let largest = groups
        .iter()
        .flat_map(|(_, errors)| errors)
        .fold(0.05, |most: f64, error| most.max(error.abs()));
    let range = ((largest * 20.0).ceil() / 20.0).min(1.0);
    let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
    let scale = (HEIGHT - BOTTOM - TOP) / 2.0 / range;
    let mut out = opened(title);
    for tick in -2..=2 {
        let share = f64::from(tick) / 2.0 * range;
        draw_level(
            &mut out,
            middle - share * scale,
            &format!("{:+.0} %", share * 100.0),
        );
    }
    let column = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let bar = column * 0.8 / models.len().max(1) as f64;
    for (at, (name, errors)) in groups.iter().enumerate() {
        let left = LEFT + column * (at as f64 + 0.1);
        for (model, error) in errors.iter().enumerate() {
            let shown = error.clamp(-range, range) * scale;
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}, {}: {:+.1} \
                 %</title></rect>",
                left + bar * model as f64,
                middle - shown.max(0.0),
                bar.max(1.0),
                shown.abs().max(0.5),
                colour(model),
                escape(name),
                escape(&models[model]),
                100.0 * error
            );
        }
        if groups.len() <= MOST_NAMES {
            let (x, y) = (LEFT + column * (at as f64 + 0.5), HEIGHT - BOTTOM + 14.0);
            let name = escape(name);
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{name}</text>"
            );
        }
    }
    draw_key(&mut out, models);
    out + "</svg>\n"
}

fn draw_key(out: &mut String, models: &[String]) {
    let mut x = LEFT;
    for (model, name) in models.iter().enumerate() {
        let y = HEIGHT - 16.0;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
            colour(model),
            x + 14.0,
            y + 9.0,
            escape(name)
        );
        x += 30.0 + 7.0 * name.len() as f64;
    }
}

fn opened(title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"12\" fill=\"#222\">\n<text x=\"{LEFT}\" y=\"18\" font-size=\"14\" font-weight=\"600\">{}</text>\n",
        escape(title)
    )
}

fn draw_level(out: &mut String, y: f64, label: &str) {
    let (end, text) = (WIDTH - RIGHT, LEFT - 6.0);
    let _ = writeln!(
        out,
        "<path d=\"M{LEFT} {y:.1}H{end}\" stroke=\"#ddd\"/><text x=\"{text}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
        y + 4.0
    );
}
