//! Labels without effect: runs in which a library ignored the requested algorithm and used its own decision.

use std::collections::BTreeMap;

use flowcast_network::{collective_costs::CollectiveCosts, costs::CostParameters};
use flowcast_statistics::sample::median;
use flowcast_units::Bytes;

use super::{
    cases::MeasuredCase,
    step_times::{PlacedCase, seconds_once},
};

/// Largest difference between the logarithms of two times that count as the same.
const SAME: f64 = 0.1;
/// Difference between the logarithms of predicted times above which the measured times would differ visibly.
const APART: f64 = 0.4;
/// Smallest number of sizes with such a difference.
const FEWEST_SIZES: usize = 3;

/// Gives cases whose label had no effect the algorithm that the library chose. `placed` has the same cases in the same
/// order.
pub(super) fn without_effect_are_chosen(
    rows: &[&MeasuredCase],
    placed: &mut [PlacedCase],
    threads: usize,
) {
    let steps = seconds_once(placed, &CollectiveCosts::prior(), threads);
    let seconds: Vec<f64> = rows.iter().map(|row| row.median.as_seconds()).collect();
    let mut runs: BTreeMap<_, BTreeMap<&str, BTreeMap<Bytes, usize>>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let run = (&row.case.job, row.case.ranks_per_node, row.case.op);
        let labels = runs.entry(run).or_default();
        let is_default = row.label.starts_with("default");
        let label = if is_default { "" } else { &row.label };
        labels.entry(label).or_default().insert(row.case.bytes, at);
    }
    for labels in runs.values() {
        let Some(default) = labels.get("") else {
            continue;
        };
        // Runs that use the library's choice, whatever their label. They may have the same noise as the default, or not.
        let (chosen, others): (Vec<_>, Vec<_>) = labels.values().partition(|own| {
            pairs(own, default)
                .all(|(own, default)| placed[own].case.choice == placed[default].case.choice)
        });
        let without_effect: Vec<(usize, usize)> = others
            .into_iter()
            .filter(|own| {
                let mut chosen = chosen.iter();
                chosen.any(|chosen| is_same(own, chosen, &steps, &seconds))
            })
            .flat_map(|own| pairs(own, default))
            .collect();
        for (own, default) in without_effect {
            placed[own].case.choice = placed[default].case.choice;
        }
    }
}

/// `true` if algorithms with different predicted times took the same measured time.
fn is_same(
    own: &BTreeMap<Bytes, usize>,
    other: &BTreeMap<Bytes, usize>,
    steps: &[f64],
    seconds: &[f64],
) -> bool {
    let difference = |of: &[f64], (own, other): (usize, usize)| (of[own] / of[other]).ln().abs();
    let differences: Vec<f64> = pairs(own, other)
        .filter(|pair| difference(steps, *pair) > APART)
        .map(|pair| difference(seconds, pair))
        .collect();
    differences.len() >= FEWEST_SIZES && median(&differences).is_ok_and(|middle| middle <= SAME)
}

/// Pairs of cases with the same size.
fn pairs<'a>(
    own: &'a BTreeMap<Bytes, usize>,
    other: &'a BTreeMap<Bytes, usize>,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    own.iter()
        .filter_map(|(bytes, at)| Some((*at, *other.get(bytes)?)))
}
