//! Frames of a rail: a header of 48 bytes, then the message.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | length of the message |
//! | 4 | kind |
//! | 5, 6 | index of the piece of its message, and number of pieces; 7 is zero |
//! | 8..16 | sequence: counts all messages of this direction over all rails, each piece of a divided one separately |
//! | 16..24 | order: counts ordered messages; all ones for unordered ones |
//! | 24..32 | acknowledged: messages received so far on this connection |
//! | 32..40 | arrival of the last of them, in nanoseconds of the receiver's clock |
//! | 40..44 | credit: lower 32 bits of the limit of usable sequence numbers, see [`FrameHeader::credit`] |
//! | 44..48 | CRC-32 of all other bytes |
//!
//! Numbers are little-endian. A frame with a wrong checksum ends its rail, because the following bytes cannot be trusted.

use flowcast_scheduler::MAX_RAILS;
use thiserror::Error;

/// Bytes of a header.
pub const HEADER: usize = 48;
/// Order number of an unordered message.
pub const UNORDERED: u64 = u64::MAX;

/// Reason why a rail cannot be used any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RailFault {
    /// The content of a frame changed in transit.
    #[error("a frame's checksum is {found:08x}, expected {expected:08x}")]
    Checksum {
        /// Checksum of the bytes that arrived.
        found: u32,
        /// Checksum in the frame's header.
        expected: u32,
    },
    /// A length above the limit of messages.
    #[error("a frame announces {found} bytes, expected at most {most}")]
    Length {
        /// Length that the frame's header announces.
        found: usize,
        /// Length of the longest allowed message, in bytes.
        most: usize,
    },
    /// A kind of frame that does not exist.
    #[error("a frame is of kind {0}, expected 1 to 4")]
    Kind(u8),
    /// A piece that does not fit its message.
    #[error("found piece {} of {}, expected one of at most {MAX_RAILS} that continues the message", .0.index, .0.of)]
    Piece(FramePiece),
    /// A sequence number that was not granted.
    #[error("found the sequence number {found}, expected a number below {limit}")]
    Sequence {
        /// Sequence number in the frame's header.
        found: u64,
        /// First sequence number that was not granted.
        limit: u64,
    },
    /// More messages acknowledged than were sent.
    #[error("found {found} messages acknowledged, expected at most {sent}")]
    Acknowledged {
        /// Number acknowledged by the frame's header.
        found: u64,
        /// Number of messages sent on this connection.
        sent: u64,
    },
    /// Nothing moved on the rail while the other end answered on another rail.
    #[error("silent while the other end answered on another rail")]
    Silent,
    /// The rail was closed by the other end or by the system.
    #[error("the connection is closed")]
    Closed,
    /// The caller took the rail out of service.
    #[error("taken out of service")]
    Withdrawn,
}

/// Purpose of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Carries a message or a piece of one.
    Data = 1,
    /// Carries only the acknowledgement and the credit of its header.
    Acknowledgement = 2,
    /// Introduces a new connection.
    Hello = 3,
    /// Requests an acknowledgement of everything received.
    Question = 4,
}

/// Part of its message that a frame carries. The pieces of a message have consecutive sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FramePiece {
    /// Index of the piece, from 0.
    pub index: u8,
    /// Number of pieces of the message, at most one for each rail.
    pub of: u8,
}

impl FramePiece {
    /// The only piece of a message that is not divided.
    pub const WHOLE: FramePiece = FramePiece { index: 0, of: 1 };

    fn read(index: u8, of: u8) -> Result<FramePiece, RailFault> {
        let piece = FramePiece { index, of };
        if index < of && usize::from(of) <= MAX_RAILS {
            Ok(piece)
        } else {
            Err(RailFault::Piece(piece))
        }
    }
}

/// Header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Purpose of the frame.
    pub kind: FrameKind,
    /// Part of the message that the frame carries.
    pub piece: FramePiece,
    /// Sequence number, over all pieces of this direction.
    pub sequence: u64,
    /// Order number, over all ordered messages; [`UNORDERED`] for others.
    pub order: u64,
    /// Number of messages received so far on this connection.
    pub acknowledged: u64,
    /// Arrival time of the last of these messages, on the clock of the frame's sender.
    pub arrived: u64,
    /// Limit of the sequence numbers that may be used. It only grows; the frame carries its lower 32 bits.
    pub credit: u64,
}

impl FrameHeader {
    /// Header of a frame without a message, acknowledgement or credit.
    pub const fn bare(kind: FrameKind) -> FrameHeader {
        FrameHeader {
            kind,
            piece: FramePiece::WHOLE,
            sequence: 0,
            order: UNORDERED,
            acknowledged: 0,
            arrived: 0,
            credit: 0,
        }
    }
}

/// Replaces the content of `bytes` by a frame.
pub fn encode(bytes: &mut Vec<u8>, header: &FrameHeader, message: &[u8]) {
    bytes.clear();
    bytes.reserve(HEADER + message.len());
    bytes.extend_from_slice(&(message.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&[header.kind as u8, header.piece.index, header.piece.of, 0]);
    for field in [
        header.sequence,
        header.order,
        header.acknowledged,
        header.arrived,
    ] {
        bytes.extend_from_slice(&field.to_le_bytes());
    }
    bytes.extend_from_slice(&(header.credit as u32).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(message);
    let sum = checksum(bytes);
    bytes[44..48].copy_from_slice(&sum.to_le_bytes());
}

/// Checksum over the frame without the four bytes of the checksum itself.
fn checksum(frame: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&frame[..44]);
    sum.update(&frame[HEADER..]);
    sum.finalize()
}

/// Cuts a stream of bytes into frames.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    buffer: Vec<u8>,
    read: usize,
    filled: usize,
}

