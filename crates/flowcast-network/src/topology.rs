//! The switches between the nodes: the section `[topology]` of a network file.
//!
//! A topology maps source, destination and number of a message to the cables that it crosses. Each cable has a class, a
//! capacity and a name. [`sharing::fabric`](crate::sharing::fabric) converts cables into links. The sharing models and the
//! packet model do not depend on the shape.
//!
//! ```toml
//! [topology]
//! fat_tree = 16            # three levels of 16-port switches, 1024 nodes
//! oversubscription = 2     # the lowest switches have one cable upward for two nodes
//! routing = "ecmp"
//! ```
//!
//! | shape | module | levels at which nodes meet |
//! |---|---|---|
//! | fat trees, k-ary n-trees, trees of given level sizes | [`tree`] | at the same switch, in a group of level 2, ... |
//! | torus, mesh | [`grid`] | at the same switch, 1 switch further, ... |
//! | Dragonfly, Dragonfly+ | [`dragonfly`] | at the same switch, in the same group, elsewhere |
//! | any graph | [`graph`] | at the same switch, 1 switch further, ... |
//!
//! Planes are equal copies of the shape. Each interface of a node is attached to one of them.

pub mod dragonfly;
pub mod graph;
pub mod grid;
pub mod tree;
pub mod wiring;

use std::sync::Arc;

use crate::{link_rate::LinkRate, sharing::error::SharingError};
use dragonfly::{Dragonfly, Inside, RoutedDragonfly};
use flowcast_units::{Node, Rate, Time};
use graph::{RoutedGraph, SwitchGraph};
use grid::SwitchGrid;
use tree::{Level, RoutedTree, Tree, TreeError};
pub use wiring::Routing;
use wiring::{Cable, Switch, Trip, Wiring};

/// Switches and cables between the nodes, and the routing of messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// The switches and the cables between them.
    pub shape: TopologyShape,
    /// Routing of messages that have several possible routes.
    pub routing: Routing,
    /// Seed of all hashes.
    pub seed: u64,
    /// Number of equal copies of the switches; interface `i` of a node is on copy `i mod planes`.
    pub planes: u32,
}

/// Properties of all cables of a class.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CableKind {
    /// Rate of each cable, in each direction. `None`: the rate of the interfaces.
    pub rate: Option<LinkRate>,
    /// Additional latency of a message for each such cable on its route, 0 or more.
    pub latency: Time,
}

/// Arrangement of switches and cables.
#[derive(Debug, Clone, PartialEq)]
pub enum TopologyShape {
    /// A fat tree with three levels.
    FatTree {
        /// Number of ports of each switch.
        ports: u32,
        /// Number of nodes per upward cable at the lowest switches.
        oversubscription: u32,
        /// Properties of all cables.
        cables: CableKind,
    },
    /// A k-ary n-tree.
    KAryTree {
        /// `k`: number of nodes or switches below each switch, and of switches above it.
        arity: u32,
        /// `n`: number of levels of switches.
        levels: u32,
        /// Number of nodes per upward cable at the lowest switches.
        oversubscription: u32,
        /// Properties of all cables.
        cables: CableKind,
    },
    /// A tree given level by level, the lowest first, each with its upward cables.
    Levels(Vec<(Level, CableKind)>),
    /// A torus or a mesh, with the properties of all cables.
    Grid(SwitchGrid, CableKind),
    /// A Dragonfly or Dragonfly+.
    Dragonfly {
        /// The groups of switches.
        groups: Dragonfly,
        /// Properties of the cables within groups.
        local: CableKind,
        /// Properties of the cables between groups.
        global: CableKind,
    },
    /// An arbitrary graph, with names and properties of its classes of cables.
    Graph(SwitchGraph, Vec<(String, CableKind)>),
}

