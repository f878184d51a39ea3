//! Activities of the ranks and positions of the messages over time: the form in which a replay is drawn.

use super::named::named;
use flowcast_units::{Bytes, Rank, Time};

named! {
    /// Activity of a rank.
    pub enum Activity {
        /// The program's own computation.
        Compute = "compute",
        /// Processor time spent on sending or receiving (`o` of LogGP, the start-up latency of Dimemas).
        Overhead = "overhead",
        /// Waiting for a message that has not been sent yet.
        LateSender = "late sender",
        /// Waiting for a message in flight.
        Transfer = "transfer",
        /// Waiting for a receiver that has not posted its receive yet (rendezvous).
        LateReceiver = "late receiver",
        /// Waiting for the other ranks of a collective operation.
        CollectiveWait = "collective wait",
        /// In a collective operation that all ranks have reached.
        Collective = "collective",
        /// Waiting, as a sender, for its own interface, which is busy with an earlier message.
        InterfaceWait = "interface wait",
        /// Waiting for a processor, or for a processor's switch to the rank.
        ProcessorWait = "processor wait",
    }
}

/// An interval in which a rank has one activity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Start of the interval.
    pub start: Time,
    /// End of the interval, never before the start.
    pub end: Time,
    /// Activity of the rank.
    pub activity: Activity,
}

/// One message, from send to receive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageSpan {
    /// Rank of the sender.
    pub src: Rank,
    /// Rank of the receiver.
    pub dst: Rank,
    /// Size of the message's data.
    pub size: Bytes,
    /// Tag of the message; -1 for a message of a schedule without tags.
    pub tag: i32,
    /// Time of the sender's call.
    pub sent: Time,
    /// Arrival of the last byte.
    pub arrived: Time,
    /// Return of the receiver's call.
    pub received: Time,
}

/// The replay of all ranks: the segments of each rank in time order (gaps are idle), and the messages in no particular
/// order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// Segments in time order, indexed by rank.
    pub ranks: Vec<Vec<Segment>>,
    /// The messages of all ranks, in no particular order.
    pub messages: Vec<MessageSpan>,
}

/// Merges adjacent segments with the same activity.
pub fn merged(segments: impl Iterator<Item = Segment>) -> Vec<Segment> {
    let mut merged = Vec::with_capacity(segments.size_hint().0);
    segments.for_each(|segment| append(&mut merged, segment));
    merged
}

/// Segments of a rank with several processors, whose intervals overlap. Each segment has the first activity, in the order of
/// [`Activity::ALL`], of any processor at that time.
pub fn busiest(segments: impl Iterator<Item = Segment>) -> Vec<Segment> {
    let edges = |segment: Segment| {
        [
            (segment.start, segment.activity, 1),
            (segment.end, segment.activity, -1),
        ]
    };
    let mut edges: Vec<(Time, Activity, i32)> = segments.flat_map(edges).collect();
    edges.sort_by_key(|(time, ..)| *time);
    let mut processors = [0; Activity::ALL.len()];
    let (mut segments, mut start) = (Vec::new(), Time::ZERO);
    for (end, changed, by) in edges {
        if end > start {
            let first = Activity::ALL
                .into_iter()
                .find(|activity| processors[*activity as usize] > 0);
            first.into_iter().for_each(|activity| {
                append(
                    &mut segments,
                    Segment {
                        start,
                        end,
                        activity,
                    },
                )
            });
            start = end;
        }
        processors[changed as usize] += by;
    }
    segments
}

fn append(segments: &mut Vec<Segment>, segment: Segment) {
    match segments.last_mut() {
        Some(last) if last.activity == segment.activity && last.end == segment.start => {
            last.end = segment.end
        }
        _ => segments.push(segment),
    }
}
