//! Plan of a lab, derived from the lab file alone: data for a constant script, `build.sh`.
//!
//! The script runs as the first process of a process namespace, and its network namespace is the switch: one bridge for each
//! rail and rack, and one for the control network. Each node is a network namespace and a host name namespace. Bind mounts
//! in a file system that only the lab sees keep them alive. When the script ends, the kernel ends everything in the lab.
//!
//! No text of the lab file becomes part of a script: the executed scripts are constant. They read words made of numbers, and
//! pass the lab file to the link emulators, its only reader.

mod node;
mod shaping;

pub(crate) use shaping::burst;

use std::{fmt::Write, fs, io, path::Path};

use flowcast_units::{Node, Time};

use crate::lab::{launch, names, spec::LabSpec};

/// Lifetime of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabLifetime {
    /// Until the standard input of the script ends, which happens when its owner ends for any reason.
    WithOwner,
    /// Until a command ends it.
    UntilDown,
}

impl LabLifetime {
    /// Returns the argument of the script.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            LabLifetime::WithOwner => "owner",
            LabLifetime::UntilDown => "down",
        }
    }
}

/// Output of the script when the lab is complete.
pub(crate) const READY: &str = "ready";

/// Writes the scripts and the plan into a lab's folder.
pub(crate) fn write(spec: &LabSpec, folder: &Path) -> io::Result<()> {
    let plan = folder.join("plan");
    fs::create_dir(&plan)?;
    fs::write(folder.join("build.sh"), include_str!("build.sh"))?;
    fs::write(folder.join("node.sh"), include_str!("node.sh"))?;
    files(spec)
        .into_iter()
        .try_for_each(|(name, text)| fs::write(plan.join(name), text))
}

/// Returns name and content of each file of the plan.
fn files(spec: &LabSpec) -> Vec<(String, String)> {
    let mut all = launch::files(spec);
    all.extend([
        (
            "remote-shell".to_owned(),
            include_str!("remote-shell").to_owned(),
        ),
        (
            "nodes".to_owned(),
            lines(spec.nodes().map(names::host).collect()),
        ),
        ("switch.ip".to_owned(), switch_links(spec)),
        ("switch.tc".to_owned(), shaping::switch(spec)),
        ("switch.ports".to_owned(), lines(shaped_ports(spec))),
        ("cable.toml".to_owned(), spec.to_toml()),
    ]);
    all.extend(spec.nodes().flat_map(|node| node::files(spec, node)));
    all
}

fn lines(names: Vec<String>) -> String {
    names
        .into_iter()
        .map(|name| name + "\n")
        .collect::<String>()
}

/// Returns the `ip` commands for bridges, cables and the backbone. Interfaces start with the MTU of the lab.
fn switch_links(spec: &LabSpec) -> String {
    let mtu = spec.nic.mtu.0;
    let mut text =
        "link add ctl type bridge stp_state 0 mcast_snooping 0\nlink set ctl up\n".to_owned();
    for rail in rails(spec) {
        for rack in 0..if spec.cable.is_some() {
            0
        } else {
            spec.cluster.racks
        } {
            let bridge = names::bridge(rail, rack);
            let _ = writeln!(
                text,
                "link add {bridge} type bridge stp_state 0 mcast_snooping 0"
            );
            let _ = writeln!(text, "link set {bridge} mtu {mtu} up");
        }
        text.push_str(&trunks(spec, rail));
    }
    for node in spec.nodes() {
        text.push_str(&cables(spec, node));
    }
    text
}

