//! Steps of one rank in a collective operation, and the content of its messages.

/// One step. Ranks are numbered in the communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpandedMove {
    /// A send that blocks until its buffer is free.
    Send {
        /// Receiver.
        to: u32,
        /// Blocks in the message, and their use by the receiver.
        part: MessagePart,
    },
    /// A receive that blocks until the message has arrived.
    Recv {
        /// Sender.
        from: u32,
        /// Blocks in the message, and their use by the receiver.
        part: MessagePart,
    },
    /// A send that a later wait completes.
    Start {
        /// Receiver.
        to: u32,
        /// Blocks in the message, and their use by the receiver.
        part: MessagePart,
    },
    /// A receive that a later wait completes.
    Post {
        /// Sender.
        from: u32,
        /// Blocks in the message, and their use by the receiver.
        part: MessagePart,
    },
    /// Waits for one non-blocking receive that no wait has completed.
    WaitRecv {
        /// Number of these receives that were posted after it.
        ago: u32,
    },
    /// Waits for one non-blocking send that no wait has completed.
    WaitSend {
        /// Number of these sends that were started after it.
        ago: u32,
    },
    /// Waits for all non-blocking sends that no wait has completed.
    WaitSends,
    /// Waits for all non-blocking receives, then sends, that no wait has completed.
    WaitAll,
}

/// Content of a message, and its use by the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePart {
    /// Blocks of the operation's data in the message.
    pub blocks: MovedBlocks,
    /// Use of the blocks by the receiver.
    pub effect: Effect,
}

/// Blocks of the operation's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MovedBlocks {
    /// No blocks: the message only signals that the sender has reached this point.
    Nothing,
    /// Consecutive blocks; the first block follows the last.
    Range {
        /// Number of the first block, counted from 0.
        first: u32,
        /// Number of blocks from `first` on.
        count: u32,
    },
    /// Blocks whose number has this remainder.
    Every {
        /// Divisor, which is also the distance between successive blocks.
        step: u32,
        /// Remainder, which is also the number of the first block.
        first: u32,
    },
    /// Data that one rank sends to another.
    Pair {
        /// Rank that the data come from.
        from: u32,
        /// Rank that the data are for.
        to: u32,
    },
    /// Bruck's exchange: all pairs whose distance has this bit and whose lower bits have already brought them to the sender.
    DistanceBit(u32),
}

/// Use of blocks by a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The receiver keeps them unchanged.
    Place,
    /// The receiver combines them with its own.
    Combine,
}

impl MessagePart {
    /// A message without data.
    pub const NOTHING: MessagePart = MessagePart {
        blocks: MovedBlocks::Nothing,
        effect: Effect::Place,
    };

    /// A message with `count` blocks from `first` on, which the receiver keeps.
    pub const fn place(first: u32, count: u32) -> MessagePart {
        MessagePart {
            blocks: MovedBlocks::Range { first, count },
            effect: Effect::Place,
        }
    }

    /// A message with `count` blocks from `first` on, which the receiver combines with its own.
    pub(crate) const fn combine(first: u32, count: u32) -> MessagePart {
        MessagePart {
            blocks: MovedBlocks::Range { first, count },
            effect: Effect::Combine,
        }
    }
}

/// Division of an operation's data into blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockLayout {
    /// A vector in parts whose sizes differ by at most one byte.
    Even {
        /// Bytes of the vector.
        total: u64,
        /// Number of parts, at least 1.
        parts: u32,
    },
    /// A vector in pieces of a given size, the last one shorter.
    Segments {
        /// Bytes of the vector.
        total: u64,
        /// Bytes of a piece.
        segment: u64,
    },
    /// A vector in two halves, each in pieces of a given size.
    Halves {
        /// Bytes of the vector.
        total: u64,
        /// Bytes of a piece.
        segment: u64,
    },
    /// Blocks of given sizes: the start of each, and the end.
    Given(Vec<u64>),
    /// Data from each rank to each other: totals of the senders, and the receivers' shares as running sums.
    Pairs {
        /// Bytes that each rank sends.
        sent: Vec<u64>,
        /// Start of each receiver's share, and the end.
        shares: Vec<u64>,
    },
}

impl BlockLayout {
    /// Creates a layout of blocks with these sizes.
    pub fn given(sizes: impl Iterator<Item = u64>) -> BlockLayout {
        BlockLayout::Given(running_sums(sizes))
    }

    /// Creates a layout that divides each sender's total among the receivers in proportion to the bytes that they receive,
    /// or evenly if no rank receives.
    pub fn pairs(sent: Vec<u64>, received: &[u64]) -> BlockLayout {
        let evenly = received.iter().all(|bytes| *bytes == 0);
        BlockLayout::Pairs {
            shares: running_sums(
                (0..sent.len()).map(|rank| if evenly { 1 } else { received[rank] }),
            ),
            sent,
        }
    }

    /// Number of blocks in the vector, or number of ranks if blocks belong to pairs.
    pub fn parts(&self) -> u32 {
        match self {
            BlockLayout::Even { parts, .. } => *parts,
            BlockLayout::Segments { total, segment } => pieces(*total, *segment),
            BlockLayout::Halves { total, segment } => 2 * pieces(total.div_ceil(2), *segment),
            BlockLayout::Given(starts) => starts.len() as u32 - 1,
            BlockLayout::Pairs { sent, .. } => sent.len() as u32,
        }
    }

