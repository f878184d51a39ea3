//! Activities of ranks over time: exact intervals if there are few, otherwise shares by bucket.
//!
//! Buckets of equal width divide the run. A lane is a rank or several neighbouring ranks; each of its buckets holds the time
//! of each activity. The times of a lane therefore add up over any number of buckets. A zoom that joins buckets shows sums,
//! never a choice between activities.

use flowcast_replay::{
    outcome::Outcome,
    timeline::{Activity, Segment},
};
use flowcast_units::Time;

/// Largest number of exact intervals in a page, for one network. Beyond it the page has shares by bucket.
pub const MAX_INTERVALS: usize = 200_000;

/// Largest number of buckets of all lanes together.
pub const MAX_CELLS: usize = 1 << 18;

/// Largest number of lanes. Beyond it neighbouring ranks share one.
const MAX_LANES: usize = 256;

/// An interval of whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneInterval {
    pub nanos: u64,
    pub code: u8,
}

/// The lanes of all ranks.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Lanes {
    /// Intervals of each rank, from time 0 on without gaps; empty if there are too many.
    pub exact: Vec<Vec<LaneInterval>>,
    /// Shares by bucket, if there are too many intervals.
    pub shares: LaneShares,
    /// Number of intervals in all lanes.
    pub intervals: usize,
}

/// Times of lanes and buckets.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LaneShares {
    /// Width of a bucket, in nanoseconds.
    pub width: u64,
    pub buckets: usize,
    pub ranks_per_lane: usize,
    pub lanes: usize,
    /// Nanoseconds in each activity, summed over the lane's ranks. Ordered by lane, then by bucket.
    pub cells: Vec<[f64; Activity::ALL.len()]>,
}

impl Lanes {
    /// Builds the lanes of all ranks. Time before a rank's end without a segment counts as waiting for a processor.
    pub(super) fn new(
        outcome: &Outcome,
        mut segments: impl Iterator<Item = Vec<Segment>>,
    ) -> Lanes {
        let ends = outcome.ranks.iter().map(|rank| rank.end);
        let (mut kept, mut intervals) = (Vec::new(), 0);
        while intervals <= MAX_INTERVALS
            && let Some(rank) = segments.next()
        {
            intervals += rank.len();
            kept.push(rank);
        }
        if intervals <= MAX_INTERVALS {
            let exact = kept
                .iter()
                .zip(ends.clone())
                .map(|(rank, end)| self::intervals(rank, end))
                .collect();
            return Lanes {
                exact,
                intervals,
                ..Lanes::default()
            };
        }
        let mut lanes = Lanes {
            shares: LaneShares::new(outcome),
            ..Lanes::default()
        };
        for (rank, (segments, end)) in kept.into_iter().chain(segments).zip(ends).enumerate() {
            lanes.intervals += segments.len();
            lanes.shares.add(rank, &segments, end);
        }
        lanes
    }

    /// Returns `true` if every interval is present.
    pub(crate) fn are_exact(&self) -> bool {
        self.intervals <= MAX_INTERVALS
    }
}

impl LaneShares {
    fn new(outcome: &Outcome) -> LaneShares {
        let (ranks, end) = (outcome.ranks.len(), whole_nanos(outcome.makespan()));
        let ranks_per_lane = ranks.div_ceil(MAX_LANES).max(1);
        let lanes = ranks.div_ceil(ranks_per_lane).max(1);
        let buckets = MAX_CELLS / lanes.next_power_of_two();
        let width = end.div_ceil(buckets as u64).max(1);
        LaneShares {
            width,
            buckets,
            ranks_per_lane,
            lanes,
            cells: vec![[0.0; Activity::ALL.len()]; lanes * buckets],
        }
    }

    fn add(&mut self, rank: usize, segments: &[Segment], end: Time) {
        let lane = rank / self.ranks_per_lane * self.buckets;
        let cells = &mut self.cells[lane..lane + self.buckets];
        let width = self.width as f64;
        let mut reached = 0.0;
        let mut bucket = 0;
        let mut spend = |until: f64, activity: Activity| {
            while reached < until {
                let edge = (bucket + 1) as f64 * width;
                let part = until.min(edge);
                cells[bucket][activity as usize] += part - reached;
                reached = part;
                // The last bucket includes the time that rounding places behind it.
                if reached >= edge && bucket + 1 < cells.len() {
                    bucket += 1;
                } else if reached >= edge {
                    break;
                }
            }
        };
        for Segment {
            start,
            end,
            activity,
        } in segments
        {
            spend(start.as_nanos(), Activity::ProcessorWait);
            spend(end.as_nanos(), *activity);
        }
        spend(end.as_nanos(), Activity::ProcessorWait);
    }
}

/// Divides a rank's time from 0 to its end into intervals, without gaps and without empty ones.
fn intervals(segments: &[Segment], end: Time) -> Vec<LaneInterval> {
    let mut found: Vec<LaneInterval> = Vec::with_capacity(segments.len() + 1);
    let mut reached = 0;
    let mut push = |until: u64, code: u8| {
        if until > reached {
            match found.last_mut().filter(|last| last.code == code) {
                Some(last) => last.nanos += until - reached,
                None => found.push(LaneInterval {
                    nanos: until - reached,
                    code,
                }),
            }
            reached = until;
        }
    };
    for segment in segments {
        push(whole_nanos(segment.start), Activity::ProcessorWait as u8);
        push(whole_nanos(segment.end), segment.activity as u8);
    }
    push(whole_nanos(end), Activity::ProcessorWait as u8);
    found
}

