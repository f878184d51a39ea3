//! The section `[topology]` on disk.

use crate::{
    link_rate::LinkRate,
    sharing::error::SharingError,
    topology::{
        CableKind, Routing, Topology, TopologyShape,
        dragonfly::{Arrangement, Dragonfly, Inside},
        graph::{Edges, SwitchGraph},
        grid::SwitchGrid,
        refused,
        tree::Level,
    },
};
use flowcast_units::{Rate, Time};

section! {
    /// The section on disk. At most one of the shapes is given.
    pub(crate) struct TopologyFile: Default {
        /// Choice among the routes of a message.
        /// Default: the first of the shape. Example: `"ecmp"`.
        routing: Option<String>,
        /// Seed of the hashes that choose routes.
        /// Default: 0. Example: `7`.
        seed: u64 | default,
        /// Number of equal copies of the switches; interface `i` of a node is on copy `i mod planes`.
        /// Default: 1. Example: `4`.
        planes: Option<u32>,
        /// Number of ports `k` of each switch of a fat tree with three levels, an even number.
        fat_tree: Option<u32>,
        /// Number of switches in each dimension, connected in rings.
        torus: Option<Vec<u32>>,
        /// Number of switches in each dimension, connected in rows.
        mesh: Option<Vec<u32>>,
        /// Number of nodes per upward cable of the lowest switches, for `fat_tree` and `k_ary_n_tree`.
        /// Default: 1. Example: `2`.
        oversubscription: Option<u32>,
        /// Number of nodes on each switch, for `torus` and `mesh`.
        /// Default: 1. Example: `2`.
        nodes_per_switch: Option<u32>,
        /// Goodput of each cable, in each direction, above 0.
        /// Default: rate of the interfaces. Example: `"9415Mbit/s"`.
        bandwidth: Option<Rate>,
        /// Wire rate of each cable, in each direction, above 0.
        /// Default: rate of the interfaces. Example: `"10Gbit/s"`.
        wire_rate: Option<Rate>,
        /// Latency that each cable adds to a message that crosses it.
        /// Default: 0. Example: `"100ns"`.
        latency: Time | default,
        k_ary_n_tree: Option<KAryTreeFile>,
        dragonfly: Option<DragonflyFile>,
        dragonfly_plus: Option<DragonflyPlusFile>,
        graph: Option<GraphFile>,
        /// Levels of a tree, the level above the nodes first.
        levels: Vec<LevelFile> | default,
    }

    /// A k-ary n-tree on disk.
    pub(crate) struct KAryTreeFile + Copy {
        /// Number of downward cables of each switch, `k`.
        arity: u32,
        /// Number of levels of switches, `n`.
        levels: u32,
    }

    /// A class of cables on disk.
    pub(crate) struct CablesFile: Default + Copy {
        /// Goodput of each cable, in each direction, above 0.
        bandwidth: Option<Rate>,
        /// Wire rate of each cable, in each direction, above 0.
        wire_rate: Option<Rate>,
        /// Latency that each cable adds to a message that crosses it.
        latency: Time | default,
    }

    /// A Dragonfly on disk.
    pub(crate) struct DragonflyFile + Copy {
        /// Number of groups.
        groups: u32,
        /// Number of switches in a group, each connected to all others.
        switches: u32,
        /// Number of nodes on each switch.
        nodes: u32,
        /// Number of global cables of each switch that has any.
        global: u32,
        /// Number of cables between two groups; by default as many as possible.
        per_pair: Option<u32>,
        /// Assignment of the global cables of a group to its switches: `absolute` or `spread`.
        arrangement: Arrangement | default,
        /// Cables between switches of the same group.
        local_cables: CablesFile | default,
        /// Cables between switches of different groups.
        global_cables: CablesFile | default,
    }

    /// A Dragonfly+ on disk.
    pub(crate) struct DragonflyPlusFile + Copy {
        /// Number of groups.
        groups: u32,
        /// Number of leaf switches in a group; the nodes are attached to them.
        leaves: u32,
        /// Number of spine switches in a group; the global cables are attached to them.
        spines: u32,
        /// Number of nodes on each leaf switch.
        nodes: u32,
        /// Number of global cables of each switch that has any.
        global: u32,
        /// Number of cables between two groups; by default as many as possible.
        per_pair: Option<u32>,
        /// Assignment of the global cables of a group to its switches: `absolute` or `spread`.
        arrangement: Arrangement | default,
        /// Cables between switches of the same group.
        local_cables: CablesFile | default,
        /// Cables between switches of different groups.
        global_cables: CablesFile | default,
    }

    /// An arbitrary graph on disk.
    pub(crate) struct GraphFile {
        /// Switch of each node, in the order of the nodes.
        nodes: Vec<u32>,
        /// Classes of cables; the cables of a class have one rate and one latency.
        cables: Vec<EdgesFile>,
    }

    /// Cables of one class in a graph on disk.
    pub(crate) struct EdgesFile {
        /// Name of the class in tables and figures.
        class: String,
        /// Pairs of switches that cables of the class connect.
        between: Vec<[u32; 2]>,
        /// Number of cables between the two switches of each pair, at least 1.
        count: u32 [default = "one", skip_serializing_if = "is_one"],
        /// Goodput of each cable, in each direction, above 0.
        bandwidth: Option<Rate>,
        /// Wire rate of each cable, in each direction, above 0.
        wire_rate: Option<Rate>,
        /// Latency that each cable adds to a message that crosses it.
        latency: Time | default,
    }

    /// One level of switches on disk.
    pub(crate) struct LevelFile + Copy {
        /// Number of nodes or switches below each switch.
        down: u32,
        /// Number of switches above each switch; 0 at the top.
        up: u32 [default = "one"],
        /// Number of cables to each switch above, at least 1.
        cables: u32 [default = "one", skip_serializing_if = "is_one"],
        /// Goodput of each cable, in each direction, above 0.
        bandwidth: Option<Rate>,
        /// Wire rate of each cable, in each direction, above 0.
        wire_rate: Option<Rate>,
        /// Latency that each cable adds to a message that crosses it.
        latency: Time | default,
    }
}

const fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

fn unless_1(number: u32) -> Option<u32> {
    (number != 1).then_some(number)
}

impl TryFrom<TopologyFile> for Topology {
    type Error = SharingError;

    fn try_from(mut file: TopologyFile) -> Result<Topology, SharingError> {
        let shape = file.take_shape()?;
        file.refuse_rest()?;
        let mut topology = Topology::new(shape);
        if let Some(name) = file.routing {
            topology.routing = Routing::from_name(&name).ok_or_else(|| {
                let known = topology.shape.routings().iter();
                let names: Vec<&str> = known.map(|routing| routing.name()).collect();
                refused(
                    "routing",
                    format!("`{name}`"),
                    format!("one of {}, the routings of this shape", names.join(", ")),
                )
            })?;
        }
        topology.seed = file.seed;
        topology.planes = file.planes.unwrap_or(1);
        topology.check().map(|()| topology)
    }
}

impl TopologyFile {
    /// Takes the given shape and the fields that belong to it.
    fn take_shape(&mut self) -> Result<TopologyShape, SharingError> {
        let given = [
            ("fat_tree", self.fat_tree.is_some()),
            ("k_ary_n_tree", self.k_ary_n_tree.is_some()),
            ("levels", !self.levels.is_empty()),
            ("torus", self.torus.is_some()),
            ("mesh", self.mesh.is_some()),
            ("dragonfly", self.dragonfly.is_some()),
            ("dragonfly_plus", self.dragonfly_plus.is_some()),
            ("graph", self.graph.is_some()),
        ];
        let mut names = given.iter().filter(|(_, is_given)| *is_given);
        if let (Some((first, _)), Some((second, _))) = (names.next(), names.next()) {
            return Err(refused(
                second,
                format!("it together with {first}"),
                "only one of the two",
            ));
        }
        if let Some(ports) = self.fat_tree {
            return Ok(TopologyShape::FatTree {
                ports,
                oversubscription: self.oversubscription.take().unwrap_or(1),
                cables: self.take_cables()?,
            });
        }
        if let Some(KAryTreeFile { arity, levels }) = self.k_ary_n_tree {
            return Ok(TopologyShape::KAryTree {
                arity,
                levels,
                oversubscription: self.oversubscription.take().unwrap_or(1),
                cables: self.take_cables()?,
            });
        }
        let is_torus = self.torus.is_some();
        if let Some(sides) = self.torus.take().or(self.mesh.take()) {
            let nodes_per_switch = self.nodes_per_switch.take().unwrap_or(1);
            let grid = SwitchGrid {
                sides,
                is_torus,
                nodes_per_switch,
            };
            return Ok(TopologyShape::Grid(grid, self.take_cables()?));
        }
        if let Some(file) = self.dragonfly {
            return file.shape();
        }
        if let Some(file) = self.dragonfly_plus {
            return file.shape();
        }
        if let Some(graph) = self.graph.take() {
            return graph.shape();
        }
        let levels = self.levels.iter().enumerate();
        if self.levels.is_empty() {
            // A misplaced field of a shape is a more helpful error than a missing shape.
            self.refuse_rest()?;
        }
        Ok(TopologyShape::Levels(
            levels
                .map(|(place, file)| file.level(place))
                .collect::<Result<_, _>>()?,
        ))
    }

