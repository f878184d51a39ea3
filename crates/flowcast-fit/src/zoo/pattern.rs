//! Patterns: messages of one size that start together, between several nodes.
//!
//! A round trip of two nodes shows nothing of what messages do to each other. Models that differ there alone (LogP with stalling,
//! LoPC, LoGPC, two classes of nodes) are told apart by measured patterns: the conflicts of `flowcast measure conflicts` and the
//! pairs of `flowcast measure pairs`.

use std::collections::{BTreeMap, BTreeSet};

use flowcast_units::{Bytes, Node, Time};

use crate::pairs::samples::{Company, PairSamples};

/// Messages of one size that start together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    /// How people call it; unique among the patterns of a measurement together with the size.
    pub name: String,
    /// Size of each message.
    pub size: Bytes,
    /// Sender and receiver of each, two different nodes; at least one message.
    pub messages: Vec<(Node, Node)>,
}

impl Pattern {
    /// The nodes that send or receive, ascending.
    pub fn nodes(&self) -> BTreeSet<Node> {
        self.messages
            .iter()
            .flat_map(|(from, to)| [*from, *to])
            .collect()
    }

    /// Messages that a node sends.
    pub(crate) fn sends_of(&self, node: Node) -> u32 {
        self.messages
            .iter()
            .filter(|(from, _)| *from == node)
            .count() as u32
    }

    /// Messages that a node receives.
    pub(crate) fn receives_of(&self, node: Node) -> u32 {
        self.messages.iter().filter(|(_, to)| *to == node).count() as u32
    }

    /// The most messages that one node sends, at least 1.
    pub(crate) fn most_sends(&self) -> u32 {
        self.nodes()
            .into_iter()
            .map(|node| self.sends_of(node))
            .max()
            .unwrap_or(0)
            .max(1)
    }

    /// The most messages that one node receives, at least 1.
    pub(crate) fn most_receives(&self) -> u32 {
        self.nodes()
            .into_iter()
            .map(|node| self.receives_of(node))
            .max()
            .unwrap_or(0)
            .max(1)
    }

    /// Whether some node sends and receives.
    pub(crate) fn is_two_way(&self) -> bool {
        self.nodes()
            .into_iter()
            .any(|node| self.sends_of(node) > 0 && self.receives_of(node) > 0)
    }
}

/// A pattern with the times that it took, each from the common start to the end of the last message.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternSamples {
    /// The messages, by sender and receiver.
    pub pattern: Pattern,
    /// Above 0, at least one.
    pub times: Vec<Time>,
}

/// Pairs of nodes as patterns of one message, or of one in each direction; the time of a message is what stands for its
/// repetitions.
pub fn of_pairs(pairs: &PairSamples) -> Vec<PatternSamples> {
    let mut all = Vec::new();
    for size in pairs.sizes() {
        for ((from, to), time) in pairs.typical(size, Company::Alone).unwrap_or_default() {
            let pattern = Pattern {
                name: format!("{from}>{to}"),
                size,
                messages: vec![(from, to)],
            };
            all.push(PatternSamples {
                pattern,
                times: vec![time],
            });
        }
        let both = pairs.typical(size, Company::Both).unwrap_or_default();
        for ((from, to), time) in both.iter().filter(|((from, to), _)| from < to) {
            let Some(back) = both.get(&(*to, *from)) else {
                continue;
            };
            let (name, messages) = (format!("{from}<>{to}"), vec![(*from, *to), (*to, *from)]);
            all.push(PatternSamples {
                pattern: Pattern {
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

/// By node: the mean of the times of its patterns, each relative to the mean of its kind (size, messages, most sends and
/// receives); 1 where no pattern has the node. Ascending, so that fast nodes stand first.
pub(super) fn speeds(patterns: &[Pattern], times: &[f64]) -> Vec<(Node, f64)> {
    let mut means: BTreeMap<_, (f64, f64)> = BTreeMap::new();
    for (pattern, time) in patterns.iter().zip(times) {
        let sum = means.entry(kind(pattern)).or_default();
        *sum = (sum.0 + time, sum.1 + 1.0);
    }
    let mut of_node: BTreeMap<Node, (f64, f64)> = BTreeMap::new();
    for (pattern, time) in patterns.iter().zip(times) {
        let (sum, count) = means[&kind(pattern)];
        for node in pattern.nodes() {
            let own = of_node.entry(node).or_default();
            *own = (own.0 + time * count / sum, own.1 + 1.0);
        }
    }
    let mut all: Vec<(Node, f64)> = of_node
        .into_iter()
        .map(|(node, (sum, count))| (node, sum / count))
        .collect();
    all.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)));
    all
}

fn kind(pattern: &Pattern) -> (Bytes, usize, u32, u32) {
    (
        pattern.size,
        pattern.messages.len(),
        pattern.most_sends(),
        pattern.most_receives(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Pattern {
        /// So many nodes that send to one.
        pub(in crate::zoo) fn to_one(senders: u32, size: Bytes) -> Pattern {
            Pattern {
                name: String::new(),
                size,
                messages: (1..=senders).map(|from| (Node(from), Node(0))).collect(),
            }
        }
    }

    fn pattern(messages: &[(u32, u32)]) -> Pattern {
        let messages = messages
            .iter()
            .map(|(from, to)| (Node(*from), Node(*to)))
            .collect();
        Pattern {
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
        assert!(two_in_one_out.is_two_way() && !pattern(&[(1, 0), (2, 0)]).is_two_way());
        assert_eq!(two_in_one_out.nodes().len(), 4);
    }

    #[test]
    fn pairs_become_patterns_of_one_message_and_of_two() {
        let text = "from,to,size_B,company,time_us\n0,1,8,alone,5\n0,1,8,alone,7\n0,1,8,alone,6\n0,1,8,both,9\n1,0,8,both,11\n2,1,8,both,3\n";
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

    #[test]
    fn slow_nodes_stand_last() {
        let patterns = [pattern(&[(0, 1)]), pattern(&[(1, 2)]), pattern(&[(0, 2)])];
        let order: Vec<u32> = speeds(&patterns, &[10.0, 20.0, 20.0])
            .into_iter()
            .map(|(node, _)| node.0)
            .collect();
        assert_eq!(order, [0, 1, 2]);
    }
}
