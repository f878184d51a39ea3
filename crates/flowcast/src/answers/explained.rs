//! The cost of communication by rank and by place in the program.

use flowcast_observers::explain::{Explanation, Sums};
use flowcast_replay::time_part::TimePart;
use flowcast_report::sites::site_name;
use flowcast_table::{Document, Record, Rows, Value, json, rows};

/// Maximum number of rows in a table. `--json` has all rows.
const ROWS: usize = 32;

/// Adds a table of ranks, a table of places, and the field `explanation` of `flowcast/replay/1`. Causes that never occur
/// have no column.
pub(super) fn explained(document: Document, explanation: &Explanation) -> Document {
    let Explanation { ranks, sites } = explanation;
    let fields = Record::new()
        .field(
            "ranks",
            ranks
                .iter()
                .zip(0u64..)
                .map(|(sums, rank)| times(sums).field("rank", rank))
                .collect::<Value>(),
        )
        .field(
            "places",
            sites
                .iter()
                .map(|(site, sums)| {
                    times(sums)
                        .field("place", site_name(site))
                        .known("function", site.function.map(json))
                        .known("caller", site.caller.map(json))
                        .known("line", site.line.map(json))
                })
                .collect::<Value>(),
        );
    let document = document.field("explanation", fields);
    let costs: Vec<TimePart> = TimePart::COMMUNICATION
        .into_iter()
        .filter(|cost: &TimePart| ranks.iter().any(|sums| sums.time(*cost).as_nanos() > 0.0))
        .collect();
    if costs.is_empty() {
        return document.line("no rank spent time in communication");
    }
    let of_ranks = ranks.iter().zip(0u64..).collect();
    let sites = sites
        .iter()
        .filter(|(_, sums)| sums.total().as_nanos() > 0.0);
    let of_sites = sites.map(|(site, sums)| (sums, site_name(site))).collect();
    document
        .shown(cost_table(of_ranks, "rank", &costs).heading("communication time of each rank"))
        .shown(
            cost_table(of_sites, "place", &costs)
                .heading("communication time at each place in the program, sum of all ranks"),
        )
}

/// Table of costs. If not all rows are shown, the most expensive come first.
fn cost_table<N: Clone + Into<Value>>(
    mut all: Vec<(&Sums, N)>,
    first: &'static str,
    costs: &[TimePart],
) -> Rows<usize> {
    if all.len() > ROWS {
        all.sort_by_key(|(sums, _)| std::cmp::Reverse(sums.total()));
    }
    let mut table = rows(0..all.len())
        .cell(first, |at| &all[at].1)
        .cell("total", |at| all[at].0.total());
    for cost in costs {
        table = table.cell(cost.cost_name(), |at| all[at].0.time(*cost));
    }
    table.most(ROWS, "--json has")
}

fn times(sums: &Sums) -> Record {
    let costs = TimePart::COMMUNICATION.into_iter();
    costs.fold(
        Record::new().field("total_s", sums.total()),
        |record, cost| {
            let name = format!("{}_s", cost.cost_name().replace(' ', "_"));
            record.field(name, sums.time(cost))
        },
    )
}
