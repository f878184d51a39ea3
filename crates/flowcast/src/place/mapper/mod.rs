//! Which ranks go to which nodes, so that the sum of bytes times links is least.
//!
//! Some chains of simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) exchange ranks, each towards one of its partners.
//! Every chain anneals again and again, each time longer, so that it may be stopped at any time.

mod anneal;
mod placement;

use flowcast_trace::parallel;
use flowcast_units::Node;

use super::{
    matrix::CommunicationMatrix,
    target::{Links, Target, TargetError},
};
use anneal::Chain;
use placement::{Instance, Link};

/// Chains that are annealed side by side, however many threads there are.
const CHAINS: u64 = 2;

/// How long to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    /// Of all draws.
    pub seed: u64,
    /// Tried moves after which no other round begins.
    pub moves: u64,
    /// Threads that search; the result does not depend on them.
    pub threads: usize,
}

/// How far a search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Moves tried.
    pub moves: u64,
    /// Bytes times links of the best mapping so far.
    pub hops: u64,
}

/// The best mapping that a search met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMapping {
    /// By rank: its node.
    pub node_of_rank: Vec<Node>,
    /// Bytes times links.
    pub hops: u64,
    /// Moves tried.
    pub moves: u64,
}

/// Searches the mapping with the least sum of bytes times links.
///
/// `keeps_going` is asked after each round, which is some ten milliseconds of work, and stops the search by `false`. A search
/// that it stopped after so many moves finds what one with as many [`SearchLimits::moves`] finds.
///
/// # Errors
/// [`TargetError::TooFewSlots`].
pub fn least_hops(
    matrix: &CommunicationMatrix,
    target: &Target,
    limits: SearchLimits,
    keeps_going: &mut dyn FnMut(Progress) -> bool,
) -> Result<FoundMapping, TargetError> {
    target.check_ranks(matrix.ranks())?;
    let found = match target.links() {
        Links::Near(links) => search(&Instance::new(matrix, target, links), limits, keeps_going),
        Links::Far(links) => search(&Instance::new(matrix, target, links), limits, keeps_going),
    };
    debug_assert_eq!(found.hops, target.hops(matrix, &found.node_of_rank));
    Ok(found)
}

fn search<L: Link>(
    instance: &Instance<'_, L>,
    limits: SearchLimits,
    keeps_going: &mut dyn FnMut(Progress) -> bool,
) -> FoundMapping {
    let seeds: Vec<u64> = (0..CHAINS)
        .map(|chain| limits.seed.wrapping_mul(CHAINS).wrapping_add(chain))
        .collect();
    let mut chains = parallel::map(&seeds, limits.threads, |seed| Chain::new(instance, *seed));
    let mut moves = 0;
    let tries = instance.tries_of_round();
    loop {
        let best = chains
            .iter()
            .min_by_key(|chain| chain.best_hops())
            .expect("there are chains");
        let progress = Progress {
            moves,
            hops: instance.bytes_of(best.best_hops()),
        };
        let is_over = moves >= limits.moves || instance.movable_ranks() < 1;
        if is_over || moves > 0 && !keeps_going(progress) {
            return FoundMapping {
                node_of_rank: best.best_nodes(),
                hops: progress.hops,
                moves,
            };
        }
        parallel::for_each_mut(&mut chains, limits.threads, |chain| chain.advance(tries));
        moves += tries * CHAINS;
    }
}
