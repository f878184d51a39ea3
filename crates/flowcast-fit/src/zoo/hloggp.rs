//! LogGP whose overheads and gaps belong to nodes, here to two classes of nodes. The idea and the name are those of HLogGP
//! (Bosque and Pastor, "A parallel computational model for heterogeneous clusters", 2006); the forms are not taken from there.
//! A message from class a to class b takes
//!
//! `o_a + o_b + L + (s-1) max(G_a, G_b)`,
//!
//! and a node of class c spaces its messages by `max(o_c, g + (s-1) G_c)`. The classes are found: nodes are ordered by how long
//! their patterns take, relative to others of their kind, and cut at one of the three largest steps. Round trips count as those
//! of two nodes of the first, faster class; without patterns the model is LogGP.

use std::collections::BTreeSet;

use flowcast_units::{Bytes, Node, Time};

use super::{
    Cost, Form, Instance, Medians, MessageCost, Model,
    loggp::LogGpCost,
    parameters,
    pattern::{Pattern, speeds},
};

/// LogGP's parameters of the first class, then o and G of the second.
pub const MODEL: Model = Model {
    name: "hloggp",
    source: "Bosque and Pastor 2006, two classes",
    instances,
    procedure: None,
};

/// Cuts between classes that are tried.
const CUTS: usize = 3;

struct TwoClasses {
    second: BTreeSet<Node>,
}

/// LogGP's form with the second class's parameters, which do not count.
fn widened(mut form: Form) -> Form {
    form.coefficients.extend([0.0, 0.0]);
    form
}

impl MessageCost for TwoClasses {
    fn one_way(&self, size: Bytes) -> Form {
        widened(LogGpCost.one_way(size))
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        LogGpCost
            .spacing(size, delay)
            .into_iter()
            .map(widened)
            .collect()
    }

    fn pattern(&self, pattern: &Pattern, _near: &[f64]) -> Cost {
        let is_second = |node: &Node| self.second.contains(node);
        let slow_ends =
            |(from, to): &(Node, Node)| u8::from(is_second(from)) + u8::from(is_second(to));
        let slow = f64::from(pattern.messages.iter().map(slow_ends).max().unwrap_or(0));
        let beyond = pattern.size.0.saturating_sub(1) as f64;
        let most = |second: bool| {
            let nodes = pattern
                .nodes()
                .into_iter()
                .filter(|node| is_second(node) == second);
            nodes
                .map(|node| pattern.sends_of(node).max(pattern.receives_of(node)))
                .max()
        };
        let mut longest_of = Vec::new();
        for (second, overhead, per_byte) in [(false, 1, 3), (true, 4, 5)] {
            let Some(most) = most(second).map(f64::from) else {
                continue;
            };
            let (mut processor, mut interface) = (vec![0.0; 6], vec![0.0; 6]);
            processor[overhead] = most - 1.0;
            // The last message's bytes follow.
            processor[per_byte] = beyond;
            interface[2] = most - 1.0;
            interface[per_byte] = most * beyond;
            longest_of.extend([Form::new(processor), Form::new(interface)]);
        }
        Cost {
            once: Form::new([1.0, 2.0 - slow, 0.0, 0.0, slow, 0.0]),
            repeats: 1.0,
            longest_of,
        }
    }
}

fn instances(observed: Medians<'_>) -> Vec<Instance> {
    let order = speeds(observed.patterns, observed.pattern_times);
    let mut cuts: Vec<usize> = (1..order.len()).collect();
    let step = |at: &usize| order[*at].1 - order[*at - 1].1;
    cuts.sort_by(|one, other| step(other).total_cmp(&step(one)).then(one.cmp(other)));
    cuts.truncate(CUTS);
    if cuts.is_empty() {
        return vec![instance(BTreeSet::new())];
    }
    cuts.into_iter()
        .map(|cut| instance(order[cut..].iter().map(|(node, _)| *node).collect()))
        .collect()
}

fn instance(second: BTreeSet<Node>) -> Instance {
    let names: Vec<String> = second.iter().map(Node::to_string).collect();
    let choice = match &names[..] {
        [] => String::new(),
        few if few.len() <= 4 => format!("second class {}", few.join(" ")),
        many => format!("second class of {} nodes", many.len()),
    };
    let parameters = parameters(&["L", "o", "g", "G/B", "o'", "G'/B"]);
    Instance {
        choice,
        parameters,
        cost: Box::new(TwoClasses { second }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_class_counts_by_hand() {
        let model = TwoClasses {
            second: [Node(1), Node(2)].into(),
        };
        // L 10, o 1, g 2, G 1 of the first class, o' 3, G' 5 of the second; messages of 5 bytes.
        let parameters = [10.0, 1.0, 2.0, 1.0, 3.0, 5.0];
        let of = |messages: &[(u32, u32)]| {
            let messages = messages
                .iter()
                .map(|(from, to)| (Node(*from), Node(*to)))
                .collect();
            let pattern = Pattern {
                name: String::new(),
                size: Bytes(5),
                messages,
            };
            model
                .pattern(&pattern, &parameters)
                .at(&parameters)
                .as_nanos()
        };
        assert_eq!(of(&[(0, 3)]), 2.0 + 10.0 + 4.0);
        assert_eq!(of(&[(0, 1)]), 1.0 + 3.0 + 10.0 + 20.0);
        assert_eq!(of(&[(2, 1)]), 6.0 + 10.0 + 20.0);
        // Two messages to one node of the second class: 2 + 2·20.
        assert_eq!(of(&[(0, 1), (3, 1)]), 4.0 + 10.0 + 42.0);
        assert_eq!(of(&[(0, 3), (4, 3)]), 2.0 + 10.0 + 2.0 + 8.0);
    }
}
