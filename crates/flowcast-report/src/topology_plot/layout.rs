//! Positions of a topology's switches in a drawing, and the choice of the drawn switches.
//!
//! Every shape gives each switch a column, a row and a block ([`TopologyShape::seat`]). Blocks stand on an ellipse, the rows
//! of a block above each other. If there are too many columns, rows or blocks, a place at the end represents all other
//! switches.

use std::collections::{BTreeMap, BTreeSet};

use flowcast_network::{
    sharing::SharingError,
    topology::{Plan, Topology, TopologyShape, wiring::Switch},
};
use flowcast_units::Node;

/// Side length of a switch.
pub(super) const SIDE: f64 = 12.0;
/// Margin at the left and right of the picture, and around the blocks.
const MARGIN: f64 = 40.0;
/// Space above the rows of a block, for bent cables and a name, and below, for nodes.
const ABOVE: f64 = 54.0;
const ABOVE_LONE: f64 = 20.0;
const BELOW: f64 = 32.0;
/// Number of lowest switches that are drawn of a tree without a limit on their number.
const MOST_LOWEST: u32 = 16;
/// Largest number of columns and rows of a single block, and of one among others.
const MOST_ALONE: [u32; 2] = [24, 12];
const MOST_AMONG: [u32; 2] = [8, 5];
/// Largest number of blocks: with one switch each, with at most `FEW_COLUMNS` columns, and with more columns.
const MOST_BLOCKS: [u32; 3] = [32, 16, 8];
const FEW_COLUMNS: u32 = 5;
/// Total height of all blocks, as a multiple of the ellipse's vertical radius. The radius thus grows with the number and the
/// height of the blocks.
const IN_HEIGHT: f64 = 3.4;
/// Largest bend of a cable, as a fraction of its length and in pixels.
const BEND: f64 = 0.35;
const WIDEST_BEND: f64 = 60.0;

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
}

/// One cable or several parallel ones.
pub(super) struct PlacedCable {
    pub class: usize,
    pub name: String,
    pub ends: [[f64; 2]; 2],
    /// Sideways displacement of the line's middle, as a fraction of its length.
    pub bow: f64,
    /// Number of parallel cables that the line represents, at least 1.
    pub count: usize,
    /// Index of an end that is at a drawn switch: 0 if the first end is, otherwise 1.
    pub drawn_end: usize,
}

/// Everything that is drawn.
pub(super) struct TopologyLayout {
    pub blocks: Vec<Block>,
    /// Places that represent switches that are not drawn, with their labels.
    pub others: Vec<(String, [f64; 2])>,
    pub switches: Vec<PlacedSwitch>,
    pub cables: Vec<PlacedCable>,
    /// Number of cables between switches that are not drawn.
    pub hidden: usize,
    /// Total number of cables of each class, drawn or not; 0 if it is unlimited.
    pub counts: Vec<usize>,
    pub notes: Vec<String>,
    pub height: f64,
}

/// Column, row and block.
type Seat = [u32; 3];

/// Seats in the drawing.
struct Seats<'a> {
    shape: &'a TopologyShape,
    /// Number of columns of each row, the same in all blocks.
    columns: Vec<u32>,
    /// Number of drawn seats in each direction. The next seat represents the others.
    most: Seat,
    /// Centres of the blocks.
    middles: Vec<[f64; 2]>,
    /// Size of each block.
    size: [f64; 2],
    /// Distance between columns of the widest row, and between rows.
    step: [f64; 2],
}