    /// Takes the cables of a shape with equal cables.
    fn take_cables(&mut self) -> Result<CableKind, SharingError> {
        let cables = CablesFile {
            bandwidth: self.bandwidth.take(),
            wire_rate: self.wire_rate.take(),
            latency: std::mem::take(&mut self.latency),
        };
        cables.kind("")
    }

    /// Rejects fields that no shape has taken.
    fn refuse_rest(&self) -> Result<(), SharingError> {
        const TREES: &str = "it together with topology.fat_tree or topology.k_ary_n_tree";
        const GRIDS: &str = "it together with topology.torus or topology.mesh";
        const ALIKE: &str = "it together with a shape whose cables are all equal (fat_tree, k_ary_n_tree, torus, mesh), \
            or in the section of a class of cables";
        let rest = [
            (
                "oversubscription",
                self.oversubscription.is_some(),
                "fat_tree",
                TREES,
            ),
            (
                "nodes_per_switch",
                self.nodes_per_switch.is_some(),
                "torus or mesh",
                GRIDS,
            ),
            ("bandwidth", self.bandwidth.is_some(), "fat_tree", ALIKE),
            ("wire_rate", self.wire_rate.is_some(), "fat_tree", ALIKE),
            ("latency", self.latency > Time::ZERO, "fat_tree", ALIKE),
        ];
        match rest.into_iter().find(|(_, is_left, ..)| *is_left) {
            Some((field, _, without, expected)) => {
                Err(refused(field, format!("it without {without}"), expected))
            }
            None => Ok(()),
        }
    }
}

impl CablesFile {
    /// Converts the cables; `section` is a section below `topology`, ending with a dot, for errors.
    fn kind(self, section: &str) -> Result<CableKind, SharingError> {
        for (name, rate) in [("bandwidth", self.bandwidth), ("wire_rate", self.wire_rate)] {
            if let Some(rate) = rate.filter(|rate| rate.as_bytes_per_second() <= 0.0) {
                return Err(refused(&format!("{section}{name}"), rate, "a rate above 0"));
            }
        }
        Ok(CableKind {
            rate: LinkRate::given(self.bandwidth, self.wire_rate),
            latency: self.latency,
        })
    }
}

impl From<CableKind> for CablesFile {
    fn from(kind: CableKind) -> CablesFile {
        CablesFile {
            bandwidth: kind.rate.and_then(LinkRate::given_goodput),
            wire_rate: kind.rate.and_then(LinkRate::given_wire),
            latency: kind.latency,
        }
    }
}

impl DragonflyFile {
    fn shape(self) -> Result<TopologyShape, SharingError> {
        Ok(TopologyShape::Dragonfly {
            groups: Dragonfly {
                groups: self.groups,
                inside: Inside::All {
                    switches: self.switches,
                },
                nodes: self.nodes,
                global: self.global,
                per_pair: self.per_pair,
                arrangement: self.arrangement,
            },
            local: self.local_cables.kind("dragonfly.local_cables.")?,
            global: self.global_cables.kind("dragonfly.global_cables.")?,
        })
    }
}

impl DragonflyPlusFile {
    fn shape(self) -> Result<TopologyShape, SharingError> {
        Ok(TopologyShape::Dragonfly {
            groups: Dragonfly {
                groups: self.groups,
                inside: Inside::LeavesAndSpines {
                    leaves: self.leaves,
                    spines: self.spines,
                },
                nodes: self.nodes,
                global: self.global,
                per_pair: self.per_pair,
                arrangement: self.arrangement,
            },
            local: self.local_cables.kind("dragonfly_plus.local_cables.")?,
            global: self.global_cables.kind("dragonfly_plus.global_cables.")?,
        })
    }
}

impl GraphFile {
    fn shape(self) -> Result<TopologyShape, SharingError> {
        let (mut edges, mut classes) = (Vec::new(), Vec::<(String, CableKind)>::new());
        for (place, file) in self.cables.into_iter().enumerate() {
            let section = format!("graph.cables.{place}.");
            let is_known = classes.iter().any(|(name, _)| *name == file.class);
            let is_name = !file.class.is_empty() && !file.class.chars().any(char::is_control);
            if is_known || !is_name || file.class == "node" {
                return Err(refused(
                    &format!("{section}class"),
                    format!("{:?}", file.class),
                    "a unique name for each class of cables, other than `node`",
                ));
            }
            let cables = CablesFile {
                bandwidth: file.bandwidth,
                wire_rate: file.wire_rate,
                latency: file.latency,
            };
            classes.push((file.class, cables.kind(&section)?));
            edges.push(Edges {
                between: file.between,
                count: file.count,
            });
        }
        let graph = SwitchGraph {
            nodes: self.nodes,
            edges,
        };
        Ok(TopologyShape::Graph(graph, classes))
    }

