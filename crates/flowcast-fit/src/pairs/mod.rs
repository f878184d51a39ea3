//! Search for slow nodes and links, from the times of messages between all pairs.
//!
//! The logarithm of the time from node `i` to node `j` is the sum of a common value, a part of the sender `i`, a part of
//! the receiver `j`, and a part of the link: `ln t_ij = m + s_i + r_j + e_ij`. Tukey's median polish determines the parts
//! ("Exploratory Data Analysis", 1977, chapter 11). A slow node does not make its links slow, and a slow link does not make
//! its nodes slow.
//!
//! A node or link is slow if its part is an outlier among those of its kind. The test compares its distance from their
//! median, divided by 1.4826 times their median absolute deviation, with Student's t. The median absolute deviation is as
//! precise as a standard deviation of 37 % as many values, which determines the degrees of freedom. Probabilities are
//! multiplied by the number of tests (Bonferroni), so that at most a fraction `level` of healthy networks raises an alarm.
//!
//! Messages in both directions at the same time reveal half-duplex ports. For them, `ln(t_both / t_alone)` replaces the
//! time.

pub mod racks;
pub mod samples;
pub mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use flowcast_statistics::{StatsError, interval::student_tail, sample::median_in_place};
use flowcast_units::{Node, Time};

/// Efficiency of the median absolute deviation relative to the standard deviation.
const EFFICIENCY: f64 = 0.37;
/// Factor from the median absolute deviation to the standard deviation of a normal distribution.
const TO_DEVIATION: f64 = 1.4826;
/// Ratio of the standard error of a median to the standard error of a mean.
const OF_MEDIAN: f64 = 1.2533;
/// Number of sweeps of the polish. The result hardly changes after the third.
const SWEEPS: usize = 20;
/// Smallest relative spread: no measurement repeats better than this.
const LEAST_SPREAD: f64 = 1e-3;

/// Times of messages of one size ([`typical`]), by sender and receiver. Each pair of nodes occurs in both directions.
pub type PairTimes = BTreeMap<(Node, Node), Time>;

/// Limits for slow nodes and links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairOptions {
    /// Probability of an alarm in a healthy network, above 0 and below 1.
    pub level: f64,
    /// Smallest slowdown that is reported: 0.1 is 10 %.
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

/// A node or link that is slower than usual for its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slow {
    /// All messages that a node sends.
    Sender(Node),
    /// All messages that a node receives.
    Receiver(Node),
    /// A node whose sends and receives slow each other more than on other nodes.
    HalfDuplex(Node),
    /// Messages from one node to another.
    Link(Node, Node),
}

/// A slow node or link with its slowdown and its probability in a healthy network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowFinding {
    /// The node or the link.
    pub slow: Slow,
    /// Slowdown relative to the usual time, above 1.
    pub times: f64,
    /// Probability that at least one of the tests shows such a slowdown in a healthy network, at most 1.
    pub probability: f64,
}

/// The usual time and the exceptions.
#[derive(Debug, Clone, PartialEq)]
pub struct PairAnalysis {
    /// Time of a message between two usual nodes.
    pub usual: Time,
    /// Slow nodes and links, most striking first.
    pub findings: Vec<SlowFinding>,
}

/// Finds slow nodes and links from messages that travelled alone. Finds half-duplex ports from `both`, the messages with
/// another message in the opposite direction (`None` if these were not measured).
///
/// # Errors
/// Fewer than four nodes: among three, the slow one cannot be identified.
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
        // A half-duplex port slows its sends as much as its receives.
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

/// Replaces the value of each direction by the mean of both.
fn symmetric(values: &BTreeMap<(Node, Node), f64>) -> BTreeMap<(Node, Node), f64> {
    let both_ways = values.iter().map(|(&(from, to), &value)| {
        let back = values.get(&(to, from));
        let mean = back.map_or(value, |back| f64::midpoint(value, *back));
        ((from, to), mean)
    });
    both_ways.collect()
}

/// Parts of one kind that would be equal in a healthy network.
struct ComparableParts<K> {
    values: BTreeMap<K, f64>,
    /// Standard deviation below which a difference is noise.
    least_spread: f64,
    /// Degrees of freedom of the values.
    freedom: f64,
    /// Number of tests of all kinds together.
    tests: usize,
}

impl<K: Copy + Ord> ComparableParts<K> {
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
    senders: ComparableParts<Node>,
    receivers: ComparableParts<Node>,
    links: ComparableParts<(Node, Node)>,
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
        let [senders, receivers] = [senders, receivers].map(|values| ComparableParts {
            values,
            least_spread: OF_MEDIAN * spread / ((count - 1) as f64).sqrt(),
            freedom: (count - 1) as f64,
            tests,
        });
        let freedom = (links.len() - 2 * count + 1) as f64;
        // The polish removes part of the noise of each link.
        let lost = (links.len() as f64 / freedom).sqrt();
        Ok(Polished {
            usual,
            senders,
            receivers,
            links: ComparableParts {
                values: links,
                least_spread: spread * lost,
                freedom,
                tests,
            },
        })
    }
}

/// Moves the median of each node's links from the links to the node.
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

/// Subtracts the common median from each value and returns it.
fn centre(nodes: &mut BTreeMap<Node, f64>) -> f64 {
    let middle = median(nodes.values().copied());
    nodes.values_mut().for_each(|value| *value -= middle);
    middle
}

/// Returns the representative time of the repetitions, their lower quartile. There must be at least one. Disturbances on a
/// machine make messages late and never early. Of five repetitions, four have to be late before the quartile is, but only
/// three for the median.
pub fn typical(times: &mut [Time]) -> Time {
    let rank = times.len().div_ceil(4) - 1;
    *times.select_nth_unstable(rank).1
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    median_in_place(&mut values.collect::<Vec<f64>>())
}
