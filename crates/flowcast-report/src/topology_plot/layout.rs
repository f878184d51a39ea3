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
    /// Parallel cables that it stands for, at least 1.
    pub count: usize,
    /// Which of its ends a switch that is drawn is at; the second if only that is.
    pub drawn_end: usize,
}

/// All that is drawn.
pub(super) struct Layout {
    pub blocks: Vec<Block>,
    /// Places that stand for switches that are not drawn, with what is written there.
    pub others: Vec<(String, [f64; 2])>,
    pub switches: Vec<PlacedSwitch>,
    pub cables: Vec<PlacedCable>,
    /// Cables between switches of which none is drawn and that one place stands for.
    pub hidden: usize,
    /// By class: how many there are in all, drawn or not; 0 where any number.
    pub counts: Vec<usize>,
    pub notes: Vec<String>,
    pub height: f64,
}

/// Where switches are drawn.
struct Places {
    of: BTreeMap<Switch, [f64; 2]>,
    /// Switches that are not drawn, with the place that stands for them.
    others: BTreeMap<Switch, StandIn>,
    /// What is written at such places.
    labels: Vec<(String, [f64; 2])>,
    blocks: Vec<Block>,
    nodes_at: [f64; 2],
    height: f64,
}

/// A place that stands for switches.
#[derive(Clone, Copy)]
struct StandIn {
    /// The same for all switches that it stands for.
    key: Switch,
    at: [f64; 2],
}

impl StandIn {
    /// For switches of a level, or of all levels.
    fn of_level(level: u8, at: [f64; 2]) -> StandIn {
        let key = Switch {
            level,
            number: u32::MAX,
        };
        StandIn { key, at }
    }
}

