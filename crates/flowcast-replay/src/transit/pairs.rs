//! Pairs of nodes that exchange a program's messages, and the racks of these nodes.

use std::collections::BTreeSet;

use crate::placement::Placement;
use flowcast_network::{
    cluster::{flow::Flow, racks::Racks},
    network::Network,
    sharing::SharingError,
};
use flowcast_program::{
    access::{Access, TransferKind},
    opcodes::Op,
    program::Program,
    slot::Slot,
};
use flowcast_units::{Bytes, Node, Rank, Time};

/// Result of [`routes_of`] for a program.
pub(super) fn routes_of_program(program: &Program, placement: &Placement) -> (Vec<Flow>, Vec<u32>) {
    let counts = (program.streams(), program.messages() as usize);
    routes_of(counts, placement, |rank| {
        program.ops(rank).filter_map(|(_, op)| match op {
            Op::Send { slot, .. } => Some((slot, program.receiver(slot))),
            _ => None,
        })
    })
}

/// Latency that cables add to each message, indexed by slot, on the route of the first message between its nodes; empty
/// without such latency.
pub(crate) fn cable_latencies(
    program: &Program,
    placement: &Placement,
    network: &Network,
) -> Result<Vec<Time>, SharingError> {
    let Some(topology) = &network.topology else {
        return Ok(Vec::new());
    };
    let classes = topology.classes();
    if classes
        .iter()
        .all(|class| class.cables.latency == Time::ZERO)
    {
        return Ok(Vec::new());
    }
    let (flows, route_of) = routes_of_program(program, placement);
    let pairs: Vec<[Node; 2]> = flows.iter().map(|flow| [flow.src, flow.dst]).collect();
    let mut latencies = Vec::with_capacity(pairs.len());
    for crossed in topology.crossed(&pairs)? {
        let cables = classes.iter().zip(crossed);
        let times = cables.map(|(class, count)| class.cables.latency * f64::from(count));
        latencies.push(times.fold(Time::ZERO, |sum, time| sum + time));
    }
    let of_slot = route_of.iter().map(|route| latencies[*route as usize]);
    Ok(of_slot.collect())
}

/// Returns one flow for each pair of nodes that exchange messages, and the index of each slot's flow. Only source and
/// destination of the flows matter here.
pub(super) fn routes_of<I: Iterator<Item = (Slot, Rank)>>(
    (ranks, slots): (usize, usize),
    placement: &Placement,
    sends: impl Fn(Rank) -> I,
) -> (Vec<Flow>, Vec<u32>) {
    const NONE: u32 = u32::MAX;
    let mut flows = Vec::new();
    let mut route_of = vec![0; slots];
    // Ranks are grouped by node, so that one row of numbers is enough.
    let mut ranks: Vec<Rank> = Rank::all(ranks).collect();
    ranks.sort_by_key(|rank| placement.node(*rank));
    let mut known = vec![NONE; placement.nodes()];
    for of_one_node in ranks.chunk_by(|one, other| placement.node(*one) == placement.node(*other)) {
        let src = placement.node(of_one_node[0]);
        let first = flows.len();
        for (slot, receiver) in of_one_node.iter().flat_map(|rank| sends(*rank)) {
            let dst = placement.node(receiver);
            let number = &mut known[dst];
            if *number == NONE {
                *number = flows.len() as u32;
                flows.push(Flow {
                    id: *number,
                    src,
                    dst,
                    size: Bytes(0),
                    start: Time::ZERO,
                });
            }
            route_of[slot] = *number;
        }
        flows[first..]
            .iter()
            .for_each(|flow| known[flow.dst] = NONE);
    }
    (flows, route_of)
}

/// The racks of the nodes of these flows, if a backbone joins the machine's racks.
pub(crate) fn racks_of(flows: &[Flow], network: &Network) -> Racks {
    let nodes = flows
        .iter()
        .map(|flow| flow.src.max(flow.dst).index() + 1)
        .max()
        .unwrap_or(0);
    let is_split = network.backbone.is_some() && network.topology.is_none();
    let nodes_per_rack = if is_split {
        network.machine.nodes_per_rack
    } else {
        0
    };
    Racks::in_blocks(nodes, nodes_per_rack)
}

/// One flow for each pair of nodes with one-sided transfers between them.
pub(crate) fn transfers_of(program: &Program, placement: &Placement) -> Vec<Flow> {
    let ranks = if program.accesses().is_empty() {
        0
    } else {
        program.ranks() as u32
    };
    let mut ends = BTreeSet::new();
    for rank in (0..ranks).map(Rank) {
        for (_, op) in program.ops(rank) {
            let Op::Access(access) = op else { continue };
            let Access::Transfer { kind, target, .. } = *program.access(access) else {
                continue;
            };
            let (own, other) = (placement.node(rank), placement.node(target));
            if own != other {
                ends.insert(if kind == TransferKind::Get {
                    (other, own)
                } else {
                    (own, other)
                });
            }
        }
    }
    ends.into_iter()
        .zip(0..)
        .map(|((src, dst), id)| Flow {
            id,
            src,
            dst,
            size: Bytes(0),
            start: Time::ZERO,
        })
        .collect()
}
