//! Detects a rail that carries nothing while the other program still answers on another rail.
//!
//! The system notices a cut cable. It does not notice a device on the path that keeps the connection and drops its data. A
//! rail with unacknowledged data on which nothing moves is therefore watched. The other program acknowledges on all rails
//! alike whenever it runs the transport; a rail is silent if the other program was heard on another rail in each part of the
//! watched time. A program that computes is silent on all rails and loses none.

use flowcast_scheduler::clock::{ClockArithmetic, Ticks};
use flowcast_units::Time;

/// Parts of the watched time: the other end has to be heard elsewhere in each of them.
const PARTS: u32 = 4;

/// The watch of one rail.
#[derive(Debug, Default)]
pub(crate) struct SilenceWatch {
    moved: u64,
    /// Begin of the current part, and the frames heard elsewhere by then.
    since: Ticks,
    elsewhere: u64,
    /// Parts in which the other end was heard elsewhere.
    heard: u32,
}

/// What the watch of a rail has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RailSilence {
    /// Something moves, or a part of the time has not passed yet.
    Unconfirmed,
    /// A part has passed in silence: the other end is to be asked on other rails.
    Suspected,
    /// The other end has answered elsewhere in all parts.
    Confirmed,
}

impl SilenceWatch {
    /// `moved` counts the frames that move on the rail; none: nothing is to be acknowledged. `elsewhere` counts the frames heard
    /// on other rails. `silence` is the watched time.
    pub(crate) fn look(
        &mut self,
        moved: Option<u64>,
        elsewhere: u64,
        now: Ticks,
        silence: Time,
    ) -> RailSilence {
        if moved != Some(self.moved) {
            *self = SilenceWatch {
                moved: moved.unwrap_or(u64::MAX),
                since: now,
                elsewhere,
                heard: 0,
            };
            return RailSilence::Unconfirmed;
        }
        if now.since(self.since) < Ticks::from_time(silence / f64::from(PARTS), ()) {
            return RailSilence::Unconfirmed;
        }
        self.heard += u32::from(elsewhere != self.elsewhere);
        (self.since, self.elsewhere) = (now, elsewhere);
        if self.heard < PARTS {
            RailSilence::Suspected
        } else {
            RailSilence::Confirmed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings after each quarter second, by the frames that have moved on the rail and elsewhere by then.
    fn verdicts(looks: &[(Option<u64>, u64)]) -> Vec<RailSilence> {
        let mut watch = SilenceWatch::default();
        (0..)
            .zip(looks)
            .map(
                |(quarter, (moved, elsewhere)): (u64, &(Option<u64>, u64))| {
                    let now = Ticks::from_nanos(quarter * 250_000_000);
                    watch.look(*moved, *elsewhere, now, Time::from_seconds(1.0))
                },
            )
            .collect()
    }

    #[test]
    fn a_rail_is_silent_once_the_other_end_was_heard_elsewhere_in_each_part() {
        use RailSilence::{Confirmed, Suspected, Unconfirmed};
        let silent = [5, 5, 6, 7, 8, 9].map(|elsewhere| (Some(3), elsewhere));
        assert_eq!(
            verdicts(&silent),
            [
                Unconfirmed,
                Suspected,
                Suspected,
                Suspected,
                Suspected,
                Confirmed
            ]
        );
        let computes = [5, 6, 6, 6, 6, 6, 7].map(|elsewhere| (Some(3), elsewhere));
        assert!(
            !verdicts(&computes).contains(&Confirmed),
            "the other end is silent everywhere"
        );
        let moves = [3, 3, 3, 3, 4, 4, 4, 4].map(|moved| (Some(moved), moved * 10));
        assert!(!verdicts(&moves).contains(&Confirmed));
        let idle: Vec<(Option<u64>, u64)> = (0..9).map(|heard| (None, heard)).collect();
        assert_eq!(
            verdicts(&idle),
            [Unconfirmed; 9],
            "nothing is to be acknowledged"
        );
    }
}
