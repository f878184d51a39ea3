//! Parsers for shares, probabilities, counts and seeds in options.

use std::ops::RangeToInclusive;

use clap::builder::RangedU64ValueParser;
pub use flowcast_io::probability;

/// Parser of a whole number up to a limit, checked before the command starts.
pub fn count<T: TryFrom<u64>>(range: RangeToInclusive<u64>) -> RangedU64ValueParser<T> {
    RangedU64ValueParser::new().range(range)
}

/// Parser of a seed up to 2^53, which documents can store exactly as a number.
pub fn seed() -> RangedU64ValueParser<u64> {
    count(..=1 << 53)
}

/// Parses a share such as `2%` or `0.02`.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, of) = text
        .strip_suffix('%')
        .map_or((text, 1.0), |number| (number, 100.0));
    let share = number
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite());
    share
        .map(|number| number / of)
        .ok_or_else(|| format!("found `{text}`, expected a share such as 2% or 0.02"))
}
