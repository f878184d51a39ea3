//! Which options go with what was found in the inputs; what goes with other options clap says.

use std::fmt::Display;

use anyhow::{Result, bail};

/// Kinds of input, and what to call them.
pub type Kinds<'a, T> = (&'a [T], &'a str);

/// Refuses an option that is given but does not go with what was found: its name, whether it is given, what it goes with.
pub fn refuse_others<T: Display + PartialEq>(
    found: &T,
    options: &[(&str, bool, Kinds<'_, T>)],
) -> Result<()> {
    for (option, is_given, (kinds, expected)) in options {
        if *is_given && !kinds.contains(found) {
            bail!("{option}: found {found}, expected {expected}");
        }
    }
    Ok(())
}
