//! Messages of one connection, one after another, as packets.
//!
//! A message begins with a new packet, and its last packet may be shorter than the others. Packets are counted through all
//! messages of the connection. Messages are either all known from the start, or appended one by one.

use std::collections::VecDeque;

use super::{PacketMessage, frame::Place, picos::Picos, shift::Shift};
use flowcast_network::sharing::{
    completion::{FlowCompletion, RateInterval},
    fabric::{AllocatedFraction, Limit},
};
use flowcast_units::{Bytes, Rate};

/// Number of notes of a message's progress.
const NOTES: u64 = 32;
/// Least number of messages that are remembered if they are appended one by one.
const REMEMBERED: usize = 64;

/// One message of a connection.
#[derive(Debug, Clone)]
struct StreamPart {
    /// Number of the message among all messages.
    message: usize,
    written: Picos,
    size: u64,
    first: u32,
    /// Packet after the last packet of the message.
    end: u32,
    /// Number of packets that must be acknowledged before the send buffer has room for the rest of the message.
    held: u32,
    completion: FlowCompletion,
    intervals: Vec<RateInterval>,
}

/// Send buffer of a program, with a size in packets. The program is woken when a third of it is free.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    packets: u32,
    /// Number of parts that were reported because their unacknowledged rest is in the buffer.
    told: usize,
}

impl Buffer {
    /// Number of packets that must be acknowledged before the buffer has room for the other packets before `end`. The first
    /// `acknowledged` packets are acknowledged already.
    fn holds(&self, end: u32, acknowledged: u32) -> u32 {
        let third = (self.packets / 3).max(1);
        let missing = end
            .saturating_sub(acknowledged)
            .saturating_sub(self.packets);
        acknowledged + missing.div_ceil(third) * third
    }
}

/// Messages that are written, and their progress.
#[derive(Debug, Clone)]
pub(super) struct PacketStream {
    /// Payload of a full packet.
    segment: u64,
    parts: VecDeque<StreamPart>,
    /// Number of parts written so far.
    written: usize,
    /// Packet after the last packet of the written parts.
    available: u32,
    /// Time at which the next part is written; never if all are written.
    next_write: Picos,
    /// Number of parts that have arrived completely.
    done: usize,
    /// Number of parts whose arrival was reported.
    told: usize,
    /// Send buffer, if messages are appended one by one.
    buffer: Option<Buffer>,
    /// Number of parts at which old parts are forgotten; `usize::MAX` if their intervals are needed.
    most: usize,
    /// Number of notes of each message's progress.
    notes: u64,
    /// Packet at which progress is noted next.
    next_note: u32,
    noted: u64,
    noted_at: Picos,
}

impl PacketStream {
    /// Creates a stream of these messages, each with its number. They are ordered by start and not empty.
    pub(super) fn new(messages: &[(usize, PacketMessage)], segment: Bytes) -> PacketStream {
        let mut end = 0;
        let parts = messages.iter().map(|(place, message)| {
            let first = end;
            end += message.size.0.div_ceil(segment.0) as u32;
            let written = Picos::from_time(message.start);
            let completion = FlowCompletion {
                end: message.start,
                ..FlowCompletion::default()
            };
            StreamPart {
                message: *place,
                written,
                size: message.size.0,
                first,
                end,
                held: end,
                completion,
                intervals: Vec::new(),
            }
        });
        let mut stream = PacketStream {
            parts: parts.collect(),
            most: usize::MAX,
            notes: NOTES,
            ..PacketStream::one_by_one(segment, None)
        };
        stream.next_write = stream
            .parts
            .front()
            .map_or(Picos::NEVER, |part| part.written);
        stream.begin_notes();
        stream
    }

