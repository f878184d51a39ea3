//! Options of the estimation of parameters.

/// Options of the estimation of parameters and intervals. Defaults to 500 bootstrap replicates and the level 0.95.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// Sizes that determine g and G.
    pub sizes: SizeChoice,
    /// Line through the gaps of the sizes that gives g and G.
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

/// Sizes that determine g and G.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeChoice {
    /// Sizes at which the gap is longer than the overhead.
    AboveKnee,
    /// All sizes, as in the thesis.
    Every,
}

/// Line through a set of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMethod {
    /// Line with the smallest sum of squared distances.
    LeastSquares,
    /// Median of the slopes of all pairs. A quarter of outliers does not bend it.
    TheilSen,
}