fn cables(spec: &LabSpec, node: Node) -> String {
    let (mtu, host) = (spec.nic.mtu.0, names::host(node));
    let mut text = String::new();
    let is_carried = spec.nic.delay > Time::ZERO;
    for rail in rails(spec).filter(|_| is_carried) {
        let (carried, inner) = (names::carried_port(rail, node), format!("i{rail}n{node}"));
        let bridge = names::bridge(rail, spec.rack_of(node));
        let _ = writeln!(
            text,
            "link add {carried} mtu {mtu} type veth peer name {inner} mtu {mtu}"
        );
        let _ = writeln!(
            text,
            "link set {carried} up\nlink set {inner} master {bridge} up"
        );
    }
    let mut cable = |port: String,
                     interface: &str,
                     hardware: String,
                     bridge: Option<String>,
                     mtu: u64| {
        let _ = writeln!(
            text,
            "link add {port} mtu {mtu} type veth peer name {interface} mtu {mtu} address {hardware} netns ./{host}.net"
        );
        let master = bridge.map_or(String::new(), |bridge| format!("master {bridge} "));
        let _ = writeln!(text, "link set {port} {master}up");
    };
    for rail in rails(spec) {
        let bridge = spec
            .cable
            .is_none()
            .then(|| names::bridge(rail, spec.rack_of(node)));
        cable(
            names::port(rail, node),
            &names::interface(rail),
            names::hardware_address(rail, node),
            bridge.filter(|_| !is_carried),
            mtu,
        );
    }
    let hardware = names::control_hardware_address(node);
    cable(
        names::control_port(node),
        names::CONTROL,
        hardware,
        Some("ctl".into()),
        1500,
    );
    text
}

/// Returns the `ip` commands for the backbone of a rail. A cable joins two racks; a core switch joins more than two.
fn trunks(spec: &LabSpec, rail: usize) -> String {
    let (mtu, racks) = (spec.nic.mtu.0, spec.cluster.racks);
    let mut text = String::new();
    if racks == 2 {
        let (one, other) = (uplink(rail, 0), uplink(rail, 1));
        let _ = writeln!(
            text,
            "link add {one} mtu {mtu} type veth peer name {other} mtu {mtu}"
        );
        for rack in 0..2 {
            let _ = writeln!(
                text,
                "link set {} master {} up",
                uplink(rail, rack),
                names::bridge(rail, rack)
            );
        }
    } else if racks > 2 {
        let _ = writeln!(
            text,
            "link add core{rail} type bridge stp_state 0 mcast_snooping 0"
        );
        let _ = writeln!(text, "link set core{rail} mtu {mtu} up");
        for rack in 0..racks {
            let (up, down) = (uplink(rail, rack), downlink(rail, rack));
            let _ = writeln!(
                text,
                "link add {up} mtu {mtu} type veth peer name {down} mtu {mtu}"
            );
            let _ = writeln!(
                text,
                "link set {up} master {} up",
                names::bridge(rail, rack)
            );
            let _ = writeln!(text, "link set {down} master core{rail} up");
        }
    }
    text
}

fn uplink(rail: usize, rack: u32) -> String {
    format!("u{rail}r{rack}")
}

fn downlink(rail: usize, rack: u32) -> String {
    format!("d{rail}r{rack}")
}

/// Returns the ports of a rail's backbone.
fn trunk_ports(spec: &LabSpec, rail: usize) -> Vec<String> {
    match spec.cluster.racks {
        1 => Vec::new(),
        2 => vec![uplink(rail, 0), uplink(rail, 1)],
        racks => (0..racks)
            .flat_map(|rack| [uplink(rail, rack), downlink(rail, rack)])
            .collect(),
    }
}

fn shaped_ports(spec: &LabSpec) -> Vec<String> {
    rails(spec)
        .flat_map(|rail| {
            let ports = spec.nodes().map(move |node| names::port(rail, node));
            ports.chain(trunk_ports(spec, rail))
        })
        .collect()
}

