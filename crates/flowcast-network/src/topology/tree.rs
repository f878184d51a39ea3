//! Trees of switches with one or more upward routes: racks, two-level trees, fat trees, k-ary n-trees; and routing in them.
//!
//! Each switch of level 1 has `down` nodes. Groups of level `i` combine `down` groups of the level below. Each switch has
//! `up` parents, with `cables` parallel cables to each. A group of level `i + 1` therefore has as many switches as a group
//! of level `i` times its `up` (an extended generalised fat tree, Öhring et al., 1995; with parallel cables, Zahavi's,
//! 2012). If the last level has upward cables, a core that is not a limit connects all groups.
//!
//! A message goes up only as far as necessary and then down. [`Routing`] selects the upward cable. With routing by
//! destination (D-mod-k, Zahavi et al., 2010), it is at level `i` the cable `floor(dst / switches of a group) mod cables`.
//! All messages to one node then come down the same route, and messages to neighbouring destinations go up different cables.

use thiserror::Error;

use super::wiring::{Cable, Hop, Routing, Switch, Trip, Wiring};
use flowcast_units::Node;

/// Maximum number of levels. No network has as many.
const MOST_LEVELS: usize = 8;

/// The switches of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Number of nodes, or of groups of the level below, in each group.
    pub down: u32,
    /// Number of parents of each switch in the level above; 0 at the top.
    pub up: u32,
    /// Number of parallel cables to each parent.
    pub cables: u32,
}

impl Level {
    /// Creates a level with one cable to each parent.
    pub const fn new(down: u32, up: u32) -> Level {
        Level {
            down,
            up,
            cables: 1,
        }
    }

    /// Number of upward cables of each switch.
    fn ports(self) -> u64 {
        u64::from(self.up) * u64::from(self.cables)
    }
}

/// Error: the levels do not form a tree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("level {level}: found {found}, expected {expected}")]
pub struct TreeError {
    /// Index of the level, counted from 0 as in a file's field.
    pub level: usize,
    /// Invalid value of the level.
    pub found: String,
    /// Description of the valid values, such as `1 to 8 levels`.
    pub expected: String,
}

/// A tree of switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    levels: Vec<Level>,
}

fn refused(level: usize, found: String, expected: &str) -> Result<Tree, TreeError> {
    Err(TreeError {
        level,
        found,
        expected: expected.to_owned(),
    })
}

impl Tree {
    /// Creates a tree from its levels, the lowest first.
    ///
    /// # Errors
    /// There is no level or too many, a level contains nothing, or cables lead nowhere or are missing.
    pub fn new(levels: Vec<Level>) -> Result<Tree, TreeError> {
        if levels.is_empty() || levels.len() > MOST_LEVELS {
            return refused(0, format!("{} levels", levels.len()), "1 to 8 levels");
        }
        let mut switches = 1u64;
        for (place, level) in levels.iter().enumerate() {
            if !(1..=1 << 16).contains(&level.down) {
                return refused(
                    place,
                    format!("down = {}", level.down),
                    "1 to 65536 nodes or switches below",
                );
            }
            if level.up > 1 << 10 {
                return refused(
                    place,
                    format!("up = {}", level.up),
                    "at most 1024 switches above",
                );
            }
            if !(1..=1 << 10).contains(&level.cables) {
                return refused(
                    place,
                    format!("cables = {}", level.cables),
                    "1 to 1024 cables to each switch above",
                );
            }
            if level.up == 0 && place + 1 < levels.len() {
                return refused(
                    place,
                    "up = 0".into(),
                    "a cable to the level above (0 only in the last level)",
                );
            }
            switches = switches.saturating_mul(u64::from(level.up.max(1)));
            if switches > 1 << 20 {
                return refused(
                    place,
                    format!("{switches} switches above a group"),
                    "at most 1048576",
                );
            }
        }
        let nodes = levels.iter().map(|level| u64::from(level.down));
        if nodes.fold(1, u64::saturating_mul) > 1 << 31 {
            return refused(
                levels.len() - 1,
                "more than 2147483648 nodes".into(),
                "at most 2147483648",
            );
        }
        Ok(Tree { levels })
    }

