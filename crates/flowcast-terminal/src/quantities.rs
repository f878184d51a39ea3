//! Counts for people.

use std::fmt::{self, Display, Formatter};

/// A count for people: digits in groups of three.
#[derive(Debug, Clone, Copy)]
pub struct Grouped(pub u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let first = (digits.len() + 2) % 3 + 1;
        let groups = digits.as_bytes()[first..].chunks(3).map(|group| String::from_utf8_lossy(group));
        let text = std::iter::once(digits[..first].into()).chain(groups).collect::<Vec<_>>().join(",");
        f.pad(&text)
    }
}
