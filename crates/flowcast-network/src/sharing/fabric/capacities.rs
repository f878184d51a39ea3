//! Capacities of a network's links, in units of its interface.

use super::{AllocatedFraction, BusShare};
use crate::{
    network::{Network, NicChoice},
    sharing::error::SharingError,
    topology::{self, wiring::mixed},
};
use flowcast_units::Node;

/// The interfaces of a node, and the rule by which messages choose one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NodeInterfaces {
    pub count: u32,
    pub choice: NicChoice,
    /// Rate of each interface, in bytes per second.
    pub rate: f64,
}

/// A node with one interface, whose rate is the unit of rates.
pub(super) const ONE_INTERFACE: NodeInterfaces = NodeInterfaces {
    count: 1,
    choice: NicChoice::Pair,
    rate: 1.0,
};

impl NodeInterfaces {
    /// `true` if all messages between two nodes use the same interface.
    pub(super) fn is_by_pair(&self) -> bool {
        self.count == 1 || self.choice == NicChoice::Pair
    }

    /// Interface of the `turn`-th message between two nodes; the number is the same at both ends.
    pub(super) fn chosen(&self, [src, dst]: [Node; 2], turn: u32) -> u32 {
        match self.choice {
            _ if self.count == 1 => 0,
            NicChoice::Pair => {
                let pair = u64::from(src.0) << 32 | u64::from(dst.0);
                (mixed(pair) % u64::from(self.count)) as u32
            }
            NicChoice::RoundRobin => turn % self.count,
        }
    }
}

/// Rejects networks with more planes of switches than interfaces per node.
pub(crate) fn check_planes(network: &Network) -> Result<(), SharingError> {
    interfaces(network).map(drop)
}

/// Interfaces of each node of a network.
///
/// # Errors
/// There are more planes of switches than interfaces.
pub(super) fn interfaces(network: &Network) -> Result<NodeInterfaces, SharingError> {
    let (planes, count) = (
        network
            .topology
            .as_ref()
            .map_or(1, |topology| topology.planes),
        network.nic.count,
    );
    if planes > count {
        return Err(topology::refused(
            "planes",
            planes,
            format!("at most nic.count = {count}, the number of interfaces of a node"),
        ));
    }
    Ok(NodeInterfaces {
        count,
        choice: network.nic.choice,
        rate: network.nic.rate().as_bytes_per_second(),
    })
}

/// Rate of the backbone, in units of the interface's rate.
///
/// # Errors
/// The interface of the network has no rate.
pub fn backbone_share(network: &Network) -> Result<Option<AllocatedFraction>, SharingError> {
    let nic = network.nic.rate().as_bytes_per_second();
    let rate = network
        .backbone
        .map(|rate| rate.goodput().as_bytes_per_second())
        .filter(|rate| *rate > 0.0);
    if rate.is_some() && nic == 0.0 {
        return Err(SharingError::parameter(
            "nic.bandwidth",
            Some(nic),
            "a finite rate, because the rate of the backbone is finite",
        ));
    }
    rate.map(|rate| share("backbone.bandwidth", rate, nic))
        .transpose()
}

/// Rate of a link, in units of the interface's rate.
///
/// # Errors
/// The rates differ so much that flows would end at no finite time.
pub(super) fn share(
    field: &'static str,
    rate: f64,
    nic: f64,
) -> Result<AllocatedFraction, SharingError> {
    let share = rate / nic;
    if (1e-100..=1e100).contains(&share) {
        return Ok(AllocatedFraction(share));
    }
    Err(SharingError::Parameter {
        field,
        found: format!("{rate:e} B/s"),
        expected: "a rate from 1e-100 to 1e100 times the rate of the interface",
    })
}

/// Media shared by groups of nodes, in units of the interface's rate; `None` if they are not a limit.
pub(super) fn bus_share(network: &Network) -> Result<Option<BusShare>, SharingError> {
    let nic = network.nic.rate().as_bytes_per_second();
    let Some(bus) = network.bus else {
        return Ok(None);
    };
    let rate = bus.rate.goodput().as_bytes_per_second();
    if rate > 0.0 && nic == 0.0 {
        return Err(SharingError::parameter(
            "nic.bandwidth",
            Some(nic),
            "a finite rate, because the rate of the bus is finite",
        ));
    }
    if rate <= 0.0 {
        return Ok(None);
    }
    Ok(Some(BusShare {
        nodes: bus.nodes,
        capacity: share("bus.bandwidth", rate, nic)?,
    }))
}

/// Error for link rates without an interface rate to compare them with.
pub(super) fn infinite_interface() -> SharingError {
    SharingError::parameter(
        "nic.bandwidth",
        Some(0.0),
        "a finite rate, because the rates of the topology are finite",
    )
}
