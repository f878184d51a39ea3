//! Makespan over optimum as a picture: for each scheduler the share of the sets below each ratio.

use std::{fmt::Write as _, path::Path};

use anyhow::Result;
use flowcast::scheduler::compare::Ratios;

use crate::terminal::files::write_text;

/// A scheduler and its ratios.
pub(super) struct Row<'a> {
    /// Name of the scheduler.
    pub name: String,
    /// Its times over those of the optimum, over all sets of messages.
    pub ratios: &'a Ratios,
}

const LEFT: f64 = 220.0;
const WIDTH: f64 = 620.0;
const STEP: f64 = 26.0;
const TOP: f64 = 56.0;

/// An SVG picture: a line from the best to the worst set, thick up to the 95th percentile, a dot at the median. The
/// axis is logarithmic.
pub(super) fn ratios(caption: &str, rows: &[Row]) -> String {
    let largest = rows
        .iter()
        .map(|row| row.ratios.quantile(1.0))
        .fold(1.0, f64::max);
    let scale = WIDTH / (largest * 1.05).ln().max(0.1);
    let x = |ratio: f64| LEFT + ratio.max(1.0).ln() * scale;
    let (width, bottom) = (LEFT + WIDTH + 30.0, TOP + STEP * rows.len() as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"12\" y=\"22\" font-size=\"15\">Last delivery over that of the best schedule</text>\n\
         <text x=\"12\" y=\"42\" fill=\"#555\">{caption}</text>\n",
        height = bottom + 40.0
    );
    for tick in [
        1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 100.0,
    ] {
        if tick <= largest * 1.05 {
            line(&mut svg, [x(tick), TOP, x(tick), bottom], "#ddd", 1.0);
            text(
                &mut svg,
                [x(tick), bottom + 18.0],
                "middle",
                &tick.to_string(),
            );
        }
    }
    for (row, y) in rows
        .iter()
        .zip((0..).map(|index| TOP + STEP * (f64::from(index) + 0.5)))
    {
        let at = |share| x(row.ratios.quantile(share));
        text(&mut svg, [LEFT - 12.0, y + 4.0], "end", &row.name);
        line(&mut svg, [at(0.0), y, at(1.0), y], "#7a9cc6", 2.0);
        line(&mut svg, [at(0.0), y, at(0.95), y], "#2b5c9b", 7.0);
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"#e07b00\"/>",
            at(0.5)
        );
    }
    text(
        &mut svg,
        [LEFT, bottom + 35.0],
        "start",
        "dot: median; thick: 95 % of the sets; thin: all",
    );
    svg + "</svg>\n"
}

/// The columns of the ratios' quantiles, in steps of a hundredth of the sets.
pub(super) fn quantiles(rows: &[Row]) -> String {
    let mut csv =
        "# {\"schema\":\"flowcast/rails-ratios/1\"}\nnumber,share_of_sets,scheduler,ratio\n"
            .to_owned();
    let hundredths = (0..=100).flat_map(|hundredth| {
        rows.iter()
            .map(move |row| (f64::from(hundredth) / 100.0, row))
    });
    for (number, (share, row)) in hundredths.enumerate() {
        let _ = writeln!(
            csv,
            "{number},{share},{},{}",
            row.name,
            row.ratios.quantile(share)
        );
    }
    csv
}

/// Writes a picture if the file's name ends in `.svg`, else a page.
pub(super) fn write(
    path: &Path,
    picture: impl FnOnce() -> String,
    page: impl FnOnce() -> String,
) -> Result<()> {
    let is_picture = path.extension().is_some_and(|ending| ending == "svg");
    write_text(path, &if is_picture { picture() } else { page() })
}

fn line(svg: &mut String, [x1, y1, x2, y2]: [f64; 4], colour: &str, width: f64) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
    );
}

/// Names of schedulers and numbers only: nothing that would need escaping.
fn text(svg: &mut String, [x, y]: [f64; 2], anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_reaches_from_its_best_to_its_worst_set() {
        let ratios = Ratios::new(vec![1.0, 1.0, 2.0]);
        let svg = super::ratios(
            "3 sets",
            &[Row {
                name: "latency".into(),
                ratios: &ratios,
            }],
        );
        let end = LEFT + 2f64.ln() * WIDTH / 2.1f64.ln();
        assert!(svg.contains(&format!(
            "<line x1=\"{LEFT:.1}\" y1=\"69.0\" x2=\"{end:.1}\" y2=\"69.0\""
        )));
        assert!(svg.contains(">latency</text>") && svg.contains("3 sets"));
    }
}
