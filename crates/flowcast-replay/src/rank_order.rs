//! Order of a program's ranks, independent of their numbers.
//!
//! Events at the same time in a network of queues happen in some order, and the first message to fill a queue may affect the
//! messages after it. If ranks were ordered by their numbers, renumbering the ranks could change the time of a
//! program. Ranks are therefore ordered by their operations and their partners: by colours that are refined until they
//! distinguish no further ranks (Weisfeiler and Leman, 1968). Ranks of one colour are interchangeable, so their order does
//! not matter.

use super::placement::Placement;
use flowcast_network::{cluster::flow::Flow, network::Network};
use flowcast_program::{access::Access, opcodes::Op, program::Program};
use flowcast_units::{Node, Rank};
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
};

/// Maximum number of refinements: ranks that differ only at a greater distance stay in the order of their numbers.
const ROUNDS: usize = 16;

/// The streams of a program, and the nodes on which they run.
pub(crate) struct RankOrder {
    /// Streams, sorted by colour, then by number.
    pub streams: Vec<Rank>,
    /// New node numbers, in the order of the nodes' first streams.
    nodes: BTreeMap<Node, Node>,
}

impl RankOrder {
    pub(crate) fn by_colour(program: &Program, placement: &Placement) -> RankOrder {
        let streams = streams_by_colour(program, placement);
        let mut nodes = BTreeMap::new();
        for stream in &streams {
            let next = Node(nodes.len() as u32);
            nodes
                .entry(placement.node(program.owner(*stream)))
                .or_insert(next);
        }
        RankOrder { streams, nodes }
    }

    /// Renumbers the nodes if a single switch connects all of them, so that they are interchangeable.
    pub(crate) fn renumber_nodes(&self, flows: &mut [Flow], network: &Network) {
        if network.topology.is_some() || network.backbone.is_some() || network.bus.is_some() {
            return;
        }
        for flow in flows {
            (flow.src, flow.dst) = (self.nodes[&flow.src], self.nodes[&flow.dst]);
        }
    }
}

fn streams_by_colour(program: &Program, placement: &Placement) -> Vec<Rank> {
    let mut order: Vec<Rank> = Rank::all(program.streams()).collect();
    // For each slot: the sending stream and the number of its earlier sends.
    let mut senders = vec![(Rank(0), 0); program.messages() as usize];
    for stream in &order {
        let sends = program.ops(*stream).filter_map(|(_, op)| match op {
            Op::Send { slot, .. } => Some(slot),
            _ => None,
        });
        for (before, slot) in (0..).zip(sends) {
            senders[slot] = (*stream, before);
        }
    }
    let mut colours = vec![0; order.len()];
    let mut known = 0;
    for _ in 0..ROUNDS {
        let nodes = colours_of_nodes(program, placement, &colours);
        colours = order
            .iter()
            .map(|stream| {
                let mut colour = Fnv::new();
                let node = placement.node(program.owner(*stream));
                (colours[stream.index()], nodes[&node]).hash(&mut colour);
                hash_ops(program, &senders, &colours, *stream, &mut colour);
                colour.finish()
            })
            .collect();
        let count = colours.iter().collect::<BTreeSet<_>>().len();
        if count == known || count == order.len() {
            break;
        }
        known = count;
    }
    order.sort_by_key(|stream| (colours[stream.index()], *stream));
    order
}

/// Colour of each node from the colours of its ranks, in any order.
fn colours_of_nodes(
    program: &Program,
    placement: &Placement,
    colours: &[u64],
) -> BTreeMap<Node, u64> {
    let mut nodes = BTreeMap::new();
    for stream in Rank::all(program.streams()) {
        let node = nodes
            .entry(placement.node(program.owner(stream)))
            .or_insert(0u64);
        *node = node.wrapping_add(colours[stream.index()]);
    }
    nodes
}

fn hash_ops(
    program: &Program,
    senders: &[(Rank, u32)],
    colours: &[u64],
    stream: Rank,
    hasher: &mut Fnv,
) {
    let colour = |rank: Rank| colours[rank.index()];
    for (_, op) in program.ops(stream) {
        std::mem::discriminant(&op).hash(hasher);
        match op {
            Op::Compute(time) | Op::Accelerator(time) => time.as_nanos().to_bits().hash(hasher),
            Op::Send { class, slot } => {
                let class = program.class(class);
                (class.size, class.mode, colour(program.receiver(slot))).hash(hasher);
            }
            Op::WaitRecv(number) | Op::WaitSend(number) => number.hash(hasher),
            Op::Collective { call, .. } => {
                let call = program.call(call);
                (call.op, call.mode, call.is_root, call.send, call.recv).hash(hasher);
            }
            Op::Access(access) => hash_access(program.access(access), &colour, hasher),
            Op::Nothing
            | Op::Recv
            | Op::Irecv
            | Op::WaitCollective(_)
            | Op::Event(_)
            | Op::Ignored(_) => {}
        }
    }
    for slot in program.slots(stream).start.0..program.slots(stream).end.0 {
        let (sender, before) = senders[slot as usize];
        (colour(sender), before).hash(hasher);
    }
}

fn hash_access(access: &Access, colour: &impl Fn(Rank) -> u64, hasher: &mut Fnv) {
    std::mem::discriminant(access).hash(hasher);
    match access {
        Access::Transfer { target, size, .. } => (colour(*target), *size).hash(hasher),
        Access::Lock { target, .. } | Access::Unlock { target, .. } => colour(*target).hash(hasher),
        _ => {}
    }
}

/// FNV-1a hash (Fowler, Noll and Vo), the same in each version of Rust.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
