//! Schedule in which all pairs of nodes meet and no node meets two others at the same time: a round-robin tournament.
//!
//! In the circle method, the first node stays and the others move on by one place each round; opposite nodes meet. `N` nodes
//! need `N - 1` rounds. An odd number of nodes needs `N` rounds, with one idle node in each.

use flowcast_units::Node;

/// Returns the pairs of each round. All nodes must be different; each pair meets once.
pub fn rounds(nodes: &[Node]) -> Vec<Vec<(Node, Node)>> {
    if nodes.len() < 2 {
        return Vec::new();
    }
    let mut circle: Vec<Option<Node>> = nodes.iter().copied().map(Some).collect();
    if circle.len() % 2 == 1 {
        circle.push(None);
    }
    let half = circle.len() / 2;
    let mut rounds = Vec::new();
    for _ in 1..circle.len() {
        let opposite = circle[..half].iter().zip(circle[half..].iter().rev());
        rounds.push(
            opposite
                .filter_map(|(one, other)| Some(((*one)?, (*other)?)))
                .collect(),
        );
        circle[1..].rotate_right(1);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_pair_meets_once_and_each_node_at_most_once_in_a_round() {
        for count in 0..34 {
            let nodes: Vec<Node> = (0..count).map(Node).collect();
            let rounds = rounds(&nodes);
            assert_eq!(
                rounds.len() as u32,
                if count < 2 { 0 } else { count - 1 + count % 2 }
            );
            let mut met = BTreeSet::new();
            for round in &rounds {
                let busy: BTreeSet<Node> = round
                    .iter()
                    .flat_map(|(one, other)| [*one, *other])
                    .collect();
                assert_eq!(busy.len(), 2 * round.len());
                met.extend(
                    round
                        .iter()
                        .map(|(one, other)| (*one.min(other), *one.max(other))),
                );
            }
            assert_eq!(met.len() as u32, count * count.saturating_sub(1) / 2);
        }
    }
}
