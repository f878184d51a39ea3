//! One connection: frames to be written, messages to be acknowledged, bytes to be read.

use std::{collections::VecDeque, io::IoSlice};

use flowcast_scheduler::clock::Ticks;
use flowcast_units::Bytes;

use crate::{
    frame::{FrameHeader, FramePiece, FrameReader, HEADER, RailFault},
    silence::SilenceWatch,
};

/// The most frames that one system call writes.
pub(crate) const AT_ONCE: usize = 32;

/// A frame in flight.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub bytes: Vec<u8>,
    /// Its message, if it carries one or a piece of one.
    pub message: Option<LaneMessage>,
}

/// What identifies a message or a piece of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneMessage {
    /// Its number among all.
    pub sequence: u64,
    /// How much it is of its message.
    pub piece: FramePiece,
    /// Its number among the ordered ones.
    pub order: u64,
    /// When it was given to its rail.
    pub given: Ticks,
}

impl Parcel {
    /// Bytes on the wire.
    pub(crate) fn size(&self) -> Bytes {
        Bytes(self.bytes.len() as u64)
    }

    /// The message alone.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }
}

/// Messages received and not yet acknowledged, and questions.
#[derive(Debug, Default)]
pub(crate) struct Unacknowledged {
    pub count: u64,
    pub bytes: u64,
    /// When the first of them arrived.
    pub since: Ticks,
}

impl Unacknowledged {
    /// One more, with a message of so many bytes.
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
    /// Frames in the order of writing; those with messages stay until they are acknowledged.
    frames: VecDeque<Parcel>,
    /// The first that is not wholly written, and how much of it is.
    writing: usize,
    offset: usize,
    /// Messages sent and acknowledged on this connection.
    sent: u64,
    acknowledged: u64,
    /// Cuts the bytes that arrive into frames.
    pub reader: FrameReader,
    /// Messages received on this connection, and when the last of them was.
    pub received: u64,
    pub arrived: u64,
    /// What is to be acknowledged.
    pub unacknowledged: Unacknowledged,
    /// Frames of any kind that arrived on this connection.
    pub heard: u64,
    pub silence: SilenceWatch,
}

impl RailLane {
    /// Adds a frame to be written; one without a message takes the place of one that waits before it.
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

    /// Number and arrival of the last message received, for a frame that is about to acknowledge them.
    pub(crate) fn acknowledgement(&mut self) -> (u64, u64) {
        self.unacknowledged = Unacknowledged::default();
        (self.received, self.arrived)
    }

    /// Whether frames wait to be written.
    pub(crate) fn has_output(&self) -> bool {
        self.writing < self.frames.len()
    }

    /// Messages that are not acknowledged.
    pub(crate) fn outstanding(&self) -> u64 {
        self.sent - self.acknowledged
    }

    /// A number that changes when anything is heard, and while the first frame that is not acknowledged is written.
    pub(crate) fn moved(&self) -> u64 {
        self.heard
            + if self.writing == 0 {
                self.offset as u64
            } else {
                0
            }
    }

    /// What is to be written next.
    pub(crate) fn output<'a>(&'a self, slices: &mut [IoSlice<'a>; AT_ONCE]) -> usize {
        let mut count = 0;
        for (slice, parcel) in slices.iter_mut().zip(self.frames.range(self.writing..)) {
            let from = if count == 0 { self.offset } else { 0 };
            *slice = IoSlice::new(&parcel.bytes[from..]);
            count += 1;
        }
        count
    }

    /// So many bytes were written.
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

    /// The messages that the other end has now acknowledged.
    pub(crate) fn acknowledge(&mut self, header: &FrameHeader) -> Result<Vec<Parcel>, RailFault> {
        let total = header.acknowledged;
        // Written frames without a message are gone already: what stands before `writing` are messages.
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

    /// Everything that is not acknowledged; the connection is lost.
    pub(crate) fn give_up(&mut self) -> Vec<Parcel> {
        let all = std::mem::take(self).frames;
        all.into_iter()
            .filter(|parcel| parcel.message.is_some())
            .collect()
    }

    /// Frames of which something has been written.
    fn begun(&self) -> usize {
        self.writing + usize::from(self.offset > 0)
    }

    /// Messages of which nothing has been written yet.
    pub(crate) fn take_back(&mut self) -> Vec<Parcel> {
        let tail = self.frames.split_off(self.begun().min(self.frames.len()));
        let (messages, others): (Vec<Parcel>, Vec<Parcel>) = tail
            .into_iter()
            .partition(|parcel| parcel.message.is_some());
        self.frames.extend(others);
        self.sent -= messages.len() as u64;
        // They would have carried an acknowledgement; a frame of its own has to carry it now.
        let owed = &mut self.unacknowledged.count;
        *owed = (*owed).max(u64::from(!messages.is_empty()));
        messages
    }
}
