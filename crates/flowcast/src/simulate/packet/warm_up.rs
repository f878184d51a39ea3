//! What connections keep from earlier repetitions: a pattern that is carried again and again over the same connections
//! meets their windows, thresholds and round trips where the repetition before has left them.
//!
//! The messages are carried in rounds, each of which begins when the one before has ended everywhere; the last one
//! counts. Its time is not known beforehand: rounds begin ever farther apart until it fits.

use super::{Carried, Message, SharingError};
use crate::simulate::fluid::{Interval, Passage};
use crate::units::Time;

/// Between the end of a round and the start of the next, at least.
const PAUSE: Time = Time::from_nanos(2e7);
/// Rounds that did not fit are put so many times farther apart.
const FARTHER: f64 = 1.25;

/// How often messages are carried, and how far apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rounds {
    count: u32,
    period: Time,
}

impl Rounds {
    /// One.
    pub(super) const fn once() -> Rounds {
        Rounds { count: 1, period: Time::ZERO }
    }

    pub(super) const fn count(self) -> usize {
        self.count as usize
    }

    fn start(self, round: u32) -> Time {
        self.period * f64::from(round)
    }

    /// The messages of the first round, of the second, and so on.
    pub(super) fn of(self, messages: &[Message]) -> impl Iterator<Item = Message> + '_ {
        (0..self.count).flat_map(move |round| {
            messages.iter().map(move |message| Message { start: message.start + self.start(round), ..*message })
        })
    }

    /// Whether each round ended before the next.
    fn fits(self, carried: &Carried) -> bool {
        let flows = carried.passages.len() / self.count();
        let starts = (1..self.count).map(|round| self.start(round));
        starts.zip(carried.passages.chunks(flows.max(1))).all(|(next, round)| end_of(round) + PAUSE <= next)
    }

    /// The last round, as if it were the only one.
    fn last_of(self, mut carried: Carried) -> Carried {
        let (flows, shift) = (carried.passages.len() / self.count(), self.start(self.count - 1));
        let before = carried.passages.len() - flows;
        let sooner = |time: Time| if time > shift { time - shift } else { Time::ZERO };
        carried.passages.drain(..before);
        carried.intervals.drain(..before);
        for passage in &mut carried.passages {
            *passage = Passage { end: sooner(passage.end), ..*passage };
        }
        for interval in carried.intervals.iter_mut().flatten() {
            *interval = Interval { from: sooner(interval.from), to: sooner(interval.to), ..*interval };
        }
        carried
    }
}

/// The last of `warm_ups + 1` rounds.
///
/// # Errors
/// Those of `carry`.
pub(super) fn last_round(
    warm_ups: u32,
    carry: impl Fn(Rounds) -> Result<Carried, SharingError>,
) -> Result<Carried, SharingError> {
    let first = carry(Rounds::once())?;
    if warm_ups == 0 {
        return Ok(first);
    }
    let mut rounds = Rounds { count: warm_ups + 1, period: end_of(&first.passages) + PAUSE };
    loop {
        let carried = carry(rounds)?;
        if rounds.fits(&carried) {
            return Ok(rounds.last_of(carried));
        }
        rounds.period = rounds.period * FARTHER;
    }
}

fn end_of(round: &[Passage]) -> Time {
    round.iter().map(|passage| passage.end).fold(Time::ZERO, Time::max)
}
