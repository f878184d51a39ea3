//! Whether a rail has fallen silent while the other program still answers.
//!
//! The system notices a cut cable. It does not notice what stands between the ends and keeps the connection, but
//! carries nothing. So a rail on which nothing moves, though something is to be acknowledged, is watched: the other
//! program acknowledges on all rails alike whenever it is called, and in each part of the silence it has to be heard on
//! another rail. A program that computes is silent on all rails, and none is given up.

use flowcast_scheduler::clock::{ClockArithmetic, Ticks};
use flowcast_units::Time;

/// Parts of the silence, in each of which the other end is heard elsewhere.
const PARTS: u32 = 4;

/// What is known of a rail on which nothing may move.
#[derive(Debug, Default)]
pub(crate) struct Stillness {
    moved: u64,
    /// When the current part began, and what had been heard elsewhere by then.
    since: Ticks,
    elsewhere: u64,
    /// Parts in which the other end was heard elsewhere.
    heard: u32,
}

/// What the silence of a rail means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standstill {
    /// Something moves, or it is too early to tell.
    None,
    /// A part has passed: the other end is to be asked on other rails.
    Doubtful,
    /// The other end has answered elsewhere all the while.
    Proven,
}

impl Stillness {
    /// `moved` counts what moves on the rail, and is none where nothing is to be acknowledged; `elsewhere` counts the frames
    /// heard on other rails.
    pub(crate) fn look(
        &mut self,
        moved: Option<u64>,
        elsewhere: u64,
        now: Ticks,
        silence: Time,
    ) -> Standstill {
        if moved != Some(self.moved) {
            *self = Stillness {
                moved: moved.unwrap_or(u64::MAX),
                since: now,
                elsewhere,
                heard: 0,
            };
            return Standstill::None;
        }
        if now.since(self.since) < Ticks::from_time(silence / f64::from(PARTS), ()) {
            return Standstill::None;
        }
        self.heard += u32::from(elsewhere != self.elsewhere);
        (self.since, self.elsewhere) = (now, elsewhere);
        if self.heard < PARTS {
            Standstill::Doubtful
        } else {
            Standstill::Proven
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said after each quarter second, if so many frames have moved on the rail and elsewhere by then.
    fn verdicts(looks: &[(Option<u64>, u64)]) -> Vec<Standstill> {
        let mut stillness = Stillness::default();
        (0..)
            .zip(looks)
            .map(
                |(quarter, (moved, elsewhere)): (u64, &(Option<u64>, u64))| {
                    let now = Ticks::from_nanos(quarter * 250_000_000);
                    stillness.look(*moved, *elsewhere, now, Time::from_seconds(1.0))
                },
            )
            .collect()
    }

    #[test]
    fn a_rail_is_silent_once_the_other_end_was_heard_elsewhere_in_each_part() {
        use Standstill::{Doubtful, None, Proven};
        let silent = [5, 5, 6, 7, 8, 9].map(|elsewhere| (Some(3), elsewhere));
        assert_eq!(
            verdicts(&silent),
            [None, Doubtful, Doubtful, Doubtful, Doubtful, Proven]
        );
        let computes = [5, 6, 6, 6, 6, 6, 7].map(|elsewhere| (Some(3), elsewhere));
        assert!(
            !verdicts(&computes).contains(&Proven),
            "the other end is silent everywhere"
        );
        let moves = [3, 3, 3, 3, 4, 4, 4, 4].map(|moved| (Some(moved), moved * 10));
        assert!(!verdicts(&moves).contains(&Proven));
        let idle: Vec<(Option<u64>, u64)> = (0..9).map(|heard| (Option::None, heard)).collect();
        assert_eq!(verdicts(&idle), [None; 9], "nothing is to be acknowledged");
    }
}