/// A class of equal links.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkClass {
    /// Name of the class: `node` for the nodes' own links; `leaf`, `spine`, `core` and `level 4` for the upward cables of a
    /// tree's levels; `x`, `y`, `z` and `dimension 3` for a grid; `local` and `global` for a Dragonfly; for a graph, the
    /// name from the file.
    pub name: String,
    /// Properties of its cables.
    pub cables: CableKind,
}

impl Topology {
    /// Creates a topology with the default routing of its shape, one plane and the seed 0.
    pub fn new(shape: TopologyShape) -> Topology {
        Topology {
            routing: shape.routings()[0],
            shape,
            seed: 0,
            planes: 1,
        }
    }

    /// Classes of links; the first one contains the nodes' own links.
    pub fn classes(&self) -> Vec<LinkClass> {
        let mut classes = vec![LinkClass {
            name: "node".to_owned(),
            cables: CableKind::default(),
        }];
        classes.extend(self.shape.cable_classes());
        classes
    }

    /// Names of the levels at which two nodes can meet, the closest first, such as `same switch`, `same group` and
    /// `elsewhere`.
    ///
    /// # Errors
    /// The same errors as [`Topology::check`].
    pub fn meetings(&self) -> Result<Vec<String>, SharingError> {
        Ok(self.wiring()?.meetings())
    }

    /// Levels at which pairs of nodes meet, as indices into [`Topology::meetings`], in the order of the pairs.
    ///
    /// # Errors
    /// The same errors as [`Topology::check`], or the topology does not have a node.
    pub fn meetings_of(&self, pairs: &[[Node; 2]]) -> Result<Vec<usize>, SharingError> {
        let wiring = self.wiring()?;
        let mut meetings = Vec::with_capacity(pairs.len());
        for [one, other] in pairs.iter().copied() {
            check_node(&*wiring, one.max(other))?;
            meetings.push(wiring.meeting(one, other));
        }
        Ok(meetings)
    }

    /// Number of links of each class that the first message of each pair of nodes crosses. It always crosses two of the
    /// nodes' own links.
    ///
    /// # Errors
    /// The same errors as [`Topology::meetings_of`].
    pub fn crossed(&self, pairs: &[[Node; 2]]) -> Result<Vec<Vec<u32>>, SharingError> {
        let wiring = self.wiring()?;
        let classes = self.classes().len();
        let mut crossed = Vec::with_capacity(pairs.len());
        for [src, dst] in pairs.iter().copied() {
            check_node(&*wiring, src.max(dst))?;
            let trip = Trip {
                src,
                dst,
                plane: 0,
                message: 0,
            };
            let (mut way, mut counts) = (Vec::new(), vec![0; classes]);
            wiring.way(&trip, &mut way);
            counts[0] = 2;
            for hop in way {
                counts[usize::from(hop.cable.class)] += 1;
            }
            crossed.push(counts);
        }
        Ok(crossed)
    }

    /// Number of cables between the switches of these nodes.
    ///
    /// # Errors
    /// The same errors as [`Topology::meetings_of`].
    pub fn distances(&self, nodes: &[Node]) -> Result<Distances, SharingError> {
        let wiring = self.wiring()?;
        let mut switches = Vec::with_capacity(nodes.len());
        for node in nodes {
            check_node(&*wiring, *node)?;
            switches.push(wiring.switch_of(*node).number as usize);
        }
        let last_node = wiring.nodes().map(|nodes| Node(nodes as u32 - 1));
        let last_switch = last_node.map_or(0, |node| wiring.switch_of(node).number as usize);
        let count = switches.iter().copied().fold(last_switch, usize::max) + 1;
        Ok(Distances {
            wiring,
            nodes: nodes.to_vec(),
            to_switches: vec![0; count],
            switches,
        })
    }

