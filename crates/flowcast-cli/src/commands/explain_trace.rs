//! `--explain` on a trace: what the time in communication was spent on, by rank and by place in the program.

use flowcast::{
    replay::{
        explain::{Explanation, Sums},
        time_part::TimePart,
    },
    report::sites::site_name,
    units::Rounded,
};
use serde_json::{Value, json};

use crate::terminal::{
    output::println_out,
    tables::{Table, table},
};

/// More ranks, and more places, than this are left to `--json`.
const ROWS: usize = 32;

/// Prints both tables; causes that never occur have no column.
pub(super) fn print(explanation: &Explanation) {
    let costs: Vec<TimePart> = TimePart::COMMUNICATION
        .into_iter()
        .filter(|cost| occurs(explanation, *cost))
        .collect();
    if costs.is_empty() {
        return println_out!("no rank spent time in communication");
    }
    let ranks = explanation
        .ranks
        .iter()
        .enumerate()
        .map(|(rank, sums)| (rank.to_string(), *sums));
    println_out!("what communication cost each rank:");
    print_rows(table_of(&costs, ">rank"), &costs, ranks.collect());
    println_out!("what it cost at each place in the program, all ranks together:");
    let sites = explanation
        .sites
        .iter()
        .filter(|(_, sums)| sums.total().as_nanos() > 0.0);
    print_rows(
        table_of(&costs, "place"),
        &costs,
        sites.map(|(site, sums)| (site_name(site), *sums)).collect(),
    );
}

fn occurs(explanation: &Explanation, cost: TimePart) -> bool {
    explanation
        .ranks
        .iter()
        .any(|sums| sums.of(cost).as_nanos() > 0.0)
}

fn table_of(costs: &[TimePart], first: &str) -> Table {
    let names = costs.iter().map(|cost| format!(">{}", cost.cost_name()));
    table(
        &[first.to_owned(), ">in all".into()]
            .into_iter()
            .chain(names)
            .collect::<Vec<_>>(),
    )
}

fn print_rows(mut table: Table, costs: &[TimePart], mut rows: Vec<(String, Sums)>) {
    if rows.len() > ROWS {
        rows.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.total()));
        println_out!(
            "the {ROWS} most expensive of {} (all of them with --json):",
            rows.len()
        );
        rows.truncate(ROWS);
    }
    for (name, sums) in rows {
        let times = std::iter::once(sums.total()).chain(costs.iter().map(|cost| sums.of(*cost)));
        table.add_row(std::iter::once(name).chain(times.map(|time| Rounded(time).to_string())));
    }
    println_out!("{table}");
}

/// The field `explanation` of `flowcast/replay/1`.
pub(super) fn document(explanation: &Explanation) -> Value {
    let ranks = explanation.ranks.iter().enumerate().map(|(rank, sums)| {
        let mut entry = times(sums);
        entry["rank"] = rank.into();
        entry
    });
    let sites = explanation.sites.iter().map(|(site, sums)| {
        let mut entry = times(sums);
        entry["place"] = site_name(site).into();
        for (name, value) in [
            ("function", site.function),
            ("caller", site.caller),
            ("line", site.line),
        ] {
            if let Some(value) = value {
                entry[name] = value.into();
            }
        }
        entry
    });
    json!({ "ranks": ranks.collect::<Vec<_>>(), "places": sites.collect::<Vec<_>>() })
}

fn times(sums: &Sums) -> Value {
    let mut entry = json!({ "total_s": sums.total().as_seconds() });
    for cost in TimePart::COMMUNICATION {
        entry[format!("{}_s", cost.cost_name().replace(' ', "_"))] =
            sums.of(cost).as_seconds().into();
    }
    entry
}
