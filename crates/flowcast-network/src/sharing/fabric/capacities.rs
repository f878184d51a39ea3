//! The capacities of a network's links in units of its interface.

use super::{AllocatedFraction, BusShare};
use crate::{
    network::{Network, NicChoice},
    sharing::error::SharingError,
    topology::{self, wiring::mixed},
};
use flowcast_units::Node;

/// The interfaces of a node, and which of them messages take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NodeInterfaces {
    pub count: u32,
    pub choice: NicChoice,
    /// Bytes per second of each.
    pub rate: f64,
}

/// A node with one interface, whose rate is the unit.
pub(super) const ONE_INTERFACE: NodeInterfaces = NodeInterfaces {
    count: 1,
    choice: NicChoice::Pair,
    rate: 1.0,
};

impl NodeInterfaces {
    /// Whether all messages between two nodes take the same interface.
    pub(super) fn is_by_pair(&self) -> bool {
        self.count == 1 || self.choice == NicChoice::Pair
    }

    /// Which interface the `turn`-th message between two nodes takes, the same number at both ends.
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

/// Refuses more planes of switches than a node has interfaces.
pub(crate) fn check_planes(network: &Network) -> Result<(), SharingError> {
    interfaces(network).map(drop)
}

/// The interfaces of each node of a network.
///
/// # Errors
/// More planes of switches than interfaces.
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
            format!("at most nic.count = {count}, the interfaces of a node"),
        ));
    }
    Ok(NodeInterfaces {
        count,
        choice: network.nic.choice,
        rate: network.nic.rate().as_bytes_per_second(),
    })
}

/// The backbone's rate in units of the interface's.
///
/// # Errors
/// A network whose interface has no rate.
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
            "a finite rate beside that of the backbone",
        ));
    }
    rate.map(|rate| share("backbone.bandwidth", rate, nic))
        .transpose()
}

/// A link's rate in units of the interface's.
///
/// # Errors
/// Rates so far apart that flows would have no end that is a number.
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
        expected: "a rate from 1e-100 to 1e100 times that of the interface",
    })
}

/// The media that groups of nodes share, in units of the interface's rate; none that are no limit.
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
            "a finite rate beside that of the bus",
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

/// Rates of links need an interface's rate to be held against.
pub(super) fn infinite_interface() -> SharingError {
    SharingError::parameter(
        "nic.bandwidth",
        Some(0.0),
        "a finite rate beside those of the topology",
    )
}
