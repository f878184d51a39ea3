//! Search for the mapping with the shortest time, in batches of mappings whose times the caller determines.
//!
//! The first batch contains the start mappings. If the nodes are alike and there are few enough mappings, all of them
//! follow. Otherwise neighbours of the current mapping follow: a rank moves to the node of one of its partners, or changes
//! places with a rank there. Ranks on the path that limits the makespan are chosen more often, and partners by the weight
//! of their messages. The best mapping of each batch becomes the current one if it is not worse than the current one was
//! some batches ago (late acceptance: Burke and Bykov, European Journal of Operational Research 258, 2017). After many
//! batches without progress, the search continues from the best mapping with some ranks exchanged.
//!
//! The proposals depend only on the seed and on the times of earlier batches, not on who determines them. A search can
//! therefore be cut anywhere and repeated from stored times.

use flowcast_units::{Node, Rank, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{
    exhaustive::{AllMappings, Ranking},
    job::ranks_of_nodes,
    matrix::CommunicationMatrix,
};

/// Number of mappings in a batch of neighbours.
const NEIGHBOURS: usize = 16;

/// Number of mappings in a batch if all are tried.
const CHUNK: usize = 256;

/// Number of batches that the acceptance limit looks back.
const LATENESS: usize = 12;

/// Number of batches without a better mapping after which the search restarts from the best.
const MOST_IN_VAIN: usize = 60;

/// Number of pairs of ranks that a restart exchanges.
const KICKS: usize = 4;

/// One move in this number goes to an arbitrary node.
const ANYWHERE: u32 = 8;

/// Returns the influence of each rank on the time of a mapping, or `None` if it is unknown.
pub type Blame<'a, E> = dyn FnMut(&[Node]) -> Result<Option<Vec<f64>>, E> + 'a;

/// A search for the mapping with the shortest time.
#[derive(Debug, Clone)]
pub struct MappingSearch {
    matrix: CommunicationMatrix,
    slots: Vec<u32>,
    stage: SearchStage,
    batch: Vec<Vec<Node>>,
    moves: u64,
    /// Times of the start mappings.
    start_times: Vec<Time>,
    best: Option<TimedMapping>,
}

/// A mapping and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedMapping {
    /// The node of each rank.
    pub node_of_rank: Vec<Node>,
    /// Time at which the last rank or the last flow ends under the mapping.
    pub time: Time,
}

#[derive(Debug, Clone)]
enum SearchStage {
    /// All mappings: those not yet tried, and the times of the tried ones.
    All {
        all: AllMappings,
        left: AllMappings,
        times: Vec<Time>,
    },
    Neighbours(MappingSteps),
}

use SearchStage::*;

/// Steps from mapping to mapping.
#[derive(Debug, Clone)]
struct MappingSteps {
    random: Pcg64,
    /// Times of the current mapping after each of the last batches, oldest first.
    late: Vec<Time>,
    at_hand: Option<TimedMapping>,
    /// Number of batches since the best mapping last improved.
    in_vain: usize,
    /// Cumulative sums of the weights by which ranks are chosen.
    chances: Vec<f64>,
}

impl MappingSearch {
    /// Creates a search that tries `starts` and then all mappings to nodes with equal `slots`.
    pub fn of_all(matrix: CommunicationMatrix, slots: Vec<u32>, starts: Vec<Vec<Node>>) -> Self {
        let all = AllMappings::new(matrix.ranks(), slots.clone());
        let stage = All {
            left: all.clone(),
            all,
            times: Vec::new(),
        };
        MappingSearch::new(matrix, slots, starts, stage)
    }

    /// Creates a search from neighbour to neighbour, on nodes with these numbers of slots.
    pub fn of_neighbours(
        matrix: CommunicationMatrix,
        slots: Vec<u32>,
        starts: Vec<Vec<Node>>,
        seed: u64,
    ) -> Self {
        let stage = Neighbours(MappingSteps {
            random: Pcg64::seed_from_u64(seed),
            late: Vec::new(),
            at_hand: None,
            in_vain: 0,
            chances: Vec::new(),
        });
        MappingSearch::new(matrix, slots, starts, stage)
    }

