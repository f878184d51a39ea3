//! Patterns: messages of one size between several nodes that start together.
//!
//! A round trip of two nodes does not show how messages disturb each other. Measured patterns do: the conflicts of
//! `flowcast measure conflicts` and the pairs of `flowcast measure pairs`.

use std::collections::BTreeMap;

use flowcast_units::{Bytes, Node, Time};

use crate::pairs::samples::{ConcurrentLoad, PairSamples};

/// Messages of one size that start together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZooPattern {
    /// Name for people. Together with the size, it is unique among the patterns of a measurement.
    pub name: String,
    /// Size of each message.
    pub size: Bytes,
    /// Sender and receiver of each message, which are two different nodes. At least one message.
    pub messages: Vec<(Node, Node)>,
}

impl ZooPattern {
    /// Largest number of messages that one node sends, at least 1.
    pub(crate) fn most_sends(&self) -> u32 {
        most_alike(self.messages.iter().map(|(from, _)| *from))
    }

    /// Largest number of messages that one node receives, at least 1.
    pub(crate) fn most_receives(&self) -> u32 {
        most_alike(self.messages.iter().map(|(_, to)| *to))
    }
}

fn most_alike(nodes: impl Iterator<Item = Node>) -> u32 {
    let mut counts = BTreeMap::new();
    nodes.for_each(|node| *counts.entry(node).or_insert(0) += 1);
    counts.into_values().max().unwrap_or(1)
}

/// A pattern with its measured times, each from the common start to the end of the last message.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternSamples {
    /// The messages, by sender and receiver.
    pub pattern: ZooPattern,
    /// At least one time, each above 0.
    pub times: Vec<Time>,
}

/// Converts pairs of nodes to patterns of one message, or of one message in each direction. The time of a message is the
/// representative of its repetitions.
pub fn of_pairs(pairs: &PairSamples) -> Vec<PatternSamples> {
    let mut all = Vec::new();
    for size in pairs.sizes() {
        for ((from, to), time) in pairs
            .typical(size, ConcurrentLoad::Alone)
            .unwrap_or_default()
        {
            let pattern = ZooPattern {
                name: format!("{from}>{to}"),
                size,
                messages: vec![(from, to)],
            };
            all.push(PatternSamples {
                pattern,
                times: vec![time],
            });
        }
        let both = pairs
            .typical(size, ConcurrentLoad::Both)
            .unwrap_or_default();
        for ((from, to), time) in both.iter().filter(|((from, to), _)| from < to) {
            let Some(back) = both.get(&(*to, *from)) else {
                continue;
            };
            let (name, messages) = (format!("{from}<>{to}"), vec![(*from, *to), (*to, *from)]);
            all.push(PatternSamples {
                pattern: ZooPattern {
                    name,
                    size,
                    messages,
                },
                times: vec![(*time).max(*back)],
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(messages: &[(u32, u32)]) -> ZooPattern {
        let messages = messages
            .iter()
            .map(|(from, to)| (Node(*from), Node(*to)))
            .collect();
        ZooPattern {
            name: "p".into(),
            size: Bytes(9),
            messages,
        }
    }

    #[test]
    fn the_busiest_node_counts() {
        let two_in_one_out = pattern(&[(1, 0), (2, 0), (0, 3)]);
        assert_eq!(
            (two_in_one_out.most_sends(), two_in_one_out.most_receives()),
            (1, 2)
        );
    }

    #[test]
    fn pairs_become_patterns_of_one_message_and_of_two() {
        let text = "from,to,size_B,what,time_us\n0,1,8,alone,5\n0,1,8,alone,7\n0,1,8,alone,6\n0,1,8,both,9\n1,0,8,both,11\n2,1,8,both,3\n";
        let all = of_pairs(&PairSamples::from_csv(text).unwrap());
        let found: Vec<(&str, usize, f64)> = all
            .iter()
            .map(|one| {
                (
                    &*one.pattern.name,
                    one.pattern.messages.len(),
                    one.times[0].as_micros(),
                )
            })
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1], ("0<>1", 2, 11.0));
        assert_eq!(found[0].0, "0>1");
    }
}
