//! Which nodes stand behind one switch, from the times between all pairs.
//!
//! What sender and receiver add is taken away first (the median polish of [`super`]), so that a slow node is no rack of its own. The
//! rest of both directions is the distance of two nodes, and groups are joined by average linkage. Of all numbers of groups that one
//! counts before which the distance of what is joined grows most, if messages between groups take at least `least` longer in the
//! median, and a message within a group takes less than one between groups in 95 % of all comparisons.
//!
//! In a round of the tournament many messages leave a rack at once. The most bytes in a time that leave one so is the rate of its
//! cable upward, or a lower bound of it where the cable is no limit.

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
    samples::{Company, PairSamples},
    symmetric,
};

/// So often at least a message within a group has to take less than one between groups.
const APART: f64 = 0.95;

/// Groups of nodes, and what a message between them takes longer.
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// By their first nodes; each has two nodes at least, in ascending order.
    pub nodes: Vec<Vec<Node>>,
    /// Time between groups over that within, in the median.
    pub times: f64,
}

/// Groups of nodes, if there are any.
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
    // What is known of the last state whose groups may be racks: they, and at which distance the last two were joined.
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

/// The two groups with the least mean distance, the earlier one first.
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

/// How many times longer a message between groups takes than one within; none where too many within take longer.
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

/// Racks as a network file has them; none where they are not blocks of equal size in the order of the nodes.
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

/// The most bytes in a time that left a rack at once, by the largest size.
fn upward(groups: &Groups, samples: &PairSamples) -> Option<Rate> {
    let size = *samples.sizes().last()?;
    let times = samples.typical(size, Company::Alone)?;
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
    // Three digits are more than the measurement has.
    let rounded = format!("{most:.2e}")
        .parse()
        .ok()
        .filter(|rate: &f64| *rate > 0.0)?;
    Some(Rate::from_bytes_per_second(rounded))
}

/// The size by which groups are seen best, and these.
///
/// # Errors
/// Fewer than four nodes.
pub fn racks(samples: &PairSamples, least: f64) -> Result<Option<(Bytes, Groups)>, StatsError> {
    let mut best: Option<(Bytes, Groups)> = None;
    for size in samples.sizes() {
        let Some(times) = samples.typical(size, Company::Alone) else {
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