    fn new(
        matrix: CommunicationMatrix,
        slots: Vec<u32>,
        starts: Vec<Vec<Node>>,
        stage: SearchStage,
    ) -> Self {
        MappingSearch {
            matrix,
            slots,
            stage,
            batch: starts,
            moves: 0,
            start_times: Vec::new(),
            best: None,
        }
    }

    /// Mappings whose times are needed next. Empty if all mappings were tried.
    pub fn batch(&self) -> &[Vec<Node>] {
        &self.batch
    }

    /// Number of mappings with known times.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// Times of the start mappings. Empty before the first batch is learnt.
    pub fn start_times(&self) -> &[Time] {
        &self.start_times
    }

    /// The best mapping so far. `None` before the first batch is learnt.
    pub fn best(&self) -> Option<&TimedMapping> {
        self.best.as_ref()
    }

    /// Returns the statistics of all mappings, if all were tried.
    pub fn ranking(&self) -> Option<Ranking> {
        match &self.stage {
            All { all, times, .. } if self.batch.is_empty() => {
                Some(Ranking::new(all.clone(), times))
            }
            _ => None,
        }
    }

    /// Takes the times of the batch and creates the next one. `blame` returns the influence of each rank on the time of a
    /// mapping, if it is known. It is called for each mapping that is better than all before.
    ///
    /// # Errors
    /// Errors of `blame`.
    ///
    /// # Panics
    /// If the number of times differs from the number of mappings in the batch.
    pub fn learn<E>(&mut self, times: &[Time], blame: &mut Blame<'_, E>) -> Result<(), E> {
        assert_eq!(times.len(), self.batch.len(), "a time for each mapping");
        let fastest = times.iter().zip(0..).min().map(|(time, at)| (*time, at));
        let Some((time, at)) = fastest else {
            return Ok(());
        };
        let candidate = TimedMapping {
            node_of_rank: self.batch[at].clone(),
            time,
        };
        let is_better = self.best.as_ref().is_none_or(|best| time < best.time);
        if is_better {
            self.best = Some(candidate.clone());
        }
        let is_start = self.moves == 0;
        self.moves += times.len() as u64;
        match &mut self.stage {
            _ if is_start => self.start_times = times.to_vec(),
            All { times: known, .. } => known.extend_from_slice(times),
            Neighbours(_) => {}
        }
        match &mut self.stage {
            All { left, .. } => self.batch = left.by_ref().take(CHUNK).collect(),
            Neighbours(neighbours) => {
                if is_better {
                    let blamed = blame(&candidate.node_of_rank)?;
                    neighbours.chances = chances(&self.matrix, blamed.as_deref());
                }
                let best = self.best.as_ref().expect("there is one by now");
                neighbours.step(candidate, is_better, best);
                self.batch = neighbours.batch(&self.matrix, &self.slots);
            }
        }
        Ok(())
    }
}

/// Returns the cumulative weights by which ranks are chosen: three quarters by their blame, the rest by their messages.
fn chances(matrix: &CommunicationMatrix, blamed: Option<&[f64]>) -> Vec<f64> {
    let ranks = matrix.ranks();
    let bytes: Vec<f64> = Rank::all(ranks)
        .map(|rank| matrix.partners(rank).map(|(_, bytes)| bytes as f64).sum())
        .collect();
    let all_bytes = bytes.iter().sum::<f64>().max(1.0);
    let all_time = blamed.map_or(0.0, |times| times.iter().sum::<f64>());
    let mut sum = 0.0;
    let mut sums = Vec::with_capacity(ranks);
    for rank in 0..ranks {
        let by_bytes = bytes[rank] / all_bytes;
        sum += match blamed {
            Some(times) if all_time > 0.0 => by_bytes + 3.0 * times[rank] / all_time,
            _ => by_bytes,
        };
        // Ranks without messages only move when another rank takes their place.
        sums.push(sum);
    }
    sums
}

