//! Where the switches of a topology stand in a drawing, and which of them are drawn.

use std::collections::{BTreeMap, BTreeSet};

use flowcast_model::{
    sharing::SharingError,
    topology::{
        Plan, Shape, Topology,
        dragonfly::{Dragonfly, Inside},
        grid::Grid,
        wiring::Switch,
    },
};
use flowcast_units::Node;

/// Side of a switch.
pub(super) const SIDE: f64 = 12.0;
/// Left and right of the picture.
const MARGIN: f64 = 40.0;
/// So many are drawn at most: switches in a row of a tree, groups, switches in a row of a group, on a circle.
const MOST_IN_ROW: u32 = 24;
const MOST_LOWEST: u32 = 16;
const MOST_GROUPS: u32 = 16;
const MOST_WIDE_GROUPS: u32 = 8;
const MOST_IN_GROUP: u32 = 8;
const MOST_ON_CIRCLE: u32 = 32;
/// By the number of dimensions: switches along each.
const MOST_ALONG: [[u32; 3]; 3] = [[20, 1, 1], [12, 8, 1], [6, 5, 4]];

/// A group of switches.
pub(super) struct Block {
    pub name: String,
    pub at: [f64; 2],
    pub size: [f64; 2],
}

/// A switch with its nodes.
pub(super) struct PlacedSwitch {
    pub name: String,
    pub at: [f64; 2],
    pub nodes: usize,
    /// The direction in which nodes are drawn.
    pub nodes_at: [f64; 2],
}

/// One cable or several parallel ones.
pub(super) struct PlacedCable {
    pub class: usize,
    pub name: String,
    pub ends: [[f64; 2]; 2],
    /// How far its middle lies aside, as a part of its length.
    pub bow: f64,
    pub width: f64,
}

/// All that is drawn.
pub(super) struct Layout {
    pub blocks: Vec<Block>,
    /// Where dots stand for switches that are not drawn.
    pub others: BTreeSet<[i64; 2]>,
    pub switches: Vec<PlacedSwitch>,
    pub cables: Vec<PlacedCable>,
    /// By class: how many there are in all, drawn or not; 0 where any number.
    pub counts: Vec<usize>,
    pub notes: Vec<String>,
    pub height: f64,
}

/// Where switches are drawn.
struct Places {
    of: BTreeMap<Switch, [f64; 2]>,
    /// Switches of a drawn group that are not drawn themselves, with one that stands for them and its place.
    others: BTreeMap<Switch, (Switch, [f64; 2])>,
    blocks: Vec<Block>,
    nodes_at: [f64; 2],
    height: f64,
}

/// Places the switches, and what joins those that are drawn.
pub(super) fn layout(topology: &Topology, width: f64) -> Result<Layout, SharingError> {
    let all = topology.nodes()?;
    let probe = topology.plan(1 << 16)?;
    let per_switch = nodes_of_first(&probe);
    let is_tree = !matches!(
        topology.shape,
        Shape::Grid(..) | Shape::Dragonfly { .. } | Shape::Graph(..)
    );
    let shown_nodes = u64::from(per_switch) * u64::from(MOST_LOWEST);
    let whole = topology.plan(all.unwrap_or(shown_nodes))?;
    let part = is_tree.then(|| topology.plan(shown_nodes)).transpose()?;
    let plan = part.as_ref().unwrap_or(&whole);
    let places = match &topology.shape {
        Shape::Grid(grid, _) => of_grid(grid, width),
        Shape::Dragonfly { groups, .. } => of_groups(groups, width),
        Shape::Graph(..) => on_circle(plan, width),
        _ => of_tree(plan, width),
    };
    let mut counts = vec![0; topology.classes().len()];
    if all.is_some() {
        counts[0] = whole.nodes as usize;
        for (cable, _) in &whole.cables {
            counts[usize::from(cable.class)] += 1;
        }
    }
    let in_all = switches_of(&whole).len();
    let mut notes = vec![format!("routing: {}", topology.routing)];
    if all.is_none() {
        notes.push("any number of lowest switches; the first are drawn".to_owned());
    } else if places.of.len() < in_all {
        let drawn = places.of.len();
        notes.push(format!(
            "drawn: {drawn} of {in_all} switches, and the cables between them"
        ));
    }
    if topology.planes > 1 {
        notes.push(format!("drawn: one of {} equal planes", topology.planes));
    }
    Ok(Layout {
        switches: placed_switches(plan, &places),
        cables: placed_cables(plan, &places, topology),
        others: places
            .others
            .values()
            .map(|(_, at)| at.map(|place| place as i64))
            .collect(),
        blocks: places.blocks,
        counts,
        notes,
        height: places.height,
    })
}