fn rails(spec: &LabSpec) -> std::ops::Range<usize> {
    0..spec.nic.bandwidth.0.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{network_of, profiles::profile};

    fn file(spec: &LabSpec, name: &str) -> String {
        files(spec)
            .into_iter()
            .find(|(known, _)| known == name)
            .unwrap()
            .1
    }

    #[test]
    fn both_ends_of_each_cable_and_the_backbone_are_shaped() {
        let spec = profile("two-racks", &[]).unwrap();
        let switch = file(&spec, "switch.tc");
        // 8 nodes at 50 Mbit/s with two ends each, and two ends of the backbone.
        assert_eq!(switch.matches("tbf rate 50000000bit").count(), 8);
        assert_eq!(
            file(&spec, "node7.tc")
                .matches("tbf rate 50000000bit")
                .count(),
            1
        );
        assert_eq!(switch.matches("tbf rate 150000000bit").count(), 2);
        assert!(
            switch.contains(
                "qdisc add dev u0r1 root handle 1: tbf rate 150000000bit burst 4687 limit 3000000 overhead 24"
            ),
            "{switch}"
        );
    }

    #[test]
    fn slow_motion_divides_rates_and_multiplies_delays_and_timeouts() {
        let set = |name, delay: &str| {
            let slow = ("slow_motion".to_owned(), "10".to_owned());
            let more = (delay.to_owned(), "40us".to_owned());
            let overrides = [slow, more];
            profile(name, &overrides[..if delay.is_empty() { 1 } else { 2 }]).unwrap()
        };
        let racks = set("two-racks", "");
        let switch = file(&racks, "switch.tc");
        assert_eq!(switch.matches("tbf rate 5000000bit").count(), 8);
        assert_eq!(switch.matches("tbf rate 15000000bit").count(), 2);
        assert!(file(&racks, "node7.tc").contains("tbf rate 5000000bit"));
        assert!(file(&racks, "node7.ip").contains(" rto_min 2000ms\n"));
        let timeout = network_of(&racks).sharing.packet.shortest_timeout;
        assert_eq!(timeout.map(|time| time.as_seconds()), Some(2.0));
        let bus = file(&set("bus", ""), "node0.tc");
        assert!(
            bus.contains("rate 7500000bit") && bus.contains("htb rate 100000bit"),
            "{bus}"
        );
        let cable = set("cable", "cable.delay");
        let direction = cable.direction(0, Node(1)).unwrap();
        assert_eq!(direction.delay.as_micros(), 400.0);
        assert_eq!(direction.rate.as_bytes_per_second() * 8e-6, 10.0);
        let delayed = set("two-racks", "nic.delay");
        assert_eq!(network_of(&delayed).nic.latency.as_micros(), 800.0);
        let links = file(&delayed, "switch.ip");
        for line in [
            "link set p0n7 up",
            "link add q0n7 mtu 1500 type veth peer name i0n7 mtu 1500",
            "link set i0n7 master b0r1 up",
        ] {
            assert!(links.lines().any(|found| found == line), "{links}");
        }
        let again = LabSpec::from_toml(&racks.to_toml(), &[]).unwrap();
        assert_eq!(again, racks);
        assert!(!file(&profile("fair", &[]).unwrap(), "node0.ip").contains("rto_min"));
    }

    #[test]
    fn a_cable_replaces_bridge_and_shaping() {
        let spec = profile("cable", &[]).unwrap();
        let links = file(&spec, "switch.ip");
        assert!(
            links.contains("link set p0n1 up\n") && !links.contains("b0r0"),
            "{links}"
        );
        assert_eq!(file(&spec, "switch.tc") + &file(&spec, "node0.tc"), "");
        assert_eq!(file(&spec, "node0.offload"), "eth0 tso gso gro tx\n");
    }

    #[test]
    fn three_racks_meet_in_a_core_switch() {
        let spec = profile("two-racks", &[("cluster.racks".into(), "3".into())]).unwrap();
        let links = file(&spec, "switch.ip");
        assert!(links.contains("link set d0r2 master core0 up"), "{links}");
        assert_eq!(
            file(&spec, "switch.tc")
                .matches("tbf rate 150000000bit")
                .count(),
            6
        );
    }

    #[test]
    fn texts_of_the_lab_file_appear_only_in_its_copy() {
        let mut spec = profile("cable", &[]).unwrap();
        spec.name = "found-me".into();
        spec.title = "x\nEND\nid > /tmp/found-me\ncat > /dev/null <<'END'\n".into();
        let holding: Vec<String> = files(&spec)
            .into_iter()
            .filter(|(_, text)| text.contains("found-me"))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(holding, ["cable.toml"]);
    }
}
