//! Factorization of a panel by its process column. For each column of the panel, all processes of the process column search
//! for the pivot and then compute until the next search.

use crate::{
    ColumnWork, HplSettings, KernelRates, PivotRows, PivotStep, panel_columns, pivot_search,
};

use super::machine::Machine;

/// Factorizations of one run.
pub(super) struct Factorization {
    search: Vec<PivotStep>,
    works: Vec<ColumnWork>,
    /// Kernel rates of a rank, indexed by process column. The ranks of a node that factor a panel at the same time share its
    /// memory.
    rates: Vec<KernelRates>,
}

/// Two processes that exchange rows in the search for a pivot. Each has its distance from the panel's process row.
struct Meeting {
    near: usize,
    far: usize,
    to_far: MessageSeconds,
    to_near: MessageSeconds,
}

/// Time of a message, in seconds: for the sender, and until it is received.
#[derive(Clone, Copy)]
struct MessageSeconds {
    sent: f64,
    received: f64,
}

impl Factorization {
    pub(super) fn new(settings: &HplSettings, machine: &Machine) -> Factorization {
        Factorization {
            search: pivot_search(settings.rows),
            works: Vec::new(),
            rates: (0..settings.columns)
                .map(|column| machine.rates_beside(together(settings, machine, column)))
                .collect(),
        }
    }

    /// Replaces the start times of the column's processes by their end times. `times` is indexed by process row.
    pub(super) fn advance(
        &mut self,
        settings: &HplSettings,
        machine: &Machine,
        panel: u32,
        times: &mut [f64],
    ) {
        let (width, rows) = (settings.width(panel), settings.rows);
        if self.works.len() != width as usize {
            self.works = panel_columns(width);
        }
        let root = panel % rows;
        let own_column = panel % settings.columns;
        let row = |distance: u32| (root + distance) % rows;
        let rank = |distance: u32| settings.rank(row(distance), own_column);
        times.rotate_left(root as usize);
        let meetings: Vec<Meeting> = self
            .search
            .iter()
            .map(|step| Meeting {
                near: step.near as usize,
                far: step.far as usize,
                to_far: message(
                    machine,
                    [rank(step.near), rank(step.far)],
                    step.to_far,
                    width,
                ),
                to_near: message(
                    machine,
                    [rank(step.far), rank(step.near)],
                    step.to_near,
                    width,
                ),
            })
            .collect();
        let rates = &self.rates[own_column as usize];
        for (column, work) in (1..).zip(&self.works) {
            for meeting in &meetings {
                let (near, far) = (times[meeting.near], times[meeting.far]);
                let Meeting {
                    to_far, to_near, ..
                } = meeting;
                times[meeting.near] = (near + to_far.sent).max(far + to_near.received);
                times[meeting.far] = (far + to_near.sent).max(near + to_far.received);
            }
            for (distance, time) in (0..).zip(&mut *times) {
                let above = if distance == 0 { column } else { 0 };
                let below = settings
                    .local_rows(panel, row(distance))
                    .saturating_sub(above);
                let processor = &machine.processors[rank(distance) as usize];
                *time += rates.column_time(work, below, processor).as_seconds();
            }
        }
        times.rotate_right(root as usize);
    }
}

/// Maximum number of ranks of a node that factor a panel of this column at the same time.
fn together(settings: &HplSettings, machine: &Machine, column: u32) -> u32 {
    let mut ranks = std::collections::BTreeMap::new();
    for row in 0..settings.rows {
        let node = machine.nodes[settings.rank(row, column) as usize];
        *ranks.entry(node).or_insert(0) += 1;
    }
    ranks.into_values().max().unwrap_or(1)
}

/// Returns the time of a message between two ranks. An empty message delays neither rank.
fn message(machine: &Machine, [from, to]: [u32; 2], rows: PivotRows, width: u32) -> MessageSeconds {
    match rows.bytes(width) {
        0 => MessageSeconds {
            sent: 0.0,
            received: f64::NEG_INFINITY,
        },
        bytes => {
            let channel = machine.channel(from, to);
            MessageSeconds {
                sent: channel.send(bytes),
                received: channel.message(bytes),
            }
        }
    }
}