/// Nodes on the first switch.
fn nodes_of_first(plan: &Plan) -> u32 {
    let first = plan.switch_of(Node(0));
    let nodes = 1..plan.nodes as u32;
    nodes
        .take_while(|node| plan.switch_of(Node(*node)) == first)
        .count() as u32
        + 1
}

fn switches_of(plan: &Plan) -> BTreeSet<Switch> {
    let of_cables = plan.cables.iter().flat_map(|(_, ends)| *ends);
    let of_nodes = (0..plan.nodes as u32).map(|node| plan.switch_of(Node(node)));
    of_cables.chain(of_nodes).collect()
}

fn placed_switches(plan: &Plan, places: &Places) -> Vec<PlacedSwitch> {
    let mut nodes: BTreeMap<Switch, usize> = BTreeMap::new();
    for node in 0..plan.nodes as u32 {
        *nodes.entry(plan.switch_of(Node(node))).or_default() += 1;
    }
    let placed = places.of.iter().map(|(switch, at)| PlacedSwitch {
        name: plan.switch_name(*switch),
        at: *at,
        nodes: nodes.get(switch).copied().unwrap_or(0),
        nodes_at: places.nodes_at,
    });
    placed.collect()
}

/// Parallel cables are one line, which is wider.
fn placed_cables(plan: &Plan, places: &Places, topology: &Topology) -> Vec<PlacedCable> {
    let mut joined: BTreeMap<(u8, [Switch; 2]), usize> = BTreeMap::new();
    let mut at = places.of.clone();
    at.extend(places.others.values().copied());
    for (cable, ends) in &plan.cables {
        let ends = ends.map(|end| match places.others.get(&end) {
            // Between groups alone.
            Some((other, _)) if cable.class == 2 => *other,
            _ => end,
        });
        let is_drawn = |end: &Switch| places.of.contains_key(end) || cable.class == 2;
        if ends.iter().all(|end| is_drawn(end) && at.contains_key(end)) {
            *joined.entry((cable.class, ends)).or_default() += 1;
        }
    }
    let classes = topology.classes();
    let placed = joined.into_iter().map(|((class, ends), count)| {
        let [from, to] = ends.map(|end| plan.switch_name(end));
        let class = usize::from(class);
        PlacedCable {
            class,
            name: format!("{} cable, {from} to {to} ({count})", classes[class].name),
            ends: ends.map(|end| at[&end]),
            bow: bow(&topology.shape, class, ends.map(|end| at[&end])),
            width: 1.0 + 0.6 * (count as f64).log2(),
        }
    });
    placed.collect()
}

/// Cables within one row, or that close a ring, would lie on top of each other.
fn bow(shape: &Shape, class: usize, [[x1, y1], [x2, y2]]: [[f64; 2]; 2]) -> f64 {
    let is_flat = (y1 - y2).abs() < 1e-6;
    match shape {
        Shape::Dragonfly { .. } if class == 1 && is_flat => -0.35,
        Shape::Dragonfly { .. } if is_flat => 0.06,
        Shape::Grid(..) if (x1 - x2).abs() + (y1 - y2).abs() > 120.0 => 0.12,
        _ => 0.0,
    }
}

/// `count` places from left to right.
fn row(count: u32, [left, right]: [f64; 2], y: f64) -> Vec<[f64; 2]> {
    let step = (right - left) / f64::from(count.max(1));
    (0..count)
        .map(|at| [left + step * (f64::from(at) + 0.5), y])
        .collect()
}

fn of_tree(plan: &Plan, width: f64) -> Places {
    const STEP: f64 = 110.0;
    let all = switches_of(plan);
    let top = all.iter().map(|switch| switch.level).max().unwrap_or(1);
    let mut of = BTreeMap::new();
    for level in 1..=top {
        let of_level: Vec<Switch> = all
            .iter()
            .copied()
            .filter(|switch| switch.level == level)
            .take(MOST_IN_ROW as usize)
            .collect();
        let y = 20.0 + STEP * f64::from(top - level);
        let places = row(of_level.len() as u32, [MARGIN, width - MARGIN], y);
        of.extend(of_level.into_iter().zip(places));
    }
    Places {
        of,
        others: BTreeMap::new(),
        blocks: Vec::new(),
        nodes_at: [0.0, 1.0],
        height: 70.0 + STEP * f64::from(top - 1),
    }
}

