//! One connection: frames to write, messages that await acknowledgement, bytes to read.

use std::{collections::VecDeque, io::IoSlice};

use flowcast_scheduler::clock::Ticks;
use flowcast_units::Bytes;

use crate::{
    frame::{FrameHeader, FramePiece, FrameReader, HEADER, RailFault},
    silence::SilenceWatch,
};

/// Largest number of frames that one system call writes.
pub(crate) const AT_ONCE: usize = 32;

/// A frame in flight.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub bytes: Vec<u8>,
    /// The message, if the frame carries one or a piece of one.
    pub message: Option<LaneMessage>,
}

/// Identity of a message or a piece of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneMessage {
    /// Sequence number, over all messages.
    pub sequence: u64,
    /// Piece of its message.
    pub piece: FramePiece,
    /// Order number, over the ordered messages.
    pub order: u64,
    /// Time at which the message was assigned to its rail.
    pub given: Ticks,
}

impl Parcel {
    /// Size of the frame on the wire.
    pub(crate) fn size(&self) -> Bytes {
        Bytes(self.bytes.len() as u64)
    }

    /// Message without the header.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }
}

/// Unacknowledged messages and questions that were received.
#[derive(Debug, Default)]
pub(crate) struct Unacknowledged {
    pub count: u64,
    pub bytes: u64,
    /// Arrival of the first of these messages and questions.
    pub since: Ticks,
}

impl Unacknowledged {
    /// Adds a message of `bytes` bytes, or a question, which has 0 bytes.
    pub(crate) fn add(&mut self, bytes: usize, now: Ticks) {
        if self.count == 0 {
            self.since = now;
        }
        self.count += 1;
        self.bytes += bytes as u64;
    }
}

#[derive(Debug, Default)]
pub(crate) struct RailLane {
    /// Frames in the order of writing. Frames with messages remain until they are acknowledged.
    frames: VecDeque<Parcel>,
    /// Index of the first frame that is not completely written, and the number of its written bytes.
    writing: usize,
    offset: usize,
    /// Messages sent and acknowledged on this connection.
    sent: u64,
    acknowledged: u64,
    /// Cuts the arriving bytes into frames.
    pub reader: FrameReader,
    /// Messages received on this connection, and the arrival time of the last one.
    pub received: u64,
    pub arrived: u64,
    /// Received messages that still need an acknowledgement.
    pub unacknowledged: Unacknowledged,
    /// Frames of any kind that arrived on this connection.
    pub heard: u64,
    pub silence: SilenceWatch,
}

impl RailLane {
    /// Appends a frame. A frame without a message replaces an unwritten one without a message directly before it.
    pub(crate) fn push(&mut self, parcel: Parcel) {
        let last_waits = self.begun() < self.frames.len();
        if parcel.message.is_none()
            && last_waits
            && self
                .frames
                .back()
                .is_some_and(|last| last.message.is_none())
        {
            self.frames.pop_back();
        }
        self.sent += u64::from(parcel.message.is_some());
        self.frames.push_back(parcel);
    }

    /// Number of received messages and arrival of the last one, for a frame that acknowledges them.
    pub(crate) fn acknowledgement(&mut self) -> (u64, u64) {
        self.unacknowledged = Unacknowledged::default();
        (self.received, self.arrived)
    }

    /// Returns `true` if frames wait to be written.
    pub(crate) fn has_output(&self) -> bool {
        self.writing < self.frames.len()
    }

    /// Number of unacknowledged messages.
    pub(crate) fn outstanding(&self) -> u64 {
        self.sent - self.acknowledged
    }

    /// Returns a number that changes when a frame arrives and while the first unacknowledged frame is written.
    pub(crate) fn moved(&self) -> u64 {
        self.heard
            + if self.writing == 0 {
                self.offset as u64
            } else {
                0
            }
    }

    /// Fills `slices` with the next bytes to write and returns the number of slices used.
    pub(crate) fn output<'a>(&'a self, slices: &mut [IoSlice<'a>; AT_ONCE]) -> usize {
        let mut count = 0;
        for (slice, parcel) in slices.iter_mut().zip(self.frames.range(self.writing..)) {
            let from = if count == 0 { self.offset } else { 0 };
            *slice = IoSlice::new(&parcel.bytes[from..]);
            count += 1;
        }
        count
    }

    /// Records that `bytes` bytes were written.
    pub(crate) fn wrote(&mut self, mut bytes: usize) {
        while bytes > 0 {
            let left = self.frames[self.writing].bytes.len() - self.offset;
            if bytes < left {
                self.offset += bytes;
                return;
            }
            bytes -= left;
            self.offset = 0;
            if self.frames[self.writing].message.is_some() {
                self.writing += 1;
            } else {
                self.frames.remove(self.writing);
            }
        }
    }

    /// Returns the messages that the other end acknowledges with this header.
    pub(crate) fn acknowledge(&mut self, header: &FrameHeader) -> Result<Vec<Parcel>, RailFault> {
        let total = header.acknowledged;
        // Written frames without a message have been removed: the frames before `writing` are messages.
        let written = self.acknowledged + self.writing as u64;
        if total > written {
            return Err(RailFault::Acknowledged {
                found: total,
                sent: written,
            });
        }
        let mut done = Vec::new();
        while self.acknowledged < total {
            done.extend(self.frames.pop_front());
            self.writing -= 1;
            self.acknowledged += 1;
        }
        Ok(done)
    }

    /// Returns all unacknowledged messages. The connection is lost.
    pub(crate) fn give_up(&mut self) -> Vec<Parcel> {
        let all = std::mem::take(self).frames;
        all.into_iter()
            .filter(|parcel| parcel.message.is_some())
            .collect()
    }

    /// Number of frames that are at least partly written.
    fn begun(&self) -> usize {
        self.writing + usize::from(self.offset > 0)
    }

    /// Withdraws the messages that are completely unwritten.
    pub(crate) fn take_back(&mut self) -> Vec<Parcel> {
        let tail = self.frames.split_off(self.begun().min(self.frames.len()));
        let (messages, others): (Vec<Parcel>, Vec<Parcel>) = tail
            .into_iter()
            .partition(|parcel| parcel.message.is_some());
        self.frames.extend(others);
        self.sent -= messages.len() as u64;
        // These messages would have carried an acknowledgement; a separate frame has to carry it now.
        let owed = &mut self.unacknowledged.count;
        *owed = (*owed).max(u64::from(!messages.is_empty()));
        messages
    }
}
