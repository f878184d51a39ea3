//! Whether this machine can build labs.

use flowcast_measure::lab::check_machine;

use super::Check;

/// No problem of a measurement: a lab that cannot be built is marked as what cannot be seen.
pub(super) fn check() -> Check {
    const NAME: &str = "labs";
    match check_machine() {
        Ok(()) => Check::good(NAME, "can be built"),
        Err(error) => Check::unknown(NAME, format!("cannot be built: {error}")),
    }
}
