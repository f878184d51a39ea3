//! Pivots: the row with which each column of the matrix is swapped.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::HplSettings;

/// Pivots of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pivots {
    /// Each row below is equally likely, as in a random matrix.
    Random {
        /// Seed of the random numbers.
        seed: u64,
    },
    /// Global rows with which the columns are swapped, indexed by column.
    Given(Vec<u64>),
}

impl Pivots {
    /// Pivot rows of a panel's columns.
    pub fn rows(&self, settings: &HplSettings, panel: u32) -> Vec<u64> {
        let (first, end) = (settings.first(panel), settings.first(panel + 1));
        match self {
            Pivots::Given(rows) => rows[first as usize..end as usize].to_vec(),
            Pivots::Random { seed } => {
                let stream = u64::from(panel).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let mut random = Pcg64Mcg::seed_from_u64(seed ^ stream);
                (first..end)
                    .map(|row| random.random_range(row..settings.order))
                    .collect()
            }
        }
    }
}
