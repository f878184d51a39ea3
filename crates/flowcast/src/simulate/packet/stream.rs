//! The messages that one connection carries, one after the other, as packets.
//!
//! A message begins in a packet of its own, and its last packet may be shorter than the others. Packets are counted
//! through all messages of the connection.

use super::frame::Place;
use super::picos::Picos;
use super::{Message, SEGMENT};
use crate::model::sharing::fabric::{Limit, Share};
use crate::simulate::fluid::{Interval, Passage};
use crate::units::{Bytes, Rate};

/// A message's progress is noted so many times.
const NOTES: u64 = 32;

/// One message of a connection.
#[derive(Debug, Clone)]
struct Part {
    /// Its place among all messages.
    message: usize,
    written: Picos,
    size: u64,
    first: u32,
    /// The packet after its last.
    end: u32,
    passage: Passage,
    intervals: Vec<Interval>,
}

/// What is written, and what has come.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    parts: Vec<Part>,
    /// Parts written so far, the packet after the last of these, and when the next is written.
    written: usize,
    available: u32,
    next_write: Picos,
    /// Parts that came whole.
    done: usize,
    /// The packet with which progress is to be noted next.
    next_note: u32,
    noted: u64,
    noted_at: Picos,
}

impl Stream {
    /// The messages of these places, none of them empty, by start.
    pub(super) fn new(messages: &[(usize, Message)]) -> Stream {
        let mut end = 0;
        let part = |(place, message): &(usize, Message)| {
            let first = end;
            end += message.size.0.div_ceil(SEGMENT) as u32;
            let written = Picos::from_time(message.start);
            let passage = Passage { end: message.start, ..Passage::default() };
            Part { message: *place, written, size: message.size.0, first, end, passage, intervals: Vec::new() }
        };
        let mut stream = Stream {
            parts: messages.iter().map(part).collect(),
            written: 0,
            available: 0,
            next_write: messages.first().map_or(Picos::NEVER, |(_, message)| Picos::from_time(message.start)),
            done: 0,
            next_note: 0,
            noted: 0,
            noted_at: Picos::ZERO,
        };
        stream.begin_notes();
        stream
    }

    /// The packet after the last that may be sent.
    #[inline]
    pub(super) fn available(&self) -> u32 {
        self.available
    }

    /// When the next message is written.
    #[inline]
    pub(super) fn next_write(&self) -> Picos {
        self.next_write
    }

    /// Messages written up to now may be sent.
    pub(super) fn write(&mut self, now: Picos) {
        while self.next_write <= now {
            self.available = self.parts[self.written].end;
            self.written += 1;
            self.next_write = self.parts.get(self.written).map_or(Picos::NEVER, |part| part.written);
        }
    }

    /// Where a packet stands in its message.
    #[inline]
    pub(super) fn place(&self, packet: u32) -> Place {
        let is_last = packet + 1 == self.available || (self.parts.len() > 1 && self.part_of(packet).end == packet + 1);
        if is_last { Place::Last } else { Place::Inside }
    }

    /// Payload of a packet.
    pub(super) fn payload(&self, packet: u32) -> Bytes {
        let part = self.part_of(packet);
        Bytes(SEGMENT.min(part.size - u64::from(packet - part.first) * SEGMENT))
    }

    fn part_of(&self, packet: u32) -> &Part {
        let place = self.parts.partition_point(|part| part.end <= packet);
        &self.parts[place]
    }

    /// All packets before `next` have come.
    #[inline]
    pub(super) fn came(&mut self, now: Picos, next: u32, wire: Rate) {
        if next >= self.next_note {
            self.note(now, next, wire);
        }
    }

    fn note(&mut self, now: Picos, next: u32, wire: Rate) {
        while self.done < self.parts.len() && next >= self.next_note {
            let part = &mut self.parts[self.done];
            let come = u64::from(next.min(part.end) - part.first) * SEGMENT;
            let come = come.min(part.size);
            let rate = (come - self.noted) as f64 / now.since(self.noted_at).as_seconds();
            if now > self.noted_at {
                part.intervals.push(Interval {
                    from: self.noted_at.to_time(),
                    to: now.to_time(),
                    share: Share(rate / wire.as_bytes_per_second()),
                    limit: Limit::Queues,
                });
            }
            (self.noted_at, self.noted) = (now, come);
            if next < part.end {
                self.next_note = part.first + note_after(come, part.size);
                continue;
            }
            part.passage = Passage { end: now.to_time(), duration: now.since(part.written).to_time() };
            self.done += 1;
            self.begin_notes();
        }
    }

    /// Of the first message that is not there yet.
    fn begin_notes(&mut self) {
        if let Some(part) = self.parts.get(self.done) {
            (self.noted, self.noted_at) = (0, part.written.max(self.noted_at));
            self.next_note = part.first + note_after(0, part.size);
        } else {
            self.next_note = u32::MAX;
        }
    }

    /// Whether all messages have come.
    pub(super) fn is_whole(&self) -> bool {
        self.done == self.parts.len()
    }

    /// Message, passage and intervals of each part.
    pub(super) fn into_passages(self) -> impl Iterator<Item = (usize, Passage, Vec<Interval>)> {
        self.parts.into_iter().map(|part| (part.message, part.passage, part.intervals))
    }
}

/// Packets of a message until a thirty-second part more than `noted` has come, or all.
fn note_after(noted: u64, size: u64) -> u32 {
    (noted + size.div_ceil(NOTES)).min(size).div_ceil(SEGMENT) as u32
}
