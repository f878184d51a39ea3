//! Which options go with what was found in the inputs; what goes with other options clap says.

use std::fmt::Display;

use anyhow::{Result, bail};

/// Refuses the first option that is given but does not go with what was found: its name, whether it is given, what it goes with.
pub(crate) fn refuse_others<T: Display + PartialEq>(
    found: &T,
    options: &[(&str, bool, &[T])],
) -> Result<()> {
    for (option, is_given, goes_with) in options {
        if *is_given && !goes_with.contains(found) {
            let expected: Vec<String> = goes_with.iter().map(T::to_string).collect();
            bail!(
                "{option}: found {found}, expected {}",
                expected.join(" or ")
            );
        }
    }
    Ok(())
}
