//! Broadcast of a panel along a row of processes: the actions of each process column.

use super::{ActionPurpose, Broadcast, Exchange, HplSettings, column::rolled};

/// Part of one process in the broadcast of a panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forwarding {
    /// Sends to these columns in this order as soon as it has the panel: immediately in the owner, otherwise when a probe
    /// finds the panel from the named column.
    WhenItComes {
        /// Column that sends the panel; `None` for the owner.
        from: Option<u32>,
        /// Columns to which the panel is sent.
        to: Vec<u32>,
    },
    /// Takes part at the first opportunity, without a probe, and waits in each exchange: [`broadcast_step`].
    AtOnce,
}

/// Part that the process in a column has in the broadcast of a panel.
pub fn forwarding(settings: &HplSettings, panel: u32, column: u32) -> Forwarding {
    use Broadcast::*;
    let columns = settings.columns;
    let root = panel % columns;
    let distance = (column + columns - root) % columns;
    match settings.broadcast {
        Long | LongModified => Forwarding::AtOnce,
        Ring => along(root, columns, distance, &[1]),
        RingModified => along(root, columns, distance, &[1, 2]),
        TwoRings => along(root, columns, distance, &[1, columns.div_ceil(2)]),
        TwoRingsModified => along(root, columns, distance, &[1, 2, columns.div_ceil(2)]),
    }
}

/// Rings that start at these distances from the owner, which sends to the first process of each. If a ring starts at
/// distance 2, the process at distance 1 receives from the owner but does not forward.
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

/// Exchange `number` of a process in the broadcast of a panel, if the process takes part immediately
/// ([`Forwarding::AtOnce`]). `None` after its last exchange. In the modified variant, the owner sends the whole panel to the
/// next column, whose part then ends; the other columns spread and roll it.
pub fn broadcast_step(
    settings: &HplSettings,
    panel: u32,
    [row, column]: [u32; 2],
    number: u32,
) -> Option<Exchange> {
    let (columns, bytes) = (settings.columns, settings.panel_bytes(panel, row));
    let root = panel % columns;
    let distance = (column + columns - root) % columns;
    let at = |distance: u32| settings.rank(row, (root + distance) % columns);
    if settings.broadcast == Broadcast::Long {
        return spread_and_roll(columns, distance, bytes, number, at);
    }
    match (distance, number) {
        (0, 0) => Some(exchange(at(1), Some(bytes), None, true)),
        (1, 0) => Some(exchange(at(0), None, Some(bytes), true)),
        (1, _) => None,
        _ => {
            let number = number - u32::from(distance == 0);
            spread_and_roll(
                columns - 1,
                distance.saturating_sub(1),
                bytes,
                number,
                |place| at(place + place.min(1)),
            )
        }
    }
}

/// Builds an exchange of a broadcast.
pub(super) fn exchange(
    partner: u32,
    send: Option<u64>,
    receive: Option<u64>,
    synchronous: bool,
) -> Exchange {
    Exchange {
        partner,
        send,
        receive,
        synchronous,
        purpose: ActionPurpose::Broadcast,
    }
}

/// The pieces go down a binomial tree, then around a ring, alternately to both neighbours. Each piece has whole doubles; the
/// last one has the remainder.
fn spread_and_roll(
    processes: u32,
    place: u32,
    bytes: u64,
    number: u32,
    rank: impl Fn(u32) -> u32,
) -> Option<Exchange> {
    let doubles = bytes / 8;
    let piece = (doubles / u64::from(processes)).max(1);
    let begin = |place: u32| {
        if place == processes {
            doubles
        } else {
            (u64::from(place) * piece).min(doubles)
        }
    };
    let size = |from: u32, end: u32| Some(8 * (begin(end) - begin(from)));
    let bits = (0..u32::BITS - 1).rev().map(|bit| 1 << bit);
    let tree = bits.filter(|bit| place & (bit - 1) == 0 && place | bit < processes);
    if let Some(bit) = tree.clone().nth(number as usize) {
        let far = place | bit;
        let size = size(far, (far + bit).min(processes));
        return Some(if far == place {
            exchange(rank(place ^ bit), None, size, true)
        } else {
            exchange(rank(far), size, None, true)
        });
    }
    let round = number as usize - tree.count();
    let turn = (round + 1 < processes as usize)
        .then(|| rolled(place as usize, round, processes as usize))?;
    let [partner, sent, received] =
        [turn.partner, turn.sent, turn.received].map(|place| place as u32);
    Some(exchange(
        rank(partner),
        size(sent, sent + 1),
        size(received, received + 1),
        true,
    ))
}