impl MappingSteps {
    /// Accepts the candidate if it is within the limit, and restarts after many batches without progress.
    fn step(&mut self, candidate: TimedMapping, is_better: bool, best: &TimedMapping) {
        self.in_vain = if is_better { 0 } else { self.in_vain + 1 };
        let late = self.late.first().copied();
        let at_hand = self.at_hand.as_ref().map(|mapping| mapping.time);
        let limit = late.max(at_hand).unwrap_or(Time::NEVER);
        if candidate.time <= limit {
            self.at_hand = Some(candidate);
        }
        if self.in_vain >= MOST_IN_VAIN {
            self.in_vain = 0;
            self.late.clear();
            let mut kicked = best.clone();
            let ranks = kicked.node_of_rank.len();
            for _ in 0..KICKS {
                let [one, other] = [0; 2].map(|_| self.random.random_range(0..ranks));
                kicked.node_of_rank.swap(one, other);
            }
            // The time of the new mapping is unknown, so the next batch is accepted in any case.
            kicked.time = Time::NEVER;
            self.at_hand = Some(kicked);
            return;
        }
        if self.late.len() == LATENESS {
            self.late.remove(0);
        }
        self.late
            .extend(self.at_hand.as_ref().map(|mapping| mapping.time));
    }

    fn batch(&mut self, matrix: &CommunicationMatrix, slots: &[u32]) -> Vec<Vec<Node>> {
        let at_hand = self.at_hand.clone().expect("the first batch was taken");
        let mapping = &at_hand.node_of_rank;
        let ranks_of_node = ranks_of_nodes(mapping, slots.len());
        (0..NEIGHBOURS)
            .map(|_| self.neighbour(mapping, &ranks_of_node, matrix, slots))
            .collect()
    }

    /// Returns the mapping with one rank moved, usually to the node of a partner.
    fn neighbour(
        &mut self,
        mapping: &[Node],
        ranks_of_node: &[Vec<Rank>],
        matrix: &CommunicationMatrix,
        slots: &[u32],
    ) -> Vec<Node> {
        let mut changed = mapping.to_vec();
        let rank = self.any_rank();
        let is_anywhere = self.random.random_range(0..ANYWHERE) == 0;
        let to = match self.partner(rank, mapping, matrix) {
            Some(partner) if !is_anywhere => mapping[partner],
            _ => Node(self.random.random_range(0..slots.len() as u32)),
        };
        let from = mapping[rank];
        let there = &ranks_of_node[to];
        if there.len() >= slots[to] as usize {
            let Some(number) = there.len().checked_sub(1) else {
                return changed;
            };
            let other = there[self.random.random_range(0..=number)];
            changed[other] = from;
        }
        changed[rank] = to;
        changed
    }

    fn any_rank(&mut self) -> Rank {
        let all = self.chances.last().copied().unwrap_or(0.0);
        if all <= 0.0 {
            return Rank(
                self.random
                    .random_range(0..self.chances.len().max(1) as u32),
            );
        }
        let drawn = self.random.random_range(0.0..all);
        Rank(self.chances.partition_point(|sum| *sum <= drawn) as u32)
    }

    /// Draws one of a rank's partners on other nodes, by the weight of their messages.
    fn partner(
        &mut self,
        rank: Rank,
        mapping: &[Node],
        matrix: &CommunicationMatrix,
    ) -> Option<Rank> {
        let own = mapping[rank];
        let elsewhere = || {
            let partners = matrix.partners(rank);
            partners.filter(|(partner, _)| mapping[*partner] != own)
        };
        let all: u64 = elsewhere().map(|(_, bytes)| bytes).sum();
        if all == 0 {
            return None;
        }
        let mut drawn = self.random.random_range(0..all);
        for (partner, bytes) in elsewhere() {
            if drawn < bytes {
                return Some(partner);
            }
            drawn -= bytes;
        }
        None
    }
}
