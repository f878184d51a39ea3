//! Settings of a run as in HPL.dat, and the distribution of the matrix over the processes.

use std::{fmt, str::FromStr};

use flowcast_units::named;

named! {
    /// Algorithm that broadcasts a factored panel to the other process columns (`BCASTs` of HPL.dat, in its order).
    pub enum Broadcast {
        /// Along a ring.
        Ring = "1rg",
        /// A ring in which the next owner receives first and does not forward.
        RingModified = "1rM",
        /// Two rings, each with half of the processes.
        TwoRings = "2rg",
        /// Two rings without the next owner, which receives first.
        TwoRingsModified = "2rM",
        /// Pieces are spread and rolled.
        Long = "lng",
        /// `Long` without the next owner, which receives the whole panel first.
        LongModified = "lnM",
    }
}

/// Algorithm that swaps rows and distributes the row block U to all processes of a column (`SWAP` of HPL.dat).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Swap {
    /// Binary exchange.
    Binary,
    /// Spread and roll.
    Long,
    /// Spread and roll for more columns than this, binary exchange otherwise.
    Mix(u32),
}

use Swap::*;

impl Swap {
    /// `true` if this number of columns is swapped by spread and roll.
    pub fn is_long(self, columns: u64) -> bool {
        match self {
            Binary => false,
            Long => true,
            Mix(threshold) => columns > u64::from(threshold),
        }
    }
}

/// Settings of a run of HPL: its matrix, grid and algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HplSettings {
    /// Order of the matrix, N.
    pub order: u64,
    /// Block size, NB.
    pub block: u32,
    /// Number of process rows, P.
    pub rows: u32,
    /// Number of process columns, Q.
    pub columns: u32,
    /// Lookahead depth: number of panels that are factored ahead.
    pub depth: u32,
    /// Broadcast algorithm for panels.
    pub broadcast: Broadcast,
    /// Algorithm for the swap of rows and the broadcast of U.
    pub swap: Swap,
}

impl HplSettings {
    /// Number of processes, P·Q. Each process is a rank.
    pub fn ranks(&self) -> u32 {
        self.rows * self.columns
    }

    /// Rank at a place of the grid, in row-major order (`PMAP`).
    pub fn rank(&self, row: u32, column: u32) -> u32 {
        row * self.columns + column
    }

    /// Number of panels of the factorization.
    pub fn panels(&self) -> u32 {
        self.order.div_ceil(u64::from(self.block)) as u32
    }

    /// First row and column of a panel; N after the last panel.
    pub fn first(&self, panel: u32) -> u64 {
        (u64::from(panel) * u64::from(self.block)).min(self.order)
    }

    /// Number of columns of a panel.
    pub fn width(&self, panel: u32) -> u32 {
        (self.first(panel + 1) - self.first(panel)) as u32
    }

    /// Number of rows of a process row, from the panel's first row on.
    pub fn local_rows(&self, panel: u32, row: u32) -> u64 {
        self.owned(self.order, row, self.rows) - self.owned(self.first(panel), row, self.rows)
    }

    /// Number of rows of a process row below the panel's own: the rows of L2.
    pub fn rows_below(&self, panel: u32, row: u32) -> u64 {
        let own = row == panel % self.rows;
        self.local_rows(panel, row) - if own { u64::from(self.width(panel)) } else { 0 }
    }

    /// Number of columns of a process column, from the panel's first column on, the right-hand side included.
    pub fn local_columns(&self, panel: u32, column: u32) -> u64 {
        self.owned(self.order + 1, column, self.columns)
            - self.owned(self.first(panel), column, self.columns)
    }

    /// Size of a panel's broadcast in a process row, in bytes: L2, L1, the pivots and a flag.
    pub fn panel_bytes(&self, panel: u32, row: u32) -> u64 {
        let width = u64::from(self.width(panel));
        8 * (self.rows_below(panel, row) * width + width * width + width + 1)
    }

    /// Number of the first `indices` indices that a process owns in the block-cyclic distribution over `processes`.
    pub(super) fn owned(&self, indices: u64, process: u32, processes: u32) -> u64 {
        let (block, processes) = (u64::from(self.block), u64::from(processes));
        let (blocks, rest) = (indices / block, indices % block);
        let (rounds, last) = (blocks / processes, blocks % processes);
        let process = u64::from(process);
        rounds * block
            + match process.cmp(&last) {
                std::cmp::Ordering::Less => block,
                std::cmp::Ordering::Equal => rest,
                std::cmp::Ordering::Greater => 0,
            }
    }

    /// Process that owns an index.
    pub(super) fn owner(&self, index: u64, processes: u32) -> u32 {
        (index / u64::from(self.block) % u64::from(processes)) as u32
    }
}

impl FromStr for Broadcast {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Broadcast::from_name(text).ok_or_else(|| format!("expected one of: {}", Broadcast::names()))
    }
}

impl FromStr for Swap {
    type Err = String;

    /// Parses `binary`, `long`, `mix` (with HPL.dat's default threshold of 64) or `mix:THRESHOLD`.
    fn from_str(text: &str) -> Result<Self, String> {
        let swap = match text {
            "binary" => Some(Binary),
            "long" => Some(Long),
            "mix" => Some(Mix(64)),
            _ => text
                .strip_prefix("mix:")
                .and_then(|threshold| Some(Mix(threshold.parse().ok()?))),
        };
        swap.ok_or_else(|| "expected binary, long, mix or mix:THRESHOLD".to_owned())
    }
}

impl fmt::Display for Swap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Binary => formatter.write_str("binary"),
            Long => formatter.write_str("long"),
            Mix(threshold) => write!(formatter, "mix:{threshold}"),
        }
    }
}
