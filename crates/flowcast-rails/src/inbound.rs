//! Each message once, ordered ones in order, whatever rails they came over.

use std::collections::VecDeque;

use crate::frame::{Fault, UNORDERED};

/// What has been received of one direction.
#[derive(Debug)]
pub struct Inbound {
    window: u64,
    /// Every sequence number below has been received.
    floor: u64,
    /// A bit for each sequence number from `floor` on, by its remainder.
    seen: Vec<u64>,
    consumed: u64,
    next_order: u64,
    /// Ordered messages from `next_order` on that wait for an earlier one.
    held: VecDeque<Option<Vec<u8>>>,
    ready: VecDeque<Vec<u8>>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is new.
    First,
    /// It had arrived before, over a rail that failed.
    Repeated,
}

impl Inbound {
    /// Nothing received; at most `window` messages are held, a multiple of 64.
    pub fn new(window: u64) -> Inbound {
        let words = window.div_ceil(64).max(1);
        Inbound {
            window: words * 64,
            floor: 0,
            seen: vec![0; words as usize],
            consumed: 0,
            next_order: 0,
            held: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// Sequence numbers below this may be used by the sender: no more messages than the window are then received and
    /// not consumed, or received before one that is missing.
    pub fn credit(&self) -> u64 {
        self.floor.min(self.consumed) + self.window
    }

    /// Takes a message.
    ///
    /// # Errors
    /// A sequence number or an order beyond what was granted.
    pub fn take(&mut self, sequence: u64, order: u64, message: &[u8]) -> Result<Arrival, Fault> {
        if sequence < self.floor || self.has(sequence) {
            return Ok(Arrival::Repeated);
        }
        let limit = self.floor + self.window;
        if sequence >= limit {
            return Err(Fault::Sequence { found: sequence, limit });
        }
        if order == UNORDERED {
            self.ready.push_back(message.to_vec());
        } else {
            self.hold(order, message)?;
        }
        self.mark(sequence);
        Ok(Arrival::First)
    }

    /// The next message for the application.
    pub fn consume(&mut self) -> Option<Vec<u8>> {
        let message = self.ready.pop_front()?;
        self.consumed += 1;
        Some(message)
    }

    /// Whether a message waits for the application.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    fn hold(&mut self, order: u64, message: &[u8]) -> Result<(), Fault> {
        let limit = self.next_order + self.window;
        let place = order.checked_sub(self.next_order).filter(|place| *place < self.window);
        let place = place.ok_or(Fault::Sequence { found: order, limit })? as usize;
        if place == 0 && self.held.is_empty() {
            self.next_order += 1;
            self.ready.push_back(message.to_vec());
            return Ok(());
        }
        if self.held.len() <= place {
            self.held.resize(place + 1, None);
        }
        self.held[place] = Some(message.to_vec());
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_arrival_with_repetitions_gives_each_message_once_and_the_ordered_in_order(
            kinds in prop::collection::vec(any::<bool>(), 1..64),
            shuffle in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            let mut order = 0;
            let frames: Vec<(u64, u64)> = kinds.iter().zip(0..).map(|(ordered, sequence)| {
                let own = if *ordered { order } else { UNORDERED };
                order += u64::from(*ordered);
                (sequence, own)
            }).collect();
            let mut inbound = Inbound::new(64);
            let mut arrivals: Vec<usize> = shuffle.iter().map(|index| index.index(frames.len())).collect();
            arrivals.extend(0..frames.len());
            let mut first = 0;
            for index in arrivals {
                let (sequence, order) = frames[index];
                if inbound.take(sequence, order, &[index as u8]).unwrap() == Arrival::First {
                    first += 1;
                }
            }
            prop_assert_eq!(first, frames.len());
            let mut consumed: Vec<usize> = std::iter::from_fn(|| inbound.consume()).map(|message| message[0] as usize).collect();
            let ordered: Vec<usize> = consumed.iter().copied().filter(|index| kinds[*index]).collect();
            prop_assert!(ordered.is_sorted());
            consumed.sort_unstable();
            prop_assert_eq!(consumed, (0..frames.len()).collect::<Vec<_>>());
            prop_assert_eq!(inbound.credit(), frames.len() as u64 + 64);
        }
    }

    #[test]
    fn credit_waits_for_the_application_and_for_missing_messages() {
        let mut inbound = Inbound::new(64);
        for sequence in 1..64 {
            inbound.take(sequence, UNORDERED, b"").unwrap();
            inbound.consume().unwrap();
        }
        assert_eq!(inbound.credit(), 64, "message 0 is missing");
        assert_eq!(inbound.take(64, UNORDERED, b""), Err(Fault::Sequence { found: 64, limit: 64 }));
        inbound.take(0, UNORDERED, b"").unwrap();
        assert_eq!(inbound.credit(), 127, "message 0 is not consumed");
        inbound.consume().unwrap();
        assert_eq!(inbound.credit(), 128);
    }
}
