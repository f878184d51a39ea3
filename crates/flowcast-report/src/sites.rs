//! Names of places in a program.

use flowcast_observers::explain::CallSite;

/// Formats a place as `MPI_Waitall in function 12, caller 5, line 118`; numbers are the values of the trace's events.
pub fn site_name(site: &CallSite) -> String {
    let mut name = site.call.name();
    let parts = [
        ("in function", site.function),
        ("caller", site.caller),
        ("line", site.line),
    ];
    let known = parts
        .into_iter()
        .filter_map(|(what, value)| Some(format!("{what} {}", value?)));
    for (index, part) in known.enumerate() {
        name.push_str(if index == 0 { " " } else { ", " });
        name.push_str(&part);
    }
    name
}
