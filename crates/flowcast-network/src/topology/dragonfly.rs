//! Dragonflies: groups of switches, each connected with every other group by global cables.
//!
//! Within a group, all switches are connected with each other (Kim, Dally, Scott and Abts, 2008), or leaves are connected
//! with spines that have the global cables (Dragonfly+: Shpiner et al., 2017). A group distributes its global cables to the
//! other groups in the order of their numbers, the same number to each. Either the first switch has the first cables (the
//! absolute arrangement of Hastings et al., 2015), or the switches take one cable each in turn.
//!
//! The shortest route ([`Routing::Minimal`]) crosses one global cable; if there are several, a hash of source and
//! destination selects it. Valiant's route crosses a third group, selected by a hash of the message (Valiant and Brebner,
//! 1981); within a group, it crosses another switch. UGAL (Singh, 2005) chooses between these two routes when a message
//! starts.

use std::collections::BTreeSet;

use super::wiring::{Cable, Hop, Routing, Switch, Trip, Wiring, mixed};
use flowcast_units::{Node, named};
use serde::{Deserialize, Serialize};

/// Connections between the switches of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// All switches are connected with each other: a Dragonfly.
    All {
        /// Number of switches of a group, from 1 to 1024.
        switches: u32,
    },
    /// Leaves, which have the nodes, are connected with spines, which have the global cables: a Dragonfly+.
    LeavesAndSpines {
        /// Number of leaves of a group, from 1 to 1024.
        leaves: u32,
        /// Number of spines of a group, from 1 to 1024.
        spines: u32,
    },
}

named! {
    /// Distribution of the global cables of a group over its switches.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Arrangement {
        /// The first cables are at the first switch, up to its capacity, and so on.
        #[default]
        Absolute = "absolute",
        /// The switches take one cable each in turn: cables between two groups are at as many switches as possible.
        Spread = "spread",
    }
}

/// Parameters of a Dragonfly or Dragonfly+.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dragonfly {
    /// Number of groups, from 1 to 4096.
    pub groups: u32,
    /// Switches of each group.
    pub inside: Inside,
    /// Number of nodes on each switch; in a Dragonfly+, on each leaf.
    pub nodes: u32,
    /// Number of global cables of each switch; in a Dragonfly+, of each spine.
    pub global: u32,
    /// Number of cables between two groups. `None`: the largest number that is possible for all pairs.
    pub per_pair: Option<u32>,
    /// Distribution of the global cables over switches.
    pub arrangement: Arrangement,
}

impl Dragonfly {
    /// Number of switches per group that have nodes.
    pub(crate) fn leaves(&self) -> u32 {
        match self.inside {
            Inside::All { switches } => switches,
            Inside::LeavesAndSpines { leaves, .. } => leaves,
        }
    }

    /// Number of switches per group that have global cables.
    pub(crate) fn gateways(&self) -> u32 {
        match self.inside {
            Inside::All { switches } => switches,
            Inside::LeavesAndSpines { spines, .. } => spines,
        }
    }

    /// Number of global cables of a group.
    fn ports(&self) -> u32 {
        self.gateways() * self.global
    }

    /// Number of cables between two groups.
    pub(crate) fn cables_per_pair(&self) -> u32 {
        let most = match self.groups {
            1 => 0,
            groups => self.ports() / (groups - 1),
        };
        self.per_pair.map_or(most, |given| given.min(most))
    }

    fn group_of(&self, node: Node) -> u32 {
        node.0 / (self.nodes * self.leaves())
    }

    /// Index of the switch in `group` that has the `cable`-th cable to the group `other`.
    fn gateway(&self, group: u32, other: u32, cable: u32) -> u32 {
        let per_pair = self.cables_per_pair();
        // If there is also room for cables from each group to itself, switch n has the cables to group n.
        let has_room = self.ports() >= self.groups * per_pair;
        let place = if other < group || has_room {
            other
        } else {
            other - 1
        };
        let number = place * per_pair + cable;
        match self.arrangement {
            Arrangement::Absolute => number / self.global,
            Arrangement::Spread => number % self.gateways(),
        }
    }
}

/// A Dragonfly with its routing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RoutedDragonfly {
    pub shape: Dragonfly,
    pub routing: Routing,
    pub seed: u64,
}

/// Classes of the cables within a group and of those between groups.
pub(crate) const LOCAL: u8 = 1;
pub(crate) const GLOBAL: u8 = 2;

