//! Makes a large replay small enough for a browser, and keeps count of what was left out.
//!
//! Segments are never dropped: runs of neighbours that are each shorter than some duration are joined, and a joined
//! run is shown as the activity that holds most of its time. The duration is the smallest power of two of nanoseconds
//! that brings the network under [`MAX_SEGMENTS`]. Of the messages the ones longest in flight stay. Totals, the
//! matrix and the histogram are always taken from everything.

use std::cmp::Reverse;

use flowcast_replay::timeline::{MessageSpan, Segment, Timeline};

/// Segments drawn for one network; beyond it short neighbours are joined.
pub const MAX_SEGMENTS: usize = 500_000;

/// Messages drawn for one network; beyond it the longest in flight stay.
pub const MAX_MESSAGES: usize = 200_000;

/// Steps of the critical path drawn for one network; beyond it the path is left out.
pub const MAX_STEPS: usize = 200_000;

/// What a rank does when no segment says so: one more than the codes of `Activity::ALL`.
pub(crate) const IDLE: u8 = 7;

/// An interval of whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub nanos: u64,
    pub code: u8,
}

/// A rank's time from 0 on without holes, in intervals that are never empty.
pub(crate) fn intervals(segments: &[Segment]) -> Vec<Interval> {
    let mut found = Vec::with_capacity(segments.len());
    let mut reached = 0;
    for segment in segments {
        let (start, end) = (whole_nanos(segment.start.as_nanos()), whole_nanos(segment.end.as_nanos()));
        push(&mut found, Interval { nanos: start.saturating_sub(reached), code: IDLE });
        reached = reached.max(start);
        push(&mut found, Interval { nanos: end.saturating_sub(reached), code: segment.activity as u8 });
        reached = reached.max(end);
    }
    found
}

/// Joins short neighbours until at most `limit` intervals are left (or one for each rank), and says below which
/// duration in nanoseconds that was done.
pub(crate) fn join_short(ranks: &[Vec<Interval>], limit: usize) -> (Vec<Vec<Interval>>, Option<u64>) {
    let total = |ranks: &[Vec<Interval>]| ranks.iter().map(Vec::len).sum::<usize>();
    if total(ranks) <= limit {
        return (ranks.to_vec(), None);
    }
    let mut below = 2;
    loop {
        let joined: Vec<_> = ranks.iter().map(|rank| join_rank(rank, below)).collect();
        if total(&joined) <= limit || joined.iter().all(|rank| rank.len() <= 1) {
            return (joined, Some(below));
        }
        below *= 2;
    }
}

/// The messages to draw, in the order of their sending.
pub(crate) fn longest_messages(timeline: &Timeline, limit: usize) -> Vec<MessageSpan> {
    let mut order: Vec<usize> = (0..timeline.messages.len()).collect();
    if order.len() > limit {
        let in_flight = |&i: &usize| timeline.messages[i].received - timeline.messages[i].sent;
        order.sort_by_key(|i| (Reverse(in_flight(i)), *i));
        order.truncate(limit);
    }
    let mut kept: Vec<MessageSpan> = order.into_iter().map(|i| timeline.messages[i]).collect();
    kept.sort_by_key(|m| (m.sent, m.src, m.dst, m.tag, m.size, m.arrived, m.received));
    kept
}

/// Whole nanoseconds, rounded; what is not a sensible time counts as 0.
pub(crate) fn whole_nanos(nanos: f64) -> u64 {
    nanos.round() as u64
}

fn push(found: &mut Vec<Interval>, interval: Interval) {
    if interval.nanos > 0 {
        found.push(interval);
    }
}

fn join_rank(intervals: &[Interval], below: u64) -> Vec<Interval> {
    let mut joined = Vec::new();
    let mut run = Run::default();
    for interval in intervals {
        if interval.nanos >= below {
            run.finish(&mut joined);
            joined.push(*interval);
            continue;
        }
        run.held[interval.code as usize] += interval.nanos;
        if run.nanos() >= below {
            run.finish(&mut joined);
        }
    }
    run.finish(&mut joined);
    joined
}

/// Neighbours being joined: the time that each activity holds.
#[derive(Default)]
struct Run {
    held: [u64; IDLE as usize + 1],
}

impl Run {
    fn nanos(&self) -> u64 {
        self.held.iter().sum()
    }

    fn finish(&mut self, joined: &mut Vec<Interval>) {
        let most = (0..=IDLE).max_by_key(|code| (self.held[*code as usize], Reverse(*code)));
        let code = most.expect("there are eight codes");
        push(joined, Interval { nanos: self.nanos(), code });
        *self = Run::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_replay::timeline::Activity;
    use flowcast_units::{Bytes, Rank, Time};
    use proptest::prelude::*;

    fn segment(start: f64, end: f64, activity: Activity) -> Segment {
        Segment { start: Time::from_nanos(start), end: Time::from_nanos(end), activity }
    }

    #[test]
    fn gaps_become_idle_and_empty_segments_vanish() {
        let rank = [
            segment(0.0, 3.0, Activity::Compute),
            segment(3.0, 3.0, Activity::Overhead),
            segment(5.0, 6.4, Activity::Transfer),
        ];
        let expected =
            [Interval { nanos: 3, code: 0 }, Interval { nanos: 2, code: IDLE }, Interval { nanos: 1, code: 3 }];
        assert_eq!(intervals(&rank), expected);
    }

    #[test]
    fn rounding_does_not_add_up() {
        let rank: Vec<_> =
            (0..1000).map(|i| segment(f64::from(i) * 1.4, f64::from(i + 1) * 1.4, Activity::Compute)).collect();
        assert_eq!(intervals(&rank).iter().map(|s| s.nanos).sum::<u64>(), 1400);
    }

    #[test]
    fn a_joined_run_shows_the_activity_that_holds_most_of_it() {
        let rank = vec![
            Interval { nanos: 100, code: 0 },
            Interval { nanos: 1, code: 1 },
            Interval { nanos: 2, code: 3 },
            Interval { nanos: 100, code: 0 },
        ];
        let (joined, below) = join_short(&[rank], 3);
        assert_eq!(below, Some(4));
        assert_eq!(joined[0][1], Interval { nanos: 3, code: 3 });
        assert_eq!(joined[0].len(), 3);
    }

    #[test]
    fn the_messages_longest_in_flight_stay_and_are_in_order() {
        let message = |sent: f64, received: f64| MessageSpan {
            src: Rank(0),
            dst: Rank(1),
            size: Bytes(1),
            tag: 0,
            sent: Time::from_nanos(sent),
            arrived: Time::from_nanos(received),
            received: Time::from_nanos(received),
        };
        let timeline =
            Timeline { ranks: vec![], messages: vec![message(9.0, 19.0), message(1.0, 3.0), message(2.0, 14.0)] };
        let kept = longest_messages(&timeline, 2);
        assert_eq!(kept, [timeline.messages[2], timeline.messages[0]]);
    }

    proptest! {
        #[test]
        fn joining_keeps_the_time_and_meets_the_limit(
            durations in prop::collection::vec((1u64..1000, 0u8..8), 1..400),
            limit in 1usize..400,
        ) {
            let rank: Vec<_> = durations.iter().map(|(nanos, code)| Interval { nanos: *nanos, code: *code }).collect();
            let time = |rank: &[Interval]| rank.iter().map(|s| s.nanos).sum::<u64>();
            let (joined, _) = join_short(std::slice::from_ref(&rank), limit);
            prop_assert_eq!(time(&joined[0]), time(&rank));
            prop_assert!(joined[0].len() <= limit);
        }
    }
}
