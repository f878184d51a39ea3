//! Actions of each process, one after the other (`HPL_pdgesv`, `HPL_pdupdate`, `HPL_pdtrsv`).

mod solution;

use std::sync::Arc;

use super::{
    Forwarding, HplSettings,
    broadcast::{broadcast_step, exchange},
    column::{ColumnStep, SpreadAndRoll, Swapped},
    forwarding,
};

/// Computation of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Multiplies an `m` by `k` matrix with a `k` by `n` matrix.
    Multiply {
        /// Rows of the product.
        m: u64,
        /// Columns of the product.
        n: u64,
        /// Columns of the first factor.
        k: u32,
    },
    /// Solves a triangular system of order `k` for `n` columns.
    Solve {
        /// Number of right-hand sides.
        n: u64,
        /// Order of the triangle.
        k: u32,
    },
    /// Copies this number of elements between rows of the matrix and a buffer, each from a different cache line.
    CopyRows(u64),
    /// Copies this number of elements between buffers.
    Copy(u64),
    /// Multiplies a matrix with this number of elements by a vector.
    MultiplyVector(u64),
}

/// The next action of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HplAction {
    /// Executes a computation.
    Compute(Kernel),
    /// Updates columns without probes, by the computations of [`HplSettings::update_kernels`].
    Update(Update),
    /// Exchanges messages with a rank and waits for both.
    Exchange(Exchange),
    /// Factors a panel together with its process column.
    Factor(u32),
    /// Probes for the panel's message from this rank. [`Process::answer`] expects 1 if the message has arrived, 0 if not.
    Probe(u32),
    /// Updates columns by a panel, block by block, and probes after each block until the message from a rank has arrived.
    /// Continues to probe when all columns are updated. [`Process::answer`] expects the number of updated columns.
    UpdateUntil {
        /// Sender of the message.
        from: u32,
        /// Panel and columns of the update; no columns if the process only waits for the message.
        update: Update,
    },
    /// Ends the process, which has no more tasks.
    End,
}

/// Columns to update by a panel. With a single process row, the swaps are local and part of the update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Update {
    /// The panel.
    pub panel: u32,
    /// Number of columns of this process.
    pub columns: u64,
}

/// A posted receive, a send and a wait. The receive or the send may be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Rank of the partner.
    pub partner: u32,
    /// Number of bytes to send.
    pub send: Option<u64>,
    /// Number of bytes to receive.
    pub receive: Option<u64>,
    /// `true` if the send ends only when it is received, even if it is short.
    pub synchronous: bool,
    /// Purpose, which decides the tag.
    pub purpose: ActionPurpose,
}

/// Purpose of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionPurpose {
    /// Broadcast of a panel.
    Broadcast,
    /// Swap of rows, and broadcast of U.
    Swap,
    /// Solution of the triangular system at the end.
    Solution,
}

/// Exchanges that swap the rows of a panel, in both variants.
#[derive(Debug)]
pub struct PanelSwaps {
    /// The panel.
    pub panel: u32,
    /// Numbers of swapped rows.
    pub swapped: Swapped,
    /// Steps of the binary exchange, indexed by process row.
    pub binary: Vec<Vec<ColumnStep>>,
    /// Steps of spread and roll.
    pub long: Option<SpreadAndRoll>,
}

impl HplSettings {
    /// Computations of a rank that update columns after the rows of U have arrived. With a single process row, the rank
    /// swaps the rows first.
    pub fn update_kernels(&self, update: Update, rank: u32) -> [Kernel; 3] {
        let Update { panel, columns: n } = update;
        let (row, k) = (rank / self.columns, self.width(panel));
        let m = self.rows_below(panel, row);
        let elements = u64::from(k) * n;
        let solve = Kernel::Solve { n, k };
        let multiply = Kernel::Multiply { m, n, k };
        if self.rows == 1 {
            [Kernel::CopyRows(2 * elements), solve, multiply]
        } else {
            // The panel's own process row copies U back into the matrix.
            let back = if row == panel % self.rows {
                elements
            } else {
                0
            };
            [solve, multiply, Kernel::Copy(back)]
        }
    }
}

