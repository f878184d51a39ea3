//! Reception: delivers each message once and ordered messages in order, independent of their rails.

use std::collections::{BTreeMap, VecDeque};

use crate::frame::{FrameHeader, FramePiece, RailFault, UNORDERED};

/// Reception state of one direction.
#[derive(Debug)]
pub(crate) struct Inbound {
    window: u64,
    /// Longest message, in one piece or in several, in bytes.
    longest: usize,
    /// All sequence numbers below this have been received.
    floor: u64,
    /// A bit for each sequence number from `floor` on, indexed by the number modulo the window.
    seen: Vec<u64>,
    consumed: u64,
    next_order: u64,
    /// Divided messages with missing pieces, keyed by the sequence number of the first piece. Each piece has its own number
    /// within the window, which bounds their number.
    joining: BTreeMap<u64, PartialMessage>,
    /// Ordered messages from `next_order` on that wait for an earlier one.
    held: VecDeque<Option<WholeMessage>>,
    ready: VecDeque<WholeMessage>,
}

/// Pieces of a message that have arrived.
#[derive(Debug)]
struct PartialMessage {
    order: u64,
    pieces: Vec<Option<Vec<u8>>>,
}

/// A message, and the number of sequence numbers that it used.
#[derive(Debug, Clone)]
struct WholeMessage {
    message: Vec<u8>,
    numbers: u64,
}

/// Result for an arriving message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InboundArrival {
    /// The message arrived for the first time.
    First,
    /// The message had arrived before, over a rail that failed.
    Repeated,
}

