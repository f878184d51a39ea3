//! Check that this machine can build labs.

use flowcast_measure::lab::check_machine;

use super::Check;

/// Checks that labs can be built. A failure is marked as unknown, because it is not a problem for measurements.
pub(super) fn check() -> Check {
    const NAME: &str = "labs";
    match check_machine() {
        Ok(()) => Check::good(NAME, "can be built"),
        Err(error) => Check::unknown(NAME, format!("cannot be built: {error}")),
    }
}
