//! Documents of predictions, the same for the command, Python and C.

mod explained;
mod levels;
mod pattern;
mod prediction;

pub use pattern::{PatternAnswer, flows_text};
pub use prediction::{ConcurrentProgram, PredictionAnswer, interval_fields, prediction_fields};

/// The option that shows all rows of a table.
pub const ROWS: &str = "--rows";
