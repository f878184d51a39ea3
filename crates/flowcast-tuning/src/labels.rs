//! Labels without effect: runs in which a library did what it decides itself whatever algorithm it was told to use.

use std::collections::BTreeMap;

use flowcast_network::{collective_costs::CollectiveCosts, costs::CostParameters};
use flowcast_statistics::sample::median;
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
        // What the library chooses, by whatever label, with the default's own noise or without.
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

/// Whether algorithms whose steps differ took the same time.
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

/// The cases of the same sizes.
fn pairs<'a>(
    own: &'a BTreeMap<Bytes, usize>,
    other: &'a BTreeMap<Bytes, usize>,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    own.iter()
        .filter_map(|(bytes, at)| Some((*at, *other.get(bytes)?)))
}
