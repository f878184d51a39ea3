//! Clock of this machine, and comparison with the clock of another machine.

use std::time::Instant;

use anyhow::Result;
use flowcast::units::{Rounded, Time};
use flowcast_measure::{
    clocks::{ClockPlan, LearnedClock, greet_clock, learn, wall_clock},
    tcp::Waiting,
    transport::Transport,
};

use super::Check;
use crate::{commands::measure::connected_to, round_trips::explained};
use flowcast_terminal::token::TokenArgs;

/// Daemons correct a clock by at most 500 ppm, and quartz drifts by less than 100 ppm.
const MOST_DRIFT: f64 = 5e-4;
/// Difference of wall clocks, in seconds, beyond which logs of two machines cannot be compared.
const MOST_APART: f64 = 1.0;

/// Checks the smallest observed step of the clock, and the cost of reading it.
pub(super) fn resolution() -> Check {
    const LOOKS: u32 = 10_000;
    let begin = Instant::now();
    let (mut last, mut least) = (begin, u128::MAX);
    for _ in 0..LOOKS {
        let now = Instant::now();
        let step = (now - last).as_nanos();
        least = if step > 0 { least.min(step) } else { least };
        last = now;
    }
    let look = Time::from_nanos((last - begin).as_nanos() as f64 / f64::from(LOOKS));
    let found = format!("smallest step {least} ns, {} per reading", Rounded(look));
    if least <= 1000 {
        return Check::good("clock resolution", found);
    }
    Check::bad(
        "clock resolution",
        found,
        "this clock is too coarse for the times of single messages: see the clock source",
    )
}

/// Checks the clock of the machine where `flowcast measure p2p --listen` answers.
pub(super) fn of_peer(address: &str, token: &TokenArgs) -> Result<Check> {
    let mut transport = connected_to(address, token, Waiting::Sleep)?;
    let learned = greet_clock(&mut transport)
        .and_then(|()| learn(&mut transport, &ClockPlan::default()))
        .map_err(explained)?;
    Ok(compare_clocks(
        &learned,
        (learned.line.offset - wall_clock(transport.now()).offset).as_seconds(),
    ))
}

/// Compares clocks. Wall clocks are compared modulo whole days.
fn compare_clocks(learned: &LearnedClock, ahead: f64) -> Check {
    const NAME: &str = "clock of the peer";
    const DAY: f64 = 86_400.0;
    let ahead = (ahead + DAY / 2.0).rem_euclid(DAY) - DAY / 2.0;
    let found = format!(
        "{} {}, uncertainty {}; drift {:.3} ppm, uncertainty {:.3} ppm",
        Rounded(Time::from_seconds(ahead.abs())),
        if ahead < 0.0 { "behind" } else { "ahead" },
        Rounded(learned.asymmetry + learned.deviation),
        learned.line.drift * 1e6,
        learned.drift_deviation * 1e6
    );
    if learned.line.drift.abs() > MOST_DRIFT || ahead.abs() > MOST_APART {
        let advice = "the clocks differ, or one is being adjusted: synchronise both with a daemon such as chrony";
        return Check::bad(NAME, found, advice);
    }
    Check::good(NAME, found)
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    #[test]
    fn clocks_with_a_large_offset_or_drift_are_a_problem() {
        let drifting = |drift: f64| {
            let mut learned = LearnedClock::itself();
            learned.line.drift = drift;
            learned
        };
        let verdict = |drift: f64, ahead: f64| compare_clocks(&drifting(drift), ahead).verdict;
        assert_eq!(verdict(5e-5, -0.01), Verdict::Good);
        // One of the clocks has passed midnight.
        assert_eq!(verdict(0.0, 86_399.99), Verdict::Good);
        assert_eq!(verdict(0.0, 2.0), Verdict::Bad);
        assert_eq!(verdict(-6e-4, 0.0), Verdict::Bad);
        assert!(
            compare_clocks(&drifting(1e-6), -0.25)
                .found
                .starts_with("250.0 ms behind")
        );
    }
}
