//! The capacities of a network's links in units of its interface.

use super::{AllocatedFraction, BusShare};
use crate::{network::Network, sharing::error::SharingError};

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
    Ok(rate.map(|rate| AllocatedFraction(rate / nic)))
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
    Ok((rate > 0.0).then(|| BusShare {
        nodes: bus.nodes,
        capacity: AllocatedFraction(rate / nic),
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
