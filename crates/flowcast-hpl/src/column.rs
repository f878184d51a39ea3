//! Exchanges between the processes of a column, indexed by process row: pivot rows while a panel is factored
//! (`HPL_pdmxswp`), and the rows that a panel's pivots swap (`HPL_pdlaswp00`: binary exchange; `HPL_pdlaswp01`: spread,
//! equilibration and roll).

use std::collections::BTreeMap;

use super::HplSettings;

/// One exchange of a process with another process of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnStep {
    /// Process row of the partner.
    pub partner: u32,
    /// Rows that are sent; no message is sent if there are none.
    pub send: MatrixRows,
    /// Rows that are received; no message is received if there are none.
    pub receive: MatrixRows,
}

/// Rows of the matrix in a message. Each has as many elements as columns are swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatrixRows {
    /// Number of rows; 0 if there is no message.
    pub count: u32,
    /// `true` if each row has one more element: its destination.
    pub with_place: bool,
}

impl MatrixRows {
    fn plain(count: u32) -> MatrixRows {
        MatrixRows {
            count,
            with_place: false,
        }
    }

    fn with_place(count: u32) -> MatrixRows {
        MatrixRows {
            count,
            with_place: true,
        }
    }

    /// Number of bytes for this number of columns.
    pub fn bytes(self, columns: u64) -> u64 {
        8 * u64::from(self.count) * (columns + u64::from(self.with_place))
    }
}

const NOTHING: MatrixRows = MatrixRows {
    count: 0,
    with_place: false,
};

/// Number of rows that a panel swaps, for the process row of their source and for the process row of their destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swapped {
    /// Number of rows that leave their place, indexed by the process row that has them.
    leaving: Vec<u32>,
    /// Number of rows of the panel's own process row that move into U or to another process row, indexed by the process row
    /// that gets them.
    spread: Vec<u32>,
    /// Process row of the panel.
    root: u32,
    width: u32,
}

impl Swapped {
    /// Counts the rows from the pivots: `pivots` has the row with which each column of a panel is swapped.
    pub fn new(settings: &HplSettings, panel: u32, pivots: &[u64]) -> Swapped {
        let first = settings.first(panel);
        let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
        for (source, &pivot) in (first..).zip(pivots) {
            let moved = *rows.entry(source).or_insert(source);
            if pivot != source {
                let other = rows.insert(pivot, moved).unwrap_or(pivot);
                rows.insert(source, other);
            }
        }
        let owner = |row: u64| settings.owner(row, settings.rows);
        let (width, root) = (settings.width(panel), panel % settings.rows);
        let mut leaving = vec![0; settings.rows as usize];
        let mut spread = leaving.clone();
        for (&destination, &source) in &rows {
            leaving[owner(source) as usize] += 1;
            let inside = destination - first < u64::from(width);
            if owner(source) == root && (owner(destination) != root || inside) {
                spread[owner(destination) as usize] += 1;
            }
        }
        Swapped {
            leaving,
            spread,
            root,
            width,
        }
    }

    /// Number of rows that a process row packs before it swaps.
    pub fn packed(&self, row: u32) -> u32 {
        self.leaving[row as usize]
    }

    fn processes(&self) -> u32 {
        self.leaving.len() as u32
    }

    /// Steps of the binary exchange, indexed by process row. The panel's process row sends U. The other process rows send
    /// the rows that they have packed, each with its place in U.
    pub fn binary_exchange(&self) -> Vec<Vec<ColumnStep>> {
        let processes = self.processes();
        let power = 1 << processes.ilog2();
        let beyond = processes - power;
        let at = |distance: u32| (self.root + distance) % processes;
        let mut steps = vec![Vec::new(); processes as usize];
        let u = MatrixRows::plain(self.width);
        let mut held: Vec<u32> = (0..processes)
            .map(|distance| self.leaving[at(distance) as usize])
            .collect();
        held[0] = 0;
        for distance in 0..beyond {
            let other = distance + power;
            let back = if distance == 0 { u } else { NOTHING };
            let packed = MatrixRows::with_place(held[other as usize]);
            exchange(&mut steps, [at(distance), at(other)], [back, packed]);
            held[distance as usize] += held[other as usize];
        }
        for step in 0..power.ilog2() {
            let bit = 1 << step;
            for distance in (0..power).filter(|distance| distance & bit == 0) {
                let other = distance | bit;
                let has_u = distance >> step == 0;
                let packed = |distance: u32| MatrixRows::with_place(held[distance as usize]);
                let sends = if has_u { u } else { packed(distance) };
                let pair = [at(distance), at(other)];
                exchange(&mut steps, pair, [sends, packed(other)]);
            }
            for distance in (0..power).filter(|distance| distance & bit == 0) {
                let both = held[distance as usize] + held[(distance | bit) as usize];
                held[distance as usize] = both;
                held[(distance | bit) as usize] = both;
            }
        }
        binomial(beyond, |from, to| {
            exchange(&mut steps, [at(power + from), at(power + to)], [u, NOTHING]);
        });
        for distance in 0..beyond {
            exchange(
                &mut steps,
                [at(distance), at(distance + power)],
                [u, NOTHING],
            );
        }
        steps
    }

