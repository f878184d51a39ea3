//! Makespan over optimum as a picture: for each scheduler the share of the sets below each ratio.

use std::{fmt::Write as _, path::Path};

use anyhow::Result;
use flowcast::{
    report::chart_svg::{Axis, Chart, Panel},
    scheduler::compare::Ratios,
};

use crate::terminal::files::write_text;

/// A scheduler and its ratios.
pub(super) struct Row<'a> {
    /// Name of the scheduler.
    pub name: String,
    /// Its times over those of the optimum, over all sets of messages.
    pub ratios: &'a Ratios,
}

/// The ratio below which each share of the sets is; its axis is logarithmic.
pub(super) fn ratios(caption: &str, rows: &[Row]) -> Chart {
    let worst = rows.iter().map(|row| row.ratios.quantile(1.0));
    let largest = worst.fold(1.0, f64::max) * 1.05;
    let ticks = [
        1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 100.0,
    ];
    let ticks = ticks.into_iter().filter(|tick| *tick <= largest);
    Chart {
        title: format!("Last delivery over that of the best schedule: {caption}"),
        names: rows.iter().map(|row| row.name.clone()).collect(),
        references: 0,
        has_curves: true,
        panels: vec![Panel {
            title: String::new(),
            x: Axis::new(
                "share of the sets with at most this ratio (%)",
                [0.0, 1.0],
                |share| format!("{:.0} %", share * 100.0),
            ),
            y: Axis {
                title: "last delivery over that of the best schedule".to_owned(),
                range: [0.0, largest.ln()],
                ticks: ticks.map(|tick| (tick.ln(), tick.to_string())).collect(),
            },
            series: rows
                .iter()
                .map(|row: &Row| {
                    let hundredths = (0..=100).map(|hundredth| f64::from(hundredth) / 100.0);
                    hundredths
                        .map(|share| [share, row.ratios.quantile(share).max(1.0).ln()])
                        .collect()
                })
                .collect(),
        }],
    }
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
    picture: impl FnOnce() -> Chart,
    page: impl FnOnce() -> String,
) -> Result<()> {
    let is_picture = path.extension().is_some_and(|ending| ending == "svg");
    write_text(
        path,
        &if is_picture {
            picture().to_svg()
        } else {
            page()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_reaches_from_its_best_to_its_worst_set() {
        let ratios = Ratios::new(vec![1.0, 1.0, 2.0]);
        let row = Row {
            name: "latency".into(),
            ratios: &ratios,
        };
        let chart = super::ratios("3 sets", &[row]);
        let curve = &chart.panels[0].series[0];
        assert_eq!((curve[0], curve[100]), ([0.0, 0.0], [1.0, 2f64.ln()]));
        let svg = chart.to_svg();
        assert!(svg.contains(">latency</text>") && svg.contains("3 sets"));
    }
}