/// Purposes of random draws.
const WHICH_CABLE: u64 = 1;
const WHICH_GROUP: u64 = 2;
const WHICH_SWITCH: u64 = 3;

/// A route under construction, with its current group and switch.
struct SwitchWalk<'a> {
    dragonfly: &'a RoutedDragonfly,
    plane: u32,
    group: u32,
    at: Place,
    draw: u64,
    way: &'a mut Vec<Hop>,
}

/// A switch of a group.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// A switch with nodes.
    Leaf(u32),
    /// A switch with global cables; in a Dragonfly it has nodes as well.
    Gateway(u32),
}

impl SwitchWalk<'_> {
    fn cable(&self, class: u8, switch: u32, port: u32) -> Cable {
        Cable {
            class,
            plane: self.plane,
            switch,
            port,
        }
    }

    /// Adds the cable between a leaf and a spine.
    fn climb(&mut self, leaf: u32, spine: u32, is_up: bool) {
        let leaves = self.dragonfly.shape.leaves();
        let cable = self.cable(LOCAL, self.group * leaves + leaf, spine);
        self.way.push(Hop::along(cable, is_up));
    }

    /// Continues to another switch of the group.
    fn go_to(&mut self, target: Place) {
        match (self.dragonfly.shape.inside, self.at, target) {
            (Inside::All { switches }, Place::Leaf(from) | Place::Gateway(from), to) => {
                let (Place::Leaf(to) | Place::Gateway(to)) = to;
                if from != to {
                    let first = self.group * switches + from.min(to);
                    let cable = self.cable(LOCAL, first, from.max(to));
                    self.way.push(Hop::along(cable, from < to));
                }
            }
            (_, Place::Leaf(from), Place::Gateway(to)) => self.climb(from, to, true),
            (_, Place::Gateway(from), Place::Leaf(to)) => self.climb(to, from, false),
            (Inside::LeavesAndSpines { spines, .. }, Place::Leaf(from), Place::Leaf(to)) => {
                if from != to {
                    let spine = (self.draw % u64::from(spines)) as u32;
                    self.climb(from, spine, true);
                    self.climb(to, spine, false);
                }
            }
            (Inside::LeavesAndSpines { leaves, .. }, Place::Gateway(from), Place::Gateway(to)) => {
                if from != to {
                    let leaf = (self.draw % u64::from(leaves)) as u32;
                    self.climb(leaf, from, false);
                    self.climb(leaf, to, true);
                }
            }
        }
        self.at = target;
    }

    /// Continues to another group over one global cable.
    fn cross(&mut self, group: u32) {
        let shape = self.dragonfly.shape;
        self.draw = mixed(self.draw);
        let number = (self.draw % u64::from(shape.cables_per_pair())) as u32;
        self.go_to(Place::Gateway(shape.gateway(self.group, group, number)));
        let pair = self.group.min(group) * shape.groups + self.group.max(group);
        let cable = self.cable(GLOBAL, pair, number);
        self.way.push(Hop::along(cable, self.group < group));
        self.at = Place::Gateway(shape.gateway(group, self.group, number));
        self.group = group;
    }
}

impl RoutedDragonfly {
    fn leaf(&self, node: Node) -> u32 {
        node.0 / self.shape.nodes % self.shape.leaves()
    }

    fn walk<'a>(&'a self, trip: &Trip, draw: u64, way: &'a mut Vec<Hop>) -> SwitchWalk<'a> {
        SwitchWalk {
            dragonfly: self,
            plane: trip.plane,
            group: self.shape.group_of(trip.src),
            at: Place::Leaf(self.leaf(trip.src)),
            draw,
            way,
        }
    }

    fn shortest(&self, trip: &Trip, way: &mut Vec<Hop>) {
        let mut walk = self.walk(trip, trip.pair_draw(self.seed, WHICH_CABLE), way);
        let group = self.shape.group_of(trip.dst);
        if walk.group != group {
            walk.cross(group);
        }
        walk.go_to(Place::Leaf(self.leaf(trip.dst)));
    }

    /// Adds a route over another group, or over another switch within a group. Returns `false` if there is none.
    fn over_another(&self, trip: &Trip, way: &mut Vec<Hop>) -> bool {
        let (from, to) = (self.shape.group_of(trip.src), self.shape.group_of(trip.dst));
        if from == to {
            return self.over_another_switch(trip, way);
        }
        let Some(others) = self
            .shape
            .groups
            .checked_sub(2)
            .filter(|others| *others > 0)
        else {
            return false;
        };
        let draw = trip.own_draw(self.seed, WHICH_GROUP);
        let middle = another((draw % u64::from(others)) as u32, from, to);
        let mut walk = self.walk(trip, mixed(draw), way);
        walk.cross(middle);
        walk.cross(to);
        walk.go_to(Place::Leaf(self.leaf(trip.dst)));
        true
    }