impl Seats<'_> {
    fn new<'a>(shape: &'a TopologyShape, switches: &BTreeSet<Switch>, width: f64) -> Seats<'a> {
        let (mut columns, mut blocks): (Vec<u32>, u32) = (Vec::new(), 0);
        for [column, row, block] in switches.iter().map(|switch| shape.seat(*switch)) {
            columns.resize(columns.len().max(row as usize + 1), 0);
            columns[row as usize] = columns[row as usize].max(column + 1);
            blocks = blocks.max(block + 1);
        }
        let widest = columns.iter().copied().max().unwrap_or(1);
        let in_all = [widest, columns.len() as u32, blocks];
        let (is_single, is_lone) = (blocks == 1, columns == [1]);
        let [most_columns, most_rows] = if is_single { MOST_ALONE } else { MOST_AMONG };
        let most_blocks = match widest {
            _ if is_lone => MOST_BLOCKS[0],
            ..=FEW_COLUMNS => MOST_BLOCKS[1],
            _ => MOST_BLOCKS[2],
        };
        let places = [most_columns, most_rows, most_blocks];
        let [across, rows, blocks] = [0, 1, 2].map(|way| f64::from(in_all[way].min(places[way])));
        let step = match is_single {
            true => [((width - 2.0 * MARGIN) / across).min(110.0), 90.0],
            false => [24.0, 46.0],
        };
        let above = if is_lone { ABOVE_LONE } else { ABOVE };
        let size = [
            step[0] * across + SIDE,
            step[1] * (rows - 1.0) + above + BELOW,
        ];
        let radius = [
            (width - size[0]) / 2.0 - MARGIN,
            (size[1] * blocks / IN_HEIGHT).max(130.0),
        ];
        Seats {
            shape,
            columns,
            most: [0, 1, 2].map(|way| places[way] - u32::from(in_all[way] > places[way])),
            middles: (0..blocks as u32)
                .map(|at: u32| {
                    let (sine, cosine) = (std::f64::consts::TAU * f64::from(at) / blocks).sin_cos();
                    let centre = radius[1] + size[1] / 2.0;
                    [width / 2.0 + radius[0] * sine, centre - radius[1] * cosine]
                })
                .collect(),
            size,
            step,
        }
    }

    /// Returns the seat at which a switch is drawn, or the one that represents it.
    fn seat(&self, switch: Switch) -> Seat {
        let seat = self.shape.seat(switch);
        match seat[2] < self.most[2] {
            true => [0, 1, 2].map(|way| seat[way].min(self.most[way])),
            false => [0, 0, self.most[2]],
        }
    }

    fn is_drawn(&self, seat: Seat) -> bool {
        seat.iter().zip(self.most).all(|(at, most)| *at < most)
    }

    fn place(&self, [column, row, block]: Seat) -> [f64; 2] {
        let [x, y] = self.middles[block as usize];
        if block == self.most[2] {
            return [x, y];
        }
        let columns = f64::from(self.columns[row as usize].min(self.most[0] + 1));
        let aside = (f64::from(column) + 0.5) / columns - 0.5;
        let lowest = y + self.size[1] / 2.0 - BELOW;
        [
            x + aside * (self.size[0] - SIDE),
            lowest - self.step[1] * f64::from(row),
        ]
    }

    /// Frames of blocks with several switches, if there are several blocks.
    fn blocks(&self) -> Vec<Block> {
        let name = match self.shape {
            TopologyShape::Grid(..) => "layer",
            _ => "group",
        };
        let is_framed = self.middles.len() > 1 && self.columns != [1];
        let drawn = self.middles.iter().take(self.most[2] as usize);
        let framed = drawn.enumerate().filter(|_| is_framed);
        let blocks = framed.map(|(number, [x, y])| Block {
            name: format!("{name} {number}"),
            at: [x - self.size[0] / 2.0, y - self.size[1] / 2.0],
            size: self.size,
        });
        blocks.collect()
    }

    /// Bend of a cable. Cables that pass other switches of their row or column are bent.
    fn bow(&self, [[x1, y1], [x2, y2]]: [[f64; 2]; 2]) -> f64 {
        let apart = [x2 - x1, y2 - y1];
        let bent = [0, 1]
            .into_iter()
            .find(|way| apart[1 - way].abs() < 1e-6 && apart[*way].abs() > 1.5 * self.step[*way])
            .map(|way| {
                let widest = WIDEST_BEND.min(self.step[1 - way]);
                -BEND.min(widest / apart[way].abs()) * apart[way].signum()
            });
        bent.unwrap_or(0.0)
    }
}

