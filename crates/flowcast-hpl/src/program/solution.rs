//! Solution of the triangular system at the end (`HPL_pdtrsv`).

use super::{ActionPurpose, Exchange, Kernel, Process, Task};

impl Process {
    /// Schedules a step of the solution. First, the right-hand side moves to the process column that has the last block of
    /// A. The blocks are then solved one after the other, backwards: the solution passes up the process column that has the
    /// block, and the changes of the next blocks go to the next process column. Last, the first block of the solution goes
    /// to all processes of its column.
    pub(super) fn solve(&mut self, step: u32) {
        let panels = self.settings.panels();
        if step < panels {
            self.tasks.push(Task::Solve(step + 1));
        }
        let tasks = match step {
            0 => self.move_right_side(),
            step if step == panels => self.replicate(),
            step => self.solve_block(panels - step),
        };
        self.tasks.extend(tasks.into_iter().rev());
    }

    fn move_right_side(&self) -> Vec<Task> {
        let settings = &self.settings;
        let last = (settings.panels() - 1) % settings.columns;
        let holder = settings.owner(settings.order, settings.columns);
        let rows = settings.owned(settings.order, self.row, settings.rows);
        if rows == 0 || last == holder {
            return Vec::new();
        }
        let bytes = Some(8 * rows);
        if self.column == holder {
            vec![exchange(settings.rank(self.row, last), bytes, None)]
        } else if self.column == last {
            vec![exchange(settings.rank(self.row, holder), None, bytes)]
        } else {
            Vec::new()
        }
    }

    fn solve_block(&self, block: u32) -> Vec<Task> {
        let settings = &self.settings;
        let columns = settings.columns;
        let (own_column, next_column) = (block % columns, (block - 1) % columns);
        // Rows of the next blocks, which the next process columns need first.
        let window = u64::from(settings.block) * u64::from((columns - 1).max(1));
        let end = settings.first(block);
        let rows_before = |index: u64| settings.owned(index, self.row, settings.rows);
        let soon = rows_before(end) - rows_before(end.saturating_sub(window));
        let change = Some(8 * soon).filter(|bytes| *bytes > 0);
        if self.column == own_column {
            let to = settings.rank(self.row, next_column);
            let send = change.filter(|_| columns > 1);
            let later = rows_before(end) - soon;
            self.pass_on(block, [soon, later], send.map(|_| exchange(to, send, None)))
        } else if self.column == next_column && change.is_some() {
            let from = settings.rank(self.row, own_column);
            vec![exchange(from, None, change)]
        } else {
            Vec::new()
        }
    }

    /// Tasks of a process of the block's column: it receives the solution from below, computes the changes that are needed
    /// soon, and forwards the solution.
    fn pass_on(&self, block: u32, [soon, later]: [u64; 2], change: Option<Task>) -> Vec<Task> {
        let settings = &self.settings;
        let rows = settings.rows;
        let above = settings.rank((self.row + rows - 1) % rows, self.column);
        let below = settings.rank((self.row + 1) % rows, self.column);
        let width = u64::from(settings.width(block));
        let solution = Some(8 * width);
        // Distance upwards from the process that has the block.
        let distance = (block % rows + rows - self.row) % rows;
        let mut tasks = Vec::new();
        if distance > 0 {
            tasks.push(exchange(below, None, solution));
        } else if rows > 1 {
            tasks.push(exchange(above, solution, None));
        }
        if soon > 0 {
            tasks.push(Task::Compute(Kernel::MultiplyVector(soon * width)));
        }
        tasks.extend(change);
        if distance > 0 && distance + 1 < rows {
            tasks.push(exchange(above, solution, None));
        }
        if later > 0 {
            tasks.push(Task::Compute(Kernel::MultiplyVector(later * width)));
        }
        tasks
    }

    /// Sends the first block of the solution to all processes of its column, down a tree.
    fn replicate(&self) -> Vec<Task> {
        let settings = &self.settings;
        let rows = settings.rows;
        let mut tasks = Vec::new();
        if self.column != 0 || rows == 1 {
            return tasks;
        }
        let bytes = Some(8 * u64::from(settings.width(0)));
        let mut bit = 1u32 << (rows - 1).ilog2();
        while bit > 0 {
            let other = self.row ^ bit;
            if self.row & (bit - 1) == 0 && other < rows {
                let sends = self.row & bit == 0;
                let partner = settings.rank(other, self.column);
                let (send, receive) = (bytes.filter(|_| sends), bytes.filter(|_| !sends));
                tasks.push(exchange(partner, send, receive));
            }
            bit >>= 1;
        }
        tasks
    }
}

fn exchange(partner: u32, send: Option<u64>, receive: Option<u64>) -> Task {
    Task::Exchange(Exchange {
        partner,
        send,
        receive,
        synchronous: false,
        purpose: ActionPurpose::Solution,
    })
}
