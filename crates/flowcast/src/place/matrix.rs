//! How many bytes ranks send each other.

use flowcast_units::Rank;
use thiserror::Error;

/// No matrix has more bytes, so that sums of bytes times links stay exact.
pub const MOST_BYTES: u64 = 1 << 50;

/// Why there is no matrix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MatrixError {
    /// A message of a rank that there is not.
    #[error("found a message of rank {rank}, expected ranks below {ranks}")]
    NoSuchRank {
        /// The rank that sends or receives it.
        rank: Rank,
        /// How many there are.
        ranks: usize,
    },
    /// Sums would no longer be exact.
    #[error(
        "found more than {MOST_BYTES} bytes in all messages together, expected at most as many"
    )]
    TooManyBytes,
}

/// Bytes between ranks, both directions added.
///
/// What a rank sends to itself stands apart: it crosses no link wherever the rank runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommunicationMatrix {
    /// By rank: where its partners begin; one more entry at the end.
    begins: Vec<usize>,
    /// The partners of each rank, ascending.
    partners: Vec<u32>,
    /// By partner: the bytes, more than 0.
    between: Vec<u64>,
    bytes: u64,
    own_bytes: u64,
}

impl CommunicationMatrix {
    /// From messages as source, destination and bytes; those of one pair are added up.
    ///
    /// # Errors
    /// A rank that there is not, or more than [`MOST_BYTES`].
    pub fn from_messages(
        ranks: usize,
        messages: impl IntoIterator<Item = (Rank, Rank, u64)>,
    ) -> Result<CommunicationMatrix, MatrixError> {
        let (mut entries, mut bytes, mut own_bytes) = (Vec::new(), 0u64, 0u64);
        for (src, dst, count) in messages {
            if src.max(dst).index() >= ranks {
                let rank = src.max(dst);
                return Err(MatrixError::NoSuchRank { rank, ranks });
            }
            let sum = if src == dst {
                &mut own_bytes
            } else {
                &mut bytes
            };
            *sum = sum
                .checked_add(count)
                .filter(|sum| *sum <= MOST_BYTES)
                .ok_or(MatrixError::TooManyBytes)?;
            if src != dst && count > 0 {
                entries.extend([(src.0, dst.0, count), (dst.0, src.0, count)]);
            }
        }
        entries.sort_unstable();
        entries.dedup_by(|next, kept| {
            let is_same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if is_same { next.2 } else { 0 };
            is_same
        });
        let mut begins = vec![0; ranks + 1];
        for (rank, ..) in &entries {
            begins[*rank as usize + 1] += 1;
        }
        for rank in 0..ranks {
            begins[rank + 1] += begins[rank];
        }
        Ok(CommunicationMatrix {
            begins,
            partners: entries.iter().map(|(_, partner, _)| *partner).collect(),
            between: entries.iter().map(|(.., bytes)| *bytes).collect(),
            bytes,
            own_bytes,
        })
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.begins.len() - 1
    }

    /// How many ranks communicate with others.
    pub fn communicating(&self) -> usize {
        let ends = self.begins.windows(2);
        ends.filter(|ends| ends[0] < ends[1]).count()
    }

    /// Bytes of all messages between different ranks.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of all messages of ranks to themselves.
    pub fn own_bytes(&self) -> u64 {
        self.own_bytes
    }

    /// With whom a rank communicates, ascending, and how many bytes in both directions together.
    pub fn partners(&self, rank: Rank) -> impl ExactSizeIterator<Item = (Rank, u64)> {
        let range = self.begins[rank.index()]..self.begins[rank.index() + 1];
        let bytes = self.between[range.clone()].iter();
        self.partners[range]
            .iter()
            .zip(bytes)
            .map(|(partner, bytes)| (Rank(*partner), *bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_pair_are_added_up_and_those_to_oneself_stand_apart() {
        let messages = [(2, 0, 5), (0, 2, 7), (1, 1, 9), (0, 1, 0), (0, 2, 1)];
        let messages = messages.map(|(src, dst, bytes)| (Rank(src), Rank(dst), bytes));
        let matrix = CommunicationMatrix::from_messages(3, messages).unwrap();
        assert_eq!((matrix.bytes(), matrix.own_bytes()), (13, 9));
        let of = |rank| matrix.partners(Rank(rank)).collect::<Vec<_>>();
        assert_eq!(of(0), [(Rank(2), 13)]);
        assert_eq!(of(1), []);
        assert_eq!(of(2), [(Rank(0), 13)]);
    }

    #[test]
    fn ranks_that_there_are_not_and_sums_that_are_not_exact_are_refused() {
        let of = |src, dst, bytes| {
            CommunicationMatrix::from_messages(2, [(Rank(src), Rank(dst), bytes); 2]).unwrap_err()
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