    /// Exchanges of spread, equilibration and roll.
    pub fn spread_and_roll(&self) -> SpreadAndRoll {
        let (order, lengths) = self.logarithmic_order();
        let mut spread = vec![Vec::new(); order.len()];
        let mut starts = starts_of(&lengths);
        spread_right(&mut spread, &order, 0, &starts);
        equilibrate(&mut spread, &order, &mut starts);
        let mut places = order.clone();
        (0..)
            .zip(&order)
            .for_each(|(place, row)| places[*row as usize] = place);
        SpreadAndRoll {
            order,
            places,
            starts,
            spread,
        }
    }

    /// Process rows in the order in which U is spread, and the number of rows that each gets. The number of ones in the
    /// binary form of a distance is the logarithmic distance (`HPL_logsort`). No process has more rows than a process at a
    /// smaller logarithmic distance.
    fn logarithmic_order(&self) -> (Vec<u32>, Vec<u32>) {
        let processes = self.processes() as usize;
        let mut order: Vec<u32> = (0..self.processes())
            .map(|distance| (distance + self.root) % self.processes())
            .collect();
        let mut lengths: Vec<u32> = order.iter().map(|row| self.spread[*row as usize]).collect();
        for level in 1..=(0..processes).map(usize::count_ones).max().unwrap_or(0) {
            for near in (1..processes).filter(|place| place.count_ones() == level) {
                for far in (2..processes).filter(|place| place.count_ones() > level) {
                    if lengths[near] < lengths[far] {
                        lengths.swap(near, far);
                        order.swap(near, far);
                    }
                }
            }
        }
        (order, lengths)
    }
}

/// First row of each process in U, and the end of the last one.
fn starts_of(lengths: &[u32]) -> Vec<u32> {
    let mut starts = vec![0];
    for length in lengths {
        starts.push(starts[starts.len() - 1] + length);
    }
    starts
}

/// Adds a step to both processes: the first sends `sends[0]`, the second `sends[1]`. Adds none if there is nothing to send.
fn exchange(steps: &mut [Vec<ColumnStep>], pair: [u32; 2], sends: [MatrixRows; 2]) {
    if sends[0].count == 0 && sends[1].count == 0 {
        return;
    }
    for side in 0..2 {
        steps[pair[side] as usize].push(ColumnStep {
            partner: pair[1 - side],
            send: sends[side],
            receive: sends[1 - side],
        });
    }
}

/// Messages of a binomial tree over the processes from process 0, the farthest destination first.
fn binomial(processes: u32, mut message: impl FnMut(u32, u32)) {
    if processes < 2 {
        return;
    }
    let mut bit = 1 << (processes - 1).ilog2();
    while bit > 0 {
        for from in (0..processes).step_by(2 * bit as usize) {
            if from + bit < processes {
                message(from, from + bit);
            }
        }
        bit >>= 1;
    }
}

/// Sends pieces from the process at `source` in the order to the processes after it. Each process forwards the pieces of its
/// part of the tree.
fn spread_right(steps: &mut [Vec<ColumnStep>], order: &[u32], source: usize, starts: &[u32]) {
    let (behind, end) = (&order[source..], order.len());
    binomial(behind.len() as u32, |from, to| {
        let bit = to - from;
        let begin = source + to as usize;
        let count = starts[(begin + bit as usize).min(end)] - starts[begin];
        let pair = [behind[from as usize], behind[to as usize]];
        exchange(steps, pair, [MatrixRows::plain(count), NOTHING]);
    });
}

/// Sends pieces to the processes before it. HPL's message starts one process earlier than necessary.
fn spread_left(steps: &mut [Vec<ColumnStep>], order: &[u32], source: usize, starts: &[u32]) {
    binomial(source as u32 + 1, |from, to| {
        let bit = (to - from) as usize;
        let last = source - to as usize;
        let count = starts[last + 1] - starts[last.saturating_sub(bit)];
        let pair = [order[source - from as usize], order[last]];
        exchange(steps, pair, [MatrixRows::plain(count), NOTHING]);
    });
}

/// Makes the pieces of U as equal as possible before they are rolled (`HPL_equil`). Each process in turn spreads the rows
/// that it has in excess.
fn equilibrate(steps: &mut [Vec<ColumnStep>], order: &[u32], starts: &mut [u32]) {
    let processes = order.len();
    if processes <= 2 {
        return;
    }
    let rows = starts[processes];
    let (least, more) = (rows / processes as u32, rows % processes as u32);
    let most = rows.div_ceil(processes as u32);
    // HPL does not check the last piece.
    if starts[..processes]
        .windows(2)
        .all(|piece| [least, most].contains(&(piece[1] - piece[0])))
    {
        return;
    }
    let wanted = |place: usize| place as u32 * least + (place as u32).min(more);
    for place in 0..processes {
        let (begin, end) = (starts[place], starts[place + 1]);
        let left = begin < wanted(place);
        let right = wanted(place + 1) < end;
        if begin == end || !(left || right) {
            continue;
        }
        let pieces: Vec<u32> = (0..=processes)
            .map(|place| wanted(place).clamp(begin, end))
            .collect();
        if left {
            spread_left(steps, order, place, &pieces);
        }
        if right {
            spread_right(steps, order, place, &pieces);
        }
    }
    for (place, start) in starts.iter_mut().enumerate() {
        *start = wanted(place);
    }
}

