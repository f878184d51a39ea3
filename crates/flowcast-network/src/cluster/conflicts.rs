//! The elementary conflicts: the smallest patterns in which messages slow each other down. Each conflict tests one property
//! of a network (RR-5910 section 5; Zhu, Lastovetsky, Katrinis et al.).
//!
//! | kind | flows | shows |
//! |---|---|---|
//! | `alone` | one flow of full size, of half size, and short ones | latency and rate |
//! | `out` | 2 to k flows out of a node | an outgo conflict |
//! | `in` | 2 to k flows into a node | an income conflict |
//! | `in-out` | one flow out of and 1 to k into a node | interaction of directions; with two in, the asymmetry |
//! | `path` | three flows in a row | the remaining flow at the end of a path |
//! | `between` | two flows into a node, one on to a second node, two out of it | the remaining flow between two conflicts |
//! | `zig-zag` | three and five flows | gains and losses along a chain of conflicts |
//! | `inter-rack` | 1 to n flows between two racks | saturation of the backbone |
//! | `short` | 2 out, 2 in, 2 in and 1 out, a path of 3, and random patterns, about a window in size | queueing or sharing |
//!
//! All flows of a conflict start at the same time and have the same size. `random` and `short` patterns are for validation
//! and are never used in a fit.

use super::{
    flow::Flow,
    racks::{Rack, Racks},
    two_racks::TwoRackPlan,
};
use flowcast_units::{Bytes, Node, Time, named};

/// Smallest measured message: it fits into one frame.
const SMALLEST: Bytes = Bytes(1000);

named! {
    /// Purpose of a conflict.
    pub enum ConflictKind {
        /// One flow with all links to itself; the reference for the others.
        Alone = "alone",
        /// Several flows out of a node.
        Out = "out",
        /// Several flows into a node.
        In = "in",
        /// One flow out of a node and several into it.
        InOut = "in-out",
        /// Flows in a row: each starts at the node where the one before ends.
        Path = "path",
        /// A flow between two conflicts.
        Between = "between",
        /// A chain of alternating outgo and income conflicts.
        ZigZag = "zig-zag",
        /// Flows between racks that share the backbone.
        InterRack = "inter-rack",
        /// Not a conflict: a random pattern for validation.
        Random = "random",
        /// For validation: a conflict or random pattern of messages that are short relative to a window.
        Short = "short",
    }
}

/// A conflict, or a random pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// Name, unique among the conflicts that are measured together.
    pub name: String,
    /// Purpose of the conflict.
    pub kind: ConflictKind,
    /// The flows, numbered from 1.
    pub flows: Vec<Flow>,
}

/// Nodes and message sizes for which conflicts are generated.
#[derive(Debug, Clone, PartialEq)]
pub struct ConflictPlan {
    /// The nodes, grouped by rack.
    pub nodes: Vec<Node>,
    /// Racks of the nodes; empty if there are no racks.
    pub racks: Racks,
    /// Size of each message.
    pub size: Bytes,
    /// Size of each message of the short conflicts, about one window; 0 disables these conflicts.
    pub short: Bytes,
    /// `k`: maximum number of flows in one direction of a node.
    pub most: u32,
}

