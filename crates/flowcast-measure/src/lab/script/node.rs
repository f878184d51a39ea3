//! Settings inside a node's namespace.

use std::{collections::BTreeSet, fmt::Write};

use flowcast_units::Node;

use super::{rails, shaping};
use crate::lab::{
    as_network::SYSTEM_BUFFER,
    names,
    spec::{LabSpec, Window},
};

/// Returns the node's part of the plan.
pub(super) fn files(spec: &LabSpec, node: Node) -> [(String, String); 4] {
    // With a link emulator, frames leave the kernel, and no device behind the interface fills in checksums.
    let features = match spec.carried()[..] {
        [] => "tso gso gro",
        _ => "tso gso gro tx",
    };
    let offload = rails(spec)
        .map(|rail| format!("{} {features}\n", names::interface(rail)))
        .collect();
    let parts = [
        ("settings", settings(spec)),
        ("ip", links(spec, node)),
        ("offload", offload),
        ("tc", shaping::node(spec, node)),
    ];
    parts.map(|(ending, text)| (format!("{}.{ending}", names::host(node)), text))
}

/// Returns the kernel settings of a node. The buffers of a fixed window are twice the window, as if a program had requested
/// that window.
///
/// Without `tcp_autocorking = 0`, a small message that follows another would wait until the first has left the interface.
/// Between network namespaces it would wait until the first has reached its receiver, because a frame only counts as sent
/// there (Linux from 4.19 on).
fn settings(spec: &LabSpec) -> String {
    let (send, receive, tune) = match spec.tcp.window {
        Window::Automatic => ("4096 16384 4194304".into(), "4096 131072 6291456".into(), 1),
        Window::Fixed(window) => {
            let sizes = format!("4096 {0} {0}", SYSTEM_BUFFER * window.0);
            (sizes.clone(), sizes, 0)
        }
    };
    let idle = u8::from(spec.tcp.slow_start_after_idle);
    let all = [
        ("tcp_no_metrics_save", "1".to_owned()),
        ("tcp_slow_start_after_idle", idle.to_string()),
        ("tcp_autocorking", "0".to_owned()),
        ("tcp_wmem", send),
        ("tcp_rmem", receive),
        ("tcp_moderate_rcvbuf", tune.to_string()),
    ];
    all.iter()
        .map(|(name, value)| format!("{name} {value}\n"))
        .collect()
}

/// Returns addresses, routes and neighbours. Nothing is resolved by broadcast, so nothing disturbs a measurement.
fn links(spec: &LabSpec, node: Node) -> String {
    let mut text = String::from("link set lo up\n");
    for shared in shared_devices(spec) {
        let _ = writeln!(
            text,
            "link add {shared} type ifb\nlink set {shared} mtu {} up",
            spec.nic.mtu.0
        );
    }
    for rail in rails(spec) {
        let (interface, address) = (names::interface(rail), names::address(rail, node));
        let _ = writeln!(
            text,
            "addr add {address}/16 dev {interface}\nlink set {interface} up"
        );
        // TCP's shortest timeout keeps its proportion to the times of the network.
        let timeout = spec.shortest_timeout().map_or_else(String::new, |time| {
            format!(" rto_min {:.0}ms", 1e3 * time.as_seconds())
        });
        let _ = writeln!(
            text,
            "route replace {} dev {interface} scope link src {address} congctl {}{timeout}",
            names::network(rail),
            spec.tcp.congestion_control
        );
    }
    let control = names::CONTROL;
    let _ = writeln!(
        text,
        "addr add {}/16 dev {control}\nlink set {control} up",
        names::control_address(node)
    );
    for other in spec.nodes().filter(|other| *other != node) {
        for rail in rails(spec) {
            let (address, hardware) = (
                names::address(rail, other),
                names::hardware_address(rail, other),
            );
            let _ = writeln!(
                text,
                "neigh add {address} lladdr {hardware} dev {} nud permanent",
                names::interface(rail)
            );
        }
        let (address, hardware) = (
            names::control_address(other),
            names::control_hardware_address(other),
        );
        let _ = writeln!(
            text,
            "neigh add {address} lladdr {hardware} dev {control} nud permanent"
        );
    }
    text
}

fn shared_devices(spec: &LabSpec) -> BTreeSet<String> {
    rails(spec)
        .filter_map(|rail| shaping::shared_device(spec, rail))
        .collect()
}