    /// Creates a stream without messages; [`PacketStream::append`] adds them. With a buffer, a message is reported when its
    /// unacknowledged rest is in the buffer.
    pub(super) fn one_by_one(segment: Bytes, buffer: Option<Bytes>) -> PacketStream {
        PacketStream {
            segment: segment.0,
            parts: VecDeque::new(),
            written: 0,
            available: 0,
            next_write: Picos::NEVER,
            done: 0,
            told: 0,
            buffer: buffer.map(|bytes| Buffer {
                packets: (bytes.0 / segment.0) as u32,
                told: 0,
            }),
            most: REMEMBERED,
            notes: 1,
            next_note: u32::MAX,
            noted: 0,
            noted_at: Picos::ZERO,
        }
    }

    /// Appends a message that is written now. All packets before `acknowledged` have been acknowledged. Returns `false` if
    /// no packet numbers are left.
    pub(super) fn append(
        &mut self,
        now: Picos,
        acknowledged: u32,
        message: usize,
        size: Bytes,
    ) -> bool {
        let first = self.available;
        let packets = size.0.div_ceil(self.segment).max(1);
        let Some(end) = u32::try_from(packets)
            .ok()
            .and_then(|packets| first.checked_add(packets))
        else {
            return false;
        };
        let completion = FlowCompletion {
            end: now.to_time(),
            ..FlowCompletion::default()
        };
        let held = self
            .buffer
            .map_or(end, |buffer| buffer.holds(end, acknowledged));
        let intervals = Vec::new();
        self.parts.push_back(StreamPart {
            message,
            written: now,
            size: size.0,
            first,
            end,
            held,
            completion,
            intervals,
        });
        self.written += 1;
        self.available = end;
        if self.done + 1 == self.parts.len() {
            self.begin_notes();
        }
        end < u32::MAX
    }

    /// Returns a message that has arrived and was not reported yet: its number and its completion.
    #[inline]
    pub(super) fn take_completion(&mut self) -> Option<(usize, FlowCompletion)> {
        if self.told == self.done {
            return None;
        }
        self.told += 1;
        let part = &self.parts[self.told - 1];
        Some((part.message, part.completion))
    }

    /// Returns the number of a message whose unacknowledged rest is in the send buffer, if it was not reported yet.
    #[inline]
    pub(super) fn hold(&mut self, acknowledged: u32) -> Option<usize> {
        let buffer = self.buffer.as_mut()?;
        let part = self
            .parts
            .get(buffer.told)
            .filter(|part| part.held <= acknowledged)?;
        buffer.told += 1;
        Some(part.message)
    }

