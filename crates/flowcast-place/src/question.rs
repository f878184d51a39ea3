//! Search for the best mapping of ranks to nodes: preparation, search and result.

use std::collections::BTreeMap;

use flowcast_network::{
    network::Network,
    topology::{CableKind, Topology, TopologyShape, tree::Level},
};
use flowcast_program::parallel;
use flowcast_table::Value;
use flowcast_units::{Bytes, Node, Rank, Time};

use super::{
    PlaceError,
    cartesian::{GridBlocks, grid_of},
    exhaustive::AllMappings,
    gain::{MappingGain, gain},
    job::{Job, ranks_of_nodes},
    mapper::{SearchLimits, SearchProgress, least_hops},
    matrix::{CommunicationMatrix, RankMessage},
    options::PlaceOptions,
    picture::matrix_picture,
    placed::{Placed, PlacementObjective, ValuedMapping},
    predictor::MappingPredictor,
    search::{MappingSearch, TimedMapping},
    target::{Target, check_slots},
    traffic::{moved_inside, traffic},
};

/// Number of moves for each rank in the search for few bytes times links that precedes a search for the shortest time.
const START_MOVES: u64 = 2_000;

/// Maximum total number of these moves.
const MOST_START_MOVES: u64 = 4_000_000;

/// Number of moves for each rank in a search for few bytes times links, with limits for the total.
const HOP_MOVES: u64 = 20_000;
const LEAST_HOP_MOVES: u64 = 1_000_000;
const MOST_HOP_MOVES: u64 = 100_000_000;

/// Number of mappings by blocks of a grid among the starts of a search.
const MOST_BLOCKS: usize = 4;

/// Approximate total number of messages to replay if the number of mappings is not given.
const USUAL_MESSAGES: u64 = 20_000_000;

/// Minimum and maximum number of mappings to try in this case.
const USUAL_MOVES: (u64, u64) = (64, 10_000);

/// Number of nodes that are always considered, even for fewer ranks.
pub const SPARE_NODES: usize = 1 << 12;

/// Divisor that turns the default number of mappings into the number of networks drawn for the interval of a gain.
const MAPPINGS_PER_DRAW: u64 = 16;
const MOST_DRAWS: u64 = 16;

/// The question for the best mapping of a communication to the nodes of a job.
pub struct PlaceQuestion<'a> {
    predictor: MappingPredictor<'a>,
    messages: u64,
    matrix: CommunicationMatrix,
    target: Target,
    positions: Vec<Node>,
    options: PlaceOptions,
}

