//! State that connections keep from earlier repetitions. Each repetition of a pattern over the same connections starts with
//! the windows, thresholds and round trips at the end of the previous repetition.
//!
//! The messages are carried in rounds. Each round begins after all messages of the previous round have ended, and only the
//! last rounds are returned. The duration of a round is not known beforehand, so rounds are moved further apart until they
//! fit.

use super::{CarriedPackets, PacketMessage, SharingError};
use flowcast_network::sharing::completion::{FlowCompletion, RateInterval};
use flowcast_units::Time;

/// Least time between the end of a round and the start of the next.
const PAUSE: Time = Time::from_nanos(2e7);
/// Factor by which rounds that did not fit are moved apart.
const FARTHER: f64 = 1.25;

/// Number of rounds of the messages, and the time between their starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rounds {
    count: u32,
    period: Time,
}

impl Rounds {
    /// Returns a single round.
    pub(super) const fn once() -> Rounds {
        Rounds {
            count: 1,
            period: Time::ZERO,
        }
    }

    pub(super) const fn count(self) -> usize {
        self.count as usize
    }

    fn start(self, round: u32) -> Time {
        self.period * f64::from(round)
    }

    /// Messages of the first round, of the second, and so on.
    pub(super) fn repeat(
        self,
        messages: &[PacketMessage],
    ) -> impl Iterator<Item = PacketMessage> + '_ {
        (0..self.count).flat_map(move |round| {
            messages.iter().map(move |message| PacketMessage {
                start: message.start + self.start(round),
                ..*message
            })
        })
    }

    /// `true` if each round ended before the next.
    fn fits(self, carried: &CarriedPackets) -> bool {
        let flows = carried.completions.len() / self.count();
        let starts = (1..self.count).map(|round| self.start(round));
        starts
            .zip(carried.completions.chunks(flows.max(1)))
            .all(|(next, round)| end_of(round) + PAUSE <= next)
    }

    /// Returns the rounds from `first` on, each as if it were the only one.
    fn from(self, first: u32, carried: CarriedPackets) -> Vec<CarriedPackets> {
        let flows = (carried.completions.len() / self.count()).max(1);
        let rounds = carried
            .completions
            .chunks(flows)
            .zip(carried.intervals.chunks(flows));
        (0..)
            .zip(rounds)
            .skip(first as usize)
            .map(|(round, (completions, intervals))| {
                let shift = self.start(round);
                let sooner = |time: Time| {
                    if time > shift {
                        time - shift
                    } else {
                        Time::ZERO
                    }
                };
                CarriedPackets {
                    completions: completions
                        .iter()
                        .map(|one| FlowCompletion {
                            end: sooner(one.end),
                            ..*one
                        })
                        .collect(),
                    intervals: intervals
                        .iter()
                        .map(|of_one| {
                            of_one
                                .iter()
                                .map(|interval: &RateInterval| RateInterval {
                                    from: sooner(interval.from),
                                    to: sooner(interval.to),
                                    ..*interval
                                })
                                .collect()
                        })
                        .collect(),
                    detoured: carried.detoured.clone(),
                    ..carried
                }
            })
            .collect()
    }
}

/// Returns the last `counted` of `warm_ups + counted` rounds; frames and losses are counted over all of them.
///
/// # Errors
/// Errors of `carry`.
pub(super) fn last_rounds(
    warm_ups: u32,
    counted: u32,
    carry: impl Fn(Rounds) -> Result<CarriedPackets, SharingError>,
) -> Result<Vec<CarriedPackets>, SharingError> {
    let first = carry(Rounds::once())?;
    if warm_ups + counted == 1 || first.completions.is_empty() {
        return Ok(vec![first; counted as usize]);
    }
    let mut rounds = Rounds {
        count: warm_ups + counted,
        period: end_of(&first.completions) + PAUSE,
    };
    loop {
        let carried = carry(rounds)?;
        if rounds.fits(&carried) {
            return Ok(rounds.from(warm_ups, carried));
        }
        rounds.period = rounds.period * FARTHER;
    }
}

fn end_of(round: &[FlowCompletion]) -> Time {
    round
        .iter()
        .map(|completion| completion.end)
        .fold(Time::ZERO, Time::max)
}