impl ConflictPlan {
    /// All conflicts that are possible with this number of nodes.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let others = self.nodes.len().saturating_sub(1);
        let most = (self.most as usize).min(others);
        let half = Bytes((self.size.0 / 2).max(1));
        let mut all = vec![
            self.conflict("alone", ConflictKind::Alone, &[(0, 1)]),
            Conflict {
                name: "alone-half".into(),
                ..self.sized("", ConflictKind::Alone, &[(0, 1)], half)
            },
        ];
        for size in self.short_sizes() {
            let alone = self.sized(
                &format!("alone-{size}"),
                ConflictKind::Alone,
                &[(0, 1)],
                size,
            );
            all.push(alone);
        }
        for count in 2..=most {
            let out: Vec<_> = (1..=count).map(|to| (0, to)).collect();
            all.push(self.conflict(&format!("out-{count}"), ConflictKind::Out, &out));
        }
        for count in 2..=most {
            let into: Vec<_> = (1..=count).map(|from| (from, 0)).collect();
            all.push(self.conflict(&format!("in-{count}"), ConflictKind::In, &into));
        }
        for count in 1..=(self.most as usize).min(others.saturating_sub(1)) {
            let both: Vec<_> = std::iter::once((0, 1))
                .chain((2..2 + count).map(|from| (from, 0)))
                .collect();
            all.push(self.conflict(&format!("in-out-{count}"), ConflictKind::InOut, &both));
        }
        all.push(self.conflict("path-3", ConflictKind::Path, &[(0, 1), (1, 2), (2, 3)]));
        all.push(self.conflict(
            "between",
            ConflictKind::Between,
            &[(0, 1), (5, 1), (1, 2), (2, 3), (2, 4)],
        ));
        all.push(self.conflict("zig-zag-3", ConflictKind::ZigZag, &[(0, 1), (2, 1), (2, 3)]));
        all.push(self.conflict(
            "zig-zag-5",
            ConflictKind::ZigZag,
            &[(0, 1), (2, 1), (2, 3), (4, 3), (4, 5)],
        ));
        all.extend(self.between_racks());
        all.retain(|conflict| !conflict.flows.is_empty());
        all
    }

    /// Sizes of single short flows: one that fits into a frame, and two up to a window. Empty if short conflicts are
    /// disabled.
    fn short_sizes(&self) -> Vec<Bytes> {
        let sizes = [
            Bytes(SMALLEST.0.min(self.short.0)),
            Bytes(self.short.0 / 4),
            self.short,
        ];
        if self.short.0 < SMALLEST.0 {
            Vec::new()
        } else {
            sizes.to_vec()
        }
    }

    /// Conflicts of messages of the short size, and random patterns. Sizes in random patterns range from 1 kB to four times
    /// the short size, evenly on a logarithmic scale; patterns alternate between two, four and six messages out of each of
    /// at most eight nodes.
    pub fn short_patterns(&self, count: u32, seed: u64) -> Vec<Conflict> {
        if self.short_sizes().is_empty() {
            return Vec::new();
        }
        let conflicts: [(&str, &[(usize, usize)]); 4] = [
            ("short-out-2", &[(0, 1), (0, 2)]),
            ("short-in-2", &[(1, 0), (2, 0)]),
            ("short-in-out-2", &[(0, 1), (2, 0), (3, 0)]),
            ("short-path-3", &[(0, 1), (1, 2), (2, 3)]),
        ];
        let mut all: Vec<Conflict> = conflicts
            .iter()
            .map(|(name, ends)| self.sized(name, ConflictKind::Short, ends, self.short))
            .collect();
        for at in 0..count {
            let seed = seed + u64::from(at);
            let plan = TwoRackPlan {
                nodes: self.some_of_each_rack(8),
                flows_out: 1 + at % 3,
                smallest: SMALLEST,
                largest: Bytes(4 * self.short.0),
            };
            let flows = plan.draw_twice_by_size_class(seed);
            all.push(Conflict {
                name: format!("random-short-{seed}"),
                kind: ConflictKind::Short,
                flows,
            });
        }
        all.retain(|conflict| !conflict.flows.is_empty());
        all
    }

    /// Random patterns for validation. They alternate between one, two and three flows out of each of at most eight nodes to
    /// random other nodes, with sizes from half to the full size.
    pub fn random_patterns(&self, count: u32, seed: u64) -> Vec<Conflict> {
        (0..count)
            .map(|at: u32| {
                let seed = seed + u64::from(at);
                let plan = TwoRackPlan {
                    nodes: self.some_of_each_rack(8),
                    flows_out: 1 + at % 3,
                    smallest: Bytes((self.size.0 / 2).max(1)),
                    largest: self.size,
                };
                Conflict {
                    name: format!("random-{seed}"),
                    kind: ConflictKind::Random,
                    flows: plan.draw(seed),
                }
            })
            .collect()
    }

    fn conflict(&self, name: &str, kind: ConflictKind, ends: &[(usize, usize)]) -> Conflict {
        self.sized(name, kind, ends, self.size)
    }

    /// Creates a conflict with flows of one size between the nodes at these indices. It has no flows if there are too few
    /// nodes.
    fn sized(
        &self,
        name: &str,
        kind: ConflictKind,
        ends: &[(usize, usize)],
        size: Bytes,
    ) -> Conflict {
        let enough = ends
            .iter()
            .all(|(from, to)| *from.max(to) < self.nodes.len());
        let ends = if enough { ends } else { &[] };
        Conflict {
            name: name.to_owned(),
            kind,
            flows: ends
                .iter()
                .zip(1..)
                .map(|((from, to), id): (&(usize, usize), u32)| Flow {
                    id,
                    src: self.nodes[*from],
                    dst: self.nodes[*to],
                    size,
                    start: Time::ZERO,
                })
                .collect(),
        }
    }

    /// Conflicts of 1, 2, .. concurrent flows between the first two racks, up to one flow for each pair of nodes.
    fn between_racks(&self) -> Vec<Conflict> {
        let [first, second] = [0, 1].map(|rack| {
            let nodes = self.nodes.iter().enumerate();
            let here =
                nodes.filter(move |(_, node)| self.racks.rack_of(**node) == Some(Rack(rack)));
            here.map(|(place, _)| place)
        });
        let pairs: Vec<(usize, usize)> = first.zip(second).collect();
        (1..=pairs.len())
            .map(|count: usize| {
                self.conflict(
                    &format!("inter-rack-{count}"),
                    ConflictKind::InterRack,
                    &pairs[..count],
                )
            })
            .collect()
    }

    /// At most `most` nodes, the same number from each rack.
    fn some_of_each_rack(&self, most: usize) -> Vec<Node> {
        let each = most / self.racks.count().max(1);
        let mut taken = vec![0; self.racks.count().max(1)];
        let nodes = self.nodes.iter().copied();
        nodes
            .filter(|node| {
                let taken = &mut taken[self.racks.rack_of(*node).map_or(0, |rack| rack.0 as usize)];
                *taken += 1;
                *taken <= each.max(1)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn plan(nodes: u32, racks: u32) -> ConflictPlan {
        let mut places = Racks::default();
        for node in 0..nodes {
            if racks > 1 {
                places
                    .place(Node(node), Node(node), &(node * racks / nodes).to_string())
                    .unwrap();
            }
        }
        ConflictPlan {
            nodes: (0..nodes).map(Node).collect(),
            racks: places,
            size: Bytes(4_000_000),
            short: Bytes(0),
            most: 4,
        }
    }

    fn names(plan: &ConflictPlan) -> Vec<String> {
        plan.conflicts()
            .into_iter()
            .map(|conflict| conflict.name)
            .collect()
    }

    #[test]
    fn six_nodes_make_every_conflict_of_one_rack() {
        let expected = "alone alone-half out-2 out-3 out-4 in-2 in-3 in-4 in-out-1 in-out-2 in-out-3 in-out-4 path-3 \
                        between zig-zag-3 zig-zag-5";
        assert_eq!(names(&plan(6, 1)).join(" "), expected);
        let conflicts = plan(6, 1).conflicts();
        let ends = |name: &str| -> Vec<(u32, u32)> {
            let conflict = conflicts
                .iter()
                .find(|conflict| conflict.name == name)
                .unwrap();
            conflict
                .flows
                .iter()
                .map(|flow| (flow.src.0, flow.dst.0))
                .collect()
        };
        assert_eq!(ends("in-out-2"), [(0, 1), (2, 0), (3, 0)]);
        assert_eq!(ends("zig-zag-5"), [(0, 1), (2, 1), (2, 3), (4, 3), (4, 5)]);
        assert_eq!(conflicts[1].flows[0].size, Bytes(2_000_000));
    }

    #[test]
    fn few_nodes_make_fewer_conflicts_and_racks_make_more() {
        assert_eq!(names(&plan(2, 1)), ["alone", "alone-half"]);
        assert_eq!(
            names(&plan(3, 1)).join(" "),
            "alone alone-half out-2 in-2 in-out-1"
        );
        let racks = plan(8, 2).conflicts();
        let last = racks.last().unwrap();
        assert_eq!((last.name.as_str(), last.flows.len()), ("inter-rack-4", 4));
        assert_eq!((last.flows[3].src, last.flows[3].dst), (Node(3), Node(7)));
    }

    #[test]
    fn random_patterns_repeat_with_their_seed_and_use_each_rack_alike() {
        let plan = plan(12, 2);
        let patterns = plan.random_patterns(4, 7);
        assert_eq!(patterns, plan.random_patterns(4, 7));
        assert_eq!(patterns[1].name, "random-8");
        let counts: Vec<usize> = patterns.iter().map(|pattern| pattern.flows.len()).collect();
        assert_eq!(counts, [8, 16, 24, 8]);
        let nodes: BTreeSet<u32> = patterns
            .iter()
            .flat_map(|pattern| &pattern.flows)
            .map(|flow| flow.src.0)
            .collect();
        assert_eq!(
            nodes.into_iter().collect::<Vec<_>>(),
            [0, 1, 2, 3, 6, 7, 8, 9]
        );
    }

    #[test]
    fn short_messages_have_conflicts_and_random_patterns_of_all_sizes_around_the_window() {
        let plan = ConflictPlan {
            short: Bytes(128 << 10),
            ..plan(4, 1)
        };
        assert_eq!(
            names(&plan)[..5].join(" "),
            "alone alone-half alone-1kB alone-32KiB alone-128KiB"
        );
        let patterns = plan.short_patterns(30, 1);
        assert_eq!(patterns, plan.short_patterns(30, 1));
        assert_eq!(patterns.len(), 34);
        assert!(
            patterns
                .iter()
                .all(|pattern| pattern.kind == ConflictKind::Short)
        );
        let sizes: Vec<u64> = patterns[4..]
            .iter()
            .flat_map(|pattern| &pattern.flows)
            .map(|flow| flow.size.0)
            .collect();
        assert!(sizes.iter().all(|size| (1000..=512 << 10).contains(size)));
        let below = sizes.iter().filter(|size| **size < 22_600).count() as f64 / sizes.len() as f64;
        assert!((below - 0.5).abs() < 0.1, "{below}");
        assert_eq!(
            ConflictPlan {
                short: Bytes(0),
                ..plan
            }
            .short_patterns(30, 1),
            []
        );
    }

    #[test]
    fn each_kind_reads_back_from_its_name() {
        for kind in ConflictKind::ALL {
            assert_eq!(ConflictKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(ConflictKind::from_name("zigzag"), None);
    }
}
