//! Each algorithm delivers the data that its operation promises, with the number of messages and bytes of the textbook.
//!
//! The data are represented by sets: a block contains the ranks whose contributions it holds. Combining contributions that a
//! block already has would count them twice, and fails.

use std::collections::{BTreeMap, VecDeque};

use flowcast::{
    model::algorithm::{Algorithm, Choice},
    trace::expand::{
        moves::{BlockLayout, Effect, ExpandedMove, MessagePart, MovedBlocks, distances_with},
        plan::ExpansionTask,
    },
    units::{Bytes, CollectiveOp},
};
use proptest::prelude::*;

/// The contributions in a block, one bit for each rank.
type Holdings = u128;

/// A block: along a vector, or from one rank to another.
type Key = (u32, u32);

struct World {
    task: ExpansionTask,
    layout: BlockLayout,
    ranks: Vec<Party>,
    /// Messages in flight, by sender and receiver.
    wires: BTreeMap<(u32, u32), VecDeque<Letter>>,
    messages: u64,
    bytes: u64,
}

#[derive(Default)]
struct Party {
    moves: Vec<ExpandedMove>,
    at: usize,
    posted: Vec<(u32, MessagePart)>,
    blocks: BTreeMap<Key, Holdings>,
    /// Contributions from lower ranks, for a scan.
    result: Holdings,
    /// Ranks from which information has arrived, directly or indirectly.
    heard: Holdings,
}

struct Letter {
    part: MessagePart,
    from: u32,
    blocks: Vec<(Key, Holdings)>,
    heard: Holdings,
}

impl World {
    fn new(task: ExpansionTask, layout: BlockLayout) -> World {
        let party = |rank: u32| {
            let mut moves = Vec::new();
            task.moves(rank, &layout, &mut |step| moves.push(step));
            Party {
                moves,
                blocks: start(&task, &layout, rank),
                result: 1 << rank,
                heard: 1 << rank,
                ..Party::default()
            }
        };
        let ranks = (0..task.ranks).map(party).collect();
        World {
            task,
            layout,
            ranks,
            wires: BTreeMap::new(),
            messages: 0,
            bytes: 0,
        }
    }

    /// Runs all ranks until they end.
    fn run(mut self) -> World {
        loop {
            let moved = (0..self.task.ranks)
                .filter(|rank| self.advance(*rank))
                .count();
            if moved == 0 {
                break;
            }
        }
        for (rank, party) in self.ranks.iter().enumerate() {
            assert_eq!(
                party.at,
                party.moves.len(),
                "rank {rank} waits at {:?}",
                party.moves.get(party.at)
            );
            assert!(party.posted.is_empty());
        }
        assert!(
            self.wires.values().all(VecDeque::is_empty),
            "messages without a receive"
        );
        self
    }

    /// `true` if the rank could make progress.
    fn advance(&mut self, rank: u32) -> bool {
        let mut moved = false;
        while let Some(step) = self.ranks[rank as usize]
            .moves
            .get(self.ranks[rank as usize].at)
            .copied()
        {
            let done = match step {
                ExpandedMove::Send { to, part } | ExpandedMove::Start { to, part } => {
                    self.send(rank, to, part)
                }
                ExpandedMove::Post { from, part } => {
                    self.ranks[rank as usize].posted.push((from, part));
                    true
                }
                ExpandedMove::Recv { from, part } => self.take(rank, from, part),
                ExpandedMove::WaitRecv { ago } => {
                    let posted = &mut self.ranks[rank as usize].posted;
                    let at = posted.len() - 1 - ago as usize;
                    let (from, part) = posted[at];
                    // An earlier entry from the same rank would get its message.
                    assert!(posted[..at].iter().all(|(other, _)| *other != from));
                    let taken = self.take(rank, from, part);
                    if taken {
                        self.ranks[rank as usize].posted.remove(at);
                    }
                    taken
                }
                // Sends leave immediately here.
                ExpandedMove::WaitSend { .. } | ExpandedMove::WaitSends => true,
                ExpandedMove::WaitAll => {
                    while let Some((from, part)) = self.ranks[rank as usize].posted.first().copied()
                    {
                        if !self.take(rank, from, part) {
                            return moved;
                        }
                        self.ranks[rank as usize].posted.remove(0);
                        moved = true;
                    }
                    true
                }
            };
            if !done {
                return moved;
            }
            self.ranks[rank as usize].at += 1;
            moved = true;
        }
        moved
    }