    /// Creates a k-ary n-tree (Petrini and Vanneschi, 1997): `n` levels of switches, `k` nodes or switches below each switch
    /// and `k` switches above it, `k^n` nodes. The lowest switches have one upward cable for `oversubscription` nodes.
    ///
    /// # Errors
    /// There is no level or too many, or the over-subscription does not divide `k`.
    pub fn k_ary(arity: u32, levels: u32, oversubscription: u32) -> Result<Tree, TreeError> {
        if oversubscription == 0 || !arity.is_multiple_of(oversubscription) {
            return Err(TreeError {
                level: 0,
                found: oversubscription.to_string(),
                expected: format!("a divisor of {arity}, the arity"),
            });
        }
        let levels = levels.min(MOST_LEVELS as u32 + 1);
        let mut all = vec![Level::new(arity, arity); levels as usize];
        if let Some(lowest) = all.first_mut() {
            lowest.up /= oversubscription;
        }
        if let Some(top) = all.last_mut() {
            top.up = 0;
        }
        Tree::new(all)
    }

    /// Creates a fat tree of switches with `ports` ports (Al-Fares et al., 2008): three levels, `ports^3 / 4` nodes. With an
    /// over-subscription of `n` the lowest switches have one upward cable for `n` nodes.
    ///
    /// # Errors
    /// The number of ports is odd, or the over-subscription does not divide half of it.
    pub fn fat(ports: u32, oversubscription: u32) -> Result<Tree, TreeError> {
        let half = ports / 2;
        if ports < 2 || ports % 2 == 1 || ports > 1 << 9 {
            let expected = "an even number of ports from 2 to 512".to_owned();
            return Err(TreeError {
                level: 0,
                found: format!("{ports} ports"),
                expected,
            });
        }
        if oversubscription == 0 || !half.is_multiple_of(oversubscription) {
            let least = oversubscription.max(1);
            let expected = format!(
                "a divisor of {half}, half of the ports ({least}:1 needs a multiple of {} ports)",
                2 * u64::from(least)
            );
            return Err(TreeError {
                level: 0,
                found: oversubscription.to_string(),
                expected,
            });
        }
        Tree::new(vec![
            Level::new(half, half / oversubscription),
            Level::new(half, half),
            Level::new(ports, 0),
        ])
    }

    /// Levels of the tree, the lowest first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Number of levels with upward cables.
    pub fn depth(&self) -> usize {
        self.levels.iter().filter(|level| level.up > 0).count()
    }

    /// Number of nodes; `None` if a core connects any number.
    pub fn nodes(&self) -> Option<u64> {
        let top = self.levels.last().expect("a tree has a level");
        (top.up == 0).then(|| {
            self.levels
                .iter()
                .map(|level| u64::from(level.down))
                .product()
        })
    }

    /// Number of nodes below a switch of this level; level 0 is the nodes themselves.
    fn below(&self, level: usize) -> u64 {
        let levels = self.levels[..level].iter();
        levels.map(|level| u64::from(level.down)).product()
    }

    /// Index of the group of this level that contains the node.
    fn group(&self, node: Node, level: usize) -> u64 {
        u64::from(node.0) / self.below(level)
    }

    /// Number of switches in a group of this level. Levels are counted from 1.
    fn switches(&self, level: usize) -> u64 {
        let levels = self.levels[..level - 1].iter();
        levels.map(|level| u64::from(level.up)).product()
    }
}

/// A tree with its upward routing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RoutedTree {
    pub tree: Tree,
    pub routing: Routing,
    pub seed: u64,
}

impl RoutedTree {
    /// Selects the upward cable at a level whose groups have `switches` switches.
    fn port(&self, trip: &Trip, place: usize, switches: u64, ports: u64) -> u64 {
        match self.routing {
            Routing::Ecmp => trip.pair_draw(self.seed, place as u64) % ports,
            Routing::Random => trip.own_draw(self.seed, place as u64) % ports,
            Routing::SModK => u64::from(trip.src.0) / switches % ports,
            _ => u64::from(trip.dst.0) / switches % ports,
        }
    }
}

impl Wiring for RoutedTree {
    fn nodes(&self) -> Option<u64> {
        self.tree.nodes()
    }

    fn longest(&self) -> u32 {
        2 * self.tree.depth() as u32
    }

    fn way(&self, trip: &Trip, way: &mut Vec<Hop>) {
        let begin = way.len();
        let (mut below, mut switches, mut here) = (1u64, 1u64, 0u64);
        let mut down = [None; MOST_LEVELS];
        for (place, level) in self.tree.levels.iter().enumerate() {
            below *= u64::from(level.down);
            let (from, to) = (u64::from(trip.src.0) / below, u64::from(trip.dst.0) / below);
            if from == to || level.up == 0 {
                break;
            }
            let port = self.port(trip, place, switches, level.ports());
            let [rising, falling] = [from, to].map(|group| {
                Hop::forward(Cable {
                    class: place as u8 + 1,
                    plane: trip.plane,
                    switch: (group * switches + here) as u32,
                    port: port as u32,
                })
            });
            way.push(rising);
            down[way.len() - begin - 1] = Some(falling.back());
            here = here * u64::from(level.up) + port % u64::from(level.up);
            switches *= u64::from(level.up);
        }
        way.extend(down.into_iter().rev().flatten());
    }

