//! The shell script that builds a lab, made from the lab file alone.
//!
//! It runs as the first process of a process namespace whose network namespace is the switch: one bridge for each rail
//! and rack, and one for the control network. Each node is a network and a host name namespace, held by bind mounts in
//! a file system that only the lab sees. When the script ends, the kernel ends everything in the lab.

mod node;
mod shaping;

pub(crate) use shaping::burst;

use std::fmt::Write;
use std::path::Path;

use flowcast_units::Node;

use crate::launch;
use crate::names;
use crate::spec::LabSpec;

/// How long a lab stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// Until the standard input of the script ends, which is when its owner ends, in whatever way.
    WithOwner,
    /// Until somebody ends it.
    UntilDown,
}

/// What the script prints when the lab is complete.
pub(crate) const READY: &str = "ready";

/// The script for a lab whose folder is `folder`. The program `carrier` runs the link emulators, if there are any.
pub(crate) fn script(spec: &LabSpec, folder: &str, stay: Stay, carrier: Option<&Path>) -> String {
    let mut text = format!("set -eu\nFOLDER={}\nNS=\"$FOLDER/ns\"\n", quoted(folder));
    text.push_str(SURROUNDINGS);
    text.push_str(&launch::files(spec));
    for node in spec.nodes() {
        let name = names::host(node);
        let _ = writeln!(text, "touch \"$NS/{name}.net\" \"$NS/{name}.uts\" \"$NS/{name}.ipc\"");
        let _ = writeln!(
            text,
            "unshare --net=\"$NS/{name}.net\" --uts=\"$NS/{name}.uts\" --ipc=\"$NS/{name}.ipc\" hostname {name}"
        );
        let _ = writeln!(text, "in_node {name} sh -c 'echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true'");
    }
    let _ = write!(text, "ip -batch - <<END\n{}END\n", switch_links(spec));
    let _ = write!(text, "tc -batch - <<END\n{}END\n", shaping::switch(spec));
    for port in shaped_ports(spec) {
        let _ = writeln!(text, "no_offload {port}");
    }
    for node in spec.nodes() {
        text.push_str(&node::script(spec, node));
    }
    if let Some(carrier) = carrier {
        text.push_str(&start_of_cables(spec, &carrier.display().to_string()));
    }
    text.push_str(match stay {
        Stay::WithOwner => WITH_OWNER,
        Stay::UntilDown => UNTIL_DOWN,
    });
    text
}

/// Private places for what programs leave behind: nothing of it outlives the lab, and two labs do not clash.
const SURROUNDINGS: &str = r#"
mount -t tmpfs lab "$NS"
mount -t tmpfs lab /dev/shm || true
mount -t proc proc /proc || true
mkdir "$NS/tmp"
in_node() { entered="$NS/$1.net"; shift; nsenter --net="$entered" "$@"; }
no_offload() { ethtool -K "$1" tso off gso off gro off > /dev/null 2>&1; }
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true
ip link set lo up
"#;

const WITH_OWNER: &str = r#"
echo ready
exec > /dev/null 2>&1
cat > /dev/null
umount -l "$NS"
rm -rf "$FOLDER"
"#;

const UNTIL_DOWN: &str = r#"
echo ready
exec < /dev/null > /dev/null 2>&1
sleep infinity &
wait
"#;

/// The process that carries frames says so when it hears them; if it ends before, nothing is read and the script fails.
fn start_of_cables(spec: &LabSpec, carrier: &str) -> String {
    format!(
        "cat > \"$NS/cable.toml\" <<'END'\n{}END\nmkfifo \"$NS/cable.ready\"\n\
         {} lab serve-cables \"$NS/cable.toml\" > \"$NS/cable.ready\" &\nread -r heard < \"$NS/cable.ready\"\n",
        spec.to_toml(),
        quoted(carrier)
    )
}