    /// Total goodput, in one direction, of the cables that leave a unit, such as a switch or a group. Two nodes of the unit
    /// meet at level `meeting` or below. Cables without a rate have the rate of an interface. `None` if the cables are not a
    /// limit or the unit has no boundary.
    ///
    /// # Errors
    /// The same errors as [`Topology::check`].
    pub fn leaving(&self, meeting: usize, interface: Rate) -> Result<Option<Rate>, SharingError> {
        let classes = self.classes();
        let cables = self.wiring()?.leaving(meeting);
        let mut sum = 0.0;
        for (class, count) in cables {
            let rate = classes[usize::from(class)].cables.rate;
            let rate = rate.map_or(interface, LinkRate::goodput);
            sum += rate.as_bytes_per_second() * count as f64 * f64::from(self.planes);
        }
        Ok((sum > 0.0).then(|| Rate::from_bytes_per_second(sum)))
    }

    /// Number of nodes; `None` if there is no limit.
    ///
    /// # Errors
    /// The same errors as [`Topology::check`].
    pub fn nodes(&self) -> Result<Option<u64>, SharingError> {
        Ok(self.wiring()?.nodes())
    }

    /// All switches and cables that messages between the first `nodes` nodes may cross in one plane, for pictures.
    ///
    /// # Errors
    /// The same errors as [`Topology::check`].
    pub fn plan(&self, nodes: u64) -> Result<Plan, SharingError> {
        let wiring = self.wiring()?;
        let nodes = wiring.nodes().map_or(nodes, |most| nodes.min(most));
        let drawn = match self.is_tree() {
            true => nodes,
            false => wiring.nodes().unwrap_or(nodes),
        };
        let drawn: Vec<Node> = (0..drawn as u32).map(Node).collect();
        Ok(Plan {
            cables: wiring
                .cables(&drawn)
                .into_iter()
                .map(|cable: Cable| (cable, wiring.ends(cable)))
                .collect(),
            wiring,
            nodes,
        })
    }

    /// `true` if the shape is a tree.
    pub(crate) fn is_tree(&self) -> bool {
        self.shape.is_tree()
    }

    /// Checks that the shape can be built and that it supports the routing.
    ///
    /// # Errors
    /// [`SharingError::Topology`] names the field.
    pub fn check(&self) -> Result<(), SharingError> {
        self.wiring().map(drop)
    }

    /// Mutable properties of the cables: a single entry if all classes except the nodes' own are equal (fat trees, k-ary
    /// n-trees, grids); otherwise one for each of these classes in order.
    pub fn cables_mut(&mut self) -> Vec<&mut CableKind> {
        match &mut self.shape {
            TopologyShape::FatTree { cables, .. }
            | TopologyShape::KAryTree { cables, .. }
            | TopologyShape::Grid(_, cables) => vec![cables],
            TopologyShape::Levels(levels) => levels.iter_mut().map(|(_, kind)| kind).collect(),
            TopologyShape::Dragonfly { local, global, .. } => vec![local, global],
            TopologyShape::Graph(_, classes) => classes.iter_mut().map(|(_, kind)| kind).collect(),
        }
    }

    /// Routes through the switches.
    pub(crate) fn wiring(&self) -> Result<Arc<dyn Wiring>, SharingError> {
        let (routing, seed) = (self.routing, self.seed);
        if !self.shape.routings().contains(&routing) {
            let names: Vec<&str> = self
                .shape
                .routings()
                .iter()
                .map(|known| known.name())
                .collect();
            return Err(refused(
                "routing",
                format!("`{routing}`"),
                format!("one of {}, the routings of this shape", names.join(", ")),
            ));
        }
        if self.planes == 0 {
            return Err(refused("planes", "0", "at least 1"));
        }
        Ok(match &self.shape {
            TopologyShape::Grid(grid, _) => Arc::new(checked_grid(grid)?.clone()),
            TopologyShape::Dragonfly { groups, .. } => Arc::new(RoutedDragonfly {
                shape: *checked_groups(groups)?,
                routing,
                seed,
            }),
            TopologyShape::Graph(graph, classes) => {
                let names = classes.iter().map(|(name, _)| name.clone()).collect();
                checked_graph(graph)?;
                let routed = RoutedGraph::new(graph.clone(), names, routing, seed);
                Arc::new(routed.map_err(|[one, other]| {
                    refused(
                        "graph.cables",
                        format!("no route between nodes {one} and {other}"),
                        "cables that connect all nodes",
                    )
                })?)
            }
            TopologyShape::FatTree { .. }
            | TopologyShape::KAryTree { .. }
            | TopologyShape::Levels(_) => {
                let tree = self.shape.tree()?;
                Arc::new(RoutedTree {
                    tree,
                    routing,
                    seed,
                })
            }
        })
    }
}