impl<'a> PlaceQuestion<'a> {
    /// Creates a question for the nodes of a job, whose slots must be known. If there are more nodes than ranks and than
    /// [`SPARE_NODES`], only the first ones are considered.
    ///
    /// # Errors
    /// Ranks that do not fit, too many bytes, and a topology without room for the nodes.
    pub fn new(
        mut predictor: MappingPredictor<'a>,
        job: &Job,
        options: PlaceOptions,
    ) -> Result<PlaceQuestion<'a>, PlaceError> {
        let ranks = predictor.ranks();
        check_slots(&job.slots, ranks)?;
        let most = u32::try_from(ranks).unwrap_or(u32::MAX);
        let tried = job.slots.iter().take(ranks.max(SPARE_NODES));
        let slots: Vec<u32> = tried.map(|slots| *slots.min(&most)).collect();
        let positions: Vec<Node> = match &job.positions[..] {
            [] => (0..slots.len() as u32).map(Node).collect(),
            positions => positions.iter().copied().take(slots.len()).collect(),
        };
        let network = predictor.network();
        let racks = racks(network, slots.len());
        let topology = network.topology.as_ref().or(racks.as_ref());
        let target = Target::new(slots, topology, &positions)?;
        target.check_ranks(ranks)?;
        let messages = predictor.messages();
        predictor.stand_at(&positions);
        Ok(PlaceQuestion {
            predictor,
            messages: messages.len() as u64,
            matrix: CommunicationMatrix::from_messages(ranks, messages)?,
            target,
            positions,
            options,
        })
    }

    /// Number of mappings that are tried if the objective is the predicted time.
    pub fn moves(&self) -> u64 {
        self.moves_or(self.usual_mappings())
    }

    /// Number of changes of a mapping that are tried if the objective is bytes times links.
    pub fn hop_moves(&self) -> u64 {
        let usual = HOP_MOVES * self.matrix.communicating() as u64;
        self.moves_or(usual.clamp(LEAST_HOP_MOVES, MOST_HOP_MOVES))
    }

    fn moves_or(&self, usual: u64) -> u64 {
        let PlaceOptions {
            moves,
            has_time_limit,
            ..
        } = self.options;
        moves.unwrap_or(if has_time_limit { u64::MAX } else { usual })
    }

    fn usual_mappings(&self) -> u64 {
        let (least, most) = USUAL_MOVES;
        (USUAL_MESSAGES / self.messages.max(1)).clamp(least, most)
    }

    /// Returns the mapping with the fewest bytes times links that the search finds. The search calls `keeps_going` from
    /// time to time and ends if it returns `false`.
    ///
    /// # Errors
    /// A topology without room for the nodes.
    pub fn least_hops(
        &self,
        keeps_going: &mut dyn FnMut(SearchProgress) -> bool,
    ) -> Result<Placed, PlaceError> {
        let limits = SearchLimits {
            seed: self.options.seed,
            moves: self.hop_moves(),
            threads: self.options.threads,
        };
        let found = least_hops(&self.matrix, &self.target, limits, keeps_going)?;
        let [fill, round_robin] = self.baselines();
        // The launcher's own mapping is kept if nothing is gained.
        let mut best = &fill;
        for mapping in [&round_robin, &found.node_of_rank] {
            if self.hops(mapping) < self.hops(best) {
                best = mapping;
            }
        }
        let best = self.valued(self.hops(best), best.clone())?;
        let fill = self.valued(self.hops(&fill), fill)?;
        let round_robin = self.valued(self.hops(&round_robin), round_robin)?;
        Ok(Placed {
            moves: found.moves,
            ..self.placed(PlacementObjective::Hops, fill, round_robin, best)
        })
    }

    fn hops(&self, mapping: &[Node]) -> f64 {
        self.target.hops(&self.matrix, mapping) as f64
    }

    /// Returns the search for the mapping with the shortest time. The caller supplies it with [`PlaceQuestion::times`].
    /// Finding start mappings takes a while. Before each of them, `keeps_going` is called with their number so far, the
    /// baselines included, and may stop it.
    ///
    /// # Errors
    /// Errors of the replay.
    pub fn time_search(
        &self,
        keeps_going: &mut dyn FnMut(usize) -> bool,
    ) -> Result<MappingSearch, PlaceError> {
        let [fill, round_robin] = self.baselines();
        let weighted = self.predictor.weighted_messages(&fill)?;
        let weights = CommunicationMatrix::from_messages(self.matrix.ranks(), weighted)?;
        let mut starts = vec![fill, round_robin];
        let slots = self.target.slots().to_vec();
        if self.has_few_mappings() {
            return Ok(MappingSearch::of_all(weights, slots, starts));
        }
        starts.extend(self.best_blocks().iter().map(GridBlocks::mapping));
        let hops = [(&self.matrix, 0), (&weights, 1), (&self.matrix, 2)];
        for (matrix, seed) in hops {
            // The number of starts depends only on the number of moves, not on the limit that ended an earlier search.
            if starts.len() as u64 >= self.moves() || !keeps_going(starts.len()) {
                break;
            }
            let seed = self.options.seed.wrapping_add(seed);
            let found = self.start_of_few_hops(matrix, &self.target, seed)?;
            if !starts.contains(&found) {
                starts.push(found);
            }
        }
        let seed = self.options.seed;
        Ok(MappingSearch::of_neighbours(weights, slots, starts, seed))
    }

    fn start_of_few_hops(
        &self,
        matrix: &CommunicationMatrix,
        target: &Target,
        seed: u64,
    ) -> Result<Vec<Node>, PlaceError> {
        let limits = SearchLimits {
            seed,
            moves: (START_MOVES * matrix.communicating() as u64).min(MOST_START_MOVES),
            threads: self.options.threads,
        };
        Ok(least_hops(matrix, target, limits, &mut |_| true)?.node_of_rank)
    }

    /// Returns the times of mappings, in their order.
    ///
    /// # Errors
    /// Errors of the replay.
    pub fn times(&self, mappings: &[Vec<Node>], threads: usize) -> Result<Vec<Time>, PlaceError> {
        let times = parallel::map(mappings, threads, |mapping| {
            self.predictor.makespan(mapping)
        });
        Ok(times.into_iter().collect::<Result<_, _>>()?)
    }

    /// Passes the times of a batch to the search.
    ///
    /// # Errors
    /// Errors of the replay.
    ///
    /// # Panics
    /// If the number of times differs from the number of mappings in the batch.
    pub fn learn(&self, search: &mut MappingSearch, times: &[Time]) -> Result<(), PlaceError> {
        search.learn(times, &mut |mapping| Ok(self.predictor.blame(mapping)?))
    }

    /// Returns the result of a search that has learnt its first batch.
    ///
    /// # Errors
    /// Errors of the replay, and a level outside (0, 1).
    pub fn found(&self, search: &MappingSearch) -> Result<Placed, PlaceError> {
        let (Some(best), [fill_time, round_robin_time, ..]) = (search.best(), search.start_times())
        else {
            return Err(PlaceError::NothingTried);
        };
        let [fill, round_robin] = self.baselines();
        let fill = TimedMapping {
            node_of_rank: fill,
            time: *fill_time,
        };
        let draws = self.usual_mappings().min(MOST_DRAWS * MAPPINGS_PER_DRAW) / MAPPINGS_PER_DRAW;
        let gain = gain(&self.predictor, best, &fill, draws as usize, &self.options)?;
        let best = self.valued(best.time.as_seconds(), best.node_of_rank.clone())?;
        let fill = self.valued(fill.time.as_seconds(), fill.node_of_rank)?;
        let round_robin = self.valued(round_robin_time.as_seconds(), round_robin)?;
        Ok(Placed {
            gain,
            moves: search.moves(),
            ranking: search.ranking(),
            ..self.placed(PlacementObjective::Time, fill, round_robin, best)
        })
    }

    /// Assigns each rank a domain of its node, such as a socket, so that few bytes go between domains. Domains have equal
    /// shares of the slots.
    ///
    /// # Errors
    /// Too many bytes.
    pub fn domains(&self, node_of_rank: &[Node], domains: u32) -> Result<Vec<u32>, PlaceError> {
        let mut domain_of_rank = vec![0; node_of_rank.len()];
        let ranks_of_nodes = ranks_of_nodes(node_of_rank, self.target.nodes());
        for (ranks, slots) in ranks_of_nodes.iter().zip(self.target.slots()) {
            let pairs = (0..).zip(ranks).flat_map(|(number, from)| {
                let above = self.matrix.partners(*from).filter(move |(to, _)| to > from);
                above.filter_map(move |(to, bytes)| {
                    let to = Rank(ranks.binary_search(&to).ok()? as u32);
                    let (from, bytes) = (Rank(number), Bytes(bytes));
                    Some(RankMessage { from, to, bytes })
                })
            });
            let matrix = CommunicationMatrix::from_messages(ranks.len(), pairs)?;
            let domains = domains.min(*slots).max(1);
            let target = Target::new(vec![slots.div_ceil(domains); domains as usize], None, &[])?;
            let found = self.start_of_few_hops(&matrix, &target, self.options.seed)?;
            for (rank, domain) in ranks.iter().zip(found) {
                domain_of_rank[*rank] = domain.0;
            }
        }
        Ok(domain_of_rank)
    }

    /// Returns the bytes between ranks under `fill` and under the best mapping, for a page.
    pub fn matrices(&self, placed: &Placed) -> Value {
        let named = [("fill", &placed.fill), ("best", &placed.best)];
        named
            .iter()
            .map(|(name, mapping)| {
                matrix_picture(&self.matrix, &mapping.node_of_rank).field("mapping", *name)
            })
            .collect()
    }

    /// Returns `true` if all nodes are equivalent and the number of mappings to them is within the number to try.
    fn has_few_mappings(&self) -> bool {
        let network = self.predictor.network();
        let machine = &network.machine;
        let is_alike = network.topology.is_none()
            && network.bus.is_none()
            && machine.nodes_per_rack == 0
            && machine.nodes.len() <= 1
            && self.slots_of_each().is_some();
        // A search that time has cut is equal to one with that number of moves, which may be below the default.
        let most = self.usual_mappings().max(self.options.moves.unwrap_or(0));
        is_alike
            && !AllMappings::new(self.matrix.ranks(), self.target.slots().to_vec())
                .are_more_than(most)
    }

    /// Number of slots of each node, if all have the same number.
    fn slots_of_each(&self) -> Option<u32> {
        let (first, others) = self.target.slots().split_first()?;
        others.iter().all(|slots| slots == first).then_some(*first)
    }

    /// Returns all ways to cut the grid of a program into blocks, one for each node. Empty unless the ranks form a grid and
    /// fill equal nodes.
    pub fn grid_blocks(&self) -> Vec<GridBlocks> {
        let slots = self.slots_of_each().filter(|slots| *slots > 1);
        match slots.zip(grid_of(&self.matrix)) {
            Some((slots, dims)) => GridBlocks::all(&dims, slots),
            None => Vec::new(),
        }
    }

    /// Returns the best of [`PlaceQuestion::grid_blocks`] by bytes times links.
    fn best_blocks(&self) -> Vec<GridBlocks> {
        let mut blocks = self.grid_blocks();
        blocks.sort_by_key(|blocks| self.target.hops(&self.matrix, &blocks.mapping()));
        blocks.truncate(MOST_BLOCKS);
        blocks
    }

    /// Returns the launchers' mappings, `fill` and `round-robin`, with which each search begins.
    pub fn baselines(&self) -> [Vec<Node>; 2] {
        let ranks = self.matrix.ranks();
        let slots = self.target.slots();
        [fill(ranks, slots), round_robin(ranks, slots)]
    }

    fn valued(&self, value: f64, node_of_rank: Vec<Node>) -> Result<ValuedMapping, PlaceError> {
        let topology = self.predictor.network().topology.as_ref();
        Ok(ValuedMapping {
            traffic: traffic(&self.matrix, &node_of_rank, topology, &self.positions)?,
            node_of_rank,
            value,
        })
    }

    fn placed(
        &self,
        objective: PlacementObjective,
        fill: ValuedMapping,
        round_robin: ValuedMapping,
        best: ValuedMapping,
    ) -> Placed {
        Placed {
            objective,
            blocks: self
                .grid_blocks()
                .into_iter()
                .find(|blocks| is_cut_into(&best.node_of_rank, &blocks.mapping())),
            moved_inside: moved_inside(&self.matrix, &fill.node_of_rank, &best.node_of_rank),
            gain: MappingGain::new(best.value, fill.value),
            fill,
            round_robin,
            best,
            moves: 0,
            ranking: None,
            own: Bytes(self.matrix.own_bytes()),
        }
    }
}