    fn cables_to_switches(&self, from: Node, cables: &mut [u16]) {
        cables.fill(0);
        let from = self.switch_of(from).number as usize;
        let mut below = 1;
        for (place, level) in self.tree.levels.iter().enumerate() {
            below *= if place == 0 { 1 } else { level.down as usize };
            if level.up == 0 {
                break;
            }
            // Switches outside the group are two cables farther away.
            let group = from / below * below;
            let (before, rest) = cables.split_at_mut(group);
            let after = rest.get_mut(below..).unwrap_or_default();
            for cables in before.iter_mut().chain(after) {
                *cables += 2;
            }
        }
    }

    fn cables(&self, nodes: &[Node]) -> Vec<Cable> {
        let mut cables = Vec::new();
        for (place, level) in self.tree.levels.iter().enumerate() {
            let switches = self.tree.switches(place + 1);
            let mut groups: Vec<u64> = nodes
                .iter()
                .map(|node| self.tree.group(*node, place + 1))
                .collect();
            groups.dedup();
            let all = groups.iter().flat_map(|group| {
                (0..switches).map(move |switch| (group * switches + switch) as u32)
            });
            for switch in all {
                cables.extend((0..level.ports() as u32).map(|port| Cable {
                    class: place as u8 + 1,
                    plane: 0,
                    switch,
                    port,
                }));
            }
        }
        cables
    }

    fn switch_of(&self, node: Node) -> Switch {
        Switch {
            level: 1,
            number: node.0 / self.tree.levels[0].down,
        }
    }

    fn ends(&self, cable: Cable) -> [Switch; 2] {
        let place = usize::from(cable.class) - 1;
        let level = self.tree.levels[place];
        let switches = self.tree.switches(place + 1) as u32;
        // A core that is not a limit is a single switch.
        let above = self.tree.levels.get(place + 1).map_or(0, |above| {
            let group = cable.switch / switches / above.down;
            let here = cable.switch % switches * level.up + cable.port % level.up;
            group * (switches * level.up) + here
        });
        [
            Switch {
                level: cable.class,
                number: cable.switch,
            },
            Switch {
                level: cable.class + 1,
                number: above,
            },
        ]
    }

    fn meeting(&self, one: Node, other: Node) -> usize {
        let levels = 1..=self.tree.levels.len();
        let met = levels
            .clone()
            .find(|level| self.tree.group(one, *level) == self.tree.group(other, *level));
        met.map_or(self.tree.levels.len(), |level| level - 1)
    }

    fn meetings(&self) -> Vec<String> {
        let has_core = self.tree.nodes().is_none();
        let levels = self.tree.levels.len();
        let mut names = vec!["same switch".to_owned()];
        names.extend((2..=levels).map(|level| {
            if level == levels && !has_core {
                "elsewhere".to_owned()
            } else {
                format!("same group of level {level}")
            }
        }));
        names.extend(has_core.then(|| "elsewhere".to_owned()));
        names
    }

    fn leaving(&self, meeting: usize) -> Vec<(u8, u64)> {
        let Some(level) = self.tree.levels.get(meeting).filter(|level| level.up > 0) else {
            return Vec::new();
        };
        let cables = self.tree.switches(meeting + 1) * level.ports();
        vec![(meeting as u8 + 1, cables)]
    }

    fn name(&self, hop: Hop) -> String {
        let Cable {
            class,
            switch,
            port,
            ..
        } = hop.cable;
        let direction = if hop.is_backward {
            "down to"
        } else {
            "up from"
        };
        format!("{direction} switch {switch} of level {class}, cable {port}")
    }