    fn send(&mut self, from: u32, to: u32, part: MessagePart) -> bool {
        assert!(from != to && to < self.task.ranks, "{from} sends to {to}");
        let party = &self.ranks[from as usize];
        let held = |key: Key| {
            let holdings = party.blocks.get(&key).copied().unwrap_or(0);
            assert!(
                holdings != 0,
                "rank {from} sends block {key:?}, which it does not have"
            );
            (key, holdings)
        };
        let blocks = keys(part.blocks, from, &self.layout)
            .into_iter()
            .map(held)
            .collect();
        self.messages += 1;
        self.bytes += self.layout.bytes(part.blocks);
        let letter = Letter {
            part,
            from,
            blocks,
            heard: party.heard,
        };
        self.wires.entry((from, to)).or_default().push_back(letter);
        true
    }

    fn take(&mut self, rank: u32, from: u32, expected: MessagePart) -> bool {
        let Some(letter) = self
            .wires
            .get_mut(&(from, rank))
            .and_then(VecDeque::pop_front)
        else {
            return false;
        };
        assert_eq!(letter.part, expected, "{from} -> {rank}");
        let party = &mut self.ranks[rank as usize];
        party.heard |= letter.heard;
        for (key, holdings) in letter.blocks {
            let own = party.blocks.entry(key).or_insert(0);
            match expected.effect {
                Effect::Place => *own = holdings,
                Effect::Combine => {
                    assert_eq!(
                        *own & holdings,
                        0,
                        "{from} -> {rank}: block {key:?} combined twice"
                    );
                    *own |= holdings;
                }
            }
            if letter.from < rank {
                party.result |= holdings;
            }
        }
        true
    }

    /// Checks that all ranks have the data that the operation promises.
    fn check(&self) {
        use CollectiveOp::*;
        let ExpansionTask {
            op, ranks, root, ..
        } = self.task;
        let all: Holdings = if ranks == 128 {
            u128::MAX
        } else {
            (1 << ranks) - 1
        };
        let parts = self.layout.parts();
        for (rank, party) in (0..).zip(&self.ranks) {
            let has = |block: u32| party.blocks.get(&(block, 0)).copied().unwrap_or(0);
            match op {
                Barrier => assert_eq!(party.heard, all, "rank {rank}"),
                Bcast => (0..parts).for_each(|block| {
                    assert_eq!(has(block), 1 << root, "rank {rank} block {block}")
                }),
                Reduce if rank != root => {}
                Reduce | Allreduce => {
                    (0..parts).for_each(|block| assert_eq!(has(block), all, "rank {rank} {block}"))
                }
                Gather | Gatherv if rank != root => {}
                Gather | Gatherv | Allgather | Allgatherv => {
                    let each = parts / ranks;
                    (0..parts).for_each(|block| {
                        assert_eq!(has(block), 1 << (block / each), "rank {rank} {block}")
                    });
                }
                Scatter | Scatterv => assert_eq!(has(rank), 1 << root),
                ReduceScatter | ReduceScatterBlock => assert_eq!(has(rank), all, "rank {rank}"),
                Scan => assert_eq!(party.result, all >> (ranks - 1 - rank), "rank {rank}"),
                Alltoall | Alltoallv | Alltoallw => {
                    (0..ranks).for_each(|from| {
                        assert_eq!(party.blocks.get(&(from, rank)), Some(&(1 << from)))
                    });
                }
            }
        }
    }
}

/// Initial data of a rank.
fn start(task: &ExpansionTask, layout: &BlockLayout, rank: u32) -> BTreeMap<Key, Holdings> {
    use CollectiveOp::*;
    let parts = layout.parts();
    let own: Holdings = 1 << rank;
    match task.op {
        Barrier => BTreeMap::new(),
        Bcast | Scatter | Scatterv if rank != task.root => BTreeMap::new(),
        Gather | Gatherv | Allgather | Allgatherv => {
            let each = parts / task.ranks;
            (rank * each..(rank + 1) * each)
                .map(|block| ((block, 0), own))
                .collect()
        }
        Alltoall | Alltoallv | Alltoallw => (0..task.ranks).map(|to| ((rank, to), own)).collect(),
        _ => (0..parts).map(|block| ((block, 0), own)).collect(),
    }
}

