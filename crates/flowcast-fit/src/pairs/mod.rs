//! Which node or link is slow, from the times of messages between all pairs.
//!
//! The logarithm of the time from node `i` to node `j` is a common value, what `i` adds by sending, what `j` adds by receiving,
//! and what the link adds: `ln t_ij = m + s_i + r_j + e_ij`. Tukey's median polish finds them ("Exploratory Data Analysis",
//! 1977, chapter 11); a slow node does not make its links slow, and a slow link not its nodes.
//!
//! A node or link is slow where its part stands out of those of its kind: the distance from their median over 1.4826 times
//! their median absolute deviation is compared with Student's t. That deviation knows the spread as well as a standard
//! deviation of 37 % as many values, which gives the degrees of freedom. Probabilities are multiplied by the number of
//! tests (Bonferroni), so that of healthy networks the share of the level at most has an alarm.
//!
//! Messages in both directions at once show half-duplex ports: there `ln(t_both / t_alone)` takes the place of the time.

pub mod racks;
pub mod samples;
pub mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use flowcast_statistics::{StatsError, interval::student_tail, sample::median_in_place};
use flowcast_units::{Node, Time};

/// What share of the information of a standard deviation the median absolute deviation has.
const EFFICIENCY: f64 = 0.37;
/// From the median absolute deviation to the standard deviation of a normal distribution.
const TO_DEVIATION: f64 = 1.4826;
/// The standard error of a median over that of a mean.
const OF_MEDIAN: f64 = 1.2533;
/// Sweeps of the polish; it hardly changes after the third.
const SWEEPS: usize = 20;
/// No measurement repeats better than to this share.
const LEAST_SPREAD: f64 = 1e-3;

/// Times of messages of one size ([`typical`]), by sender and receiver; each pair of nodes in both directions.
pub type PairTimes = BTreeMap<(Node, Node), Time>;

/// What counts as slow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairOptions {
    /// Probability of an alarm in a healthy network, above 0 and below 1.
    pub level: f64,
    /// By how much longer something takes at least that is called slow: 0.1 is 10 %.
    pub least: f64,
}

impl Default for PairOptions {
    fn default() -> PairOptions {
        PairOptions {
            level: 0.01,
            least: 0.1,
        }
    }
}

/// Which node or link takes longer than its kind usually does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slow {
    /// All that a node sends.
    Sender(Node),
    /// All that a node receives.
    Receiver(Node),
    /// A node that sends and receives at once, more than others are.
    HalfDuplex(Node),
    /// From one node to another.
    Link(Node, Node),
}

/// Something slow, by how much, and how likely a healthy network shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowFinding {
    /// The node or the link that stands out.
    pub slow: Slow,
    /// How many times as long as usual it takes, above 1.
    pub times: f64,
    /// Probability that one of the tests shows as much in a healthy network, at most 1.
    pub probability: f64,
}

/// What is usual and what is not.
#[derive(Debug, Clone, PartialEq)]
pub struct PairAnalysis {
    /// Of a message between two usual nodes.
    pub usual: Time,
    /// The most striking first.
    pub findings: Vec<SlowFinding>,
}

/// Finds slow nodes and links among messages that each went alone, and half-duplex ports among `both`, those that met one in
/// the other direction (none where that was not measured).
///
/// # Errors
/// Fewer than four nodes: with three, who is slow cannot be told.
pub fn analyse(
    alone: &PairTimes,
    both: Option<&PairTimes>,
    options: PairOptions,
) -> Result<PairAnalysis, StatsError> {
    let logarithms: BTreeMap<(Node, Node), f64> = alone
        .iter()
        .map(|(pair, time)| (*pair, time.as_nanos().ln()))
        .collect();
    let polished = Polished::new(&logarithms)?;
    let mut findings = polished.senders.outliers(options, Slow::Sender);
    findings.extend(polished.receivers.outliers(options, Slow::Receiver));
    findings.extend(
        polished
            .links
            .outliers(options, |(from, to)| Slow::Link(from, to)),
    );
    if let Some(both) = both {
        let slowdowns = both.iter().filter_map(|(pair, time)| {
            let alone = alone.get(pair)?;
            Some((*pair, (time.as_nanos() / alone.as_nanos()).ln()))
        });
        // A half-duplex port slows what it sends as much as what it receives.
        let symmetric = symmetric(&slowdowns.collect());
        findings.extend(
            Polished::new(&symmetric)?
                .senders
                .outliers(options, Slow::HalfDuplex),
        );
    }
    findings.sort_by(|one, other| {
        one.probability
            .total_cmp(&other.probability)
            .then(one.slow.cmp(&other.slow))
    });
    Ok(PairAnalysis {
        usual: Time::from_nanos(polished.usual.exp()),
        findings,
    })
}

