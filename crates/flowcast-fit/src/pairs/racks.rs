//! Groups of nodes behind one switch, from the times between all pairs.
//!
//! The parts of senders and receivers are removed first (the median polish of [`super`]), so that a slow node is not a rack
//! of its own. The mean remainder of both directions is the distance of two nodes, and groups are joined by average
//! linkage. The chosen number of groups is the one whose next join increases the distance most. It must meet two
//! conditions: the median message between groups takes at least `least` longer than within them, and a message within a
//! group takes less time than one between groups in 95 % of all comparisons.
//!
//! In a round of the tournament, many messages leave a rack at the same time. The highest total rate of such messages is the
//! rate of the rack's cable to the backbone, or a lower bound if the cable is not the limit.

use std::collections::BTreeMap;

use flowcast_network::{
    cluster::tournament::rounds,
    network::LinkRate,
    topology::{CableKind, Topology, TopologyShape, tree::Level},
};
use flowcast_statistics::StatsError;
use flowcast_units::{Bytes, Node, Rate};

use super::{
    PairTimes, Polished, median,
    samples::{ConcurrentLoad, PairSamples},
    symmetric,
};

/// Minimum fraction of comparisons in which a message within a group takes less time than one between groups.
const APART: f64 = 0.95;

/// Groups of nodes, and the slowdown of messages between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// Nodes of each group in ascending order, at least two. Groups are sorted by their first nodes.
    pub nodes: Vec<Vec<Node>>,
    /// Ratio of the median time between groups to the median time within them.
    pub times: f64,
}

/// Returns the groups of nodes, if there are any.
///
/// # Errors
/// Fewer than four nodes.
pub fn groups(times: &PairTimes, least: f64) -> Result<Option<Groups>, StatsError> {
    let logarithms = times
        .iter()
        .map(|(pair, time)| (*pair, time.as_nanos().ln()))
        .collect();
    let distances = symmetric(&Polished::new(&logarithms)?.links.values);
    let mut groups: Vec<Vec<Node>> =
        distances
            .keys()
            .map(|(from, _)| *from)
            .fold(Vec::new(), |mut groups, node| {
                if groups.last() != Some(&vec![node]) {
                    groups.push(vec![node]);
                }
                groups
            });
    // The best grouping so far, the increase of the distance after it, and the distance of the last join.
    let (mut best, mut widest, mut before) = (None, 0.0, f64::NEG_INFINITY);
    while groups.len() > 1 {
        let Some((distance, pair)) = nearest(&groups, &distances) else {
            break;
        };
        let is_wide = before.is_finite() && distance - before > widest;
        if is_wide
            && groups.iter().all(|group| group.len() > 1)
            && let Some(times) = apart(&groups, &distances).filter(|times| *times >= 1.0 + least)
        {
            (best, widest) = (
                Some(Groups {
                    nodes: groups.clone(),
                    times,
                }),
                distance - before,
            );
        }
        let joined = groups.remove(pair.0);
        groups[pair.1 - 1].extend(joined);
        before = distance;
    }
    if let Some(best) = &mut best {
        best.nodes
            .iter_mut()
            .for_each(|group| group.sort_unstable());
        best.nodes.sort();
    }
    Ok(best)
}

/// Returns the two groups with the smallest mean distance, the earlier one first.
fn nearest(
    groups: &[Vec<Node>],
    distances: &BTreeMap<(Node, Node), f64>,
) -> Option<(f64, (usize, usize))> {
    let pairs = (0..groups.len()).flat_map(|other| (0..other).map(move |one| (one, other)));
    pairs
        .map(|(one, other)| {
            (
                mean_distance(distances, &groups[one], &groups[other]),
                (one, other),
            )
        })
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
}

fn mean_distance(distances: &BTreeMap<(Node, Node), f64>, one: &[Node], other: &[Node]) -> f64 {
    let pairs = one
        .iter()
        .flat_map(|from| other.iter().map(move |to| (*from, *to)));
    let known: Vec<f64> = pairs
        .filter_map(|pair| distances.get(&pair).copied())
        .collect();
    if known.is_empty() {
        f64::INFINITY
    } else {
        known.iter().sum::<f64>() / known.len() as f64
    }
}