impl PanelSwaps {
    /// Computes the exchanges from the pivots of a panel, only for the variants that the settings may use.
    pub fn new(settings: &HplSettings, panel: u32, pivots: &[u64]) -> PanelSwaps {
        let swapped = Swapped::new(settings, panel, pivots);
        let narrow = u64::from(settings.width(panel));
        let widest = (0..settings.columns).map(|column| settings.local_columns(panel, column));
        let may_be_long = settings.swap.is_long(widest.max().unwrap_or(0));
        let may_be_binary = !settings.swap.is_long(narrow.min(1));
        PanelSwaps {
            panel,
            binary: if may_be_binary {
                swapped.binary_exchange()
            } else {
                Vec::new()
            },
            long: may_be_long.then(|| swapped.spread_and_roll()),
            swapped,
        }
    }

    /// The next exchange of a process row, and the number for the call after it.
    fn step(&self, row: u32, long: bool, next: u32) -> Option<(ColumnStep, u32)> {
        match &self.long {
            Some(steps) if long => steps.step(row, next),
            _ => Some((*self.binary[row as usize].get(next as usize)?, next + 1)),
        }
    }
}

/// Remaining tasks of a process, the last first.
#[derive(Debug, Clone, Copy)]
enum Task {
    Panel(u32),
    Factor(u32),
    /// Starts the broadcast of a panel.
    Broadcast(u32),
    /// Waits for the panel that is being broadcast and takes part in the broadcast, unless this is already done.
    Await,
    /// Takes part in the broadcast from exchange `number` on.
    Forward {
        panel: u32,
        number: u32,
    },
    Probe,
    Update(Update),
    Swap {
        update: Update,
        long: bool,
        next: u32,
    },
    Trail(Update),
    Exchange(Exchange),
    Compute(Kernel),
    Solve(u32),
}

/// Part of a process in the broadcast of a panel.
#[derive(Debug)]
struct BroadcastPart {
    /// Rank whose message the process probes for before it starts. `None` if it starts immediately.
    from: Option<u32>,
    /// Exchanges, the last first.
    tasks: Vec<Task>,
}

/// One process of a run.
#[derive(Debug)]
pub struct Process {
    settings: HplSettings,
    row: u32,
    column: u32,
    /// Number of the panel at which the process ends.
    end: u32,
    tasks: Vec<Task>,
    /// Part of the broadcast that the process has not executed yet.
    awaited: Option<BroadcastPart>,
    /// Interrupted update during which the process probes for the broadcast.
    cut: Option<Update>,
    /// Swaps of the last panel that the process used for an update.
    swaps: Option<Arc<PanelSwaps>>,
}

/// Provider of the swaps of panels.
pub trait Swaps {
    /// Swaps of this panel. Every call must return the same ones.
    fn panel_swaps(&mut self, panel: u32) -> Arc<PanelSwaps>;
}

impl Process {
    /// Process at a place of the grid. It starts with the first of `panels`, as if all panels before it were complete.
    pub fn new(
        mut settings: HplSettings,
        row: u32,
        column: u32,
        panels: std::ops::Range<u32>,
    ) -> Process {
        // Lookahead has no use with a single process column.
        if settings.columns == 1 {
            settings.depth = 0;
        }
        let mut process = Process {
            settings,
            row,
            column,
            end: panels.end,
            tasks: Vec::new(),
            awaited: None,
            cut: None,
            swaps: None,
        };
        process.begin(panels);
        process
    }

