//! What each process does, one action after the other (`HPL_pdgesv`, `HPL_pdupdate`, `HPL_pdtrsv`).

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
    /// Multiplies an `m` by `k` with a `k` by `n` matrix.
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
        /// Right-hand sides.
        n: u64,
        /// Order of the triangle.
        k: u32,
    },
    /// Copies this many elements between rows of the matrix and a buffer: each from another cache line.
    CopyRows(u64),
    /// Copies this many elements between buffers.
    Copy(u64),
    /// Multiplies a matrix of this many elements with a vector.
    MultiplyVector(u64),
}

/// What a process does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HplAction {
    /// It computes.
    Compute(Kernel),
    /// It updates columns: [`HplSettings::update_kernels`].
    Update(Update),
    /// It exchanges messages with a rank and waits for both.
    Exchange(Exchange),
    /// It factors a panel together with its column.
    Factor(u32),
    /// It looks whether the panel's message from this rank is there: [`Process::answer`] 1 if so, or 0.
    Probe(u32),
    /// It updates blocks of its columns by a panel until a probe behind one of them finds the message of this rank, and probes on if
    /// there are none left: [`Process::answer`] with the columns that are updated.
    UpdateUntil {
        /// Sender of the message.
        from: u32,
        /// What is updated.
        update: Update,
    },
    /// It has ended.
    End,
}

/// Columns to update by a panel. With a single process row the swaps are local and part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Update {
    /// The panel.
    pub panel: u32,
    /// Columns of this process.
    pub columns: u64,
}

/// A receive that is posted, a send, a wait; either may be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The other rank.
    pub partner: u32,
    /// Bytes that are sent.
    pub send: Option<u64>,
    /// Bytes that are received.
    pub receive: Option<u64>,
    /// The send ends only when it is received, however short it is.
    pub synchronous: bool,
    /// It belongs to a panel's broadcast (its tag) and not to the column or the solution.
    pub purpose: ActionPurpose,
}

/// What an exchange is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionPurpose {
    /// Broadcast of a panel.
    Broadcast,
    /// Swap of rows and broadcast of U.
    Swap,
    /// The triangular solution.
    Solution,
}

/// The exchanges by which a panel's rows are swapped, in both ways.
#[derive(Debug)]
pub struct PanelSwaps {
    /// The panel.
    pub panel: u32,
    /// What is swapped.
    pub swapped: Swapped,
    /// By binary exchange, for each process row.
    pub binary: Vec<Vec<ColumnStep>>,
    /// By spread and roll.
    pub long: Option<SpreadAndRoll>,
}

impl HplSettings {
    /// What a rank computes to update columns, once the rows of U are there; with a single process row it swaps them first.
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
            // The panel's own process row takes U back into the matrix.
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
    /// From the pivots of a panel; only the ways that the settings may take.
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

    /// The next exchange of a process row, and the number of the one to ask for after it.
    fn step(&self, row: u32, long: bool, next: u32) -> Option<(ColumnStep, u32)> {
        match &self.long {
            Some(steps) if long => steps.step(row, next),
            _ => Some((*self.binary[row as usize].get(next as usize)?, next + 1)),
        }
    }
}

/// What a process has still to do, the last first.
#[derive(Debug, Clone, Copy)]
enum Task {
    Panel(u32),
    Factor(u32),
    /// Begins the broadcast of a panel.
    Broadcast(u32),
    /// Ends it.
    Await,
    /// Takes part in it from an exchange on.
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

/// What a process does for the broadcast of a panel.
#[derive(Debug)]
struct BroadcastPart {
    /// The rank whose message it probes for before it begins, if it does.
    from: Option<u32>,
    /// Its exchanges, the last first.
    tasks: Vec<Task>,
}

/// One process of a run.
#[derive(Debug)]
pub struct Process {
    settings: HplSettings,
    row: u32,
    column: u32,
    /// The panel at which it ends.
    end: u32,
    tasks: Vec<Task>,
    /// Its part of the broadcast that it has not done yet.
    awaited: Option<BroadcastPart>,
    /// The update during which the broadcast is probed for, when it was cut.
    cut: Option<Update>,
    /// Those of the panel that it updated by last.
    swaps: Option<Arc<PanelSwaps>>,
}

/// Gives the swaps of a panel.
pub trait Swaps {
    /// The swaps of this panel: always the same.
    fn panel_swaps(&mut self, panel: u32) -> Arc<PanelSwaps>;
}

impl Process {
    /// The process at a place of the grid, which begins with a panel, as if all before it were done.
    pub fn new(
        mut settings: HplSettings,
        row: u32,
        column: u32,
        panels: std::ops::Range<u32>,
    ) -> Process {
        // With a single process column there is nobody to be ahead of.
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

    /// The first panels are factored and broadcast one by one; then each is factored that many panels ahead.
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
                self.tasks.push(Task::Update(Update {
                    panel,
                    columns: u64::from(has_right_side),
                }));
            }
        }
        self.go_on_at(ahead);
        for panel in (panels.start..ahead).rev() {
            if panel + 1 < ahead {
                let columns = self.columns_between(panel + 1, ahead);
                self.tasks.push(Task::Update(Update { panel, columns }));
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

    /// The next action. An [`HplAction::Probe`] or [`HplAction::UpdateUntil`] is to be answered before the next call.
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

    /// Answers a probe: 1 if the message is there, or how many columns were updated when it was.
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

    fn go_on_at(&mut self, panel: u32) {
        if panel < self.end {
            self.tasks.push(Task::Panel(panel));
        }
    }

    /// Where a panel is ahead of its update by the depth.
    fn start_panel(&mut self, panel: u32) -> Option<HplAction> {
        self.go_on_at(panel + 1);
        let depth = self.settings.depth;
        let columns = self.settings.local_columns(panel + 1, self.column);
        let updating = panel - depth.min(panel);
        self.tasks.push(Task::Update(Update {
            panel: updating,
            columns,
        }));
        if depth == 0 {
            self.tasks.push(Task::Await);
        }
        self.tasks.push(Task::Broadcast(panel));
        if self.has_panel(panel) {
            self.tasks.push(Task::Factor(panel));
            for earlier in (panel - depth..panel).rev() {
                self.tasks.push(Task::Update(Update {
                    panel: earlier,
                    columns: u64::from(self.settings.width(panel)),
                }));
            }
        }
        None
    }

    /// Looks for the panel that is broadcast, unless this process has done its part: once, or while it updates what is given.
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

    /// Does this process's part of a broadcast, now that it can.
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

    /// One exchange of a broadcast after the other.
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
            // The panel's own rows lie together.
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

    /// One exchange of a swap after the other, each followed by a probe.
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

    /// Solves for the rows of U and multiplies: block by block while the broadcast is not done.
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