/// The mean of both directions in the place of each.
fn symmetric(values: &BTreeMap<(Node, Node), f64>) -> BTreeMap<(Node, Node), f64> {
    let both_ways = values.iter().map(|(&(from, to), &value)| {
        let back = values.get(&(to, from));
        let mean = back.map_or(value, |back| f64::midpoint(value, *back));
        ((from, to), mean)
    });
    both_ways.collect()
}

/// Parts of one kind that would be alike in a healthy network.
struct AlikeParts<K> {
    values: BTreeMap<K, f64>,
    /// Standard deviation below which a difference is noise.
    least_spread: f64,
    /// Values that are free to differ.
    freedom: f64,
    /// Of all kinds together.
    tests: usize,
}

impl<K: Copy + Ord> AlikeParts<K> {
    fn outliers(&self, options: PairOptions, name: impl Fn(K) -> Slow) -> Vec<SlowFinding> {
        let middle = median(self.values.values().copied());
        let spread =
            TO_DEVIATION * median(self.values.values().map(|value| (value - middle).abs()));
        let spread = spread.max(self.least_spread).max(LEAST_SPREAD);
        let freedom = (EFFICIENCY * self.freedom).max(1.0);
        let all = self.values.iter().map(|(key, value)| SlowFinding {
            slow: name(*key),
            times: (value - middle).exp(),
            probability: (student_tail((value - middle) / spread, freedom) * self.tests as f64)
                .min(1.0),
        });
        all.filter(|finding| {
            finding.probability <= options.level && finding.times >= 1.0 + options.least
        })
        .collect()
    }
}

struct Polished {
    usual: f64,
    senders: AlikeParts<Node>,
    receivers: AlikeParts<Node>,
    links: AlikeParts<(Node, Node)>,
}

impl Polished {
    fn new(values: &BTreeMap<(Node, Node), f64>) -> Result<Polished, StatsError> {
        let nodes: BTreeMap<Node, f64> = values.keys().map(|(from, _)| (*from, 0.0)).collect();
        let count = nodes.len();
        if count < 4 {
            return Err(StatsError::TooFew {
                statistic: "slow nodes and links",
                found: count,
                expected: 4,
            });
        }
        let (mut senders, mut receivers) = (nodes.clone(), nodes);
        let mut links = values.clone();
        for _ in 0..SWEEPS {
            sweep(&mut links, &mut senders, |(from, _)| from);
            sweep(&mut links, &mut receivers, |(_, to)| to);
        }
        let usual = centre(&mut senders) + centre(&mut receivers);
        let spread = TO_DEVIATION * median(links.values().map(|rest| rest.abs()));
        let tests = links.len() + 2 * count;
        let [senders, receivers] = [senders, receivers].map(|values| AlikeParts {
            values,
            least_spread: OF_MEDIAN * spread / ((count - 1) as f64).sqrt(),
            freedom: (count - 1) as f64,
            tests,
        });
        let freedom = (links.len() - 2 * count + 1) as f64;
        // The polish takes away part of the noise of each link.
        let lost = (links.len() as f64 / freedom).sqrt();
        Ok(Polished {
            usual,
            senders,
            receivers,
            links: AlikeParts {
                values: links,
                least_spread: spread * lost,
                freedom,
                tests,
            },
        })
    }
}

/// Moves the median of the links of each node to the node.
fn sweep(
    links: &mut BTreeMap<(Node, Node), f64>,
    nodes: &mut BTreeMap<Node, f64>,
    of: impl Fn((Node, Node)) -> Node,
) {
    let mut of_nodes: BTreeMap<Node, Vec<&mut f64>> = BTreeMap::new();
    links
        .iter_mut()
        .for_each(|(pair, rest)| of_nodes.entry(of(*pair)).or_default().push(rest));
    for (node, rests) in of_nodes {
        let own = median(rests.iter().map(|rest| **rest));
        nodes.entry(node).and_modify(|value| *value += own);
        rests.into_iter().for_each(|rest| *rest -= own);
    }
}

/// Takes the median of all away from each, and gives it.
fn centre(nodes: &mut BTreeMap<Node, f64>) -> f64 {
    let middle = median(nodes.values().copied());
    nodes.values_mut().for_each(|value| *value -= middle);
    middle
}

/// What stands for several repetitions, at least one: their lower quartile. Whatever else a machine does makes messages late and
/// never early; of five repetitions four have to be late before the quartile is, where three would do for a median.
pub fn typical(times: &mut [Time]) -> Time {
    let rank = times.len().div_ceil(4) - 1;
    *times.select_nth_unstable(rank).1
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    median_in_place(&mut values.collect::<Vec<f64>>())
}