fn of_grid(grid: &Grid, width: f64) -> Places {
    let dimensions = grid.sides.len().min(3);
    let side = |at: usize| grid.sides.get(at).copied().unwrap_or(1);
    let most = MOST_ALONG[dimensions - 1];
    let [columns, rows, layers] = [0, 1, 2].map(|at| side(at).min(most[at]));
    let step = ((width - 2.0 * MARGIN) / f64::from(columns + layers - 1).max(4.0)).min(90.0);
    let [aside, deep] = [step * 0.42, step * 0.3];
    let height = step * f64::from(rows) + deep * f64::from(layers - 1);
    let left = (width - step * f64::from(columns - 1) - aside * f64::from(layers - 1)) / 2.0;
    let mut of = BTreeMap::new();
    for layer in 0..layers {
        for y in 0..rows {
            for x in 0..columns {
                let number = x + side(0) * (y + side(1) * layer);
                let place = [
                    left + step * f64::from(x) + aside * f64::from(layer),
                    40.0 + step * f64::from(y) + deep * f64::from(layers - 1 - layer),
                ];
                of.insert(Switch { level: 1, number }, place);
            }
        }
    }
    Places {
        of,
        others: BTreeMap::new(),
        blocks: Vec::new(),
        nodes_at: [0.0, 1.0],
        height: height + 60.0,
    }
}

fn of_groups(shape: &Dragonfly, width: f64) -> Places {
    let (leaves, spines) = match shape.inside {
        Inside::All { switches } => (switches, 0),
        Inside::LeavesAndSpines { leaves, spines } => (leaves, spines),
    };
    // Dots stand for the switches behind those that are drawn.
    let slots = |count: u32| count.min(MOST_IN_GROUP + 1);
    let in_row = slots(leaves).max(slots(spines));
    let groups = shape.groups.min(if in_row > 5 {
        MOST_WIDE_GROUPS
    } else {
        MOST_GROUPS
    });
    let size = [
        24.0 * f64::from(in_row) + 20.0,
        if spines > 0 { 106.0 } else { 92.0 },
    ];
    let radius = [
        (width - size[0]) / 2.0 - MARGIN,
        (46.0 * f64::from(groups)).clamp(130.0, 440.0),
    ];
    let middle = [width / 2.0, radius[1] + size[1] / 2.0 + 10.0];
    let (mut of, mut others, mut blocks) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for (group, [x, y]) in (0..).zip(around(groups, middle, radius)) {
        let corner = [x - size[0] / 2.0, y - size[1] / 2.0];
        let sides = [corner[0] + 10.0, corner[0] + size[0] - 10.0];
        let lowest = corner[1] + size[1] - 32.0;
        let mut place = |level, count: u32, y| {
            let switch = |at: u32| Switch {
                level,
                number: group * count + at,
            };
            let places = row(slots(count), sides, y);
            let drawn = count.min(MOST_IN_GROUP);
            of.extend((0..drawn).map(switch).zip(places.iter().copied()));
            if let Some(dots) = places.get(drawn as usize) {
                let behind = (drawn..count).map(switch);
                others.extend(behind.map(|other| (other, (switch(drawn), *dots))));
            }
        };
        place(1, leaves, lowest);
        if spines > 0 {
            place(2, spines, corner[1] + 28.0);
        }
        blocks.push(Block {
            name: format!("group {group}"),
            at: corner,
            size,
        });
    }
    Places {
        of,
        others,
        blocks,
        nodes_at: [0.0, 1.0],
        height: middle[1] + radius[1] + size[1] / 2.0 + 10.0,
    }
}

/// Places on an ellipse, the first at its top.
fn around(count: u32, middle: [f64; 2], radius: [f64; 2]) -> Vec<[f64; 2]> {
    if count == 1 {
        return vec![middle];
    }
    let place = |at: u32| {
        let (sine, cosine) = (std::f64::consts::TAU * f64::from(at) / f64::from(count)).sin_cos();
        [middle[0] + radius[0] * sine, middle[1] - radius[1] * cosine]
    };
    (0..count).map(place).collect()
}

fn on_circle(plan: &Plan, width: f64) -> Places {
    let all = switches_of(plan);
    let shown: Vec<Switch> = all.into_iter().take(MOST_ON_CIRCLE as usize).collect();
    let radius = (14.0 * shown.len() as f64).clamp(90.0, 320.0);
    let middle = [width / 2.0, radius + 30.0];
    let places = around(shown.len() as u32, middle, [radius; 2]);
    Places {
        of: shown.into_iter().zip(places).collect(),
        others: BTreeMap::new(),
        blocks: Vec::new(),
        nodes_at: [0.0, 1.0],
        height: 2.0 * radius + 80.0,
    }
}