    /// Schedules the first `depth` panels, which are factored and broadcast one by one. Later panels are factored `depth`
    /// panels ahead.
    fn begin(&mut self, panels: std::ops::Range<u32>) {
        let HplSettings { depth, .. } = self.settings;
        let last = self.settings.panels();
        let ahead = (panels.start + depth).min(last);
        if panels.end == last {
            self.tasks.push(Task::Solve(0));
            let has_right_side = self
                .settings
                .owner(self.settings.order, self.settings.columns)
                == self.column;
            for panel in (last.saturating_sub(depth).max(panels.start)..last).rev() {
                self.schedule_update(panel, u64::from(has_right_side));
            }
        }
        self.go_on_at(ahead);
        for panel in (panels.start..ahead).rev() {
            if panel + 1 < ahead {
                let columns = self.columns_between(panel + 1, ahead);
                self.schedule_update(panel, columns);
            }
            self.tasks.push(Task::Await);
            self.tasks.push(Task::Broadcast(panel));
            if self.has_panel(panel) {
                self.tasks.push(Task::Factor(panel));
            }
        }
    }

    fn has_panel(&self, panel: u32) -> bool {
        panel % self.settings.columns == self.column
    }

    fn columns_between(&self, from: u32, to: u32) -> u64 {
        let owned = |panel: u32| {
            self.settings.owned(
                self.settings.first(panel),
                self.column,
                self.settings.columns,
            )
        };
        owned(to) - owned(from)
    }

    /// The next action. An [`HplAction::Probe`] or [`HplAction::UpdateUntil`] must be answered before the next call.
    pub fn next(&mut self, swaps: &mut dyn Swaps) -> HplAction {
        while let Some(task) = self.tasks.pop() {
            let action = match task {
                Task::Panel(panel) => self.start_panel(panel),
                Task::Factor(panel) => Some(HplAction::Factor(panel)),
                Task::Broadcast(panel) => {
                    self.awaited = (self.settings.columns > 1).then(|| self.part(panel));
                    None
                }
                Task::Await => self.probe(Some(Update {
                    panel: 0,
                    columns: 0,
                })),
                Task::Forward { panel, number } => self.forward(panel, number),
                Task::Probe => self.probe(None),
                Task::Update(update) => self.start_update(update, swaps),
                Task::Swap { update, long, next } => self.swap(update, long, next),
                Task::Trail(update) => self.trail(update),
                Task::Exchange(exchange) => Some(HplAction::Exchange(exchange)),
                Task::Compute(kernel) => Some(HplAction::Compute(kernel)),
                Task::Solve(step) => {
                    self.solve(step);
                    None
                }
            };
            if let Some(action) = action {
                return action;
            }
        }
        HplAction::End
    }

    /// Answers a probe: 1 if the message has arrived, or the number of columns that were updated when it arrived.
    pub fn answer(&mut self, found: u64) {
        match self.cut.take() {
            Some(update) => {
                let columns = update.columns - found.min(update.columns);
                if columns > 0 {
                    self.tasks.push(Task::Trail(Update { columns, ..update }));
                }
            }
            None if found == 0 => return,
            None => {}
        }
        self.take_part();
    }

    fn schedule_update(&mut self, panel: u32, columns: u64) {
        self.tasks.push(Task::Update(Update { panel, columns }));
    }

    fn go_on_at(&mut self, panel: u32) {
        if panel < self.end {
            self.tasks.push(Task::Panel(panel));
        }
    }

    /// Schedules a panel that is `depth` panels ahead of the update.
    fn start_panel(&mut self, panel: u32) -> Option<HplAction> {
        self.go_on_at(panel + 1);
        let depth = self.settings.depth;
        let columns = self.settings.local_columns(panel + 1, self.column);
        let updating = panel - depth.min(panel);
        self.schedule_update(updating, columns);
        if depth == 0 {
            self.tasks.push(Task::Await);
        }
        self.tasks.push(Task::Broadcast(panel));
        if self.has_panel(panel) {
            self.tasks.push(Task::Factor(panel));
            for earlier in (panel - depth..panel).rev() {
                self.schedule_update(earlier, u64::from(self.settings.width(panel)));
            }
        }
        None
    }

    /// Probes for the panel that is being broadcast, unless this process has completed its part: once, or during the given
    /// update.
    fn probe(&mut self, until: Option<Update>) -> Option<HplAction> {
        let Some(from) = self.awaited.as_ref()?.from else {
            self.take_part();
            return None;
        };
        self.cut = until;
        Some(match until {
            Some(update) => HplAction::UpdateUntil { from, update },
            None => HplAction::Probe(from),
        })
    }

