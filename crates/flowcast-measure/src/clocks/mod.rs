//! Common time for all ranks: hierarchical clock synchronisation with drift (HCA3; Hunold and Carpen-Amarie, "Hierarchical
//! Clock Synchronization in MPI", CLUSTER 2018, section III).
//!
//! Ranks form a binomial tree ([`rounds`]). In each round, the ranks that know rank 0's clock guide ranks that do not know
//! it yet. A learning rank asks its guide for the time, in bursts of exchanges with pauses between them, and fits a line
//! through the offsets. Only the exchange with the shortest round trip of each burst is used, and its middle is taken as
//! the moment at which the guide's clock was read. The guide answers with rank 0's time according to its own line, so lines
//! compose along the tree. After `ceil(log2 p)` rounds, all ranks know the time.
//!
//! **Limits of the method.** If the path to the guide takes longer than the path back, the offset is wrong by half the
//! difference, and no number of exchanges reveals it. The error is at most half the shortest round trip, which
//! [`LearnedClock::asymmetry`] gives, summed along the tree. The rest of the error shrinks with the number of bursts;
//! [`LearnedClock::deviation_at`] gives it.

mod line;
mod synchronise;
#[cfg(test)]
mod tests;

use flowcast_units::Rank;

pub(crate) use line::LineAsNumbers;
pub use line::{BurstReading, LearnedClock};
pub(crate) use synchronise::GREETING;
pub use synchronise::{
    ClockError, ClockPlan, Clocked, greet_clock, guide, learn, look, wall_clock,
};

/// Returns the pairs of guide and learner in each round: first across half of the ranks, then a quarter, and finally between
/// neighbours.
///
/// ```
/// use flowcast_measure::clocks::rounds;
/// use flowcast_units::Rank;
///
/// // In each round all who know the time tell it to one more.
/// let rounds = rounds(4);
/// assert_eq!(rounds.len(), 2);
/// assert_eq!(rounds[0], [(Rank(0), Rank(2))]);
/// ```
pub fn rounds(ranks: u32) -> Vec<Vec<(Rank, Rank)>> {
    let count = u64::from(ranks);
    let reaches = (0..32)
        .map(|power| 1u64 << power)
        .take_while(|reach| *reach < count);
    let mut rounds: Vec<Vec<(Rank, Rank)>> = reaches
        .map(|reach| {
            let guides = (0..count - reach).step_by(2 * reach as usize);
            guides
                .map(|guide| (Rank(guide as u32), Rank((guide + reach) as u32)))
                .collect()
        })
        .collect();
    rounds.reverse();
    rounds
}
