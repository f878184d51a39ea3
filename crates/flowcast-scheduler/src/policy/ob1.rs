//! Choice of rails by Open MPI's own layer ob1.
//!
//! ob1 keeps a list of the rails for each pair of processes, the fastest first, and takes the next one for each message. But
//! `MPI_Send` and `MPI_Isend` first try a send without a request on a rail, which TCP does not support, and then take the
//! rail after it. With two rails every message up to the eager limit therefore takes the slower one. For a longer message
//! the receiver requests a part from each rail in proportion to its bandwidth. When the remaining part is no longer than the
//! eager limit, one rail takes all of it.

use std::collections::HashMap;

use super::{RailId, RailPiece};
use flowcast_network::loggp::LogGp;
use flowcast_units::Bytes;

/// Lists of all pairs of processes, which have the same order of rails.
#[derive(Debug, Clone)]
pub(crate) struct Ob1 {
    /// Rails with their shares of the bandwidth, the fastest first.
    order: Vec<(RailId, f64)>,
    /// Number of places by which each pair's list has advanced, keyed by pair.
    steps: HashMap<u64, usize>,
    eager_limit: Bytes,
}

impl Ob1 {
    /// Creates the state before any message.
    pub(crate) fn new(rails: &[LogGp], eager_limit: Bytes) -> Ob1 {
        let total: f64 = rails.iter().map(bandwidth).sum();
        let mut order: Vec<(RailId, f64)> = (0u8..)
            .map(RailId)
            .zip(rails.iter().map(|rail| bandwidth(rail) / total))
            .collect();
        order.sort_by(|one, other| other.1.total_cmp(&one.1));
        Ob1 {
            order,
            steps: HashMap::new(),
            eager_limit,
        }
    }

    /// Returns the rail of the first part of a message between the processes of a pair.
    pub(crate) fn first(&mut self, pair: u64) -> RailId {
        let step = self.steps.entry(pair).or_default();
        let place = (*step + 1) % self.order.len();
        *step = (*step + 2) % self.order.len();
        self.order[place].0
    }

    /// Assigns the data of a message to rails.
    pub(crate) fn give(&mut self, pair: u64, size: Bytes, pieces: &mut Vec<RailPiece>) {
        if size <= self.eager_limit {
            let rail = self.first(pair);
            return pieces.push(RailPiece { rail, size });
        }
        let mut left = size.0;
        for (rail, part) in &self.order {
            let piece = if left > self.eager_limit.0 {
                ((size.0 as f64 * part) as u64).min(left)
            } else {
                left
            };
            left -= piece;
            if piece > 0 {
                pieces.push(RailPiece {
                    rail: *rail,
                    size: Bytes(piece),
                });
            }
        }
        // Remainder of the rounding.
        if let Some(first) = pieces.first_mut() {
            first.size = Bytes(first.size.0 + left);
        }
    }
}

fn bandwidth(rail: &LogGp) -> f64 {
    1.0 / rail.gap_per_byte.as_nanos().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::{Time, TimePerByte};

    fn rails(per_byte: &[f64]) -> Vec<LogGp> {
        per_byte
            .iter()
            .map(|nanos| LogGp {
                gap: Time::ZERO,
                overhead: Time::ZERO,
                latency: Time::ZERO,
                gap_per_byte: TimePerByte::from_nanos(*nanos),
            })
            .collect()
    }

    fn given(ob1: &mut Ob1, pair: u64, size: u64) -> Vec<(u8, u64)> {
        let mut pieces = Vec::new();
        ob1.give(pair, Bytes(size), &mut pieces);
        let told = pieces.iter().map(|piece| (piece.rail.0, piece.size.0));
        told.collect()
    }

    #[test]
    fn the_slower_of_two_rails_takes_all_eager_messages() {
        let mut ob1 = Ob1::new(&rails(&[800.0, 200.0]), Bytes(65_536));
        for pair in [1, 1, 2, 1, 2] {
            assert_eq!(given(&mut ob1, pair, 30_000), [(0, 30_000)]);
        }
        let mut equal = Ob1::new(&rails(&[200.0, 200.0]), Bytes(65_536));
        assert_eq!(given(&mut equal, 1, 30_000), [(1, 30_000)]);
    }

    #[test]
    fn each_of_three_rails_takes_its_turn_after_two_steps() {
        let mut ob1 = Ob1::new(&rails(&[100.0, 200.0, 300.0]), Bytes(65_536));
        let taken: Vec<u8> = (0..6).map(|_| ob1.first(7).0).collect();
        assert_eq!(taken, [1, 0, 2, 1, 0, 2]);
    }

    /// 4,000,000 bytes in ten messages over 40 and 10 Mbit/s: the interfaces counted 3.35 and 0.84 MB, including headers.
    #[test]
    fn long_messages_are_shared_by_bandwidth() {
        let mut ob1 = Ob1::new(&rails(&[200.0, 800.0]), Bytes(65_536));
        assert_eq!(given(&mut ob1, 1, 400_000), [(0, 320_000), (1, 80_000)]);
        let mut three = Ob1::new(&rails(&[100.0, 100.0, 100.0]), Bytes(65_536));
        assert_eq!(given(&mut three, 1, 90_000), [(0, 30_000), (1, 60_000)]);
        assert_eq!(
            given(&mut three, 1, 300_001),
            [(0, 100_001), (1, 100_000), (2, 100_000)]
        );
    }
}
