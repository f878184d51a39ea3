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
    /// Start of the current part, and the number of frames heard elsewhere before it.
    since: Ticks,
    elsewhere: u64,
    /// Parts in which the other end was heard elsewhere.
    heard: u32,
}

/// Result of a look at a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RailSilence {
    /// Something moves, or the current part of the time is not over.
    Unconfirmed,
    /// A part has passed in silence. The caller should query the other end on other rails.
    Suspected,
    /// The other end was heard elsewhere in all parts.
    Confirmed,
}

impl SilenceWatch {
    /// Updates the watch. `moved` counts the frames that move on the rail, or is `None` if no acknowledgement is due.
    /// `elsewhere` counts the frames heard on other rails. `silence` is the watched time.
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

    /// Returns the result after each quarter second. `looks` contains the frames that have moved on the rail and elsewhere
    /// until then.
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
    fn a_rail_is_silent_once_the_other_end_was_heard_elsewhere_in_each_interval() {
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