impl FrameReader {
    /// Returns a buffer for further bytes, of at least `least` bytes.
    pub(crate) fn space(&mut self, least: usize) -> &mut [u8] {
        if self.read == self.filled {
            (self.read, self.filled) = (0, 0);
        }
        if self.buffer.len() - self.filled < least && self.read > 0 {
            self.buffer.copy_within(self.read..self.filled, 0);
            (self.read, self.filled) = (0, self.filled - self.read);
        }
        if self.buffer.len() - self.filled < least {
            self.buffer.resize(self.filled + least, 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// Marks the first `bytes` of that buffer as filled.
    pub(crate) fn filled(&mut self, bytes: usize) {
        self.filled += bytes;
    }

    /// Returns the next complete frame, or `None` until all its bytes have arrived.
    ///
    /// # Errors
    /// A frame that changed in transit, or bytes that are not a frame.
    pub(crate) fn next(
        &mut self,
        longest: usize,
        credit_before: u64,
    ) -> Result<Option<(FrameHeader, &[u8])>, RailFault> {
        let whole = &self.buffer[self.read..self.filled];
        let Some(header) = whole.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(part(header, 0)) as usize;
        if length > longest {
            return Err(RailFault::Length {
                found: length,
                most: longest,
            });
        }
        let Some(frame) = whole.get(..HEADER + length) else {
            return Ok(None);
        };
        let (found, expected) = (checksum(frame), u32::from_le_bytes(part(header, 44)));
        if found != expected {
            return Err(RailFault::Checksum { found, expected });
        }
        let header = decode(header, credit_before)?;
        let start = self.read;
        self.read += frame.len();
        Ok(Some((
            header,
            &self.buffer[start + HEADER..start + HEADER + length],
        )))
    }
}

fn decode(bytes: &[u8; HEADER], credit_before: u64) -> Result<FrameHeader, RailFault> {
    let kind = match bytes[4] {
        1 => FrameKind::Data,
        2 => FrameKind::Acknowledgement,
        3 => FrameKind::Hello,
        4 => FrameKind::Question,
        other => return Err(RailFault::Kind(other)),
    };
    let number = |at| u64::from_le_bytes(part(bytes, at));
    let credit = widened(credit_before, u32::from_le_bytes(part(bytes, 40)));
    let (sequence, order) = (number(8), number(16));
    let piece = FramePiece::read(bytes[5], bytes[6])?;
    Ok(FrameHeader {
        kind,
        piece,
        sequence,
        order,
        acknowledged: number(24),
        arrived: number(32),
        credit,
    })
}

/// Returns the number nearest to `near` that has these lower bits.
fn widened(near: u64, lower: u32) -> u64 {
    near.wrapping_add_signed(i64::from(lower.wrapping_sub(near as u32) as i32))
}

fn part<const N: usize>(bytes: &[u8; HEADER], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(sequence: u64, credit: u64) -> FrameHeader {
        let piece = FramePiece {
            index: (sequence % 3) as u8,
            of: 3,
        };
        FrameHeader {
            kind: FrameKind::Data,
            piece,
            sequence,
            order: UNORDERED,
            acknowledged: 7,
            arrived: 9,
            credit,
        }
    }

    proptest! {
        #[test]
        fn frames_are_read_back_however_they_arrive(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..8),
            chunks in prop::collection::vec(1usize..200, 1..40),
            credit in any::<u32>(),
        ) {
            let credit = u64::from(credit) + (1 << 33);
            let mut stream = Vec::new();
            let mut frame = Vec::new();
            for (message, sequence) in messages.iter().zip(0..) {
                encode(&mut frame, &header(sequence, credit + sequence), message);
                stream.extend_from_slice(&frame);
            }
            let (mut reader, mut read, mut chunks) = (FrameReader::default(), Vec::new(), chunks.iter().cycle());
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at((*chunks.next().unwrap()).min(rest.len()));
                reader.space(now.len())[..now.len()].copy_from_slice(now);
                reader.filled(now.len());
                rest = later;
                while let Some((found, message)) = reader.next(300, credit).unwrap() {
                    let sequence = read.len() as u64;
                    prop_assert_eq!(found, header(sequence, credit + sequence));
                    read.push(message.to_vec());
                }
            }
            prop_assert_eq!(read, messages);
        }

        #[test]
        fn a_flipped_bit_is_noticed(message in prop::collection::vec(any::<u8>(), 0..60), at in any::<prop::sample::Index>()) {
            let mut frame = Vec::new();
            encode(&mut frame, &header(3, 90), &message);
            let bit = at.index(frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
            let mut reader = FrameReader::default();
            // A larger announced length may make the frame wait for more bytes, which then fail the checksum.
            frame.resize(HEADER + 4096, 0);
            reader.space(frame.len())[..frame.len()].copy_from_slice(&frame);
            reader.filled(frame.len());
            prop_assert!(reader.next(4096, 90).is_err());
        }
    }

    #[test]
    fn an_absurd_length_is_refused_before_its_bytes_are_awaited() {
        let mut reader = FrameReader::default();
        reader.space(HEADER)[..HEADER].fill(0xff);
        reader.filled(HEADER);
        assert_eq!(
            reader.next(100, 0),
            Err(RailFault::Length {
                found: u32::MAX as usize,
                most: 100
            })
        );
    }
}
