//! One time for all ranks: hierarchical clock synchronisation with drift (HCA3; Hunold and Carpen-Amarie, "Hierarchical Clock
//! Synchronization in MPI", CLUSTER 2018, section III).
//!
//! Ranks form a binomial tree ([`rounds`]). In each round those that know rank 0's clock are asked by those that do not yet.
//! A rank that learns asks its guide for the time, in bursts of exchanges with rests between them, and draws a line through
//! the offsets: of each burst the exchange with the shortest round trip counts, its middle being the moment at which the
//! guide's clock was read. The guide answers with rank 0's time, as its own line gives it, so that lines compose along the
//! tree. After `ceil(log2 p)` rounds all know.
//!
//! **What cannot be known.** If the way there takes longer than the way back, the offset is wrong by half the difference, and
//! no number of exchanges shows it. It is never more than half the shortest round trip, which [`Learned::asymmetry`] gives,
//! summed along the tree. The rest of the error shrinks with the bursts; [`Learned::deviation_at`] gives it.

mod line;
mod synchronise;
#[cfg(test)]
mod tests;

use flowcast_units::Rank;

pub(crate) use line::LineAsNumbers;
pub use line::{Glance, Learned};
pub(crate) use synchronise::GREETING;
pub use synchronise::{
    ClockError, ClockPlan, Clocked, greet_clock, guide, learn, look, wall_clock,
};

/// Who guides and who learns in each round: first across half the ranks, then a quarter, at last from neighbour to neighbour.
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
