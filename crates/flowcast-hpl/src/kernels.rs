//! Time of HPL's computations on a processor: measured times for products, rates for everything else.
//!
//! A panel is factored recursively (`HPL_pdrpanrlT` in halves down to `HPL_pdpancrT` of two columns): rfact right-looking,
//! pfact Crout, NDIV 2, NBMIN 2.

use flowcast_units::Time;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::Kernel;

/// Time of one core for a matrix product: `intercept + per_mnk * m * n * k`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Processor {
    /// Time of a product, independent of its size, in seconds.
    pub(super) intercept: f64,
    /// Time of a multiplication and an addition, in seconds.
    pub(super) per_mnk: f64,
    /// Standard deviation of a product's time, relative to it.
    pub(super) spread: f64,
}

/// Random deviation of a processor's products from their mean: a fraction of the processor's spread, drawn for each rank and
/// panel. The draws depend on nothing else, so slightly different machines take slightly different times.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CallSpread {
    /// Fraction of the processor's spread that differs from call to call.
    pub share: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl CallSpread {
    /// Factor on the time of an update's product.
    pub fn factor(&self, processor: &Processor, rank: u32, panel: u32) -> f64 {
        let spread = self.share * processor.spread;
        if spread == 0.0 {
            return 1.0;
        }
        let stream = (u64::from(rank) << 32 | u64::from(panel)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut random = Pcg64Mcg::seed_from_u64(self.seed ^ stream);
        // Approximates a standard normal variate by the sum of twelve uniform ones.
        let normal = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        (1.0 + spread * normal).max(0.0)
    }
}

/// Costs of computations other than the products of a [`Processor`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelRates {
    /// Factor on the processor's time of a product.
    pub multiply: f64,
    /// Time of an addition and a multiplication in a triangular solution, as a multiple of that in a product. The solution
    /// of order `k` for `n` columns has `n * k * k / 2` of them.
    pub solve: f64,
    /// Cache that a core does not share with others, in bytes.
    pub cache_bytes: f64,
    /// Rate at which a core reads and writes its cache, in bytes per second.
    pub cache_rate: f64,
    /// Rate at which a core reads and writes memory while the other cores do too, in bytes per second.
    pub memory_rate: f64,
}

impl Default for KernelRates {
    /// Round numbers, not measured, for a core with 1 MiB of second-level cache and about 100 GB/s for 16 cores.
    fn default() -> KernelRates {
        KernelRates {
            multiply: 1.0,
            solve: 2.0,
            cache_bytes: 1048576.0,
            cache_rate: 20e9,
            memory_rate: 6e9,
        }
    }
}

/// Computation of a process between two pivot searches of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnWork {
    /// Bytes that the kernels on single columns read and write, for each row.
    pub bytes_per_row: u32,
    /// Number of columns accessed since the last use of the present ones. The present ones are still in the cache if all of
    /// these columns fit into it.
    pub reach: u32,
    /// Elements of rows that are copied for the search and for its result.
    pub row_elements: u32,
    /// Product that applies the factored columns to the next ones.
    pub product: Option<PanelProduct>,
}

/// A product within a panel, with the rows that the process has below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PanelProduct {
    /// Number of columns that are changed.
    pub n: u32,
    /// Number of columns that were factored.
    pub k: u32,
}

/// Memory traffic for an element of a row, in bytes: its cache line is read and written back.
const CACHE_LINES: f64 = 128.0;

/// Number of columns that are factored one by one (NBMIN).
const NARROWEST: u32 = 2;

/// Computation for each column of a panel. The search for the largest element of the first column is attributed to that
/// column.
pub fn panel_columns(width: u32) -> Vec<ColumnWork> {
    let mut columns = Vec::with_capacity(width as usize);
    factor(width, width, &mut columns);
    for work in &mut columns {
        work.row_elements = 2 * width;
    }
    columns
}

fn factor(width: u32, reach: u32, columns: &mut Vec<ColumnWork>) {
    // Bytes per row: the search reads an element, the scaling reads and writes it, and each column updates the next one.
    const SEARCH: u32 = 8;
    const SCALE: u32 = 16;
    const CHANGE_NEXT: u32 = 24;
    if width <= NARROWEST {
        for column in 0..width {
            let first = if column == 0 { SEARCH } else { 0 };
            let next = if column + 1 < width {
                CHANGE_NEXT + SEARCH
            } else {
                0
            };
            columns.push(ColumnWork {
                bytes_per_row: first + SCALE + next,
                reach,
                row_elements: 0,
                product: None,
            });
        }
        return;
    }
    let left = width.div_ceil(NARROWEST).div_ceil(2) * NARROWEST;
    let right = width - left;
    factor(left, reach, columns);
    if let Some(last) = columns.last_mut() {
        last.product = Some(PanelProduct { n: right, k: left });
    }
    factor(right, left + right, columns);
}