/// Time in whole nanoseconds, rounded; invalid times count as 0.
pub(crate) fn whole_nanos(time: Time) -> u64 {
    time.as_nanos().round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_replay::outcome::RankOutcome;
    use proptest::prelude::*;

    fn nanos(nanos: f64) -> Time {
        Time::from_nanos(nanos)
    }

    fn segment(start: f64, end: f64, activity: Activity) -> Segment {
        Segment {
            start: nanos(start),
            end: nanos(end),
            activity,
        }
    }

    #[test]
    fn gaps_before_the_end_are_waiting_for_a_processor_and_empty_segments_vanish() {
        let rank = [
            segment(0.0, 3.0, Activity::Compute),
            segment(3.0, 3.0, Activity::Overhead),
            segment(5.0, 6.4, Activity::Transfer),
        ];
        let codes = [
            (3, Activity::Compute),
            (2, Activity::ProcessorWait),
            (1, Activity::Transfer),
        ];
        let expected = codes.map(|(nanos, activity)| LaneInterval {
            nanos,
            code: activity as u8,
        });
        assert_eq!(intervals(&rank, nanos(6.4)), expected);
    }

    #[test]
    fn rounding_does_not_add_up() {
        let activity = |i: i32| {
            if i % 2 == 0 {
                Activity::Compute
            } else {
                Activity::Overhead
            }
        };
        let rank: Vec<_> = (0..1000)
            .map(|i| segment(f64::from(i) * 1.4, f64::from(i + 1) * 1.4, activity(i)))
            .collect();
        assert_eq!(
            intervals(&rank, nanos(1400.0))
                .iter()
                .map(|s| s.nanos)
                .sum::<u64>(),
            1400
        );
    }

    proptest! {
        /// Each bucket contains the time of the segments within it, compared with a count of every nanosecond.
        #[test]
        fn shares_equal_those_of_the_segments(
            ranks in prop::collection::vec(prop::collection::vec((0u32..40, 0usize..9), 0..30), 1..5),
            longer in 0u64..100,
        ) {
            let end = |rank: &[(u32, usize)]| rank.iter().map(|(nanos, _)| u64::from(*nanos)).sum::<u64>();
            let makespan = ranks.iter().map(|rank| end(rank)).max().unwrap() + longer;
            // Few wide buckets, as in a long run, and two ranks in a lane.
            let ended = RankOutcome::new(nanos(makespan as f64), Time::ZERO, Time::ZERO);
            let mut shares = LaneShares::new(&Outcome { ranks: vec![ended; ranks.len()], ..Outcome::default() });
            (shares.width, shares.ranks_per_lane) = (makespan.div_ceil(8).max(1), 2);
            let mut expected = vec![[0.0; Activity::ALL.len()]; shares.cells.len()];
            for (rank, list) in ranks.iter().enumerate() {
                let (mut segments, mut now) = (Vec::new(), 0);
                for (nanos, code) in list {
                    segments.push(segment(f64::from(now), f64::from(now + nanos), Activity::ALL[*code]));
                    for nano in now..now + nanos {
                        let bucket = rank / 2 * shares.buckets + u64::from(nano).div_euclid(shares.width) as usize;
                        expected[bucket][*code] += 1.0;
                    }
                    now += nanos;
                }
                shares.add(rank, &segments, nanos(f64::from(now)));
            }
            prop_assert_eq!(shares.cells, expected);
        }
    }

    #[test]
    fn too_many_intervals_become_shares_and_many_ranks_share_lanes() {
        let segments: Vec<Segment> = (0..150_000)
            .map(|i: u32| {
                segment(
                    f64::from(i),
                    f64::from(i) + 1.0,
                    Activity::ALL[i as usize % 2],
                )
            })
            .collect();
        let ended = RankOutcome::new(nanos(150_000.0), Time::ZERO, Time::ZERO);
        let of = |ranks: usize| {
            let outcome = Outcome {
                ranks: vec![ended; ranks],
                ..Outcome::default()
            };
            Lanes::new(&outcome, std::iter::repeat_n(segments.clone(), ranks))
        };
        assert!(of(1).are_exact() && of(1).exact.len() == 1);
        let lanes = of(2);
        assert!(!lanes.are_exact() && lanes.exact.is_empty());
        let sums = lanes.shares.cells.iter().fold([0.0, 0.0], |sums, cell| {
            [sums[0] + cell[0], sums[1] + cell[1]]
        });
        assert_eq!(sums, [150_000.0; 2]);
        assert_eq!(
            (
                lanes.intervals,
                lanes.shares.ranks_per_lane,
                lanes.shares.buckets
            ),
            (300_000, 1, MAX_CELLS / 2)
        );
        let many = Outcome {
            ranks: vec![ended; 1000],
            ..Outcome::default()
        };
        let LaneShares {
            ranks_per_lane,
            lanes,
            buckets,
            ..
        } = LaneShares::new(&many);
        assert_eq!((ranks_per_lane, lanes, buckets), (4, 250, 1024));
    }
}