/// Number of cables on the shortest routes between the switches of some nodes.
///
/// The shortest route in a Dragonfly crosses one global cable. If there are several between two groups, it uses the closest
/// one.
#[derive(Debug)]
pub struct Distances {
    wiring: Arc<dyn Wiring>,
    nodes: Vec<Node>,
    /// Index of the switch that each node is attached to.
    switches: Vec<usize>,
    to_switches: Vec<u16>,
}

impl Distances {
    /// Number of cables from the switch of the node at index `place` to the switch of each node, in the order of the nodes.
    pub fn from_node(&mut self, place: usize) -> impl Iterator<Item = u16> {
        let cables = &mut self.to_switches;
        self.wiring.cables_to_switches(self.nodes[place], cables);
        self.switches.iter().map(|switch| self.to_switches[*switch])
    }
}

/// The switches and cables of one plane.
#[derive(Debug)]
pub struct Plan {
    /// The cables with their ends.
    pub cables: Vec<(Cable, [Switch; 2])>,
    /// Number of nodes attached to the switches.
    pub nodes: u64,
    wiring: Arc<dyn Wiring>,
}

impl Plan {
    /// The switch that a node is attached to.
    pub fn switch_of(&self, node: Node) -> Switch {
        self.wiring.switch_of(node)
    }

    /// Name of a switch for users.
    pub fn switch_name(&self, switch: Switch) -> String {
        self.wiring.switch_name(switch)
    }
}

impl TopologyShape {
    /// Column, row and block of a switch in a picture, each counted from 0. A tree is one block with a row for each level. A
    /// grid has a block for each plane of x and y, a Dragonfly has one for each group, and a graph has one for each switch.
    pub fn seat(&self, switch: Switch) -> [u32; 3] {
        let Switch { level, number } = switch;
        let row = u32::from(level) - 1;
        match self {
            TopologyShape::Grid(grid, _) => {
                let [first, second] = [0, 1].map(|at| grid.sides.get(at).copied().unwrap_or(1));
                let above = number / first;
                [number % first, above % second, above / second]
            }
            TopologyShape::Dragonfly { groups, .. } => {
                let in_group = match level {
                    1 => groups.leaves(),
                    _ => groups.gateways(),
                };
                [number % in_group, row, number / in_group]
            }
            TopologyShape::Graph(..) => [0, 0, number],
            _ => [number, row, 0],
        }
    }

