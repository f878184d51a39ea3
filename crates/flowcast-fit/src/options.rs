//! How parameters are estimated.

/// How parameters and intervals are estimated; by default from 500 bootstrap replicates at the level 0.95.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// Which sizes g and G rest on.
    pub sizes: SizeChoice,
    /// Which line through the gaps of the sizes gives g and G.
    pub line: LineMethod,
    /// Number of bootstrap replicates.
    pub replicates: usize,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl Default for FitOptions {
    fn default() -> FitOptions {
        FitOptions {
            sizes: SizeChoice::AboveKnee,
            line: LineMethod::LeastSquares,
            replicates: 500,
            level: 0.95,
            seed: 1,
        }
    }
}

/// Which sizes g and G rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeChoice {
    /// Those where the gap is longer than the overhead.
    AboveKnee,
    /// Every size, as the thesis has it.
    Every,
}

/// Which line goes through the points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMethod {
    /// Smallest sum of squared distances.
    LeastSquares,
    /// Median of the slopes of all pairs: a quarter of wild points does not bend it.
    TheilSen,
}
