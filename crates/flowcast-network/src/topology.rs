//! The switches between the nodes: the section `[topology]` of a network file.
//!
//! A topology turns source, destination and number of a message into the cables that it crosses, each with its class, its
//! capacity and its name. [`sharing::fabric`](crate::sharing::fabric) makes links of them; neither the sharing models nor the
//! packets know of shapes.
//!
//! ```toml
//! [topology]
//! fat_tree = 16            # three levels of 16-port switches, 1024 nodes
//! oversubscription = 2     # the lowest switches have one cable upward for two nodes
//! routing = "ecmp"
//! ```
//!
//! | shape | module | nodes meet |
//! |---|---|---|
//! | fat trees, k-ary n-trees, any tree level by level | [`tree`] | at the same switch, in a group of level 2, ... |
//! | torus, mesh | [`grid`] | so many switches apart |
//! | Dragonfly, Dragonfly+ | [`dragonfly`] | at the same switch, in the same group, elsewhere |
//! | any graph | [`graph`] | so many switches apart |
//!
//! Several planes are so many equal copies of the shape, of which each interface of a node has one.

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

/// Switches and cables between the nodes, and how messages are routed through them.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    /// The switches and the cables between them.
    pub shape: TopologyShape,
    /// Which of several ways a message takes.
    pub routing: Routing,
    /// Of all hashes.
    pub seed: u64,
    /// How many equal copies of the switches there are; interface `i` of a node is on copy `i mod planes`.
    pub planes: u32,
}

/// What all cables of a class are like.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CableKind {
    /// Of each cable, in each direction; none: that of the interfaces.
    pub rate: Option<LinkRate>,
    /// Added to a message's latency for each such cable that it crosses, 0 or more.
    pub latency: Time,
}

/// Switches and cables.
#[derive(Debug, Clone, PartialEq)]
pub enum TopologyShape {
    /// A fat tree of three levels.
    FatTree {
        /// Ports of each switch.
        ports: u32,
        /// Nodes for each cable upward at the lowest switches.
        oversubscription: u32,
        /// All cables.
        cables: CableKind,
    },
    /// A k-ary n-tree.
    KAryTree {
        /// `k`: nodes or switches below each switch, and switches above it.
        arity: u32,
        /// `n`: levels of switches.
        levels: u32,
        /// Nodes for each cable upward at the lowest switches.
        oversubscription: u32,
        /// All cables.
        cables: CableKind,
    },
    /// Level by level, the lowest first, with the cables upward.
    Levels(Vec<(Level, CableKind)>),
    /// A torus or a mesh, and all of its cables.
    Grid(SwitchGrid, CableKind),
    /// A Dragonfly or Dragonfly+.
    Dragonfly {
        /// Its groups.
        groups: Dragonfly,
        /// The cables inside groups.
        local: CableKind,
        /// The cables between groups.
        global: CableKind,
    },
    /// Any graph, with names and cables of its classes.
    Graph(SwitchGraph, Vec<(String, CableKind)>),
}

/// A class of links that are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkClass {
    /// What it is called: `node` for the nodes' own links; `leaf`, `spine`, `core` and `level 4` for the cables upward of a
    /// tree's levels; `x`, `y`, `z` and `dimension 3` of a grid; `local` and `global` of a Dragonfly; as the file calls those
    /// of a graph.
    pub name: String,
    /// Its cables.
    pub cables: CableKind,
}

impl Topology {
    /// With the default routing of its shape, one plane and the seed 0.
    pub fn new(shape: TopologyShape) -> Topology {
        Topology {
            routing: shape.routings()[0],
            shape,
            seed: 0,
            planes: 1,
        }
    }

    /// The classes of links; the nodes' own links are the first class.
    pub fn classes(&self) -> Vec<LinkClass> {
        let mut classes = vec![LinkClass {
            name: "node".to_owned(),
            cables: CableKind::default(),
        }];
        classes.extend(self.shape.cable_classes());
        classes
    }

    /// What the levels are called at which two nodes meet, the nearest first, such as `same switch`, `same group` and
    /// `elsewhere`.
    ///
    /// # Errors
    /// As [`Topology::check`].
    pub fn meetings(&self) -> Result<Vec<String>, SharingError> {
        Ok(self.wiring()?.meetings())
    }

    /// By pair of nodes: at which level they meet, an index into [`Topology::meetings`].
    ///
    /// # Errors
    /// As [`Topology::check`], and a node that the topology has no place for.
    pub fn meetings_of(&self, pairs: &[[Node; 2]]) -> Result<Vec<usize>, SharingError> {
        let wiring = self.wiring()?;
        let mut meetings = Vec::with_capacity(pairs.len());
        for [one, other] in pairs.iter().copied() {
            check_node(&*wiring, one.max(other))?;
            meetings.push(wiring.meeting(one, other));
        }
        Ok(meetings)
    }

