//! What HPL.dat says of a run, and which part of the matrix each process has.

use std::{fmt, str::FromStr};

/// How a factored panel reaches the other process columns (`BCASTs` of HPL.dat, in its order).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broadcast {
    /// `1rg`: around a ring.
    Ring,
    /// `1rM`: a ring whose next owner receives first and does not forward.
    RingModified,
    /// `2rg`: two rings of half the processes.
    TwoRings,
    /// `2rM`: two rings beside the next owner.
    TwoRingsModified,
    /// `lng`: pieces are spread and rolled.
    Long,
    /// `lnM`: the same beside the next owner.
    LongModified,
}

impl Broadcast {
    /// All, in the order of HPL.dat's numbers.
    pub const ALL: [(&'static str, Broadcast); 6] = [
        ("1rg", Broadcast::Ring),
        ("1rM", Broadcast::RingModified),
        ("2rg", Broadcast::TwoRings),
        ("2rM", Broadcast::TwoRingsModified),
        ("lng", Broadcast::Long),
        ("lnM", Broadcast::LongModified),
    ];
}

/// How rows are swapped and the row block U gets to all processes of a column (`SWAP` of HPL.dat).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Swap {
    /// Binary exchange.
    Binary,
    /// Spread and roll.
    Long,
    /// Spread and roll for more columns than this, binary exchange for others.
    Mix(u32),
}

impl Swap {
    /// Whether so many columns are swapped by spread and roll.
    pub fn is_long(self, columns: u64) -> bool {
        match self {
            Swap::Binary => false,
            Swap::Long => true,
            Swap::Mix(threshold) => columns > u64::from(threshold),
        }
    }
}

/// A run of HPL: its matrix, grid and algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HplSettings {
    /// Order of the matrix, N.
    pub order: u64,
    /// Block size, NB.
    pub block: u32,
    /// Process rows, P.
    pub rows: u32,
    /// Process columns, Q.
    pub columns: u32,
    /// Panels that are factored ahead.
    pub depth: u32,
    /// Broadcast of panels.
    pub broadcast: Broadcast,
    /// Swaps.
    pub swap: Swap,
}

impl HplSettings {
    /// Processes.
    pub fn ranks(&self) -> u32 {
        self.rows * self.columns
    }

    /// Rank of a place in the grid, by rows (`PMAP` row-major).
    pub fn rank(&self, row: u32, column: u32) -> u32 {
        row * self.columns + column
    }

    /// Panels of the factorization.
    pub fn panels(&self) -> u32 {
        self.order.div_ceil(u64::from(self.block)) as u32
    }

    /// First row and column of a panel; N behind the last.
    pub fn first(&self, panel: u32) -> u64 {
        (u64::from(panel) * u64::from(self.block)).min(self.order)
    }

    /// Columns of a panel.
    pub fn width(&self, panel: u32) -> u32 {
        (self.first(panel + 1) - self.first(panel)) as u32
    }

    /// Rows from a panel's first on that a process row has.
    pub fn local_rows(&self, panel: u32, row: u32) -> u64 {
        self.owned(self.order, row, self.rows) - self.owned(self.first(panel), row, self.rows)
    }

    /// Rows below a panel's own that a process row has: those of L2.
    pub fn rows_below(&self, panel: u32, row: u32) -> u64 {
        let own = row == panel % self.rows;
        self.local_rows(panel, row) - if own { u64::from(self.width(panel)) } else { 0 }
    }

    /// Columns from a panel's first on, with the right-hand side, that a process column has.
    pub fn local_columns(&self, panel: u32, column: u32) -> u64 {
        self.owned(self.order + 1, column, self.columns)
            - self.owned(self.first(panel), column, self.columns)
    }

    /// Bytes of a panel's broadcast in a process row: L2, L1, the pivots and a flag.
    pub fn panel_bytes(&self, panel: u32, row: u32) -> u64 {
        let width = u64::from(self.width(panel));
        8 * (self.rows_below(panel, row) * width + width * width + width + 1)
    }

    /// Of the first so many indices, those that one of `processes` has in the block-cyclic distribution.
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

    /// The process that has an index.
    pub(super) fn owner(&self, index: u64, processes: u32) -> u32 {
        (index / u64::from(self.block) % u64::from(processes)) as u32
    }
}

impl FromStr for Broadcast {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Broadcast::ALL.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, broadcast)| *broadcast)
            .ok_or_else(|| "expected one of: 1rg, 1rM, 2rg, 2rM, lng, lnM".to_owned())
    }
}

impl fmt::Display for Broadcast {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Broadcast::ALL.iter().find(|(_, known)| known == self);
        formatter.write_str(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for Swap {
    type Err = String;

    /// `binary`, `long`, `mix` (with the threshold of 64 that HPL.dat comes with) or `mix:THRESHOLD`.
    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected binary, long, mix or mix:THRESHOLD";
        match text.split_once(':') {
            None => match text {
                "binary" => Ok(Swap::Binary),
                "long" => Ok(Swap::Long),
                "mix" => Ok(Swap::Mix(64)),
                _ => Err(EXPECTED.to_owned()),
            },
            Some(("mix", threshold)) => threshold
                .parse()
                .map(Swap::Mix)
                .map_err(|_| EXPECTED.to_owned()),
            Some(_) => Err(EXPECTED.to_owned()),
        }
    }
}

impl fmt::Display for Swap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Swap::Binary => formatter.write_str("binary"),
            Swap::Long => formatter.write_str("long"),
            Swap::Mix(threshold) => write!(formatter, "mix:{threshold}"),
        }
    }
}