/// Exchanges of spread, equilibration and roll. Those of the roll are computed one by one, because there is one for each
/// pair of processes.
#[derive(Debug)]
pub struct SpreadAndRoll {
    /// Process rows in the order of their pieces of U, and the place of each process row in it.
    order: Vec<u32>,
    places: Vec<u32>,
    /// First row of each place's piece before the roll, and the end of the last one.
    starts: Vec<u32>,
    /// Exchanges before the roll, indexed by process row.
    spread: Vec<Vec<ColumnStep>>,
}

impl SpreadAndRoll {
    /// The next exchange of a process row, and the number for the call after it. The first exchange has number 0. In the
    /// roll, every process gets all pieces: neighbours exchange them alternately on both sides (`HPL_rollT`).
    pub fn step(&self, row: u32, next: u32) -> Option<(ColumnStep, u32)> {
        let spread = &self.spread[row as usize];
        if let Some(step) = spread.get(next as usize) {
            return Some((*step, next + 1));
        }
        let (processes, place) = (self.order.len(), self.places[row as usize] as usize);
        let piece = |place: usize| MatrixRows::plain(self.starts[place + 1] - self.starts[place]);
        let mut rounds = next as usize - spread.len()..processes - 1;
        rounds.find_map(|round| {
            let turn = rolled(place, round, processes);
            let step = ColumnStep {
                partner: self.order[turn.partner],
                send: piece(turn.sent),
                receive: piece(turn.received),
            };
            let behind = (spread.len() + round + 1) as u32;
            (step.send.count + step.receive.count > 0).then_some((step, behind))
        })
    }
}

/// One round of a roll for one process: its partner and the pieces that are exchanged.
#[derive(Debug, Clone, Copy)]
pub(super) struct RollTurn {
    pub partner: usize,
    pub sent: usize,
    pub received: usize,
}

pub(super) fn rolled(place: usize, round: usize, processes: usize) -> RollTurn {
    let up = |by: usize| (place + by) % processes;
    let down = |by: usize| (place + processes - by % processes) % processes;
    let half = round / 2;
    if (place + round) % 2 == 1 {
        RollTurn {
            partner: down(1),
            sent: up(half),
            received: down(half + 1),
        }
    } else {
        RollTurn {
            partner: up(1),
            sent: down(half),
            received: up(half + 1),
        }
    }
}

/// Content of a message in the search for a pivot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PivotRows {
    /// No message.
    None,
    /// The panel's own row.
    Own,
    /// The row with the largest element, and its number.
    Largest,
    /// The panel's own row, and the row with the largest element with its number.
    Both,
}

impl PivotRows {
    /// Size of the message in bytes, for a panel with `width` columns.
    pub fn bytes(self, width: u32) -> u64 {
        let width = u64::from(width);
        8 * match self {
            PivotRows::None => 0,
            PivotRows::Own => width,
            PivotRows::Largest => width + 4,
            PivotRows::Both => 2 * width + 4,
        }
    }
}

/// An exchange in the search for a pivot. Distances are counted from the process row that has the panel's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PivotStep {
    /// Distance of the first process.
    pub near: u32,
    /// Distance of the second process.
    pub far: u32,
    /// Message of the first process to the second.
    pub to_far: PivotRows,
    /// Message of the second process to the first.
    pub to_near: PivotRows,
}

/// The search for the pivot of one column among the process rows (`HPL_pdmxswp`). The order keeps each process's exchanges
/// in sequence.
pub fn pivot_search(processes: u32) -> Vec<PivotStep> {
    use PivotRows::{Both, Largest, None, Own};
    let power = 1 << processes.ilog2();
    let beyond = processes - power;
    let mut steps = Vec::new();
    let mut push = |near: u32, far: u32, to_far: PivotRows, to_near: PivotRows| {
        steps.push(PivotStep {
            near,
            far,
            to_far,
            to_near,
        });
    };
    for near in 0..beyond {
        push(
            near,
            near + power,
            if near == 0 { Own } else { None },
            Largest,
        );
    }
    for step in 0..power.ilog2() {
        for near in (0..power).filter(|near| near >> step & 1 == 0) {
            let to_far = if near >> step == 0 { Both } else { Largest };
            push(near, near | 1 << step, to_far, Largest);
        }
    }
    binomial(beyond, |from, to| push(power + from, power + to, Own, None));
    for near in 0..beyond {
        push(near, near + power, Largest, None);
    }
    steps
}
