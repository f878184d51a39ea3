//! Replays side by side in a table.

use flowcast::{Interval, report::NetworkView, units::Rounded};

use crate::terminal::{
    output::println_out,
    tables::{cells, table},
};

/// One line for each network: predicted time, time in communication, slowest rank, what limits it.
pub(crate) fn print_comparison(views: &[NetworkView], intervals: &[Option<Interval>]) {
    let mut table = table(&[
        "network",
        ">predicted time",
        ">in communication",
        ">slowest rank",
        "what limits it",
    ]);
    for (view, interval) in views.iter().zip(intervals) {
        table.add_row(cells![
            view.name,
            interval.as_ref().map_or_else(
                || Rounded(view.outcome.makespan()).to_string(),
                Interval::to_string
            ),
            format!("{:.1} %", view.communication_share() * 100.0),
            view.slowest_rank()
                .map_or(String::new(), |rank| rank.to_string()),
            view.limits.sentence
        ]);
    }
    println_out!("{table}");
}
