//! Which ranks go to which nodes, so that the sum of bytes times links is least.
//!
//! Placements by halves (`halving`) and by growth from one rank (`growth`) are where it begins; then chains of simulated
//! annealing (`chain`; Kirkpatrick, Gelatt and Vecchi, 1983) exchange ranks, each towards one of its partners.
//!
//! Chains are stopped between rounds of as many tries and anneal again and again, each time longer, by schedules that do not know when
//! the search will end: it may be stopped at any time.

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

/// Chains that are annealed side by side, however many threads there are.
const CHAINS: u64 = 2;

/// How long to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    /// Start of all random numbers.
    pub seed: u64,
    /// Tried moves after which no other round begins.
    pub moves: u64,
    /// Threads that search; the result does not depend on them.
    pub threads: usize,
}

/// How far a search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchProgress {
    /// Exchanges of ranks that were tried, by all chains together.
    pub moves: u64,
    /// Bytes times links of the best mapping so far.
    pub hops: u64,
}

/// The best mapping that a search met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMapping {
    /// By rank: its node.
    pub node_of_rank: Vec<Node>,
    /// The sum of bytes times links.
    pub hops: u64,
    /// Exchanges of ranks that were tried, by all chains together.
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