fn keys(blocks: MovedBlocks, sender: u32, layout: &BlockLayout) -> Vec<Key> {
    let parts = layout.parts();
    match blocks {
        MovedBlocks::Nothing => Vec::new(),
        MovedBlocks::Range { first, count } => (first..first + count)
            .map(|block| (block % parts, 0))
            .collect(),
        MovedBlocks::Every { step, first } => (first..parts)
            .step_by(step as usize)
            .map(|block| (block, 0))
            .collect(),
        MovedBlocks::Pair { from, to } => vec![(from, to)],
        MovedBlocks::DistanceBit(bit) => {
            let far = (1..parts).filter(|distance| distance >> bit & 1 == 1);
            far.map(|distance| {
                let from = (sender + parts - distance % (1 << bit)) % parts;
                (from, (from + distance) % parts)
            })
            .collect()
        }
    }
}

/// The layout that the expansion of a program would use.
fn layout(task: &ExpansionTask, bytes: u64) -> BlockLayout {
    use CollectiveOp::*;
    let blocks = (0..u64::from(task.ranks)).map(|rank| bytes + rank % 3);
    match task.op {
        Barrier | Bcast | Reduce | Allreduce | Scan => task.layout(bytes),
        Alltoall | Alltoallv | Alltoallw => BlockLayout::pairs(
            vec![bytes * u64::from(task.ranks); task.ranks as usize],
            &[],
        ),
        Gather if task.choice.algorithm == Algorithm::LinearSync => {
            BlockLayout::given(blocks.flat_map(|size| [size.min(100), size.saturating_sub(100)]))
        }
        _ => BlockLayout::given(blocks),
    }
}

/// `true` for algorithms that consist of several stages; the others have one stage.
fn is_made_of_others(op: CollectiveOp, algorithm: Algorithm) -> bool {
    use Algorithm::*;
    matches!(
        algorithm,
        ReduceThenBcast
            | ReduceThenScatter
            | GatherThenBcast
            | AllgatherThenReduce
            | ReduceThenBcastTree
    ) || (op, algorithm) == (CollectiveOp::Allreduce, Linear)
}

fn world(op: CollectiveOp, choice: Choice, (ranks, root): (u32, u32), bytes: u64) -> World {
    let choice = Choice {
        algorithm: choice.algorithm.for_ranks(op, ranks),
        ..choice
    };
    let task = ExpansionTask {
        op,
        choice,
        ranks,
        root,
    };
    let layout = layout(&task, bytes);
    World::new(task, layout).run()
}

