//! A run in one fixed order: computations and exchanges of each process, with every step of the panels' factorization.

use std::{collections::VecDeque, sync::Arc};

use flowcast_units::{Rank, Time};

use super::{
    ActionPurpose, CallSpread, ColumnWork, Exchange, HplAction, HplSettings, Kernel, KernelRates,
    PanelSwaps, Pivots, Process, Processor, Swaps, panel_columns, pivot_search,
};

/// A run of HPL in which all probes succeed: a process waits for a panel at its first probe for it.
#[derive(Debug, Clone)]
pub struct Script {
    settings: HplSettings,
    rates: KernelRates,
    spread: CallSpread,
    /// Processor of each rank.
    processors: Vec<Processor>,
    swaps: Vec<Arc<PanelSwaps>>,
}

/// The next step of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScriptStep {
    /// Computes for this time, in whole nanoseconds.
    Compute(Time),
    /// Exchanges messages with another process and waits for both.
    Exchange(Exchange),
}

impl Script {
    /// Builds the script for these processors, one for each rank.
    ///
    /// # Panics
    /// If there are fewer processors than ranks, or fewer given pivots than columns of the matrix.
    pub fn new(
        settings: HplSettings,
        pivots: &Pivots,
        rates: KernelRates,
        processors: Vec<Processor>,
    ) -> Script {
        assert!(processors.len() >= settings.ranks() as usize);
        let swaps = (0..settings.panels())
            .map(|panel| PanelSwaps::new(&settings, panel, &pivots.rows(&settings, panel)))
            .map(Arc::new)
            .collect();
        Script {
            settings,
            rates,
            spread: CallSpread::default(),
            processors,
            swaps,
        }
    }

    /// The script with products whose times differ from call to call.
    pub fn with_spread(self, spread: CallSpread) -> Script {
        Script { spread, ..self }
    }

    /// Matrix, grid and algorithms of the run.
    pub fn settings(&self) -> &HplSettings {
        &self.settings
    }

    /// Steps of a rank, from the first panel to the end of the solution.
    pub fn steps(&self, rank: Rank) -> ScriptSteps<'_> {
        let columns = self.settings.columns;
        let (row, column) = (rank.0 / columns, rank.0 % columns);
        ScriptSteps {
            script: self,
            processor: self.processors[rank.index()],
            row,
            column,
            process: Process::new(self.settings, row, column, 0..self.settings.panels()),
            computed: Time::ZERO,
            ready: VecDeque::new(),
            ended: false,
        }
    }
}

/// Iterator over the steps of one process.
#[derive(Debug)]
pub struct ScriptSteps<'a> {
    script: &'a Script,
    processor: Processor,
    row: u32,
    column: u32,
    process: Process,
    /// Computation time that was not yet returned as a step.
    computed: Time,
    ready: VecDeque<ScriptStep>,
    ended: bool,
}

struct KnownSwaps<'a>(&'a [Arc<PanelSwaps>]);

impl Swaps for KnownSwaps<'_> {
    fn panel_swaps(&mut self, panel: u32) -> Arc<PanelSwaps> {
        Arc::clone(&self.0[panel as usize])
    }
}

impl Iterator for ScriptSteps<'_> {
    type Item = ScriptStep;

    fn next(&mut self) -> Option<ScriptStep> {
        use HplAction::*;
        while self.ready.is_empty() && !self.ended {
            match self.process.next(&mut KnownSwaps(&self.script.swaps)) {
                Compute(kernel) => {
                    self.compute(self.script.rates.time(kernel, &self.processor));
                }
                Update(update) => {
                    let settings = &self.script.settings;
                    let rank = settings.rank(self.row, self.column);
                    let Script { rates, spread, .. } = self.script;
                    for kernel in settings.update_kernels(update, rank) {
                        let factor = match kernel {
                            Kernel::Multiply { .. } => {
                                spread.factor(&self.processor, rank, update.panel)
                            }
                            _ => 1.0,
                        };
                        self.compute(rates.time(kernel, &self.processor) * factor);
                    }
                }
                Exchange(exchange) => self.exchange(exchange),
                Factor(panel) => self.factor(panel),
                Probe(_) => self.process.answer(1),
                // The probe before the update has found the panel, so no columns are updated block by block.
                UpdateUntil { .. } => self.process.answer(0),
                End => {
                    self.give_computed();
                    self.ended = true;
                }
            }
        }
        self.ready.pop_front()
    }
}

impl ScriptSteps<'_> {
    fn compute(&mut self, time: Time) {
        self.computed += time;
    }

    fn give_computed(&mut self) {
        let computed = std::mem::replace(&mut self.computed, Time::ZERO).whole_nanos();
        if computed != Time::ZERO {
            self.ready.push_back(ScriptStep::Compute(computed));
        }
    }

    fn exchange(&mut self, exchange: Exchange) {
        self.give_computed();
        self.ready.push_back(ScriptStep::Exchange(exchange));
    }

    /// Executes the factorization column by column: the search for the pivot, then the computation until the next search.
    fn factor(&mut self, panel: u32) {
        let settings = &self.script.settings;
        let root = panel % settings.rows;
        let distance = (self.row + settings.rows - root) % settings.rows;
        let width = settings.width(panel);
        let rows = settings.local_rows(panel, self.row);
        let search = self.pivot_exchanges(distance, root, width);
        for (column, work) in (1..).zip(panel_columns(width)) {
            search.iter().for_each(|exchange| self.exchange(*exchange));
            let above = if distance == 0 { column } else { 0 };
            self.column(&work, rows.saturating_sub(above));
        }
    }

    fn column(&mut self, work: &ColumnWork, rows: u64) {
        self.compute(self.script.rates.column_time(work, rows, &self.processor));
    }

    fn pivot_exchanges(&self, own: u32, root: u32, width: u32) -> Vec<Exchange> {
        let settings = &self.script.settings;
        let mut exchanges = Vec::new();
        for step in pivot_search(settings.rows) {
            let (other, send, receive) = match own {
                own if own == step.near => (step.far, step.to_far, step.to_near),
                own if own == step.far => (step.near, step.to_near, step.to_far),
                _ => continue,
            };
            let bytes = |bytes: u64| (bytes > 0).then_some(bytes);
            exchanges.push(Exchange {
                partner: settings.rank((root + other) % settings.rows, self.column),
                send: bytes(send.bytes(width)),
                receive: bytes(receive.bytes(width)),
                synchronous: false,
                purpose: ActionPurpose::Swap,
            });
        }
        exchanges
    }
}