    /// By pair of nodes: how many links of each class its first message crosses; of the nodes' own always two.
    ///
    /// # Errors
    /// As [`Topology::meetings_of`].
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

    /// How many cables are between the switches of these nodes.
    ///
    /// # Errors
    /// As [`Topology::meetings_of`].
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

    /// The goodput of all cables together that leave what nodes share that meet at this level (a switch, a group), in one
    /// direction, where cables without a rate have that of an interface; none where that is no limit or has no bounds.
    ///
    /// # Errors
    /// As [`Topology::check`].
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

    /// How many nodes there are; none if any number.
    ///
    /// # Errors
    /// As [`Topology::check`].
    pub fn nodes(&self) -> Result<Option<u64>, SharingError> {
        Ok(self.wiring()?.nodes())
    }

    /// All switches and cables of a plane that ways between so many nodes may cross, for pictures.
    ///
    /// # Errors
    /// As [`Topology::check`].
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

    /// Whether it is a tree.
    pub(crate) fn is_tree(&self) -> bool {
        self.shape.is_tree()
    }

    /// Whether the shape can be built and the routing followed.
    ///
    /// # Errors
    /// [`SharingError::Topology`] names the field.
    pub fn check(&self) -> Result<(), SharingError> {
        self.wiring().map(drop)
    }

    /// The kinds of cables, to be changed: one where all classes but the nodes' own are alike (fat trees, k-ary n-trees, grids),
    /// else one for each of these classes in their order.
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

    /// The ways through the switches.
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
                format!("one of {}, which this shape knows", names.join(", ")),
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
                        format!("no way between nodes {one} and {other}"),
                        "cables that join all nodes",
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

/// How many cables the shortest ways between the switches of some nodes cross.
///
/// The shortest way of a Dragonfly crosses one global cable, of several between two groups the nearest.
#[derive(Debug)]
pub struct Distances {
    wiring: Arc<dyn Wiring>,
    nodes: Vec<Node>,
    /// By node: the switch that it hangs on.
    switches: Vec<usize>,
    to_switches: Vec<u16>,
}

impl Distances {
    /// By node: how many cables are between its switch and that of the node with this place in the list.
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
    /// How many nodes hang on the switches.
    pub nodes: u64,
    wiring: Arc<dyn Wiring>,
}

impl Plan {
    /// The switch that a node hangs on.
    pub fn switch_of(&self, node: Node) -> Switch {
        self.wiring.switch_of(node)
    }

    /// What people call a switch.
    pub fn switch_name(&self, switch: Switch) -> String {
        self.wiring.switch_name(switch)
    }
}

impl TopologyShape {
    /// Column, row and block of a switch in a picture, each counted from 0. A tree is a block with a row for each level, a grid has a block for each
    /// plane of x and y, a Dragonfly for each group, a graph for each switch.
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

    /// The routings that it knows; the first is the default.
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

    /// Of a tree, in whichever way it is given.
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
            _ => unreachable!("only trees are asked for their levels"),
        }
    }
}

fn of_levels(kinds: Vec<CableKind>) -> Vec<(String, CableKind)> {
    let levels = kinds.into_iter().enumerate();
    levels.map(|(at, kind)| (level_name(at), kind)).collect()
}

/// What the cables upward of a tree's level are called, counted from 0.
fn level_name(at: usize) -> String {
    const NAMES: [&str; 3] = ["leaf", "spine", "core"];
    let name = NAMES.get(at).map(|name| (*name).to_owned());
    name.unwrap_or_else(|| format!("level {}", at + 1))
}

fn of_tree(field: &str, error: TreeError) -> SharingError {
    refused(field, error.found, error.expected)
}

/// A field of the section that cannot be.
pub(crate) fn refused(field: &str, found: impl ToString, expected: impl ToString) -> SharingError {
    SharingError::Topology {
        field: format!("topology.{field}"),
        found: found.to_string(),
        expected: expected.to_string(),
    }
}

/// Refuses a node that the topology has no place for.
pub(crate) fn check_node(wiring: &dyn Wiring, node: Node) -> Result<(), SharingError> {
    match wiring.nodes() {
        Some(nodes) if u64::from(node.0) >= nodes => Err(SharingError::NoSuchNode { node, nodes }),
        _ => Ok(()),
    }
}

/// More switches than any machine has.
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
            "at most as many",
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
            format!("at least {others}, one to each other group"),
        ));
    }
    if let Some(per_pair) = shape.per_pair {
        let most = ports.checked_div(others).unwrap_or(1);
        if per_pair == 0 || u64::from(per_pair) > most {
            return Err(refused(
                &format!("{section}.per_pair"),
                per_pair,
                format!("1 to {most}, as the global cables of a group allow"),
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
