//! A cluster that runs HPL: its network, its processors and the costs of its computations.

use crate::{
    HplSettings, KernelRates, NodeProcessors,
    machine::{HplChannel, Machine},
};
use flowcast_network::{
    collective_costs::CollectiveCosts,
    costs::CostParameters,
    linpack_costs::LinpackCosts,
    network::{Network, OverheadPiece, Overheads},
};
use flowcast_statistics::resampling::Resampler;
use flowcast_units::{Bytes, TimePerByte};
use thiserror::Error;

use super::SimulatedExtent;

/// Reasons why a run cannot be predicted on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClusterError {
    /// The cluster has too few nodes.
    #[error(
        "found {found} nodes, expected at least {expected} for {ranks} ranks, {per_node} on each node"
    )]
    Nodes {
        /// Number of nodes with known processors.
        found: usize,
        /// Number of nodes that the run needs.
        expected: usize,
        /// Number of ranks of the run.
        ranks: u32,
        /// Number of ranks per node; the last node may have fewer.
        per_node: u32,
    },
    /// The simulation would take too long.
    #[error(
        "found N = {order} in {panels} panels on {grid}, which takes about {hours} h to simulate, expected at most {most} h"
    )]
    TooLong {
        /// Order of the matrix.
        order: u64,
        /// Number of panels of the factorization.
        panels: u32,
        /// Numbers of process rows and columns, as text.
        grid: String,
        /// Approximate processor time of the simulation, in hours.
        hours: u64,
        /// Maximum processor time of one simulation, in hours.
        most: u64,
    },
}

/// Maximum processor time of one simulation, in hours.
const MOST_HOURS: u64 = 3;

/// Cluster on which runs are predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Network between the nodes.
    pub network: Network,
    /// Speeds of each node's processors.
    pub processors: NodeProcessors,
    /// Number of ranks that fill a node.
    pub ranks_per_node: u32,
    /// Constants for computations and for messages within a node.
    pub costs: LinpackCosts,
}

impl Cluster {
    /// Builds a cluster with the fitted costs of the network file, or with the default costs if no run was measured.
    pub fn new(network: Network, processors: NodeProcessors, ranks_per_node: u32) -> Cluster {
        let fitted = network.linpack.as_deref();
        Cluster {
            costs: fitted.map_or_else(LinpackCosts::prior, |fitted| fitted.costs.costs),
            network,
            processors,
            ranks_per_node,
        }
    }

    /// Checks that the cluster has enough nodes for a run, and that this part of the run can be simulated.
    ///
    /// # Errors
    /// Too few nodes; a simulation of more than three hours.
    pub fn check(
        &self,
        settings: &HplSettings,
        extent: SimulatedExtent,
    ) -> Result<(), ClusterError> {
        let expected = self.nodes_of(settings);
        if expected > self.processors.nodes() {
            return Err(ClusterError::Nodes {
                found: self.processors.nodes(),
                expected,
                ranks: settings.ranks(),
                per_node: self.ranks_per_node,
            });
        }
        let hours = extent.hours(settings).ceil() as u64;
        if hours <= MOST_HOURS {
            return Ok(());
        }
        Err(ClusterError::TooLong {
            order: settings.order,
            panels: settings.panels(),
            grid: format!("{} x {} ranks", settings.rows, settings.columns),
            hours,
            most: MOST_HOURS,
        })
    }

    fn nodes_of(&self, settings: &HplSettings) -> usize {
        settings.ranks().div_ceil(self.ranks_per_node) as usize
    }

    /// Machine of a member of an ensemble. Member 0 has the first nodes, with their processors in order. Every other member
    /// has a random selection of nodes, in the cluster's order, and the ranks of each node are on random processors, as on
    /// nodes without binding.
    ///
    /// # Panics
    /// If the cluster has too few nodes.
    pub(super) fn machine(&self, settings: &HplSettings, member: u64) -> Machine {
        let costs = &self.costs;
        let nodes = self.nodes_of(settings);
        let mut random = Resampler::from_seed(member);
        let mut places: Vec<usize> = (0..self.processors.nodes()).collect();
        if member > 0 {
            random.shuffle(&mut places);
        }
        places.truncate(nodes);
        places.sort_unstable();
        let (ranks, per_node) = (settings.ranks(), self.ranks_per_node);
        let processors = self.processors.only(&places).of_ranks(ranks, per_node);
        let mut processors = processors.expect("the nodes suffice");
        if member > 0 {
            for node in processors.chunks_mut(per_node as usize) {
                random.shuffle(node);
            }
        }
        let collectives = self.network.collectives.measured.as_deref();
        let rendezvous_from = self.network.point_to_point.rendezvous_from;
        let rendezvous_from = rendezvous_from.map_or(u64::MAX, |size| size.0);
        let per_byte = self.network.nic.per_byte().as_nanos() * 1e-9;
        Machine {
            nodes: (0..ranks).map(|rank| rank / per_node).collect(),
            ranks_per_node: per_node.min(ranks),
            processors,
            call_spread: costs.call_spread,
            inside: HplChannel {
                latency: costs.node_latency,
                per_byte: costs.node_gap,
                shared_per_byte: costs.node_copy_gap,
                rendezvous_from,
                overheads: Overheads::default(),
            },
            between: HplChannel {
                latency: self.network.nic.latency.as_seconds(),
                per_byte,
                shared_per_byte: per_byte / f64::from(self.network.nic.count),
                rendezvous_from,
                overheads: self.overheads(),
            },
            collectives: collectives
                .map_or_else(CollectiveCosts::prior, |measured| measured.costs.costs),
            rates: KernelRates {
                multiply: costs.multiply,
                solve: costs.solve,
                cache_bytes: costs.cache,
                cache_rate: 1.0 / costs.cache_gap,
                memory_rate: 1.0 / costs.memory_gap,
            },
            node_memory_rate: 1.0 / costs.node_memory_gap,
        }
    }

    /// Overheads of the network by message size. Without such a table, all messages have the same overhead.
    fn overheads(&self) -> Overheads {
        let mut overheads = self.network.overheads.clone();
        for side in [&mut overheads.send, &mut overheads.receive] {
            if side.is_empty() {
                side.push(OverheadPiece {
                    from: Bytes(0),
                    fixed: self.network.nic.overhead,
                    per_byte: TimePerByte::from_nanos(0.0),
                });
            }
        }
        overheads
    }
}
