//! Replays side by side in a table.

use flowcast::report::NetworkView;
use flowcast::units::Rounded;

use crate::output::println_out;
use crate::tables::table;

/// One line for each network: predicted time, time in communication, slowest rank, what limits it.
pub fn print_comparison(views: &[NetworkView]) {
    let mut table = table(&["network", ">predicted time", ">in communication", ">slowest rank", "what limits it"]);
    for view in views {
        table.add_row([
            view.name.clone(),
            Rounded(view.outcome.makespan()).to_string(),
            format!("{:.1} %", view.communication_share() * 100.0),
            view.slowest_rank().map_or(String::new(), |rank| rank.to_string()),
            view.limits.sentence.clone(),
        ]);
    }
    println_out!("{table}");
}