impl KernelRates {
    /// Time of a computation on a core.
    pub fn time(&self, kernel: Kernel, processor: &Processor) -> Time {
        use Kernel::*;
        Time::from_seconds(match kernel {
            Multiply { m, n, k } => self.product(m as f64 * n as f64 * f64::from(k), processor),
            Solve { n, k } => self.solution(n as f64, f64::from(k), processor),
            CopyRows(elements) => elements as f64 * CACHE_LINES / self.memory_rate,
            Copy(elements) => self.stream(24.0 * elements as f64, 16.0 * elements as f64),
            MultiplyVector(elements) => self.stream(8.0 * elements as f64, 8.0 * elements as f64),
        })
    }

    /// Time between the search for a column's pivot and the next search, with this number of rows below that column. A
    /// product of few columns takes as long as its operands need from memory.
    pub fn column_time(&self, work: &ColumnWork, rows: u64, processor: &Processor) -> Time {
        let rows = rows as f64;
        let reached = |columns: u32| 8.0 * rows * f64::from(columns);
        let kernels = self.stream(rows * f64::from(work.bytes_per_row), reached(work.reach));
        let product = work.product.map_or(0.0, |PanelProduct { n, k }| {
            let moved = self.stream(reached(2 * n + k), reached(n + k));
            let (n, k) = (f64::from(n), f64::from(k));
            self.product(rows * n * k, processor).max(moved) + self.solution(n, k, processor)
        });
        let copied = f64::from(work.row_elements) * CACHE_LINES / self.memory_rate;
        Time::from_seconds(kernels + product + copied)
    }

    fn product(&self, mnk: f64, processor: &Processor) -> f64 {
        if mnk == 0.0 {
            return 0.0;
        }
        self.multiply * (processor.intercept + processor.per_mnk * mnk)
    }

    fn solution(&self, n: f64, k: f64, processor: &Processor) -> f64 {
        self.solve * processor.per_mnk * n * k * k / 2.0
    }

    /// Time to read and write this number of bytes, of data that lie within `reach` bytes.
    fn stream(&self, bytes: f64, reach: f64) -> f64 {
        let rate = if reach <= self.cache_bytes {
            self.cache_rate
        } else {
            self.memory_rate
        };
        bytes / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_of_eight_columns_is_halved_down_to_two() {
        let products: Vec<Option<(u32, u32)>> = panel_columns(8)
            .iter()
            .map(|work| work.product.map(|product| (product.n, product.k)))
            .collect();
        let expected = [
            None,
            Some((2, 2)),
            None,
            Some((4, 4)),
            None,
            Some((2, 2)),
            None,
            None,
        ];
        assert_eq!(products, expected);
    }

    #[test]
    fn the_products_of_a_panel_of_any_width_change_all_pairs_of_columns_but_those_within_a_base() {
        for width in 1..200 {
            let columns = panel_columns(width);
            assert_eq!(columns.len(), width as usize);
            let pairs: u32 = columns
                .iter()
                .filter_map(|work| work.product)
                .map(|product| product.n * product.k)
                .sum();
            let within = columns
                .iter()
                .filter(|work| work.bytes_per_row > 24)
                .count() as u32;
            assert_eq!(pairs + within, width * (width - 1) / 2, "width {width}");
        }
    }

    #[test]
    fn times_match_the_formulas() {
        let processor = Processor {
            intercept: 2e-6,
            per_mnk: 1e-10,
            spread: 0.0,
        };
        let rates = KernelRates::default();
        let micros = |kernel| rates.time(kernel, &processor).as_micros();
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        };
        near(
            micros(Kernel::Multiply {
                m: 100,
                n: 200,
                k: 50,
            }),
            102.0,
        );
        near(
            micros(Kernel::Multiply {
                m: 0,
                n: 200,
                k: 50,
            }),
            0.0,
        );
        near(micros(Kernel::Solve { n: 10, k: 100 }), 10.0);
        near(micros(Kernel::CopyRows(6000)), 128.0);
        near(micros(Kernel::Copy(1000)), 1.2);
        near(micros(Kernel::MultiplyVector(600_000)), 800.0);
        let work = ColumnWork {
            bytes_per_row: 24,
            reach: 2,
            row_elements: 16,
            product: Some(PanelProduct { n: 2, k: 2 }),
        };
        // 24 kB at 20 GB/s, 16 lines of 128 bytes at 6 GB/s, a product of 4,000 steps and a solution of 4 at twice the time.
        let column = rates.column_time(&work, 1000, &processor).as_micros();
        near(column, 1.2 + 2.048 / 6.0 + 2.4 + 0.0008);
    }
}
