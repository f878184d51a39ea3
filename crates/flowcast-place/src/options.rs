//! How a mapping is looked for.

/// How a mapping is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaceOptions {
    /// Of all random choices: equal seeds give equal mappings.
    pub seed: u64,
    /// Mappings, or changes of one, that are tried; if none as many as usual, or any number where time is the limit.
    pub moves: Option<u64>,
    /// Whether the search ends when its time is over.
    pub has_time_limit: bool,
    /// The probability with which an interval is to hold the gain, above 0 and below 1.
    pub level: f64,
    /// Threads; the result does not depend on them.
    pub threads: usize,
}