    /// Collects the cables within `group` on routes between nodes of the groups `used`: all cables if the group is one of
    /// these, otherwise those that connect its gateways to these groups.
    fn local_cables(&self, group: u32, used: &[u32], cables: &mut Vec<Cable>) {
        let (shape, numbers) = (self.shape, 0..self.shape.cables_per_pair());
        let gateways: BTreeSet<u32> = match used.binary_search(&group) {
            Ok(_) => (0..shape.gateways()).collect(),
            Err(_) => used
                .iter()
                .copied()
                .flat_map(|other| {
                    let numbers = numbers.clone();
                    numbers.map(move |number| shape.gateway(group, other, number))
                })
                .collect(),
        };
        let first = group * shape.leaves();
        match shape.inside {
            Inside::All { .. } => {
                let pairs = gateways
                    .iter()
                    .flat_map(|from| gateways.range(from + 1..).map(move |port| (from, port)));
                cables.extend(pairs.map(|(from, port)| cable(LOCAL, first + from, *port)));
            }
            Inside::LeavesAndSpines { leaves, .. } => {
                cables.extend((0..leaves).flat_map(|leaf| {
                    let spines = gateways.iter();
                    spines.map(move |spine| cable(LOCAL, first + leaf, *spine))
                }));
            }
        }
    }

    fn over_another_switch(&self, trip: &Trip, way: &mut Vec<Hop>) -> bool {
        let (from, to) = (self.leaf(trip.src), self.leaf(trip.dst));
        let draw = trip.own_draw(self.seed, WHICH_SWITCH);
        let middle = match self.shape.inside {
            _ if from == to => return false,
            Inside::All { switches } if switches > 2 => {
                Place::Leaf(another((draw % u64::from(switches - 2)) as u32, from, to))
            }
            Inside::All { .. } => return false,
            Inside::LeavesAndSpines { spines, .. } => {
                Place::Gateway((draw % u64::from(spines)) as u32)
            }
        };
        let mut walk = self.walk(trip, draw, way);
        walk.go_to(middle);
        walk.go_to(Place::Leaf(to));
        true
    }
}

/// Creates a cable of the first plane.
fn cable(class: u8, switch: u32, port: u32) -> Cable {
    Cable {
        class,
        plane: 0,
        switch,
        port,
    }
}

/// The `place`-th number that differs from both given numbers.
fn another(place: u32, one: u32, other: u32) -> u32 {
    let (low, high) = (one.min(other), one.max(other));
    let place = place + u32::from(place >= low);
    place + u32::from(place >= high)
}

impl Wiring for RoutedDragonfly {
    fn nodes(&self) -> Option<u64> {
        let leaves = u64::from(self.shape.groups) * u64::from(self.shape.leaves());
        Some(leaves * u64::from(self.shape.nodes))
    }

    fn longest(&self) -> u32 {
        match (self.shape.inside, self.routing) {
            (_, Routing::Minimal) => 3,
            (Inside::All { .. }, _) => 5,
            (Inside::LeavesAndSpines { .. }, _) => 6,
        }
    }

    fn way(&self, trip: &Trip, way: &mut Vec<Hop>) {
        if self.routing != Routing::Valiant || !self.over_another(trip, way) {
            self.shortest(trip, way);
        }
    }

    fn detour(&self, trip: &Trip, way: &mut Vec<Hop>) -> bool {
        self.over_another(trip, way)
    }

    fn cables_to_switches(&self, from: Node, cables: &mut [u16]) {
        let (here, leaf) = (self.shape.group_of(from), self.leaf(from));
        let leaves = self.shape.leaves() as usize;
        for (group, cables) in (0..).zip(cables.chunks_mut(leaves)) {
            match self.shape.inside {
                _ if group == here => {
                    let joined = match self.shape.inside {
                        Inside::All { .. } => 1,
                        Inside::LeavesAndSpines { .. } => 2,
                    };
                    cables.fill(joined);
                    cables[leaf as usize] = 0;
                }
                Inside::LeavesAndSpines { .. } => cables.fill(3),
                Inside::All { .. } => {
                    cables.fill(3);
                    for number in 0..self.shape.cables_per_pair() {
                        let first = u16::from(self.shape.gateway(here, group, number) != leaf);
                        for cables in cables.iter_mut() {
                            *cables = (*cables).min(first + 2);
                        }
                        let there = self.shape.gateway(group, here, number) as usize;
                        cables[there] = cables[there].min(first + 1);
                    }
                }
            }
        }
    }

