//! Which options go with what was found in the inputs; what goes with other options clap says.

use std::fmt::Display;

use anyhow::{Result, bail};

/// Options that go with some kinds of input alone.
pub(crate) struct GoesWith<'a, T> {
    /// With these kinds.
    pub(crate) kinds: &'a [T],
    /// The kinds in words.
    pub(crate) expected: &'a str,
    /// Each option, and whether it is given.
    pub(crate) options: &'a [(&'a str, bool)],
}

/// Refuses an option that is given but does not go with what was found.
pub(crate) fn refuse_others<T: Display + PartialEq>(
    found: &T,
    rules: &[GoesWith<'_, T>],
) -> Result<()> {
    for rule in rules.iter().filter(|rule| !rule.kinds.contains(found)) {
        if let Some((option, _)) = rule.options.iter().find(|(_, is_given)| *is_given) {
            bail!("{option}: found {found}, expected {}", rule.expected);
        }
    }
    Ok(())
}