    fn from_shape(graph: &SwitchGraph, classes: &[(String, CableKind)]) -> GraphFile {
        let all = graph.edges.iter().zip(classes);
        let cables = all.map(|(edges, (class, kind)): (&Edges, &(String, CableKind))| {
            let cables = CablesFile::from(*kind);
            EdgesFile {
                class: class.clone(),
                between: edges.between.clone(),
                count: edges.count,
                bandwidth: cables.bandwidth,
                wire_rate: cables.wire_rate,
                latency: cables.latency,
            }
        });
        GraphFile {
            nodes: graph.nodes.clone(),
            cables: cables.collect(),
        }
    }
}

impl LevelFile {
    fn level(&self, place: usize) -> Result<(Level, CableKind), SharingError> {
        let cables = CablesFile {
            bandwidth: self.bandwidth,
            wire_rate: self.wire_rate,
            latency: self.latency,
        };
        let level = Level {
            down: self.down,
            up: self.up,
            cables: self.cables,
        };
        Ok((level, cables.kind(&format!("levels.{place}."))?))
    }

    fn from_level(level: Level, kind: CableKind) -> LevelFile {
        let cables = CablesFile::from(kind);
        LevelFile {
            down: level.down,
            up: level.up,
            cables: level.cables,
            bandwidth: cables.bandwidth,
            wire_rate: cables.wire_rate,
            latency: cables.latency,
        }
    }
}

impl From<&Topology> for TopologyFile {
    fn from(topology: &Topology) -> TopologyFile {
        let routing = topology.routing;
        TopologyFile {
            routing: (routing != topology.shape.routings()[0]).then(|| routing.name().to_owned()),
            seed: topology.seed,
            planes: unless_1(topology.planes),
            ..TopologyFile::from_shape(&topology.shape)
        }
    }
}

impl TopologyFile {
    fn from_shape(shape: &TopologyShape) -> TopologyFile {
        match shape {
            TopologyShape::FatTree {
                ports,
                oversubscription,
                cables,
            } => TopologyFile {
                fat_tree: Some(*ports),
                oversubscription: unless_1(*oversubscription),
                ..TopologyFile::with_cables(*cables)
            },
            TopologyShape::KAryTree {
                arity,
                levels,
                oversubscription,
                cables,
            } => TopologyFile {
                k_ary_n_tree: Some(KAryTreeFile {
                    arity: *arity,
                    levels: *levels,
                }),
                oversubscription: unless_1(*oversubscription),
                ..TopologyFile::with_cables(*cables)
            },
            TopologyShape::Levels(levels) => TopologyFile {
                levels: levels
                    .iter()
                    .map(|(level, kind): &(Level, CableKind)| LevelFile::from_level(*level, *kind))
                    .collect(),
                ..TopologyFile::default()
            },
            TopologyShape::Grid(grid, cables) => TopologyFile {
                torus: grid.is_torus.then(|| grid.sides.clone()),
                mesh: (!grid.is_torus).then(|| grid.sides.clone()),
                nodes_per_switch: unless_1(grid.nodes_per_switch),
                ..TopologyFile::with_cables(*cables)
            },
            TopologyShape::Dragonfly {
                groups,
                local,
                global,
            } => TopologyFile::with_groups(groups, (*local).into(), (*global).into()),
            TopologyShape::Graph(graph, classes) => TopologyFile {
                graph: Some(GraphFile::from_shape(graph, classes)),
                ..TopologyFile::default()
            },
        }
    }

    fn with_cables(kind: CableKind) -> TopologyFile {
        let cables = CablesFile::from(kind);
        TopologyFile {
            bandwidth: cables.bandwidth,
            wire_rate: cables.wire_rate,
            latency: cables.latency,
            ..TopologyFile::default()
        }
    }

    fn with_groups(
        shape: &Dragonfly,
        local_cables: CablesFile,
        global_cables: CablesFile,
    ) -> TopologyFile {
        let Dragonfly {
            groups,
            inside,
            nodes,
            global,
            per_pair,
            arrangement,
        } = *shape;
        match inside {
            Inside::All { switches } => TopologyFile {
                dragonfly: Some(DragonflyFile {
                    groups,
                    switches,
                    nodes,
                    global,
                    per_pair,
                    arrangement,
                    local_cables,
                    global_cables,
                }),
                ..TopologyFile::default()
            },
            Inside::LeavesAndSpines { leaves, spines } => TopologyFile {
                dragonfly_plus: Some(DragonflyPlusFile {
                    groups,
                    leaves,
                    spines,
                    nodes,
                    global,
                    per_pair,
                    arrangement,
                    local_cables,
                    global_cables,
                }),
                ..TopologyFile::default()
            },
        }
    }
}

#[cfg(test)]
mod tests;