impl Places {
    /// The place of a switch or of what stands for it.
    fn spot(&self, switch: Switch) -> Option<StandIn> {
        let drawn = self.of.get(&switch).map(|at| StandIn {
            key: switch,
            at: *at,
        });
        drawn.or_else(|| self.others.get(&switch).copied())
    }
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
        Shape::Graph(..) => on_circle(&whole, width),
        _ => of_tree(plan, &whole, width),
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
            "drawn: {drawn} of {in_all} switches, and each of their cables; numbers at lines count parallel cables"
        ));
    }
    if topology.planes > 1 {
        notes.push(format!("drawn: one of {} equal planes", topology.planes));
    }
    let (cables, hidden) = placed_cables(&whole, &places, topology);
    Ok(Layout {
        switches: placed_switches(plan, &places),
        cables,
        hidden,
        others: places.labels,
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

/// Ends of a line on the drawing: x and y of each.
type LineEnds = [[f64; 2]; 2];

/// Lines for all cables, of which parallel ones share a line, and how many have both ends in one place.
fn placed_cables(plan: &Plan, places: &Places, topology: &Topology) -> (Vec<PlacedCable>, usize) {
    let mut joined: BTreeMap<(u8, [Switch; 2]), (LineEnds, usize)> = BTreeMap::new();
    let mut hidden = 0;
    // Beyond the edge of a grid lines end at single switches.
    let only_of_drawn = matches!(topology.shape, Shape::Grid(..));
    for (cable, [from, to]) in &plan.cables {
        let has_drawn = [from, to].iter().any(|end| places.of.contains_key(end));
        match (places.spot(*from), places.spot(*to)) {
            (Some(from), Some(to)) if from.key != to.key && (has_drawn || !only_of_drawn) => {
                let line = joined.entry((cable.class, [from.key, to.key]));
                line.or_insert(([from.at, to.at], 0)).1 += 1;
            }
            _ => hidden += 1,
        }
    }
    let classes = topology.classes();
    let placed = joined.into_iter().map(|((class, keys), (ends, count))| {
        let [from, to] = keys.map(|key| match places.of.contains_key(&key) {
            true => plan.switch_name(key),
            false => "switches that are not drawn".to_owned(),
        });
        let class = usize::from(class);
        PlacedCable {
            class,
            name: format!("{} cable, {from} to {to} ({count})", classes[class].name),
            ends,
            bow: bow(&topology.shape, class, ends),
            count,
            drawn_end: usize::from(!places.of.contains_key(&keys[0])),
        }
    });
    (placed.collect(), hidden)
}

/// Cables within one row, or that close a ring, would lie on top of each other.
fn bow(shape: &Shape, class: usize, [[x1, y1], [x2, y2]]: LineEnds) -> f64 {
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

fn of_tree(plan: &Plan, whole: &Plan, width: f64) -> Places {
    const STEP: f64 = 110.0;
    let (shown, all) = (switches_of(plan), switches_of(whole));
    let top = all.iter().map(|switch| switch.level).max().unwrap_or(1);
    let (mut of, mut others, mut labels) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for level in 1..=top {
        let is_here = |switch: &&Switch| switch.level == level;
        let drawn: BTreeSet<Switch> = shown
            .iter()
            .filter(is_here)
            .take(MOST_IN_ROW as usize)
            .copied()
            .collect();
        let behind: Vec<Switch> = all
            .iter()
            .filter(is_here)
            .filter(|switch| !drawn.contains(switch))
            .copied()
            .collect();
        let y = 20.0 + STEP * f64::from(top - level);
        let slots = drawn.len() + usize::from(!behind.is_empty());
        let places = row(slots as u32, [MARGIN, width - MARGIN], y);
        if !behind.is_empty() {
            let place = places[slots - 1];
            labels.push((format!("{} more", behind.len()), place));
            let stand_in = StandIn::of_level(level, place);
            others.extend(behind.into_iter().map(|switch| (switch, stand_in)));
        }
        of.extend(drawn.into_iter().zip(places));
    }
    Places {
        of,
        others,
        labels,
        blocks: Vec::new(),
        nodes_at: [0.0, 1.0],
        height: 70.0 + STEP * f64::from(top - 1),
    }
}

fn of_grid(grid: &Grid, width: f64) -> Places {
    let dimensions = grid.sides.len().min(3);
    let side = |at: usize| grid.sides.get(at).copied().unwrap_or(1);
    let most = MOST_ALONG[dimensions - 1];
    let drawn = [0, 1, 2].map(|at| side(at).min(most[at]));
    let [columns, rows, layers] = drawn;
    let step = ((width - 2.0 * MARGIN) / f64::from(columns + layers - 1).max(4.0)).min(90.0);
    let [aside, deep] = [step * 0.42, step * 0.3];
    let height = step * f64::from(rows) + deep * f64::from(layers - 1);
    let left = (width - step * f64::from(columns - 1) - aside * f64::from(layers - 1)) / 2.0;
    let place = |[x, y, layer]: [f64; 3]| {
        [
            left + step * x + aside * layer,
            40.0 + step * y + deep * (f64::from(layers - 1) - layer),
        ]
    };
    let (mut of, mut others) = (BTreeMap::new(), BTreeMap::new());
    for layer in 0..layers {
        for y in 0..rows {
            for x in 0..columns {
                let number = x + side(0) * (y + side(1) * layer);
                let at = [x, y, layer];
                of.insert(Switch { level: 1, number }, place(at.map(f64::from)));
                for (number, ahead) in neighbours_not_drawn(grid, drawn, at) {
                    let switch = Switch { level: 1, number };
                    let near = [0, 1, 2].map(|along| f64::from(at[along]) + ahead[along]);
                    others.entry(switch).or_insert(StandIn {
                        key: switch,
                        at: place(near),
                    });
                }
            }
        }
    }
    Places {
        of,
        others,
        labels: Vec::new(),
        blocks: Vec::new(),
        nodes_at: [0.0, 1.0],
        height: height + 60.0,
    }
}

/// Numbers of the switches beside a drawn one that are not drawn, and how far from it the lines to them end.
fn neighbours_not_drawn(grid: &Grid, drawn: [u32; 3], at: [u32; 3]) -> Vec<(u32, [f64; 3])> {
    let mut found = Vec::new();
    let mut stride = 1;
    let number: u32 = {
        let strides = grid.sides.iter().scan(1, |stride, side| {
            let own = *stride;
            *stride *= side;
            Some(own)
        });
        strides.zip(at).map(|(stride, place)| stride * place).sum()
    };
    for (dimension, side) in grid.sides.iter().enumerate() {
        let (here, shown) = match dimension {
            0..3 => (at[dimension], drawn[dimension]),
            _ => (0, 1),
        };
        let base = number - here * stride;
        let mut ends = Vec::new();
        if here + 1 == shown && shown < *side {
            ends.push((shown, 0.5));
        }
        if here == 0 && shown < *side && grid.is_torus {
            ends.push((side - 1, -0.5));
        }
        for (place, ahead) in ends {
            let mut ways = [0.0; 3];
            match dimension {
                0..3 => ways[dimension] = ahead,
                _ => ways = [ahead * 0.6, -ahead * 0.6, 0.0],
            }
            found.push((base + place * stride, ways));
        }
        stride *= side;
    }
    found
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
    let mut labels = Vec::new();
    let behind = shape.groups - groups;
    let mut slots_around = around(groups + u32::from(behind > 0), middle, radius);
    if behind > 0 {
        let at = slots_around.pop().expect("one slot more than groups");
        labels.push((format!("{behind} more groups"), at));
        let stand_in = StandIn::of_level(0, at);
        for (level, count) in [(1, leaves), (2, spines)] {
            let numbers = groups * count..shape.groups * count;
            others.extend(numbers.map(|number| (Switch { level, number }, stand_in)));
        }
    }
    for (group, [x, y]) in (0..).zip(slots_around) {
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
                let stand_in = StandIn {
                    key: switch(drawn),
                    at: *dots,
                };
                labels.push(("...".to_owned(), *dots));
                others.extend(behind.map(|other| (other, stand_in)));
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
        labels,
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
    let mut shown: Vec<Switch> = switches_of(plan).into_iter().collect();
    let behind = shown.split_off(shown.len().min(MOST_ON_CIRCLE as usize));
    let radius = (14.0 * shown.len() as f64).clamp(90.0, 320.0);
    let middle = [width / 2.0, radius + 30.0];
    let slots = shown.len() + usize::from(!behind.is_empty());
    let places = around(slots as u32, middle, [radius; 2]);
    let (mut others, mut labels) = (BTreeMap::new(), Vec::new());
    if !behind.is_empty() {
        let at = places[slots - 1];
        labels.push((format!("{} more", behind.len()), at));
        let stand_in = StandIn::of_level(0, at);
        others.extend(behind.into_iter().map(|switch| (switch, stand_in)));
    }
    Places {
        of: shown.into_iter().zip(places).collect(),
        others,
        labels,
        blocks: Vec::new(),
        nodes_at: [0.0, 1.0],
        height: 2.0 * radius + 80.0,
    }
}