/// Places the switches, and the cables at those that are drawn.
pub(super) fn layout(topology: &Topology, width: f64) -> Result<TopologyLayout, SharingError> {
    let all = topology.nodes()?;
    let probe = topology.plan(1 << 16)?;
    let first = (0..probe.nodes).take_while(|node| {
        let switch = probe.switch_of(Node(*node as u32));
        switch.number < MOST_LOWEST
    });
    let plan = topology.plan(all.unwrap_or(first.count() as u64))?;
    let mut nodes: BTreeMap<Switch, usize> = BTreeMap::new();
    for node in 0..plan.nodes as u32 {
        *nodes.entry(plan.switch_of(Node(node))).or_default() += 1;
    }
    let of_cables = plan.cables.iter().flat_map(|(_, ends)| ends);
    let switches: BTreeSet<Switch> = of_cables.chain(nodes.keys()).copied().collect();
    let seats = Seats::new(&topology.shape, &switches, width);
    let (mut drawn, mut behind) = (BTreeMap::new(), BTreeMap::new());
    for switch in &switches {
        match seats.seat(*switch) {
            seat if seats.is_drawn(seat) => drop(drawn.insert(seat, *switch)),
            seat => *behind.entry(seat).or_insert(0) += 1,
        }
    }
    let mut counts = vec![0; topology.classes().len()];
    if all.is_some() {
        counts[0] = plan.nodes as usize;
        for (cable, _) in &plan.cables {
            counts[usize::from(cable.class)] += 1;
        }
    }
    let mut notes = vec![format!("routing: {}", topology.routing)];
    if all.is_none() {
        notes.push("number of lowest switches not fixed; the first are drawn".to_owned());
    } else if !behind.is_empty() {
        notes.push(format!(
            "drawn: {} of {} switches and all their cables; numbers at lines are numbers of parallel cables",
            drawn.len(),
            switches.len()
        ));
    }
    if topology.planes > 1 {
        notes.push(format!("drawn: one of {} equal planes", topology.planes));
    }
    let (cables, hidden) = placed_cables(&plan, &seats, topology);
    let last = seats.middles.iter().map(|[_, y]| y + seats.size[1] / 2.0);
    Ok(TopologyLayout {
        switches: drawn
            .into_iter()
            .map(|(seat, switch)| PlacedSwitch {
                name: plan.switch_name(switch),
                at: seats.place(seat),
                nodes: nodes.get(&switch).copied().unwrap_or(0),
            })
            .collect(),
        cables,
        hidden,
        others: behind
            .into_iter()
            .map(|(seat, count)| (format!("+{count}"), seats.place(seat)))
            .collect(),
        blocks: seats.blocks(),
        counts,
        notes,
        height: last.fold(0.0, f64::max) + 10.0,
    })
}

/// Returns the lines of all cables at drawn switches, one for parallel cables, and the number of other cables.
fn placed_cables(plan: &Plan, seats: &Seats<'_>, topology: &Topology) -> (Vec<PlacedCable>, usize) {
    let mut joined: BTreeMap<(u8, [Seat; 2]), ([Switch; 2], usize)> = BTreeMap::new();
    let mut hidden = 0;
    for (cable, switches) in &plan.cables {
        let ends = switches.map(|switch| seats.seat(switch));
        if ends.iter().any(|seat| seats.is_drawn(*seat)) {
            let line = joined.entry((cable.class, ends));
            line.or_insert((*switches, 0)).1 += 1;
        } else {
            hidden += 1;
        }
    }
    let classes = topology.classes();
    let placed = joined
        .into_iter()
        .map(|((class, places), (switches, count))| {
            let [from, to] = [0, 1].map(|end| match seats.is_drawn(places[end]) {
                true => plan.switch_name(switches[end]),
                false => "switches that are not drawn".to_owned(),
            });
            let ends = places.map(|seat| seats.place(seat));
            let class = usize::from(class);
            PlacedCable {
                class,
                name: format!("{} cable, {from} to {to} ({count})", classes[class].name),
                ends,
                bow: seats.bow(ends),
                count,
                drawn_end: usize::from(!seats.is_drawn(places[0])),
            }
        });
    (placed.collect(), hidden)
}