    /// Routings that the shape supports; the first is the default.
    pub fn routings(&self) -> &'static [Routing] {
        match self {
            _ if self.is_tree() => &[
                Routing::DModK,
                Routing::SModK,
                Routing::Ecmp,
                Routing::Random,
            ],
            TopologyShape::Grid(..) => &[Routing::DimensionOrder],
            TopologyShape::Dragonfly { .. } => &[Routing::Minimal, Routing::Valiant, Routing::Ugal],
            _ => &[Routing::DModK, Routing::Ecmp, Routing::Random],
        }
    }

    fn is_tree(&self) -> bool {
        matches!(
            self,
            TopologyShape::FatTree { .. }
                | TopologyShape::KAryTree { .. }
                | TopologyShape::Levels(_)
        )
    }

    fn cable_classes(&self) -> Vec<LinkClass> {
        let named: Vec<(String, CableKind)> = match self {
            TopologyShape::FatTree { cables, .. } => of_levels(vec![*cables; 2]),
            TopologyShape::KAryTree { levels, cables, .. } => {
                of_levels(vec![*cables; levels.saturating_sub(1) as usize])
            }
            TopologyShape::Levels(given) => {
                let upward = given.iter().filter(|(level, _)| level.up > 0);
                of_levels(upward.map(|(_, kind)| *kind).collect())
            }
            TopologyShape::Grid(grid, cables) => (0..grid.sides.len())
                .map(|at| (SwitchGrid::dimension(at), *cables))
                .collect(),
            TopologyShape::Dragonfly { local, global, .. } => {
                vec![("local".to_owned(), *local), ("global".to_owned(), *global)]
            }
            TopologyShape::Graph(_, classes) => classes.clone(),
        };
        let classes = named.into_iter();
        classes
            .map(|(name, cables)| LinkClass { name, cables })
            .collect()
    }

    /// The tree of this shape, in any of its forms.
    fn tree(&self) -> Result<Tree, SharingError> {
        match self {
            TopologyShape::FatTree {
                ports,
                oversubscription,
                ..
            } => {
                let field = if Tree::fat(*ports, 1).is_ok() {
                    "oversubscription"
                } else {
                    "fat_tree"
                };
                Tree::fat(*ports, *oversubscription).map_err(|error| of_tree(field, error))
            }
            TopologyShape::KAryTree {
                arity,
                levels,
                oversubscription,
                ..
            } => {
                let field = if Tree::k_ary(*arity, *levels, 1).is_ok() {
                    "oversubscription"
                } else {
                    "k_ary_n_tree"
                };
                Tree::k_ary(*arity, *levels, *oversubscription)
                    .map_err(|error| of_tree(field, error))
            }
            TopologyShape::Levels(levels) => {
                Tree::new(levels.iter().map(|(level, _)| *level).collect())
                    .map_err(|error| of_tree(&format!("levels.{}", error.level), error))
            }
            _ => unreachable!("only trees have levels"),
        }
    }
}

fn of_levels(kinds: Vec<CableKind>) -> Vec<(String, CableKind)> {
    let levels = kinds.into_iter().enumerate();
    levels.map(|(at, kind)| (level_name(at), kind)).collect()
}

/// Name of the upward cables of a tree's level, counted from 0.
fn level_name(at: usize) -> String {
    const NAMES: [&str; 3] = ["leaf", "spine", "core"];
    let name = NAMES.get(at).map(|name| (*name).to_owned());
    name.unwrap_or_else(|| format!("level {}", at + 1))
}

fn of_tree(field: &str, error: TreeError) -> SharingError {
    refused(field, error.found, error.expected)
}

/// Error for an invalid field of the section.
pub(crate) fn refused(field: &str, found: impl ToString, expected: impl ToString) -> SharingError {
    SharingError::Topology {
        field: format!("topology.{field}"),
        found: found.to_string(),
        expected: expected.to_string(),
    }
}

/// Rejects a node that the topology does not have.
pub(crate) fn check_node(wiring: &dyn Wiring, node: Node) -> Result<(), SharingError> {
    match wiring.nodes() {
        Some(nodes) if u64::from(node.0) >= nodes => Err(SharingError::NoSuchNode { node, nodes }),
        _ => Ok(()),
    }
}

/// Upper limit on the number of switches. No machine has as many.
const MOST_SWITCHES: u64 = 1 << 22;

