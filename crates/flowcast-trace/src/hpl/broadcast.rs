//! What the processes of a row do for the broadcast of a panel, by process column.

use super::{Broadcast, Settings, column::rolled};

/// What one process does in the broadcast of a panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forwarding {
    /// It sends to these columns, in this order, when it has the panel: at once, or when a probe finds it from the column
    /// that is named.
    WhenItComes {
        /// Column that it gets the panel from; none for the owner.
        from: Option<u32>,
        /// Columns that it sends it to.
        to: Vec<u32>,
    },
    /// It takes part as soon as it is asked, and waits in each exchange.
    AtOnce(Vec<RowStep>),
}

/// An exchange of a process with another of its row; all sends are synchronous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowStep {
    /// Column of the other process.
    pub partner: u32,
    /// Bytes sent, if anything is.
    pub send: Option<u64>,
    /// Bytes received, if anything is.
    pub receive: Option<u64>,
}

/// What the process in a column does with a panel of so many bytes.
#[must_use]
pub fn forwarding(settings: &Settings, panel: u32, column: u32, bytes: u64) -> Forwarding {
    let columns = settings.columns;
    let root = panel % columns;
    let distance = (column + columns - root) % columns;
    match settings.broadcast {
        Broadcast::Long => {
            Forwarding::AtOnce(spread_and_roll(columns, distance, bytes, &|distance| {
                (root + distance) % columns
            }))
        }
        Broadcast::LongModified => {
            Forwarding::AtOnce(modified_long(root, columns, distance, bytes))
        }
        Broadcast::Ring => along(root, columns, distance, &[1]),
        Broadcast::RingModified => along(root, columns, distance, &[1, 2]),
        Broadcast::TwoRings => along(root, columns, distance, &[1, columns.div_ceil(2)]),
        Broadcast::TwoRingsModified => along(root, columns, distance, &[1, 2, columns.div_ceil(2)]),
    }
}

/// Rings that begin at these distances from the owner, which sends to the first process of each. Of the processes that the owner
/// sends to, that at distance 1 does not forward if one begins at 2.
fn along(root: u32, columns: u32, distance: u32, begins: &[u32]) -> Forwarding {
    let mut begins = begins.to_vec();
    begins.retain(|begin| *begin < columns);
    begins.dedup();
    let at = |distance: u32| (root + distance) % columns;
    if distance == 0 {
        return Forwarding::WhenItComes {
            from: None,
            to: begins.into_iter().map(at).collect(),
        };
    }
    let before = if begins.contains(&distance) {
        0
    } else {
        distance - 1
    };
    let next = distance + 1;
    let ends = next == columns || begins.contains(&next);
    Forwarding::WhenItComes {
        from: Some(at(before)),
        to: if ends { Vec::new() } else { vec![at(next)] },
    }
}

/// The owner sends the whole panel to the next column, which is ready then; the others spread and roll it.
fn modified_long(root: u32, columns: u32, distance: u32, bytes: u64) -> Vec<RowStep> {
    let at = |distance: u32| (root + distance) % columns;
    let whole = |partner: u32, send: Option<u64>, receive: Option<u64>| RowStep {
        partner: at(partner),
        send,
        receive,
    };
    match distance {
        1 => return vec![whole(0, None, Some(bytes))],
        0 if columns == 1 => return Vec::new(),
        _ => {}
    }
    let mut steps = Vec::new();
    if distance == 0 {
        steps.push(whole(1, Some(bytes), None));
    }
    if columns > 2 {
        let place = distance.saturating_sub(1);
        let beside = |place: u32| at(if place == 0 { 0 } else { place + 1 });
        steps.extend(spread_and_roll(columns - 1, place, bytes, &beside));
    }
    steps
}

/// The pieces go down a binomial tree, then around, by turns to either neighbour. Pieces have whole doubles; the last has the rest.
fn spread_and_roll(
    processes: u32,
    place: u32,
    bytes: u64,
    column: &dyn Fn(u32) -> u32,
) -> Vec<RowStep> {
    if processes < 2 {
        return Vec::new();
    }
    let doubles = bytes / 8;
    let piece = (doubles / u64::from(processes)).max(1);
    let begin = |place: u32| (u64::from(place) * piece).min(doubles);
    let end = |place: u32| {
        if place == processes - 1 {
            doubles
        } else {
            begin(place + 1)
        }
    };
    let mut steps = Vec::new();
    let mut bit = 1 << (processes - 1).ilog2();
    while bit > 0 {
        let (upper, low) = (place & bit != 0, place & (bit - 1) == 0);
        let far = place | bit;
        if low && far < processes {
            let last = (far + bit).min(processes) - 1;
            let size = 8 * (end(last) - begin(far));
            steps.push(RowStep {
                partner: column(if upper { place ^ bit } else { far }),
                send: (!upper).then_some(size),
                receive: upper.then_some(size),
            });
        }
        bit >>= 1;
    }
    let size = |place: usize| Some(8 * (end(place as u32) - begin(place as u32)));
    for round in 0..processes as usize - 1 {
        let turn = rolled(place as usize, round, processes as usize);
        steps.push(RowStep {
            partner: column(turn.partner as u32),
            send: size(turn.sent),
            receive: size(turn.received),
        });
    }
    steps
}