    fn cables(&self, nodes: &[Node]) -> Vec<Cable> {
        let mut used: Vec<u32> = nodes
            .iter()
            .map(|node| self.shape.group_of(*node))
            .collect();
        used.dedup();
        let crossed = match self.routing {
            Routing::Valiant | Routing::Ugal if used.len() > 1 => (0..self.shape.groups).collect(),
            _ => used.clone(),
        };
        let mut cables = Vec::new();
        for group in &crossed {
            self.local_cables(*group, &used, &mut cables);
        }
        for one in &crossed {
            let others = if used.binary_search(one).is_ok() {
                &crossed
            } else {
                &used
            };
            let pairs = others.iter().filter(|other| *other > one);
            let pairs = pairs.map(|other| one * self.shape.groups + other);
            let numbers = 0..self.shape.cables_per_pair();
            cables.extend(
                pairs.flat_map(|pair| numbers.clone().map(move |port| cable(GLOBAL, pair, port))),
            );
        }
        cables
    }

    fn switch_of(&self, node: Node) -> Switch {
        Switch {
            level: 1,
            number: node.0 / self.shape.nodes,
        }
    }

    fn ends(&self, cable: Cable) -> [Switch; 2] {
        let shape = self.shape;
        let level = match shape.inside {
            Inside::All { .. } => 1,
            Inside::LeavesAndSpines { .. } => 2,
        };
        if cable.class == LOCAL {
            let group = cable.switch / shape.leaves();
            let lower = Switch {
                level: 1,
                number: cable.switch,
            };
            let number = group * shape.gateways() + cable.port;
            return [lower, Switch { level, number }];
        }
        let (one, other) = (cable.switch / shape.groups, cable.switch % shape.groups);
        [(one, other), (other, one)].map(|(group, other): (u32, u32)| Switch {
            level,
            number: group * shape.gateways() + shape.gateway(group, other, cable.port),
        })
    }

    fn meeting(&self, one: Node, other: Node) -> usize {
        match () {
            () if one.0 / self.shape.nodes == other.0 / self.shape.nodes => 0,
            () if self.shape.group_of(one) == self.shape.group_of(other) => 1,
            () => 2,
        }
    }

    fn meetings(&self) -> Vec<String> {
        ["same switch", "same group", "elsewhere"]
            .map(str::to_owned)
            .to_vec()
    }

    fn leaving(&self, meeting: usize) -> Vec<(u8, u64)> {
        let shape = self.shape;
        let global = u64::from(shape.cables_per_pair()) * u64::from(shape.groups - 1);
        match (meeting, shape.inside) {
            (0, Inside::All { switches }) => vec![
                (LOCAL, u64::from(switches - 1)),
                (GLOBAL, global / u64::from(switches)),
            ],
            (0, Inside::LeavesAndSpines { spines, .. }) => vec![(LOCAL, u64::from(spines))],
            (1, _) => vec![(GLOBAL, global)],
            _ => Vec::new(),
        }
    }

    fn name(&self, hop: Hop) -> String {
        let shape = self.shape;
        let [from, to] = self.ends_of_hop(hop);
        if hop.cable.class == GLOBAL {
            let [from, to] = [from, to].map(|switch| switch.number / shape.gateways());
            let number = match shape.cables_per_pair() {
                1 => String::new(),
                _ => format!(", cable {}", hop.cable.port),
            };
            return format!("global cable from group {from} to group {to}{number}");
        }
        let group = hop.cable.switch / shape.leaves();
        let (from, to) = (self.name_inside(from), self.name_inside(to));
        format!("local cable from {from} to {to} of group {group}")
    }

    fn switch_name(&self, switch: Switch) -> String {
        let in_group = match switch.level {
            1 => self.shape.leaves(),
            _ => self.shape.gateways(),
        };
        let group = switch.number / in_group;
        format!("{} of group {group}", self.name_inside(switch))
    }
}

