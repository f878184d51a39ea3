//! Mapping of ranks to nodes that minimizes the sum of bytes times links.
//!
//! The search starts with placements by halves (`halving`) and by growth from one rank (`growth`). Chains of simulated
//! annealing (`chain`; Kirkpatrick, Gelatt and Vecchi, 1983) then move ranks towards their partners by exchanging them.
//!
//! Chains stop between rounds with equal numbers of tries. They anneal again and again, each time longer, by schedules that
//! do not depend on the end of the search. The search may therefore be stopped at any time.

mod bisection;
mod chain;
mod growth;
mod halving;
mod placement;
#[cfg(test)]
mod tests;
mod whole_nodes;

use flowcast_program::parallel;
use flowcast_units::Node;

use super::{
    links::Metric,
    matrix::CommunicationMatrix,
    target::{LinkDistances, Target, TargetError},
};
use chain::SearchChain;
use placement::{Instance, traffic};

/// Number of chains that are annealed concurrently, whatever the number of threads.
const CHAINS: u64 = 2;

/// Limits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of tried moves after which no further round starts.
    pub moves: u64,
    /// Number of threads. The result does not depend on it.
    pub threads: usize,
}

/// Progress of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchProgress {
    /// Number of exchanges of ranks that all chains together have tried.
    pub moves: u64,
    /// Bytes times links of the best mapping so far.
    pub hops: u64,
}

/// The best mapping that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMapping {
    /// Node of each rank.
    pub node_of_rank: Vec<Node>,
    /// Sum of bytes times links.
    pub hops: u64,
    /// Number of exchanges of ranks that all chains together have tried.
    pub moves: u64,
}

/// Searches for the mapping with the smallest sum of bytes times links.
///
/// The search calls `keeps_going` after each round, which is some ten milliseconds of work, and stops if it returns
/// `false`. The result after a number of moves is the same as with [`SearchLimits::moves`] set to this number.
///
/// # Errors
/// [`TargetError::TooFewSlots`].
pub fn least_hops(
    matrix: &CommunicationMatrix,
    target: &Target,
    limits: SearchLimits,
    keeps_going: &mut dyn FnMut(SearchProgress) -> bool,
) -> Result<FoundMapping, TargetError> {
    target.check_ranks(matrix.ranks())?;
    let found = match target.links() {
        LinkDistances::Near(links) => search(matrix, target, links, limits, keeps_going),
        LinkDistances::Far(links) => search(matrix, target, links, limits, keeps_going),
        LinkDistances::Grid(links) => search(matrix, target, links, limits, keeps_going),
    };
    debug_assert_eq!(found.hops, target.hops(matrix, &found.node_of_rank));
    Ok(found)
}

fn search<M: Metric>(
    matrix: &CommunicationMatrix,
    target: &Target,
    links: &M,
    limits: SearchLimits,
    keeps_going: &mut dyn FnMut(SearchProgress) -> bool,
) -> FoundMapping {
    let (traffic, unit) = traffic(matrix);
    let instance = Instance::new(traffic, target.slots(), links);
    let mut chains = chains(&instance, target, limits);
    let mut moves = 0;
    let tries = instance.tries_of_round();
    loop {
        let best = chains
            .iter()
            .map(SearchChain::best)
            .min_by_key(|best| best.hops);
        let best = best.expect("there are chains").clone();
        let hops = best.hops as u64 * unit;
        let is_over = moves >= limits.moves || instance.movable.is_empty();
        if is_over || moves > 0 && !keeps_going(SearchProgress { moves, hops }) {
            return FoundMapping {
                node_of_rank: best.node_of_rank.iter().copied().map(Node).collect(),
                hops,
                moves,
            };
        }
        for chain in &mut chains {
            chain.learn(&best);
        }
        parallel::for_each_mut(&mut chains, limits.threads, |chain| chain.advance(tries));
        moves += tries * CHAINS;
    }
}

fn chains<'a, M: Metric>(
    instance: &'a Instance<'a, M>,
    target: &Target,
    limits: SearchLimits,
) -> Vec<SearchChain<'a, M>> {
    let first = limits.seed.wrapping_mul(CHAINS);
    let seeds: Vec<u64> = (0..CHAINS).map(|chain| first.wrapping_add(chain)).collect();
    parallel::map(&seeds, limits.threads, |seed| {
        let grown = growth::grown(instance, *seed);
        let halved = halving::halved(instance, target.order(), *seed);
        let exchanged = whole_nodes::exchanged(instance, &halved, *seed);
        let grouped = whole_nodes::grouped(instance, target, *seed);
        let others = [grown, exchanged, grouped].into_iter().flatten();
        let first = others.fold(
            halved,
            |best, other| {
                if other.hops < best.hops { other } else { best }
            },
        );
        SearchChain::new(instance, first, *seed)
    })
}