/// `ip` commands for bridges, cables and trunks. Interfaces start with the MTU of the lab.
fn switch_links(spec: &LabSpec) -> String {
    let mtu = spec.nic.mtu.0;
    let mut text = "link add ctl type bridge stp_state 0 mcast_snooping 0\nlink set ctl up\n".to_owned();
    for rail in rails(spec) {
        for rack in 0..if spec.cable.is_some() { 0 } else { spec.cluster.racks } {
            let bridge = names::bridge(rail, rack);
            let _ = writeln!(text, "link add {bridge} type bridge stp_state 0 mcast_snooping 0");
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
    let mut cable = |port: String, interface: &str, hardware: String, bridge: Option<String>, mtu: u64| {
        let _ = writeln!(
            text,
            "link add {port} mtu {mtu} type veth peer name {interface} mtu {mtu} address {hardware} netns $NS/{host}.net"
        );
        let master = bridge.map_or(String::new(), |bridge| format!("master {bridge} "));
        let _ = writeln!(text, "link set {port} {master}up");
    };
    for rail in rails(spec) {
        let bridge = spec.cable.is_none().then(|| names::bridge(rail, spec.rack_of(node)));
        cable(names::port(rail, node), &names::interface(rail), names::hardware_address(rail, node), bridge, mtu);
    }
    let hardware = names::control_hardware_address(node);
    cable(names::control_port(node), names::CONTROL, hardware, Some("ctl".into()), 1500);
    text
}

/// Two racks are joined by one cable, more by a switch of switches.
fn trunks(spec: &LabSpec, rail: usize) -> String {
    let (mtu, racks) = (spec.nic.mtu.0, spec.cluster.racks);
    let mut text = String::new();
    if racks == 2 {
        let (one, other) = (uplink(rail, 0), uplink(rail, 1));
        let _ = writeln!(text, "link add {one} mtu {mtu} type veth peer name {other} mtu {mtu}");
        for rack in 0..2 {
            let _ = writeln!(text, "link set {} master {} up", uplink(rail, rack), names::bridge(rail, rack));
        }
    } else if racks > 2 {
        let _ = writeln!(text, "link add core{rail} type bridge stp_state 0 mcast_snooping 0");
        let _ = writeln!(text, "link set core{rail} mtu {mtu} up");
        for rack in 0..racks {
            let (up, down) = (uplink(rail, rack), downlink(rail, rack));
            let _ = writeln!(text, "link add {up} mtu {mtu} type veth peer name {down} mtu {mtu}");
            let _ = writeln!(text, "link set {up} master {} up", names::bridge(rail, rack));
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

/// The ports of trunks of a rail.
fn trunk_ports(spec: &LabSpec, rail: usize) -> Vec<String> {
    match spec.cluster.racks {
        1 => Vec::new(),
        2 => vec![uplink(rail, 0), uplink(rail, 1)],
        racks => (0..racks).flat_map(|rack| [uplink(rail, rack), downlink(rail, rack)]).collect(),
    }
}

fn shaped_ports(spec: &LabSpec) -> Vec<String> {
    let of_rail = |rail| {
        let ports = spec.nodes().map(move |node| names::port(rail, node));
        ports.chain(trunk_ports(spec, rail))
    };
    rails(spec).flat_map(of_rail).collect()
}

fn rails(spec: &LabSpec) -> std::ops::Range<usize> {
    0..spec.nic.bandwidth.0.len()
}

/// As one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::profile;

    fn two_racks() -> String {
        script(&profile("two-racks", &[]).unwrap(), "/run/it's", Stay::WithOwner, None)
    }

    #[test]
    fn the_folder_is_quoted_and_the_end_follows_the_owner() {
        assert!(two_racks().starts_with("set -eu\nFOLDER='/run/it'\\''s'\n"));
        assert!(two_racks().contains("cat > /dev/null\n") && !two_racks().contains("sleep"));
    }

    #[test]
    fn both_ends_of_each_cable_are_shaped_and_so_is_the_backbone() {
        let text = two_racks();
        // 8 nodes at 50 Mbit/s with both ends, and two ends of the backbone.
        assert_eq!(text.matches("tbf rate 50000000bit").count(), 16);
        assert_eq!(text.matches("tbf rate 150000000bit").count(), 2);
        assert!(
            text.contains(
                "qdisc add dev u0r1 root handle 1: tbf rate 150000000bit burst 4687 limit 3000000 overhead 24"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_cable_replaces_bridge_and_shaping() {
        let text = script(&profile("cable", &[]).unwrap(), "/x", Stay::WithOwner, Some(Path::new("/bin/flowcast")));
        assert!(text.contains("'/bin/flowcast' lab serve-cables") && text.contains("link set p0n1 up\n"), "{text}");
        assert!(!text.contains("tbf") && !text.contains("b0r0"), "{text}");
        assert!(text.contains("ethtool -K eth0 tx off"), "{text}");
    }

    #[test]
    fn three_racks_meet_in_a_core_switch() {
        let spec = profile("two-racks", &[("cluster.racks".into(), "3".into())]).unwrap();
        let text = script(&spec, "/x", Stay::UntilDown, None);
        assert!(text.contains("link set d0r2 master core0 up"), "{text}");
        assert_eq!(text.matches("tbf rate 150000000bit").count(), 6);
    }
}
