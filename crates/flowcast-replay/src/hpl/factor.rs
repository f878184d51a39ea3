//! The factorization of a panel by its process column: for each of its columns a search for the pivot, in which all processes of
//! the column take part, and what each computes before the next.

use flowcast_trace::hpl::{PivotRows, PivotStep, Settings, pivot_search};

use super::machine::Machine;

/// Work on a column of a panel, for each local row.
#[derive(Debug, Clone, Default)]
struct ColumnWork {
    /// Bytes of each row that vector kernels read or write.
    bytes: f64,
    /// Calls of kernels.
    calls: f64,
    /// Multiplications that follow: columns of the product and of the first factor.
    products: Vec<(u32, u32)>,
}

/// The panel's columns in the program's recursion: halves, down to two columns (`NDIV` 2, `NBMIN` 2; right-looking, Crout inside).
fn works(width: u32) -> Vec<ColumnWork> {
    fn recurse(works: &mut Vec<ColumnWork>, width: u32) {
        if width <= 2 {
            for column in 0..width {
                // Scaling reads and writes the column; the next one is updated and searched for its largest element.
                let more = if column + 1 < width { 40.0 } else { 8.0 };
                works.push(ColumnWork {
                    bytes: 16.0 + more,
                    calls: 5.0,
                    products: Vec::new(),
                });
            }
            return;
        }
        let first = width.div_ceil(2).div_ceil(2) * 2;
        recurse(works, first);
        if let Some(last) = works.last_mut() {
            last.products.push((width - first, first));
        }
        recurse(works, width - first);
    }
    let mut all = Vec::new();
    recurse(&mut all, width);
    all
}

/// Times of the factorizations of one run.
pub(super) struct Factorization {
    search: Vec<PivotStep>,
    works: Vec<ColumnWork>,
    width: u32,
    times: Vec<f64>,
}

impl Factorization {
    pub(super) fn new(settings: &Settings) -> Factorization {
        Factorization {
            search: pivot_search(settings.rows),
            works: Vec::new(),
            width: 0,
            times: Vec::new(),
        }
    }

    /// From when each process of the column begins, by process row, to when it ends.
    pub(super) fn advance(
        &mut self,
        settings: &Settings,
        machine: &Machine,
        panel: u32,
        begins: &mut [f64],
    ) {
        let width = settings.width(panel);
        if self.width != width {
            self.works = works(width);
            self.width = width;
        }
        let root = panel % settings.rows;
        let rank = |distance: u32| {
            settings.rank(
                (root + distance) % settings.rows,
                panel % settings.columns,
            )
        };
        let rows = settings.rows;
        self.times.clear();
        self.times
            .extend((0..rows).map(|distance| begins[((root + distance) % rows) as usize]));
        let steps: Vec<_> = self
            .search
            .iter()
            .map(|step| {
                let (near, far) = (rank(step.near), rank(step.far));
                Meeting {
                    near: step.near as usize,
                    far: step.far as usize,
                    to_far: cost(machine, near, far, step.to_far, width),
                    to_near: cost(machine, far, near, step.to_near, width),
                }
            })
            .collect();
        let sharing = sharing(settings, machine, panel);
        let local: Vec<f64> = (0..rows)
            .map(|distance| settings.rows_below(panel, (root + distance) % rows) as f64)
            .collect();
        let per_row: Vec<(f64, f64)> = (0..rows)
            .map(|distance| per_row(machine, rank(distance), sharing))
            .collect();
        for work in &self.works {
            for step in &steps {
                let (near, far) = (self.times[step.near], self.times[step.far]);
                self.times[step.near] = (near + step.to_far.0).max(far + step.to_near.1);
                self.times[step.far] = (far + step.to_near.0).max(near + step.to_far.1);
            }
            for (distance, time) in self.times.iter_mut().enumerate() {
                let (cached, memory) = per_row[distance];
                *time += column_time(machine, rank(distance as u32), work, local[distance], [cached, memory]);
            }
        }
        for (distance, time) in self.times.iter().enumerate() {
            begins[(root as usize + distance) % rows as usize] = *time;
        }
    }
}

/// Ranks of a node that factor the panel together.
fn sharing(settings: &Settings, machine: &Machine, panel: u32) -> f64 {
    let column = panel % settings.columns;
    let node = machine.nodes[settings.rank(0, column) as usize];
    let beside = (0..settings.rows)
        .filter(|row| machine.nodes[settings.rank(*row, column) as usize] == node);
    beside.count().max(1) as f64
}

/// Bytes per second from cache and from memory.
fn per_row(machine: &Machine, _rank: u32, sharing: f64) -> (f64, f64) {
    let rates = &machine.rates;
    (
        rates.cache_rate,
        rates.memory_rate.min(rates.node_memory_rate / sharing),
    )
}

fn column_time(machine: &Machine, rank: u32, work: &ColumnWork, rows: f64, rates: [f64; 2]) -> f64 {
    let [cached, memory] = rates;
    // Two columns of the panel and those that they are searched with.
    let held = |columns: f64| rows * 8.0 * columns <= machine.rates.cache;
    let rate = |columns: f64| if held(columns) { cached } else { memory };
    let mut time = work.calls * machine.rates.call + work.bytes * rows / rate(2.0);
    for &(n, k) in &work.products {
        let (n, k) = (f64::from(n), f64::from(k));
        let bytes = 8.0 * rows * (k + 2.0 * n);
        time += machine
            .multiply(rank, rows * n * k)
            .max(bytes / rate(n + k));
    }
    time
}

struct Meeting {
    near: usize,
    far: usize,
    to_far: (f64, f64),
    to_near: (f64, f64),
}

/// Seconds of the sender, and until the other has received; if there is no message, nothing that anyone would wait for.
fn cost(machine: &Machine, from: u32, to: u32, rows: PivotRows, width: u32) -> (f64, f64) {
    match rows.bytes(width) {
        0 => (0.0, f64::NEG_INFINITY),
        bytes => (machine.send(bytes), machine.message(from, to, bytes)),
    }
}
