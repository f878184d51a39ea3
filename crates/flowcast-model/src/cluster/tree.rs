//! Trees of switches with one or more ways up: racks, two-level trees, fat trees; and the way that a message takes.
//!
//! Nodes hang on the switches of level 1, `down` on each; groups of level `i` join `down` groups of the level below.
//! Each switch has `up` cables, one to each of its parents, so that a group of level `i + 1` has as many switches as a
//! group of level `i` times its `up` (an extended generalised fat tree, Öhring et al., 1995). Where the last level
//! has cables upward, a core that is no limit joins all.
//!
//! A message goes up as far as it must and down again. Which cable it takes upward depends on its destination alone
//! (D-mod-k, Zahavi et al., 2010): at level `i` the cable `floor(dst / switches of a group) mod up`. So all messages to
//! one node come down the same way, and neighbouring destinations go up different cables.

use thiserror::Error;

use flowcast_units::Node;

/// More levels than any network has.
pub(crate) const MOST_LEVELS: usize = 4;

/// The switches of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// Nodes, or groups of the level below, that each group joins.
    pub down: u32,
    /// Cables of each switch to the level above; 0 at the top.
    pub up: u32,
}

/// A cable between a switch and one of its parents, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cable {
    /// Level of the switch, from 1.
    pub level: u8,
    /// The switch, counted from 0 within its level.
    pub switch: u32,
    /// Which of its cables, from 0.
    pub port: u32,
}

/// Levels that make no tree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("level {level}: found {found}, expected {expected}")]
pub struct TreeError {
    /// Counted from 0, as the field of a file is.
    pub level: usize,
    /// The value of the level that cannot be.
    pub found: String,
    /// What would be right.
    pub expected: String,
}

/// A tree of switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    levels: Vec<Level>,
}

impl Tree {
    /// From its levels, the lowest first.
    ///
    /// # Errors
    /// No level or too many, a level that joins nothing, cables that lead nowhere or are missing.
    pub fn new(levels: Vec<Level>) -> Result<Tree, TreeError> {
        let error = |level, found: String, expected: &str| {
            Err(TreeError {
                level,
                found,
                expected: expected.to_owned(),
            })
        };
        if levels.is_empty() || levels.len() > MOST_LEVELS {
            return error(0, format!("{} levels", levels.len()), "1 to 4 levels");
        }
        for (place, level) in levels.iter().enumerate() {
            if !(1..=1 << 16).contains(&level.down) {
                return error(
                    place,
                    format!("down = {}", level.down),
                    "1 to 65536 nodes or switches below",
                );
            }
            if level.up > 1 << 10 {
                return error(
                    place,
                    format!("up = {}", level.up),
                    "at most 1024 cables upward",
                );
            }
            if level.up == 0 && place + 1 < levels.len() {
                return error(
                    place,
                    "up = 0".into(),
                    "a cable to the level above (0 only in the last level)",
                );
            }
        }
        if levels.len() == MOST_LEVELS && levels[MOST_LEVELS - 1].up > 0 {
            return error(
                MOST_LEVELS - 1,
                "a fourth level with cables upward".into(),
                "up = 0 there",
            );
        }
        Ok(Tree { levels })
    }

    /// A fat tree of switches with so many ports (Al-Fares et al., 2008): three levels, `ports^3 / 4` nodes. With an
    /// over-subscription of `n` the lowest switches have one cable upward for `n` nodes.
    ///
    /// # Errors
    /// An odd number of ports, or an over-subscription that does not divide half of it.
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
        let edge = Level {
            down: half,
            up: half / oversubscription,
        };
        Tree::new(vec![
            edge,
            Level {
                down: half,
                up: half,
            },
            Level { down: ports, up: 0 },
        ])
    }

    /// How many levels have cables upward.
    pub fn depth(&self) -> usize {
        self.levels.iter().filter(|level| level.up > 0).count()
    }

    /// How many nodes there are; none if a core joins any number.
    pub fn nodes(&self) -> Option<u64> {
        let top = self.levels.last().expect("a tree has a level");
        (top.up == 0).then(|| {
            self.levels
                .iter()
                .map(|level| u64::from(level.down))
                .product()
        })
    }

    /// The cables that a message goes up, and those that it comes down, in the order of travel.
    pub fn way(&self, src: Node, dst: Node) -> (Vec<Cable>, Vec<Cable>) {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let (mut below, mut switches, mut here) = (1u64, 1u64, 0u64);
        for (place, level) in self.levels.iter().enumerate() {
            below = below.saturating_mul(u64::from(level.down));
            let (from, to) = (u64::from(src.0) / below, u64::from(dst.0) / below);
            if from == to || level.up == 0 {
                break;
            }
            let port = (u64::from(dst.0) / switches) % u64::from(level.up);
            let cable = |group: u64| Cable {
                level: place as u8 + 1,
                switch: (group * switches + here) as u32,
                port: port as u32,
            };
            up.push(cable(from));
            down.push(cable(to));
            here = here * u64::from(level.up) + port;
            switches = switches.saturating_mul(u64::from(level.up));
        }
        down.reverse();
        (up, down)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_fat_tree_of_four_port_switches_is_that_of_the_paper() {
        let tree = Tree::fat(4, 1).unwrap();
        assert_eq!(tree.nodes(), Some(16));
        assert_eq!(tree.way(Node(0), Node(1)), (vec![], vec![]));
        let (up, down) = tree.way(Node(0), Node(2));
        assert_eq!((up.len(), down.len()), (1, 1));
        // To node 13: 13 mod 2 = 1 at the edge, (13 / 2) mod 2 = 0 above.
        let (up, down) = tree.way(Node(0), Node(13));
        let cable = |level, switch, port| Cable {
            level,
            switch,
            port,
        };
        assert_eq!(up, [cable(1, 0, 1), cable(2, 1, 0)]);
        assert_eq!(down, [cable(2, 7, 0), cable(1, 6, 1)]);
    }

    #[test]
    fn each_core_switch_serves_as_many_destinations_as_any_other() {
        for ports in [2, 4, 8] {
            let tree = Tree::fat(ports, 1).unwrap();
            let mut served: BTreeMap<Cable, BTreeSet<u32>> = BTreeMap::new();
            let nodes = tree.nodes().unwrap() as u32;
            // All that leave the first pod: a cable to the core carries what goes to a share of the destinations.
            for dst in ports * ports / 4..nodes {
                for src in 0..ports * ports / 4 {
                    let (up, _) = tree.way(Node(src), Node(dst));
                    served.entry(*up.last().unwrap()).or_default().insert(dst);
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
    fn all_messages_to_a_node_come_down_the_same_last_cable() {
        let tree = Tree::new(vec![Level { down: 6, up: 4 }, Level { down: 3, up: 2 }]).unwrap();
        assert_eq!(tree.nodes(), None);
        for dst in 0..40u32 {
            let last: BTreeSet<Cable> = (0..40u32)
                .filter(|src| src / 6 != dst / 6)
                .map(|src| *tree.way(Node(src), Node(dst)).1.last().unwrap())
                .collect();
            assert_eq!(last.len(), 1);
        }
    }

    #[test]
    fn levels_that_make_no_tree_are_refused() {
        let level = |down, up| Level { down, up };
        for levels in [
            vec![],
            vec![level(0, 1)],
            vec![level(4, 0), level(4, 0)],
            vec![level(2, 1); 5],
            vec![level(2, 1); 4],
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