    /// `true` if old messages should be forgotten.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.parts.len() >= self.most
    }

    /// Forgets messages without packets in flight: all their packets are before `oldest`.
    pub(super) fn forget(&mut self, oldest: u32) {
        while self.told > 0
            && self.parts[0].end <= oldest
            && self.buffer.is_none_or(|buffer| buffer.told > 0)
        {
            self.parts.pop_front();
            self.buffer = self.buffer.map(|buffer| Buffer {
                told: buffer.told - 1,
                ..buffer
            });
            (self.written, self.done, self.told) = (self.written - 1, self.done - 1, self.told - 1);
        }
        self.most = REMEMBERED.max(2 * self.parts.len());
    }

    /// Packet after the last packet that may be sent.
    #[inline]
    pub(super) fn available(&self) -> u32 {
        self.available
    }

    /// Time at which the next message is written.
    #[inline]
    pub(super) fn next_write(&self) -> Picos {
        self.next_write
    }

    /// Makes messages that are written up to now available for sending.
    pub(super) fn write(&mut self, now: Picos) {
        while self.next_write <= now {
            self.available = self.parts[self.written].end;
            self.written += 1;
            self.next_write = self
                .parts
                .get(self.written)
                .map_or(Picos::NEVER, |part| part.written);
        }
    }

    /// Position of a packet in its message.
    #[inline]
    pub(super) fn place(&self, packet: u32) -> Place {
        let is_last = packet + 1 == self.available
            || (self.parts.len() > 1 && self.part_of(packet).end == packet + 1);
        if is_last { Place::Last } else { Place::Inside }
    }

    /// Payload of a packet.
    pub(super) fn payload(&self, packet: u32) -> Bytes {
        let part = self.part_of(packet);
        Bytes(
            self.segment
                .min(part.size - u64::from(packet - part.first) * self.segment),
        )
    }

    fn part_of(&self, packet: u32) -> &StreamPart {
        let place = self.parts.partition_point(|part| part.end <= packet);
        &self.parts[place]
    }

    /// Notes that all packets before `next` have arrived.
    #[inline]
    pub(super) fn came(&mut self, now: Picos, next: u32, wire: Rate) {
        if next >= self.next_note {
            self.note(now, next, wire);
        }
    }

    fn note(&mut self, now: Picos, next: u32, wire: Rate) {
        while self.done < self.parts.len() && next >= self.next_note {
            let part = &mut self.parts[self.done];
            let come = u64::from(next.min(part.end) - part.first) * self.segment;
            let come = come.min(part.size);
            if now > self.noted_at {
                if self.notes > 1 {
                    let rate = (come - self.noted) as f64 / now.since(self.noted_at).as_seconds();
                    part.intervals.push(RateInterval {
                        from: self.noted_at.to_time(),
                        to: now.to_time(),
                        share: AllocatedFraction(rate / wire.as_bytes_per_second()),
                        limit: Limit::Queues,
                    });
                }
                (self.noted_at, self.noted) = (now, come);
            }
            if next < part.end {
                self.next_note = part.first
                    + note_after(come, part.size, self.notes)
                        .div_ceil(self.segment)
                        .max(1) as u32;
                continue;
            }
            part.completion = FlowCompletion {
                end: now.to_time(),
                duration: now.since(part.written).to_time(),
            };
            self.done += 1;
            self.begin_notes();
        }
    }

    /// Begins the notes of the first message that has not arrived.
    fn begin_notes(&mut self) {
        if let Some(part) = self.parts.get(self.done) {
            (self.noted, self.noted_at) = (0, part.written.max(self.noted_at));
            self.next_note = part.first
                + note_after(0, part.size, self.notes)
                    .div_ceil(self.segment)
                    .max(1) as u32;
        } else {
            self.next_note = u32::MAX;
        }
    }

    /// Number of unsent packets of the arriving message, not counting its last packet, when `came` packets have arrived and
    /// `sent` packets were sent.
    pub(super) fn room(&self, came: u32, sent: u32) -> u32 {
        let part = self.parts.get(self.done).filter(|part| part.first <= came);
        part.map_or(0, |part| (part.end - 1).saturating_sub(sent))
    }

    /// Skips `periods` periods after the arrival of the first `came` packets. Packets arrive in each of them as in the
    /// previous period, in which they arrived at `times`.
    pub(super) fn skip(
        &mut self,
        came: u32,
        times: &[Picos],
        period: Shift,
        periods: u32,
        wire: Rate,
    ) {
        while self.next_note <= came + period.packets * periods {
            let place = self.next_note - came - 1;
            let later = period.time * u64::from(1 + place / period.packets);
            self.note(
                times[(place % period.packets) as usize] + later,
                self.next_note,
                wire,
            );
        }
    }

    /// `true` if all messages that are written have arrived.
    pub(super) fn is_at_rest(&self) -> bool {
        self.done == self.written
    }

    /// `true` if all messages have arrived.
    pub(super) fn is_whole(&self) -> bool {
        self.done == self.parts.len()
    }

    /// Message and intervals of each part.
    pub(super) fn into_intervals(self) -> impl Iterator<Item = (usize, Vec<RateInterval>)> {
        self.parts
            .into_iter()
            .map(|part| (part.message, part.intervals))
    }
}

/// Number of bytes of a message at which its progress is noted next: `noted` plus `1/notes` of its size, at most all bytes.
fn note_after(noted: u64, size: u64, notes: u64) -> u64 {
    (noted + size.div_ceil(notes)).min(size)
}