/// Returns the ratio of times between groups to times within them. `None` if too many messages within groups take longer.
fn apart(groups: &[Vec<Node>], distances: &BTreeMap<(Node, Node), f64>) -> Option<f64> {
    let group_of: BTreeMap<Node, usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(at, group)| group.iter().map(move |node| (*node, at)))
        .collect();
    let [within, between] = [true, false].map(|is_within| {
        let wanted = distances
            .iter()
            .filter(|((from, to), _)| (group_of[from] == group_of[to]) == is_within);
        let mut found: Vec<f64> = wanted.map(|(_, distance)| *distance).collect();
        found.sort_unstable_by(f64::total_cmp);
        found
    });
    let below: usize = between
        .iter()
        .map(|one| within.partition_point(|other| other < one))
        .sum();
    let share = below as f64 / (within.len() * between.len()).max(1) as f64;
    (share >= APART).then(|| (median(between.into_iter()) - median(within.into_iter())).exp())
}

/// Returns the racks in the form of a network file. `None` unless they are blocks of equal size in the order of the nodes.
pub fn topology(groups: &Groups, samples: &PairSamples) -> Option<Topology> {
    let down = groups.nodes.first()?.len();
    let in_order = groups
        .nodes
        .iter()
        .flatten()
        .copied()
        .eq((0..).map(Node).take(down * groups.nodes.len()));
    if !in_order || groups.nodes.iter().any(|group| group.len() != down) {
        return None;
    }
    let rate = upward(groups, samples)?;
    let level = Level::new(u32::try_from(down).ok()?, 1);
    let cables = CableKind {
        rate: LinkRate::given(Some(rate), None),
        ..CableKind::default()
    };
    Some(Topology::new(TopologyShape::Levels(vec![(level, cables)])))
}

/// Returns the highest total rate at which messages of the largest size left a rack.
fn upward(groups: &Groups, samples: &PairSamples) -> Option<Rate> {
    let size = *samples.sizes().last()?;
    let times = samples.typical(size, ConcurrentLoad::Alone)?;
    let nodes: Vec<Node> = groups.nodes.iter().flatten().copied().collect();
    let both_ways = rounds(&nodes).into_iter().flat_map(|round| {
        let back = round.iter().map(|(one, other)| (*other, *one)).collect();
        [round, back]
    });
    let rates = both_ways.flat_map(|pairs| {
        let of_racks = groups.nodes.iter().filter_map(|rack| {
            let leaving = pairs
                .iter()
                .filter(|(from, to)| rack.contains(from) && !rack.contains(to));
            let taken: Vec<f64> = leaving
                .filter_map(|pair| Some(times.get(pair)?.as_seconds()))
                .collect();
            (!taken.is_empty())
                .then(|| (taken.len() as u64 * size.0) as f64 / median(taken.iter().copied()))
        });
        of_racks.collect::<Vec<f64>>()
    });
    let most = rates.fold(0.0, f64::max);
    // Three digits exceed the precision of the measurement.
    let rounded = format!("{most:.2e}")
        .parse()
        .ok()
        .filter(|rate: &f64| *rate > 0.0)?;
    Some(Rate::from_bytes_per_second(rounded))
}

/// Returns the size at which groups are most distinct, with these groups.
///
/// # Errors
/// Fewer than four nodes.
pub fn racks(samples: &PairSamples, least: f64) -> Result<Option<(Bytes, Groups)>, StatsError> {
    let mut best: Option<(Bytes, Groups)> = None;
    for size in samples.sizes() {
        let Some(times) = samples.typical(size, ConcurrentLoad::Alone) else {
            continue;
        };
        if let Some(found) = groups(&times, least)?
            && best
                .as_ref()
                .is_none_or(|(_, best)| found.times > best.times)
        {
            best = Some((size, found));
        }
    }
    Ok(best)
}
