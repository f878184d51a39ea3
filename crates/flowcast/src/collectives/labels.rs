//! Labels without effect: runs in which a library did what it decides itself whatever algorithm it was told to use.

use std::collections::BTreeMap;

use flowcast_model::{collective_costs::CollectiveCosts, stats::sample::median};
use flowcast_units::Bytes;

use super::{
    cases::MeasuredCase,
    step_times::{PlacedCase, seconds_once},
};

/// Times that differ by less, as a logarithm, are the same.
const SAME: f64 = 0.1;
/// Algorithms whose steps differ by more would be told apart.
const APART: f64 = 0.4;
/// At so many sizes.
const FEWEST_SIZES: usize = 3;

/// Gives cases whose label had no effect the algorithm that the library chose. `placed` has the same cases in the same order.
pub(super) fn without_effect_are_chosen(
    rows: &[&MeasuredCase],
    placed: &mut [PlacedCase],
    threads: usize,
) {
    let steps = seconds_once(placed, &CollectiveCosts::prior(), threads);
    let seconds = |at: usize| rows[at].median.as_seconds();
    let mut runs: BTreeMap<_, BTreeMap<&str, BTreeMap<Bytes, usize>>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let run = (&row.case.job, row.case.ranks_per_node, row.case.op);
        let labels = runs.entry(run).or_default();
        let is_default = row.label.starts_with("default");
        let label = if is_default { "" } else { &row.label };
        labels.entry(label).or_default().insert(row.case.bytes, at);
    }
    for labels in runs.values() {
        let Some(chosen) = labels.get("") else {
            continue;
        };
        for (_, own) in labels.iter().filter(|(label, _)| !label.is_empty()) {
            let pairs: Vec<(usize, usize)> = own
                .iter()
                .filter_map(|(bytes, at)| Some((*at, *chosen.get(bytes)?)))
                .collect();
            let apart = pairs
                .iter()
                .filter(|(own, chosen)| (steps[*own] / steps[*chosen]).ln().abs() > APART);
            let differences: Vec<f64> = apart
                .map(|(own, chosen)| (seconds(*own) / seconds(*chosen)).ln().abs())
                .collect();
            if differences.len() < FEWEST_SIZES
                || median(&differences).is_ok_and(|middle| middle > SAME)
            {
                continue;
            }
            for (own, chosen) in pairs {
                placed[own].case.choice = placed[chosen].case.choice;
            }
        }
    }
}
