//! Checks options against the kinds of the inputs. Conflicts between options are reported by clap.

use std::fmt::Display;

use anyhow::{Result, bail};

/// Kinds of input, and their description.
pub type Kinds<'a, T> = (&'a [T], &'a str);

/// Refuses an option that is given but does not apply to the kind of input found. Each entry has the option's name, `true`
/// if it is given, and the kinds to which it applies.
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
