//! Options of the search for a mapping.

/// Options of the search for a mapping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaceOptions {
    /// Seed of all random choices. Equal seeds give equal mappings.
    pub seed: u64,
    /// Number of mappings, or changes of one, to try. If absent, a default number, or any number if time is the limit.
    pub moves: Option<u64>,
    /// `true` if the search ends after a given time.
    pub has_time_limit: bool,
    /// Probability that an interval contains the gain, above 0 and below 1.
    pub level: f64,
    /// Number of threads. The result does not depend on it.
    pub threads: usize,
}
