//! Token buckets and the queues behind them, as commands of `tc`.

use std::fmt::Write;

use flowcast_units::{Bytes, Node, Rate};

use super::{rails, trunk_ports};
use crate::lab::{
    names,
    nominal::FRAME_OVERHEAD,
    spec::{BusOrder, Duplex, LabSpec},
};

/// Returns the `tc` commands of the switch.
pub(super) fn switch(spec: &LabSpec) -> String {
    let mut text = String::new();
    if spec.cable.is_some() {
        return text;
    }
    for rail in rails(spec) {
        let rate = spec.wire_rate(rail);
        for node in spec.nodes() {
            text.push_str(&bucket(
                spec,
                &names::port(rail, node),
                rate,
                spec.queues.port,
            ));
        }
        if let Some(backbone) = spec.backbone_rate() {
            for port in trunk_ports(spec, rail) {
                text.push_str(&bucket(spec, &port, backbone, spec.queues.backbone));
            }
        }
    }
    text
}

/// Returns the `tc` commands of a node.
pub(super) fn node(spec: &LabSpec, node: Node) -> String {
    let mut text = String::new();
    if spec.cable.is_some() {
        return text;
    }
    for rail in rails(spec) {
        let interface = names::interface(rail);
        if spec.nic.duplex != Duplex::Half {
            let rate = spec.wire_rate(rail);
            text.push_str(&bucket(spec, &interface, rate, spec.queues.host));
        }
        if let Some(shared) = shared_device(spec, rail) {
            let _ = writeln!(text, "qdisc add dev {interface} clsact");
            for direction in ["egress", "ingress"] {
                let _ = writeln!(
                    text,
                    "filter add dev {interface} {direction} protocol ip u32 match u32 0 0 action mirred egress redirect dev {shared}"
                );
            }
        }
    }
    match spec.nic.duplex {
        Duplex::Full => {}
        Duplex::Half => rails(spec).for_each(|rail| {
            text.push_str(&bucket(
                spec,
                &format!("ifb{rail}"),
                spec.wire_rate(rail),
                spec.queues.host,
            ));
        }),
        Duplex::Bus => text.push_str(&bus(spec, node)),
    }
    text
}

/// Returns the device that both directions of a rail pass through if they share capacity: one for each rail with half
/// duplex, one for all rails with a bus.
pub(super) fn shared_device(spec: &LabSpec, rail: usize) -> Option<String> {
    match spec.nic.duplex {
        Duplex::Full => None,
        Duplex::Half => Some(format!("ifb{rail}")),
        Duplex::Bus => Some("ifb0".into()),
    }
}

fn bucket(spec: &LabSpec, device: &str, rate: Rate, queue: Bytes) -> String {
    let (bits, burst) = (bits(rate), burst(spec, rate));
    format!(
        "qdisc add dev {device} root handle 1: tbf rate {bits}bit burst {burst} limit {} overhead {FRAME_OVERHEAD}\n",
        queue.0
    )
}

/// Returns two classes under one rate: one for received data and acknowledgements, one for sent data.
fn bus(spec: &LabSpec, node: Node) -> String {
    let rate = spec.bus_rate().expect("only a bus is shaped as a bus");
    let (own, sends) = match spec.nic.bus_order {
        BusOrder::ReceiveFirst => (Rate::from_bytes_per_second(125_000.0 / spec.slow_motion), 1),
        BusOrder::Equal => (
            Rate::from_bytes_per_second(rate.as_bytes_per_second() / 2.0),
            0,
        ),
    };
    let quantum = 2 * (spec.nic.mtu.0 + 14);
    let limits = |lowest: Rate| {
        let (ceiling, burst) = (bits(rate), burst(spec, rate));
        format!(
            "htb rate {}bit ceil {ceiling}bit burst {burst} cburst {burst} quantum {quantum} overhead {FRAME_OVERHEAD}",
            bits(lowest)
        )
    };
    let mut text = String::from("qdisc add dev ifb0 root handle 1: htb default 20\n");
    let _ = writeln!(
        text,
        "class add dev ifb0 parent 1: classid 1:1 {}",
        limits(rate)
    );
    let _ = writeln!(
        text,
        "class add dev ifb0 parent 1:1 classid 1:10 {} prio 0",
        limits(own)
    );
    let _ = writeln!(
        text,
        "class add dev ifb0 parent 1:1 classid 1:20 {} prio {sends}",
        limits(own)
    );
    let _ = writeln!(
        text,
        "qdisc add dev ifb0 parent 1:10 bfifo limit {}",
        spec.queues.port.0
    );
    let _ = writeln!(
        text,
        "qdisc add dev ifb0 parent 1:20 bfifo limit {}",
        spec.queues.host.0
    );
    for rail in rails(spec) {
        let address = names::address(rail, node);
        let _ = writeln!(
            text,
            "filter add dev ifb0 parent 1: protocol ip prio 1 u32 match ip dst {address}/32 flowid 1:10"
        );
    }
    if spec.nic.bus_order == BusOrder::ReceiveFirst {
        // The filter matches IP packets below 128 bytes. Without it, the acknowledgements of received data would wait behind
        // sent data.
        text.push_str("filter add dev ifb0 parent 1: protocol ip prio 2 u32 match u16 0 0xff80 at 2 flowid 1:10\n");
    }
    text
}

/// Returns the bytes that a shaper passes in one burst: two frames, or a quarter of a millisecond if that is more. With a
/// burst of one frame, late timers would cost 8 % of the rate.
pub(crate) fn burst(spec: &LabSpec, rate: Rate) -> u64 {
    let frames = 2 * (spec.nic.mtu.0 + 14 + FRAME_OVERHEAD);
    frames.max((rate.as_bytes_per_second() / 4000.0) as u64)
}

fn bits(rate: Rate) -> u64 {
    (rate.as_bytes_per_second() * 8.0).round() as u64
}