fn checked_grid(grid: &SwitchGrid) -> Result<&SwitchGrid, SharingError> {
    let field = if grid.is_torus { "torus" } else { "mesh" };
    let sides = &grid.sides;
    if sides.is_empty() || sides.len() > 16 {
        return Err(refused(
            field,
            format!("{} sides", sides.len()),
            "1 to 16 sides, such as [8, 8, 8]",
        ));
    }
    if let Some(side) = sides.iter().find(|side| !(1..=1024).contains(*side)) {
        return Err(refused(
            field,
            format!("a side of {side} switches"),
            "1 to 1024",
        ));
    }
    let switches = sides.iter().map(|side| u64::from(*side));
    if switches.fold(1, u64::saturating_mul) > MOST_SWITCHES {
        return Err(refused(
            field,
            "more than 4194304 switches",
            "at most 4194304",
        ));
    }
    if !(1..=256).contains(&grid.nodes_per_switch) {
        let found = grid.nodes_per_switch;
        return Err(refused("nodes_per_switch", found, "1 to 256"));
    }
    Ok(grid)
}

fn checked_groups(shape: &Dragonfly) -> Result<&Dragonfly, SharingError> {
    let (section, switches) = match shape.inside {
        Inside::All { .. } => ("dragonfly", [("switches", shape.leaves()); 2]),
        Inside::LeavesAndSpines { leaves, spines } => {
            ("dragonfly_plus", [("leaves", leaves), ("spines", spines)])
        }
    };
    let [first, second] = switches.map(|(name, found)| (name, found, 1 << 10));
    let groups = ("groups", shape.groups, 1 << 12);
    let nodes = ("nodes", shape.nodes, 1 << 8);
    let global = ("global", shape.global, 1 << 8);
    for (name, found, most) in [groups, first, second, nodes, global] {
        if !(1..=most).contains(&found) {
            return Err(refused(
                &format!("{section}.{name}"),
                found,
                format!("1 to {most}"),
            ));
        }
    }
    let ports = u64::from(shape.gateways()) * u64::from(shape.global);
    let others = u64::from(shape.groups - 1);
    if ports < others {
        return Err(refused(
            &format!("{section}.global"),
            format!("{ports} global cables of a group"),
            format!("at least {others}, one to each of the other groups"),
        ));
    }
    if let Some(per_pair) = shape.per_pair {
        let most = ports.checked_div(others).unwrap_or(1);
        if per_pair == 0 || u64::from(per_pair) > most {
            return Err(refused(
                &format!("{section}.per_pair"),
                per_pair,
                format!("1 to {most}, limited by the global cables of a group"),
            ));
        }
    }
    let all = u64::from(shape.groups) * u64::from(shape.leaves().max(shape.gateways()));
    if all > MOST_SWITCHES {
        return Err(refused(
            &format!("{section}.groups"),
            format!("{all} switches"),
            format!("at most {MOST_SWITCHES}"),
        ));
    }
    Ok(shape)
}

fn checked_graph(graph: &SwitchGraph) -> Result<&SwitchGraph, SharingError> {
    if graph.nodes.is_empty() {
        return Err(refused(
            "graph.nodes",
            "no node",
            "the switch of each node, such as [0, 0, 1, 1]",
        ));
    }
    if graph.switches() > graph::MOST_SWITCHES {
        return Err(refused(
            "graph.nodes",
            format!("{} switches", graph.switches()),
            format!("at most {}", graph::MOST_SWITCHES),
        ));
    }
    if graph.edges.len() > 64 {
        return Err(refused(
            "graph.cables",
            format!("{} classes", graph.edges.len()),
            "at most 64",
        ));
    }
    for (place, edges) in graph.edges.iter().enumerate() {
        if !(1..=1024).contains(&edges.count) {
            let field = format!("graph.cables.{place}.count");
            return Err(refused(&field, edges.count, "1 to 1024"));
        }
        if let Some([switch, _]) = edges.between.iter().find(|[one, other]| one == other) {
            return Err(refused(
                &format!("graph.cables.{place}.between"),
                format!("a cable from switch {switch} to itself"),
                "two switches",
            ));
        }
    }
    Ok(graph)
}

#[cfg(test)]
pub(crate) mod tests;