    /// Schedules this process's part of a broadcast, which can now be executed.
    fn take_part(&mut self) {
        if let Some(part) = self.awaited.take() {
            self.tasks.extend(part.tasks);
        }
    }

    fn part(&self, panel: u32) -> BroadcastPart {
        let bytes = self.settings.panel_bytes(panel, self.row);
        let at = |column: u32| self.settings.rank(self.row, column);
        let exchange =
            |column: u32, send, receive| Task::Exchange(exchange(at(column), send, receive, false));
        match forwarding(&self.settings, panel, self.column) {
            Forwarding::WhenItComes { from, to } => {
                let sends = to.iter().rev();
                let sends = sends.map(|column| exchange(*column, Some(bytes), None));
                let received = from.map(|column| exchange(column, None, Some(bytes)));
                BroadcastPart {
                    from: from.map(at),
                    tasks: sends.chain(received).collect(),
                }
            }
            Forwarding::AtOnce => BroadcastPart {
                from: None,
                tasks: vec![Task::Forward { panel, number: 0 }],
            },
        }
    }

    /// Executes one exchange of a broadcast and schedules the next.
    fn forward(&mut self, panel: u32, number: u32) -> Option<HplAction> {
        let exchange = broadcast_step(&self.settings, panel, [self.row, self.column], number)?;
        let number = number + 1;
        self.tasks.push(Task::Forward { panel, number });
        Some(HplAction::Exchange(exchange))
    }

    fn start_update(&mut self, update: Update, swaps: &mut dyn Swaps) -> Option<HplAction> {
        let Update { panel, columns } = update;
        if columns == 0 {
            self.tasks.push(Task::Await);
            return None;
        }
        self.tasks.push(Task::Trail(update));
        if self.settings.rows > 1 {
            let long = self.settings.swap.is_long(columns);
            self.tasks.push(Task::Swap {
                update,
                long,
                next: 0,
            });
            if self.swaps.as_ref().is_none_or(|known| known.panel != panel) {
                self.swaps = Some(swaps.panel_swaps(panel));
            }
            let known = self.swaps.as_ref();
            let packed = known.map_or(0, |known| known.swapped.packed(self.row));
            let elements = u64::from(packed) * columns;
            // The panel's own rows are contiguous.
            let own = self.row == panel % self.settings.rows;
            self.tasks.push(Task::Compute(if own {
                Kernel::Copy(elements)
            } else {
                Kernel::CopyRows(elements)
            }));
        }
        self.tasks.push(Task::Probe);
        None
    }

    /// Executes one exchange of a swap and schedules the next. A probe follows each.
    fn swap(&mut self, update: Update, long: bool, next: u32) -> Option<HplAction> {
        let swaps = self.swaps.as_ref()?;
        let Some((step, next)) = swaps.step(self.row, long, next) else {
            let width = u64::from(self.settings.width(update.panel));
            return Some(HplAction::Compute(Kernel::Copy(width * update.columns)));
        };
        self.tasks.push(Task::Swap { update, long, next });
        if self.awaited.is_some() {
            self.tasks.push(Task::Probe);
        }
        let bytes =
            |rows: super::column::MatrixRows| (rows.count > 0).then(|| rows.bytes(update.columns));
        Some(HplAction::Exchange(Exchange {
            partner: self.settings.rank(step.partner, self.column),
            send: bytes(step.send),
            receive: bytes(step.receive),
            synchronous: false,
            purpose: ActionPurpose::Swap,
        }))
    }

    /// Solves for the rows of U and multiplies. Works block by block while the broadcast is incomplete.
    fn trail(&mut self, update: Update) -> Option<HplAction> {
        if let Some(part) = &self.awaited {
            if part.from.is_none() {
                self.tasks.push(Task::Trail(update));
            }
            return self.probe(Some(update));
        }
        Some(HplAction::Update(update))
    }
}
