//! Matrix of the bytes that ranks send each other.

use flowcast_units::{Bytes, Rank};
use thiserror::Error;

use super::lists::Lists;

/// Maximum number of bytes in a matrix, which keeps sums of bytes times links exact.
pub const MOST_BYTES: u64 = 1 << 50;

/// Error for messages that do not fit into a matrix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MatrixError {
    /// A message of a rank that does not exist.
    #[error("found a message of rank {rank}, expected ranks below {ranks}")]
    NoSuchRank {
        /// Rank that sends or receives the message.
        rank: Rank,
        /// Number of ranks of the matrix; valid ranks are smaller.
        ranks: usize,
    },
    /// Too many bytes for exact sums.
    #[error("found more than the maximum of {MOST_BYTES} bytes in all messages")]
    TooManyBytes,
}

/// Bytes from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankMessage {
    /// The rank that sends.
    pub from: Rank,
    /// The rank that receives.
    pub to: Rank,
    /// Total bytes of all messages from `from` to `to`.
    pub bytes: Bytes,
}

/// Bytes between ranks, both directions added.
///
/// Messages from a rank to itself are counted separately: they cross no link wherever the rank runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommunicationMatrix {
    /// Partners of each rank in ascending order, with the bytes exchanged, which are more than 0.
    partners: Lists<(Rank, u64)>,
    bytes: u64,
    own_bytes: u64,
}

impl CommunicationMatrix {
    /// Creates a matrix from messages. Messages of the same pair are added up.
    ///
    /// # Errors
    /// A rank that does not exist, or more than [`MOST_BYTES`].
    pub fn from_messages(
        ranks: usize,
        messages: impl IntoIterator<Item = RankMessage>,
    ) -> Result<CommunicationMatrix, MatrixError> {
        let (mut entries, mut bytes, mut own_bytes) = (Vec::new(), 0u64, 0u64);
        for RankMessage {
            from,
            to,
            bytes: Bytes(count),
        } in messages
        {
            let rank = from.max(to);
            if rank.index() >= ranks {
                return Err(MatrixError::NoSuchRank { rank, ranks });
            }
            let sum = if from == to {
                &mut own_bytes
            } else {
                &mut bytes
            };
            *sum = sum
                .checked_add(count)
                .filter(|sum| *sum <= MOST_BYTES)
                .ok_or(MatrixError::TooManyBytes)?;
            if from != to && count > 0 {
                entries.extend([(from, to, count), (to, from, count)]);
            }
        }
        entries.sort_unstable();
        entries.dedup_by(|next, kept| {
            let is_same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if is_same { next.2 } else { 0 };
            is_same
        });
        let mut partners = Lists::new();
        let mut rest = &entries[..];
        for rank in Rank::all(ranks) {
            let (own, others) = rest.split_at(rest.partition_point(|entry| entry.0 == rank));
            partners.push(own.iter().map(|(_, partner, bytes)| (*partner, *bytes)));
            rest = others;
        }
        Ok(CommunicationMatrix {
            partners,
            bytes,
            own_bytes,
        })
    }

    /// Number of ranks, including those that do not communicate.
    pub fn ranks(&self) -> usize {
        self.partners.len()
    }

    /// Number of ranks that communicate with other ranks.
    pub fn communicating(&self) -> usize {
        let ranks = Rank::all(self.ranks());
        ranks.filter(|rank| self.partners(*rank).len() > 0).count()
    }

    /// Bytes of all messages between different ranks.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of all messages of ranks to themselves.
    pub fn own_bytes(&self) -> u64 {
        self.own_bytes
    }

    /// Returns the partners of a rank in ascending order, with the bytes of both directions together.
    pub fn partners(&self, rank: Rank) -> impl ExactSizeIterator<Item = (Rank, u64)> {
        self.partners.list(rank.0).iter().copied()
    }

    /// Returns each pair of ranks once, in ascending order, from the lower to the higher rank, with the bytes of both
    /// directions together.
    pub fn pairs(&self) -> impl Iterator<Item = RankMessage> {
        Rank::all(self.ranks()).flat_map(move |from| {
            let above = self.partners(from).filter(move |(to, _)| *to > from);
            above.map(move |(to, bytes)| RankMessage {
                from,
                to,
                bytes: Bytes(bytes),
            })
        })
    }
}

#[cfg(test)]
pub(super) fn message(from: u32, to: u32, bytes: u64) -> RankMessage {
    RankMessage {
        from: Rank(from),
        to: Rank(to),
        bytes: Bytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_pair_are_added_and_messages_to_the_sender_are_counted_separately() {
        let messages = [(2, 0, 5), (0, 2, 7), (1, 1, 9), (0, 1, 0), (0, 2, 1)];
        let messages = messages.map(|(from, to, bytes)| message(from, to, bytes));
        let matrix = CommunicationMatrix::from_messages(3, messages).unwrap();
        assert_eq!((matrix.bytes(), matrix.own_bytes()), (13, 9));
        let of = |rank| matrix.partners(Rank(rank)).collect::<Vec<_>>();
        assert_eq!(of(0), [(Rank(2), 13)]);
        assert_eq!(of(1), []);
        assert_eq!(of(2), [(Rank(0), 13)]);
        assert_eq!(matrix.pairs().collect::<Vec<_>>(), [message(0, 2, 13)]);
    }

    #[test]
    fn ranks_that_do_not_exist_and_inexact_sums_are_refused() {
        let of = |src, dst, bytes| {
            CommunicationMatrix::from_messages(2, [message(src, dst, bytes); 2]).unwrap_err()
        };
        assert_eq!(
            of(0, 2, 1),
            MatrixError::NoSuchRank {
                rank: Rank(2),
                ranks: 2
            }
        );
        assert_eq!(of(0, 1, MOST_BYTES), MatrixError::TooManyBytes);
        assert_eq!(of(1, 1, u64::MAX), MatrixError::TooManyBytes);
    }
}