    /// Size of a message, in bytes.
    pub fn bytes(&self, blocks: MovedBlocks) -> u64 {
        match blocks {
            MovedBlocks::Nothing => 0,
            MovedBlocks::Range { first, count } => {
                let end = first + count;
                let parts = self.parts();
                let behind = if end > parts {
                    self.start(end - parts)
                } else {
                    0
                };
                self.start(end.min(parts)) - self.start(first) + behind
            }
            MovedBlocks::Every { step, first } => {
                let blocks = (first..self.parts()).step_by(step as usize);
                blocks
                    .map(|block| self.start(block + 1) - self.start(block))
                    .sum()
            }
            MovedBlocks::Pair { from, to } => self.pair(from, to),
            MovedBlocks::DistanceBit(bit) => {
                let BlockLayout::Pairs { sent, .. } = self else {
                    return 0;
                };
                let ranks = sent.len() as u64;
                let mean = sent
                    .iter()
                    .fold(0, |sum: u128, bytes| sum + u128::from(*bytes))
                    / u128::from(ranks * ranks);
                (mean as u64).saturating_mul(distances_with(bit, ranks))
            }
        }
    }

    /// Start of a block in a vector, in bytes.
    fn start(&self, block: u32) -> u64 {
        let index = u64::from(block);
        match self {
            BlockLayout::Even { total, parts } => {
                (u128::from(*total) * u128::from(block) / u128::from(*parts)) as u64
            }
            BlockLayout::Segments { total, segment } => index.saturating_mul(*segment).min(*total),
            BlockLayout::Halves { total, segment } => {
                let half = total.div_ceil(2);
                let pieces = u64::from(self.parts() / 2);
                match index.checked_sub(pieces) {
                    None => index.saturating_mul(*segment).min(half),
                    Some(behind) => half + behind.saturating_mul(*segment).min(total - half),
                }
            }
            BlockLayout::Given(starts) => starts[block as usize],
            BlockLayout::Pairs { .. } => 0,
        }
    }

    fn pair(&self, from: u32, to: u32) -> u64 {
        let BlockLayout::Pairs { sent, shares } = self else {
            return 0;
        };
        let all = u128::from(shares[shares.len() - 1]);
        let up_to =
            |rank: u32| u128::from(sent[from as usize]) * u128::from(shares[rank as usize]) / all;
        (up_to(to + 1) - up_to(to)) as u64
    }
}

fn pieces(total: u64, segment: u64) -> u32 {
    total.div_ceil(segment.max(1)).clamp(1, 1 << 24) as u32
}

/// Number of distances from 1 to `ranks - 1` that have this bit.
pub fn distances_with(bit: u32, ranks: u64) -> u64 {
    let (low, high) = (1u64 << bit, 2u64 << bit);
    ranks / high * low + (ranks % high).saturating_sub(low)
}

fn running_sums(sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sum = 0u64;
    let ends = sizes.map(|size| {
        sum = sum.saturating_add(size);
        sum
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn halves_are_divided_independently() {
        let layout = BlockLayout::Halves {
            total: 11,
            segment: 4,
        };
        assert_eq!(layout.parts(), 4);
        let size = |first| layout.bytes(MovedBlocks::Range { first, count: 1 });
        assert_eq!([size(0), size(1), size(2), size(3)], [4, 2, 4, 1]);
    }

    proptest! {
        #[test]
        fn blocks_add_up_to_the_whole(total in 0u64..1 << 50, parts in 1u32..200, segment in 1u64..5000, first in 0u32..200) {
            let segments = BlockLayout::Segments { total: total % 100_000, segment };
            let halves = BlockLayout::Halves { total: total % 100_000, segment };
            for layout in [BlockLayout::Even { total, parts }, segments, halves] {
                let count = layout.parts();
                let sum: u64 = (0..count).map(|first| layout.bytes(MovedBlocks::Range { first, count: 1 })).sum();
                prop_assert_eq!(sum, layout.bytes(MovedBlocks::Range { first: first % count, count }));
            }
        }

        #[test]
        fn a_rank_sends_the_bytes_of_its_pairs(sent in proptest::collection::vec(0u64..1 << 40, 1..20), seed in 0u64..1 << 30) {
            let received: Vec<u64> = (0..sent.len() as u64).map(|rank| seed * (rank + 1) % 977).collect();
            let layout = BlockLayout::pairs(sent.clone(), &received);
            for (from, sent) in (0..).zip(&sent) {
                let pairs = (0..received.len() as u32).map(|to| layout.bytes(MovedBlocks::Pair { from, to }));
                prop_assert_eq!(pairs.sum::<u64>(), *sent);
            }
        }

        #[test]
        fn distances_are_counted(bit in 0u32..8, ranks in 1u64..300) {
            prop_assert_eq!(distances_with(bit, ranks), (1..ranks).filter(|distance| distance >> bit & 1 == 1).count() as u64);
        }
    }
}
