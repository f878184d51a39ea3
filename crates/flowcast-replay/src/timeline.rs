//! What each rank did when, and which message was where: the form in which a replay is drawn.

use super::named::named;
use flowcast_units::{Bytes, Rank, Time};

named! {
    /// What a rank is doing.
    pub enum Activity {
        /// The program's own computation.
        Compute = "compute",
        /// Processor time spent on sending or receiving (`o` of LogGP, the start-up latency of Dimemas).
        Overhead = "overhead",
        /// Waiting for a message that has not been sent yet.
        LateSender = "late sender",
        /// Waiting for a message in flight.
        Transfer = "transfer",
        /// Waiting for a receiver that has not asked for the message yet (rendezvous).
        LateReceiver = "late receiver",
        /// Waiting for the other ranks of a collective operation.
        CollectiveWait = "collective wait",
        /// In a collective operation that all have reached.
        Collective = "collective",
        /// Waiting, as a sender, for its own interface, which is busy with the message before.
        InterfaceWait = "interface wait",
        /// Waiting for a processor, or for the switch of one to the rank.
        ProcessorWait = "processor wait",
    }
}

/// An interval in which a rank does one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// When the rank begins with it.
    pub start: Time,
    /// Its end; never before the beginning.
    pub end: Time,
    /// What the rank does.
    pub activity: Activity,
}

/// One message from send to receive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageSpan {
    /// The rank that sends it.
    pub src: Rank,
    /// The rank that receives it.
    pub dst: Rank,
    /// Size of the message's data.
    pub size: Bytes,
    /// Tag of the message; -1 for one of a schedule without tags.
    pub tag: i32,
    /// When the sender called.
    pub sent: Time,
    /// When the last byte was there.
    pub arrived: Time,
    /// When the receiver's call returned.
    pub received: Time,
}

/// The replay of all ranks: for each its segments in time order (gaps are idle), and the messages in no given order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// Segments of each rank in time order, by rank.
    pub ranks: Vec<Vec<Segment>>,
    /// The messages of all ranks, in no given order.
    pub messages: Vec<MessageSpan>,
}

/// Segments of the same activity that touch become one.
pub fn merged(segments: impl Iterator<Item = Segment>) -> Vec<Segment> {
    let mut merged = Vec::with_capacity(segments.size_hint().0);
    segments.for_each(|segment| append(&mut merged, segment));
    merged
}

/// The segments of a rank with several processors, whose intervals overlap: at each time the first activity, in the order
/// of [`Activity::ALL`], that any of them has.
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