#[test]
fn every_algorithm_delivers_the_data_of_its_operation() {
    for op in CollectiveOp::ALL {
        for algorithm in Algorithm::all_for(op)
            .iter()
            .filter(|algorithm| !is_made_of_others(op, **algorithm))
        {
            for ranks in 1..=35 {
                for root in [0, ranks / 2, ranks - 1] {
                    world(op, Choice::plain(*algorithm), (ranks, root), 1000).check();
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn segments_widths_and_roots_do_not_change_the_result(
        which in (0usize..16, 0usize..16), ranks in 1u32..70, root in 0u32..70, bytes in 0u64..100_000,
        segment in proptest::option::of(1u64..5000), width in proptest::option::of(1u32..9),
    ) {
        let op = CollectiveOp::ALL[which.0];
        let algorithms: Vec<_> = Algorithm::all_for(op).iter().filter(|known| !is_made_of_others(op, **known)).collect();
        let algorithm = *algorithms[which.1 % algorithms.len()];
        let choice = Choice { algorithm, segment: segment.map(Bytes), width };
        world(op, choice, (ranks, root % ranks), bytes).check();
    }
}

/// Messages and bytes according to the textbook, for `P` ranks and a vector (or a block of each rank) of `n` bytes.
#[test]
fn messages_and_bytes_agree_with_the_textbook() {
    use Algorithm::*;
    use CollectiveOp::*;
    for p in [2u64, 4, 8, 16, 32] {
        let n = 1 << 15;
        let log = u64::from(p.ilog2());
        for (op, algorithm, messages, bytes) in [
            (Barrier, Dissemination, p * log, 0),
            (Barrier, RecursiveDoubling, p * log, 0),
            (Barrier, Linear, 2 * (p - 1), 0),
            (Barrier, DoubleRing, 2 * p, 0),
            (Bcast, Binomial, p - 1, (p - 1) * n),
            (Bcast, Linear, p - 1, (p - 1) * n),
            (Bcast, Chain, p - 1, (p - 1) * n),
            (
                Bcast,
                ScatterRing,
                p - 1 + p * (p - 1),
                n / p * (p / 2 * log + p * (p - 1)),
            ),
            (
                Bcast,
                ScatterRecursiveDoubling,
                p - 1 + p * log,
                n / p * (p / 2 * log + p * (p - 1)),
            ),
            (Reduce, Binomial, p - 1, (p - 1) * n),
            (
                Reduce,
                Rabenseifner,
                p * log + p - 1,
                n * (p - 1) + n / p * (p / 2 * log),
            ),
            (Allreduce, RecursiveDoubling, p * log, p * log * n),
            (Allreduce, Ring, 2 * p * (p - 1), 2 * (p - 1) * n),
            (Allreduce, Rabenseifner, 2 * p * log, 2 * (p - 1) * n),
            (Scan, Linear, p - 1, (p - 1) * n),
            (Scan, RecursiveDoubling, p * log, p * log * n),
            (Alltoall, Pairwise, p * (p - 1), p * (p - 1) * n),
            (Alltoall, Linear, p * (p - 1), p * (p - 1) * n),
            (Alltoall, Bruck, p * log, p * log * (p / 2) * n),
        ] {
            let found = world(op, Choice::plain(algorithm), (p as u32, 0), n);
            assert_eq!(
                (found.messages, found.bytes),
                (messages, bytes),
                "{op:?} {algorithm:?} {p}"
            );
        }
    }
}

/// Messages and bytes of all ranks for another base, other distances or other pieces.
#[test]
fn bases_and_pieces_change_the_messages_as_their_papers_say() {
    use Algorithm::*;
    use CollectiveOp::*;
    for (p, base, log) in [
        (4u64, 4u32, 1u64),
        (16, 4, 2),
        (27, 3, 3),
        (8, 2, 3),
        (25, 5, 2),
    ] {
        let n = p << 12;
        let each = p * log * u64::from(base - 1);
        let blocks: u64 = (0..p).map(|rank| n + rank % 3).sum();
        for (op, algorithm, messages, bytes) in [
            (Allreduce, RecursiveDoubling, each, each * n),
            (Allreduce, Rabenseifner, 2 * each, 2 * (p - 1) * n),
            (Allgather, RecursiveExchange, each, (p - 1) * blocks),
            (Allgather, Bruck, each, (p - 1) * blocks),
            (ReduceScatter, RecursiveHalving, each, (p - 1) * blocks),
            (Bcast, Kary, p - 1, (p - 1) * n),
            (Reduce, Kary, p - 1, (p - 1) * n),
            (Alltoall, LinearSync, p * (p - 1), p * (p - 1) * n),
            (Alltoall, PairwiseInOrder, p * (p - 1), p * (p - 1) * n),
            (Allgather, Sparbit, p * (p - 1), (p - 1) * blocks),
            (Allgather, Linear, p * (p - 1), (p - 1) * blocks),
        ] {
            let choice = Choice {
                width: Some(base),
                ..Choice::plain(algorithm)
            };
            let found = world(op, choice, (p as u32, 0), n);
            assert_eq!(
                (found.messages, found.bytes),
                (messages, bytes),
                "{op:?} {algorithm:?} {p} {base}"
            );
        }
    }
}

/// Open MPI adds a round if the remainder is more than half a piece of each rank.
#[test]
fn a_segmented_ring_goes_round_for_each_piece_and_once_more() {
    for (pieces, rounds) in [(1, 1), (3, 3), (7, 7)] {
        for (rest, more) in [(0, 0), (1999, 0), (2001, 1)] {
            let p = 4;
            let n = p * 1000 * pieces + rest;
            let choice = Choice {
                segment: Some(Bytes(1000)),
                ..Choice::plain(Algorithm::Ring)
            };
            let found = world(CollectiveOp::Allreduce, choice, (p as u32, 0), n);
            assert_eq!(found.messages, (rounds + more + 1) * p * (p - 1), "{n}");
            assert_eq!(found.bytes, 2 * (p - 1) * n);
        }
    }
}

/// With blocks of different sizes, `total` bytes in sum.
#[test]
fn gathering_and_scattering_move_each_block_as_often_as_the_textbook_says() {
    use Algorithm::*;
    use CollectiveOp::*;
    for p in 2u32..=40 {
        let sizes: Vec<u64> = (0..u64::from(p)).map(|rank| 1000 + rank % 3).collect();
        let total: u64 = sizes.iter().sum();
        let steps = u64::from(p.next_power_of_two().ilog2());
        let ranks = u64::from(p);
        for (op, algorithm, messages, bytes) in [
            (Gather, Linear, ranks - 1, total - sizes[0]),
            (Scatter, Linear, ranks - 1, total - sizes[0]),
            (Allgather, Ring, ranks * (ranks - 1), (ranks - 1) * total),
            (Allgather, Bruck, ranks * steps, (ranks - 1) * total),
            (
                ReduceScatter,
                Ring,
                ranks * (ranks - 1),
                (ranks - 1) * total,
            ),
            (
                ReduceScatter,
                Pairwise,
                ranks * (ranks - 1),
                (ranks - 1) * total,
            ),
        ] {
            let found = world(op, Choice::plain(algorithm), (p, 0), 1000);
            assert_eq!(
                (found.messages, found.bytes),
                (messages, bytes),
                "{op:?} {algorithm:?} {p}"
            );
        }
        let hops: u64 = (1..p)
            .map(|rank| sizes[rank as usize] * u64::from(rank.count_ones()))
            .sum();
        for op in [Gather, Scatter] {
            let found = world(op, Choice::plain(Binomial), (p, 0), 1000);
            assert_eq!(
                (found.messages, found.bytes),
                (ranks - 1, hops),
                "{op:?} {p}"
            );
        }
        if p.is_multiple_of(2) {
            let found = world(Allgather, Choice::plain(NeighborExchange), (p, 0), 1000);
            assert_eq!(
                (found.messages, found.bytes),
                (ranks * ranks / 2, (ranks - 1) * total)
            );
        }
        if p.is_power_of_two() {
            for algorithm in [RecursiveHalving, Butterfly, InterleavedHalving] {
                let found = world(ReduceScatter, Choice::plain(algorithm), (p, 0), 1000);
                let home = if algorithm == Butterfly {
                    mirrored(p)
                } else {
                    Vec::new()
                };
                let sent_home: u64 = home.iter().map(|rank| sizes[*rank as usize]).sum();
                let expected = (
                    ranks * steps + home.len() as u64,
                    (ranks - 1) * total + sent_home,
                );
                assert_eq!((found.messages, found.bytes), expected, "{algorithm:?} {p}");
            }
            let found = world(ReduceScatterBlock, Choice::plain(Butterfly), (p, 0), 1000);
            assert_eq!(
                (found.messages, found.bytes),
                (ranks * steps, (ranks - 1) * total),
                "{p}"
            );
            let found = world(Allgather, Choice::plain(RecursiveDoubling), (p, 0), 1000);
            assert_eq!(
                (found.messages, found.bytes),
                (ranks * steps, (ranks - 1) * total)
            );
        }
    }
}

/// Ranks whose number changes when its bits are reversed.
fn mirrored(ranks: u32) -> Vec<u32> {
    let bits = ranks.ilog2();
    let is_mirrored = |rank: &u32| bits > 0 && rank.reverse_bits() >> (32 - bits) != *rank;
    (0..ranks).filter(is_mirrored).collect()
}

#[test]
fn bruck_sends_each_block_once_for_each_bit_of_its_distance() {
    for ranks in 2u32..60 {
        let found = world(
            CollectiveOp::Alltoall,
            Choice::plain(Algorithm::Bruck),
            (ranks, 0),
            10,
        );
        let hops: u64 = (1..ranks)
            .map(|distance| u64::from(distance.count_ones()))
            .sum();
        assert_eq!(found.bytes, 10 * u64::from(ranks) * hops);
        assert_eq!(
            hops,
            (0..32)
                .map(|bit| distances_with(bit, u64::from(ranks)))
                .sum::<u64>()
        );
    }
}