/// Returns the racks of a machine as a tree.
fn racks(network: &Network, nodes: usize) -> Option<Topology> {
    let per_rack = network.machine.nodes_per_rack;
    let racks = (nodes as u32).div_ceil(per_rack.max(1));
    let levels = [Level::new(per_rack, 1), Level::new(racks, 0)];
    let levels = levels.map(|level| (level, CableKind::default()));
    (per_rack > 0 && racks > 1).then(|| Topology::new(TopologyShape::Levels(levels.to_vec())))
}

/// Returns `true` if all ranks that share a node of `mapping` share one of `other`, whatever the names of nodes.
fn is_cut_into(mapping: &[Node], other: &[Node]) -> bool {
    let mut names = BTreeMap::new();
    let mut pairs = mapping.iter().zip(other);
    pairs.all(|(node, name)| *names.entry(*node).or_insert(*name) == *name)
}

/// Mapping that fills node after node.
pub fn fill(ranks: usize, slots: &[u32]) -> Vec<Node> {
    let nodes = slots.iter().zip(0..);
    let all = nodes.flat_map(|(slots, node)| std::iter::repeat_n(Node(node), *slots as usize));
    all.take(ranks).collect()
}

/// Mapping that deals the ranks to the nodes in turn. Full nodes are skipped.
pub fn round_robin(ranks: usize, slots: &[u32]) -> Vec<Node> {
    let rounds = 0..slots.iter().copied().max().unwrap_or(0);
    let all = rounds.flat_map(|round| {
        let nodes = slots.iter().zip(0..);
        nodes.filter_map(move |(slots, node)| (*slots > round).then_some(Node(node)))
    });
    all.take(ranks).collect()
}