impl Inbound {
    /// Creates an empty state. At most `window` messages are held, a multiple of 64.
    pub(crate) fn new(window: u64, longest: usize) -> Inbound {
        let words = window.div_ceil(64).max(1);
        Inbound {
            window: words * 64,
            longest,
            floor: 0,
            seen: vec![0; words as usize],
            consumed: 0,
            next_order: 0,
            joining: BTreeMap::new(),
            held: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// First sequence number that the sender may not use yet: one window beyond the first missing sequence number or the
    /// count of consumed ones, whichever is smaller. The receiver therefore never stores more than a window.
    pub(crate) fn credit(&self) -> u64 {
        self.floor.min(self.consumed) + self.window
    }

    /// Accepts a message or a piece of one.
    ///
    /// # Errors
    /// A sequence number or an order number beyond the granted ones, a piece that does not fit the others of its message, or
    /// a piece that makes the message too long.
    pub(crate) fn take(
        &mut self,
        header: &FrameHeader,
        message: &[u8],
    ) -> Result<InboundArrival, RailFault> {
        let FrameHeader {
            sequence,
            order,
            piece,
            ..
        } = *header;
        if sequence < self.floor || self.has(sequence) {
            return Ok(InboundArrival::Repeated);
        }
        let limit = self.floor + self.window;
        if sequence >= limit {
            return Err(RailFault::Sequence {
                found: sequence,
                limit,
            });
        }
        let whole = match piece {
            FramePiece::WHOLE => Some(WholeMessage {
                message: message.to_vec(),
                numbers: 1,
            }),
            _ => self.join(header, message)?,
        };
        match whole {
            Some(whole) if order == UNORDERED => self.ready.push_back(whole),
            Some(whole) => self.hold(order, whole)?,
            None => {}
        }
        self.mark(sequence);
        Ok(InboundArrival::First)
    }

    /// Returns the next message for the application.
    pub(crate) fn consume(&mut self) -> Option<Vec<u8>> {
        let WholeMessage { message, numbers } = self.ready.pop_front()?;
        self.consumed += numbers;
        Some(message)
    }

    /// Returns `true` if a message is ready for the application.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the whole message if this was its last piece.
    fn join(
        &mut self,
        header: &FrameHeader,
        bytes: &[u8],
    ) -> Result<Option<WholeMessage>, RailFault> {
        let FrameHeader {
            sequence,
            order,
            piece,
            ..
        } = *header;
        let (index, of) = (usize::from(piece.index), usize::from(piece.of));
        let first = sequence
            .checked_sub(u64::from(piece.index))
            .ok_or(RailFault::Piece(piece))?;
        let joining = self.joining.entry(first).or_insert_with(|| PartialMessage {
            order,
            pieces: vec![None; of],
        });
        if joining.order != order || joining.pieces.len() != of {
            return Err(RailFault::Piece(piece));
        }
        let found = bytes.len() + joining.pieces.iter().flatten().map(Vec::len).sum::<usize>();
        if found > self.longest {
            return Err(RailFault::Length {
                found,
                most: self.longest,
            });
        }
        joining.pieces[index] = Some(bytes.to_vec());
        if joining.pieces.iter().any(Option::is_none) {
            return Ok(None);
        }
        let pieces = self
            .joining
            .remove(&first)
            .map_or_else(Vec::new, |joining| joining.pieces);
        let message = pieces.into_iter().flatten().collect::<Vec<_>>().concat();
        Ok(Some(WholeMessage {
            message,
            numbers: of as u64,
        }))
    }

    fn hold(&mut self, order: u64, whole: WholeMessage) -> Result<(), RailFault> {
        let limit = self.next_order + self.window;
        let place = order
            .checked_sub(self.next_order)
            .filter(|place| *place < self.window);
        let place = place.ok_or(RailFault::Sequence {
            found: order,
            limit,
        })? as usize;
        if place == 0 && self.held.is_empty() {
            self.next_order += 1;
            self.ready.push_back(whole);
            return Ok(());
        }
        if self.held.len() <= place {
            self.held.resize(place + 1, None);
        }
        self.held[place] = Some(whole);
        while let Some(Some(_)) = self.held.front() {
            self.ready.extend(self.held.pop_front().flatten());
            self.next_order += 1;
        }
        Ok(())
    }

    fn bit(&self, sequence: u64) -> (usize, u64) {
        let place = sequence % self.window;
        ((place / 64) as usize, 1 << (place % 64))
    }

    fn has(&self, sequence: u64) -> bool {
        let (word, bit) = self.bit(sequence);
        sequence < self.floor + self.window && self.seen[word] & bit != 0
    }

    fn mark(&mut self, sequence: u64) {
        let (word, bit) = self.bit(sequence);
        self.seen[word] |= bit;
        while self.has(self.floor) {
            let (word, bit) = self.bit(self.floor);
            self.seen[word] &= !bit;
            self.floor += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameKind;
    use proptest::prelude::*;

    fn header(sequence: u64, order: u64, piece: FramePiece) -> FrameHeader {
        FrameHeader {
            kind: FrameKind::Data,
            piece,
            sequence,
            order,
            acknowledged: 0,
            arrived: 0,
            credit: 0,
        }
    }

    #[test]
    fn a_piece_that_does_not_match_its_message_is_refused() {
        let mut inbound = Inbound::new(64, 100);
        let piece = |index, of| FramePiece { index, of };
        assert_eq!(
            inbound.take(&header(0, 5, piece(1, 2)), b""),
            Err(RailFault::Piece(piece(1, 2))),
            "before the first number"
        );
        inbound.take(&header(3, 0, piece(1, 3)), b"").unwrap();
        for other in [header(4, 1, piece(2, 3)), header(4, 0, piece(2, 4))] {
            assert_eq!(
                inbound.take(&other, b""),
                Err(RailFault::Piece(other.piece))
            );
        }
        assert!(!inbound.is_ready());
    }

    #[test]
    fn pieces_that_are_too_long_together_are_refused() {
        let mut inbound = Inbound::new(64, 10);
        let piece = |index| header(u64::from(index), 0, FramePiece { index, of: 2 });
        inbound.take(&piece(0), &[0; 6]).unwrap();
        assert_eq!(
            inbound.take(&piece(1), &[0; 5]),
            Err(RailFault::Length {
                found: 11,
                most: 10
            })
        );
        inbound.take(&piece(1), &[0; 4]).unwrap();
        assert_eq!(inbound.consume().unwrap().len(), 10);
    }

    proptest! {
        #[test]
        fn any_order_of_arrival_delivers_each_message_once_and_ordered_ones_in_order(
            kinds in prop::collection::vec((any::<bool>(), 1u8..4), 1..21),
            shuffle in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            let mut order = 0;
            let mut frames: Vec<(FrameHeader, [u8; 2])> = Vec::new();
            for ((ordered, of), number) in kinds.iter().zip(0..) {
                let own = if *ordered { order } else { UNORDERED };
                order += u64::from(*ordered);
                for index in 0..*of {
                    frames.push((header(frames.len() as u64, own, FramePiece { index, of: *of }), [number, index]));
                }
            }
            let mut inbound = Inbound::new(64, 100);
            let mut arrivals: Vec<usize> = shuffle.iter().map(|index| index.index(frames.len())).collect();
            arrivals.extend(0..frames.len());
            let mut first = 0;
            for index in arrivals {
                let (header, piece) = &frames[index];
                if inbound.take(header, piece).unwrap() == InboundArrival::First {
                    first += 1;
                }
            }
            prop_assert_eq!(first, frames.len());
            let mut consumed: Vec<Vec<u8>> = std::iter::from_fn(|| inbound.consume()).collect();
            let ordered = consumed.iter().map(|message| message[0]).filter(|number| kinds[usize::from(*number)].0);
            prop_assert!(ordered.is_sorted());
            consumed.sort_unstable();
            prop_assert_eq!(consumed, kinds.iter().zip(0..).map(|((_, of), number): (&(bool, u8), u8)| (0..*of).flat_map(|index| [number, index]).collect()).collect::<Vec<Vec<u8>>>());
            prop_assert_eq!(inbound.credit(), frames.len() as u64 + 64);
        }
    }

    #[test]
    fn credit_waits_for_the_application_and_for_missing_messages() {
        let mut inbound = Inbound::new(64, 100);
        for sequence in 1..64 {
            inbound
                .take(&header(sequence, UNORDERED, FramePiece::WHOLE), b"")
                .unwrap();
            inbound.consume().unwrap();
        }
        assert_eq!(inbound.credit(), 64, "message 0 is missing");
        let beyond = header(64, UNORDERED, FramePiece::WHOLE);
        assert_eq!(
            inbound.take(&beyond, b""),
            Err(RailFault::Sequence {
                found: 64,
                limit: 64
            })
        );
        inbound
            .take(&header(0, UNORDERED, FramePiece::WHOLE), b"")
            .unwrap();
        assert_eq!(inbound.credit(), 127, "message 0 is not consumed");
        inbound.consume().unwrap();
        assert_eq!(inbound.credit(), 128);
    }
}
