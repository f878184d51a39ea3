//! Names and addresses of nodes, interfaces and switch ports.

use std::net::Ipv4Addr;

use crate::lab::error::{LabError, require};
use flowcast_units::Node;

/// Returns the host name of a node.
pub fn host(node: Node) -> String {
    format!("node{node}")
}

/// Returns the interface of a rail, which has the same name in every node.
pub fn interface(rail: usize) -> String {
    format!("eth{rail}")
}

/// Interface of the network that is not shaped; for launchers, not for measurements.
pub(crate) const CONTROL: &str = "ctl0";

/// Returns the switch's port towards a node on a rail.
pub(crate) fn port(rail: usize, node: Node) -> String {
    format!("p{rail}n{node}")
}

/// Returns the port of the switch to which a process carries the frames of [`port`] with a delay.
pub(crate) fn carried_port(rail: usize, node: Node) -> String {
    format!("q{rail}n{node}")
}

/// Returns the switch's port towards a node on the control network.
pub(crate) fn control_port(node: Node) -> String {
    format!("c{node}")
}

/// Returns the bridge of a rack on a rail.
pub(crate) fn bridge(rail: usize, rack: u32) -> String {
    format!("b{rail}r{rack}")
}

/// Returns the address of a node on a rail.
pub(crate) fn address(rail: usize, node: Node) -> Ipv4Addr {
    in_network(77 + rail as u8, node)
}

/// Returns the address of a node on the control network.
pub(crate) fn control_address(node: Node) -> Ipv4Addr {
    in_network(76, node)
}

/// Returns the network of a rail, in the notation of routes.
pub(crate) fn network(rail: usize) -> String {
    format!("10.{}.0.0/16", 77 + rail)
}

/// Returns the hardware address of a node's interface on a rail.
pub(crate) fn hardware_address(rail: usize, node: Node) -> String {
    in_hardware(77 + rail, node)
}

/// Returns the hardware address of a node's control interface.
pub(crate) fn control_hardware_address(node: Node) -> String {
    in_hardware(76, node)
}

fn in_network(second: u8, node: Node) -> Ipv4Addr {
    Ipv4Addr::new(10, second, (node.0 / 250) as u8, (node.0 % 250 + 1) as u8)
}

fn in_hardware(network: usize, node: Node) -> String {
    format!(
        "02:fc:{network:02x}:00:{:02x}:{:02x}",
        node.0 >> 8 & 0xff,
        node.0 & 0xff
    )
}

/// Checks the name of a lab, which is also the name of a folder.
pub(crate) fn check_name(name: &str) -> Result<(), LabError> {
    let mut letters = name.chars();
    require(
        (1..=40).contains(&name.len())
            && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')),
        "name",
        name,
        "1 to 40 letters, digits, `-` or `_`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_all_nodes_and_rails_differ() {
        let mut all: Vec<Ipv4Addr> = (0..500)
            .flat_map(|node| (0..8).map(move |rail| address(rail, Node(node))))
            .collect();
        all.extend((0..500).map(|node| control_address(Node(node))));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 500 * 9);
        assert_eq!(address(1, Node(2)).to_string(), "10.78.0.3");
    }
}