impl RoutedDragonfly {
    fn name_inside(&self, switch: Switch) -> String {
        let shape = self.shape;
        match (shape.inside, switch.level) {
            (Inside::All { switches }, _) => format!("switch {}", switch.number % switches),
            (_, 1) => format!("leaf {}", switch.number % shape.leaves()),
            _ => format!("spine {}", switch.number % shape.gateways()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{check_ways, hops};
    use std::collections::BTreeMap;

    fn shapes() -> Vec<Dragonfly> {
        let shape = |groups, inside, nodes, global, per_pair| Dragonfly {
            groups,
            inside,
            nodes,
            global,
            per_pair,
            arrangement: Arrangement::Absolute,
        };
        let all = |switches| Inside::All { switches };
        let leaves = |leaves, spines| Inside::LeavesAndSpines { leaves, spines };
        let mut shapes = vec![
            shape(9, all(4), 2, 2, None),
            shape(3, all(4), 1, 1, Some(1)),
            shape(3, all(4), 2, 1, None),
            shape(2, all(2), 2, 1, None),
            shape(1, all(3), 2, 1, None),
            shape(5, leaves(4, 4), 4, 1, None),
            shape(3, leaves(2, 4), 3, 2, None),
            shape(1, leaves(2, 2), 2, 1, None),
            shape(4, leaves(3, 3), 2, 3, None),
        ];
        let spread = shapes.clone().into_iter().map(|shape| Dragonfly {
            arrangement: Arrangement::Spread,
            ..shape
        });
        shapes.extend(spread);
        shapes
    }

    #[test]
    fn spread_cables_between_two_groups_use_as_many_switches_as_possible() {
        for shape in shapes() {
            let most = match shape.arrangement {
                Arrangement::Absolute => continue,
                Arrangement::Spread => shape.gateways().min(shape.cables_per_pair()),
            };
            for (group, other) in [(0, 1), (1, 0)] {
                let numbers = 0..shape.cables_per_pair();
                let mut gateways: Vec<u32> = numbers
                    .map(|cable| shape.gateway(group, other, cable))
                    .collect();
                gateways.sort_unstable();
                gateways.dedup();
                assert_eq!(gateways.len() as u32, most, "{shape:?}");
            }
        }
    }

    fn routed(shape: Dragonfly, routing: Routing) -> RoutedDragonfly {
        RoutedDragonfly {
            shape,
            routing,
            seed: 7,
        }
    }

    #[test]
    fn routes_are_walks_over_at_most_one_or_two_global_cables() {
        for shape in shapes() {
            for (routing, most) in [(Routing::Minimal, 1), (Routing::Valiant, 2)] {
                let routed = routed(shape, routing);
                let nodes = routed.nodes().unwrap() as u32;
                check_ways(&routed, nodes);
                for (src, dst) in (0..nodes).flat_map(|src| (0..nodes).map(move |dst| (src, dst))) {
                    let way = hops(&routed, src, dst);
                    let global = way.iter().filter(|hop| hop.cable.class == GLOBAL).count();
                    assert!(global <= most, "{shape:?} {src} {dst}");
                    assert_eq!(
                        global > 0,
                        shape.group_of(Node(src)) != shape.group_of(Node(dst))
                    );
                }
            }
        }
    }

    #[test]
    fn each_switch_has_as_many_global_cables_as_it_has_ports() {
        for shape in shapes() {
            let routed = routed(shape, Routing::Minimal);
            let mut cables: BTreeMap<Switch, u32> = BTreeMap::new();
            let nodes: Vec<Node> = (0..routed.nodes().unwrap() as u32).map(Node).collect();
            for cable in routed.cables(&nodes) {
                if cable.class == GLOBAL {
                    routed
                        .ends(cable)
                        .into_iter()
                        .for_each(|end| *cables.entry(end).or_default() += 1);
                }
            }
            assert!(
                cables.values().all(|count| *count <= shape.global),
                "{shape:?} {cables:?}"
            );
        }
    }

    #[test]
    fn switch_n_has_the_cable_to_group_n_if_there_are_enough_cables() {
        let routed = routed(shapes()[1], Routing::Minimal);
        // As in SimGrid's Dragonfly zone: from group 0 through its switch 2 to switch 0 of group 2.
        let names: Vec<String> = hops(&routed, 1, 11)
            .into_iter()
            .map(|hop| routed.name(hop))
            .collect();
        assert_eq!(
            names,
            [
                "local cable from switch 1 to switch 2 of group 0",
                "global cable from group 0 to group 2",
                "local cable from switch 0 to switch 3 of group 2",
            ]
        );
    }

    #[test]
    fn the_others_are_all_indices_except_two() {
        let others: Vec<u32> = (0..3).map(|place| another(place, 3, 1)).collect();
        assert_eq!(others, [0, 2, 4]);
    }
}