    fn switch_name(&self, Switch { level, number }: Switch) -> String {
        if usize::from(level) > self.tree.levels.len() {
            return "the core".to_owned();
        }
        format!("switch {number} of level {level}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{check_ways, hops};
    use std::collections::{BTreeMap, BTreeSet};

    fn routed(tree: Tree, routing: Routing) -> RoutedTree {
        RoutedTree {
            tree,
            routing,
            seed: 1,
        }
    }

    #[test]
    fn a_fat_tree_of_four_port_switches_matches_the_paper() {
        let tree = Tree::fat(4, 1).unwrap();
        assert_eq!(tree.nodes(), Some(16));
        let tree = routed(tree, Routing::DModK);
        assert_eq!(hops(&tree, 0, 1), []);
        assert_eq!(hops(&tree, 0, 2).len(), 2);
        // To node 13: 13 mod 2 = 1 at the edge, (13 / 2) mod 2 = 0 above.
        let cable = |class, switch, port| {
            Hop::forward(Cable {
                class,
                plane: 0,
                switch,
                port,
            })
        };
        let way = [
            cable(1, 0, 1),
            cable(2, 1, 0),
            cable(2, 7, 0).back(),
            cable(1, 6, 1).back(),
        ];
        assert_eq!(hops(&tree, 0, 13), way);
    }

    #[test]
    fn all_core_switches_serve_the_same_number_of_destinations() {
        for ports in [2, 4, 8] {
            let tree = Tree::fat(ports, 1).unwrap();
            let mut served: BTreeMap<Cable, BTreeSet<u32>> = BTreeMap::new();
            let nodes = tree.nodes().unwrap() as u32;
            let tree = routed(tree, Routing::DModK);
            // All routes out of the first pod: a cable to the core carries the messages to an equal share of the
            // destinations.
            for dst in ports * ports / 4..nodes {
                for src in 0..ports * ports / 4 {
                    let up = hops(&tree, src, dst)[1].cable;
                    served.entry(up).or_default().insert(dst);
                }
            }
            let counts: BTreeSet<usize> = served.values().map(BTreeSet::len).collect();
            assert_eq!(counts.len(), 1, "{counts:?}");
            assert_eq!(
                served.len() as u32,
                ports * ports / 4,
                "as many cables to the core as nodes in the pod"
            );
        }
    }

    #[test]
    fn flows_of_a_shift_share_no_cable_of_a_k_ary_n_tree() {
        for (arity, levels) in [(2, 3), (3, 3), (4, 2), (4, 3)] {
            let tree = Tree::k_ary(arity, levels, 1).unwrap();
            let nodes = tree.nodes().unwrap() as u32;
            for routing in [Routing::DModK, Routing::SModK] {
                let tree = routed(tree.clone(), routing);
                for shift in 1..nodes {
                    let mut used = BTreeSet::new();
                    for src in 0..nodes {
                        for hop in hops(&tree, src, (src + shift) % nodes) {
                            assert!(
                                used.insert((hop.cable, hop.is_backward)),
                                "{arity} {levels} {routing} {shift} {hop:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn routes_are_walks_up_and_down() {
        let parallel = vec![
            Level {
                cables: 2,
                ..Level::new(4, 3)
            },
            Level::new(3, 2),
            Level::new(2, 0),
        ];
        for levels in [parallel, vec![Level::new(6, 4), Level::new(3, 2)]] {
            for routing in [
                Routing::DModK,
                Routing::SModK,
                Routing::Ecmp,
                Routing::Random,
            ] {
                check_ways(&routed(Tree::new(levels.clone()).unwrap(), routing), 24);
            }
        }
    }

    #[test]
    fn all_messages_to_a_node_come_down_the_same_last_cable() {
        let tree = Tree::new(vec![Level::new(6, 4), Level::new(3, 2)]).unwrap();
        assert_eq!(tree.nodes(), None);
        let tree = routed(tree, Routing::DModK);
        for dst in 0..40u32 {
            let last: BTreeSet<Cable> = (0..40u32)
                .filter(|src| src / 6 != dst / 6)
                .map(|src| hops(&tree, src, dst).last().unwrap().cable)
                .collect();
            assert_eq!(last.len(), 1);
        }
    }

    #[test]
    fn levels_that_make_no_tree_are_refused() {
        let level = Level::new;
        for levels in [
            vec![],
            vec![level(0, 1)],
            vec![level(4, 0), level(4, 0)],
            vec![level(2, 1); 9],
            vec![level(1 << 16, 1), level(1 << 16, 0)],
            vec![level(2, 1 << 10); 3],
            vec![level(2, 5000)],
        ] {
            assert!(Tree::new(levels.clone()).is_err(), "{levels:?}");
        }
        assert!(Tree::fat(5, 1).is_err());
        assert!(Tree::fat(0, 1).is_err());
        assert!(Tree::fat(8, 3).is_err());
        assert!(Tree::fat(8, 0).is_err());
    }
}
