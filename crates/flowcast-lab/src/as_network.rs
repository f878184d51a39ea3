//! The network file of a lab: what its rates and windows say, with nothing measured.
//!
//! Fluid models count goodput, the packet level counts frames; so there is a network for each.

use flowcast_model::network::{Network, NetworkError};
use flowcast_model::sharing::protocol::SEGMENT;
use flowcast_units::{Bytes, Node, Rate, Time};

use crate::nominal;
use crate::script::burst;
use crate::spec::{LabSpec, Window};

/// What rates mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Goodput of a flow alone.
    Goodput,
    /// Frames on the wire.
    Wire,
}

/// Bytes in flight for each byte of a fixed window. The system doubles the buffer that a program asks for and takes off
/// what it needs itself: receivers offer 40,448 bytes for 32 KiB and 164,864 for 128 KiB.
pub(crate) const IN_FLIGHT: f64 = 1.25;

/// Bytes of the system's buffer for each byte that a program asks for.
pub(crate) const SYSTEM_BUFFER: u64 = 2;

/// How much repetitions of the same flow alone differ in a lab: the pooled standard deviation of the logarithm over 56
/// repetitions in eight measurements of conflicts, on a virtual machine with two cores. `docs/packet.md` has more.
const NOISE: f64 = 0.015;

/// The first rail of a lab as a network.
///
/// With fixed windows the closed loop's parameters are those of the theory, alpha = kappa = 1; windows that the system
/// tunes share fairly. The flow cuts are those of RR-5910 for Gigabit Ethernet under LAM: they do not follow from the
/// lab.
///
/// # Errors
/// Never for a lab that was checked; a rate of 0 would be refused.
pub fn network_of(spec: &LabSpec, level: Level) -> Result<Network, NetworkError> {
    let scale = match level {
        Level::Goodput => nominal::one_flow(spec, 0).as_bytes_per_second() / spec.wire_rate(0).as_bytes_per_second(),
        Level::Wire => 1.0,
    };
    let scaled = |rate: Rate| Rate::from_bytes_per_second(rate.as_bytes_per_second() * scale).to_string();
    let what = if level == Level::Wire { "wire rates, for packet" } else { "goodput, for the fluid models" };
    let mut text = format!(
        "schema = \"flowcast/network/1\"\nname = \"{name}\"\ntitle = \"The lab {name}: {what}\"\n\
         source = \"the lab file; flow cuts: RR-5910 table 2, Gigabit Ethernet, LAM\"\n\
         [point_to_point]\nrule = \"hockney\"\n[nic]\nlatency = \"{}\"\nbandwidth = \"{}\"\n",
        spec.direction(0, Node(0)).map_or(Time::ZERO, |direction| direction.delay),
        scaled(spec.wire_rate(0)),
        name = spec.name,
    );
    if let Some(backbone) = spec.backbone.as_ref().filter(|_| spec.cluster.racks > 1) {
        text += &format!("[backbone]\nbandwidth = \"{}\"\n", scaled(backbone.bandwidth));
    }
    text += "[sharing]\nodd_end = 0.5\nodd_inner = 2.0\nio_out = 3.0\ninclude = 0.5\nstart_end = 0.0\n";
    let payload = spec.nic.mtu.0 - nominal::PACKET_HEADERS;
    let segment = if payload == SEGMENT { String::new() } else { format!("segment = \"{payload}B\"\n") };
    text += &match spec.tcp.window {
        Window::Fixed(window) => {
            let in_flight = in_flight(window);
            format!(
                "model = \"{}\"\nalpha = 1.0\nkappa = 1.0\n{segment}window = \"{}B\"\n{}",
                own_model(level, "closed-loop"),
                in_flight.0,
                if level == Level::Goodput && loses_nothing(spec, in_flight) { "transient = true\n" } else { "" },
            )
        }
        Window::Automatic => format!("model = \"{}\"\n{segment}", own_model(level, "fair")),
    };
    if level == Level::Wire {
        text += &transport(spec);
        text += &format!("noise = {NOISE:?}\n");
    }
    Network::from_toml(&text, &[])
}

/// A switch that loses nothing between senders with these fixed buffers, which need not start slowly: for the packet
/// level.
///
/// # Errors
/// A rate of 0.
pub(crate) fn windows_alone(wire: Rate, buffer: Bytes) -> Result<Network, NetworkError> {
    let in_flight = in_flight(buffer).0;
    let text = format!(
        "schema = \"flowcast/network/1\"\nname = \"windows\"\n[point_to_point]\nrule = \"hockney\"\n[nic]\nlatency = \"0us\"\n\
         bandwidth = \"{wire}\"\n[sharing]\nmodel = \"packet\"\nwindow = \"{in_flight}B\"\nfirst_window = \"{in_flight}B\"\n"
    );
    Network::from_toml(&text, &[])
}

/// What only the packet level reads. Connections stay between repetitions: those of a fixed window at their whole window,
/// those of automatic windows with what the repetitions before have left them, of which there are two that do not count.
fn transport(spec: &LabSpec) -> String {
    let idle = spec.tcp.slow_start_after_idle;
    let burst = match spec.cable {
        Some(_) => String::new(),
        None => format!("burst = \"{}B\"\n", burst(spec, spec.wire_rate(0))),
    };
    let buffer = match spec.tcp.window {
        Window::Fixed(window) => format!("send_buffer = \"{}B\"\n", SYSTEM_BUFFER * window.0),
        Window::Automatic => String::new(),
    };
    burst
        + &buffer
        + &match spec.tcp.window {
            Window::Fixed(window) if loses_nothing(spec, in_flight(window)) && idle => String::new(),
            Window::Fixed(window) if loses_nothing(spec, in_flight(window)) => {
                format!("first_window = \"{}B\"\nidle_restart = false\n", in_flight(window).0)
            }
            Window::Fixed(_) | Window::Automatic => {
                let (control, queue) = (spec.tcp.congestion_control, spec.queues.port.0);
                format!("congestion = \"{control}\"\nqueue = \"{queue}B\"\nidle_restart = {idle}\nwarm_ups = 2\n")
            }
        }
}

fn in_flight(window: Bytes) -> Bytes {
    Bytes((window.0 as f64 * IN_FLIGHT).round() as u64)
}

/// Whether the windows of the flows from all other nodes fit into the queue of one port.
fn loses_nothing(spec: &LabSpec, in_flight: Bytes) -> bool {
    u64::from(spec.cluster.nodes.saturating_sub(1)) * in_flight.0 <= spec.queues.port.0
}

fn own_model(level: Level, fluid: &'static str) -> &'static str {
    if level == Level::Wire { "packet" } else { fluid }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::{PROFILES, profile};

    #[test]
    fn goodput_and_wire_rates_are_told_apart_and_the_window_is_what_is_in_flight() {
        let small = [("tcp.window".to_owned(), "32KiB".to_owned())];
        let spec = profile("two-racks", &small).unwrap();
        let (goodput, wire) = (network_of(&spec, Level::Goodput).unwrap(), network_of(&spec, Level::Wire).unwrap());
        let megabits = |rate: Rate| rate.as_bytes_per_second() * 8e-6;
        assert!((megabits(goodput.nic.rate()) - 47.07).abs() < 0.01);
        assert!((megabits(goodput.backbone.unwrap().bandwidth) - 141.2).abs() < 0.1);
        assert_eq!(megabits(wire.nic.rate()), 50.0);
        assert_eq!(wire.sharing.window, Some(Bytes(40_960)));
        assert_eq!(wire.sharing.first_window, Some(Bytes(40_960)));
        let automatic = network_of(&profile("fair", &[]).unwrap(), Level::Wire).unwrap();
        assert_eq!((automatic.sharing.first_window, automatic.sharing.queue), (None, Some(Bytes(250_000))));
        let full = [("tcp.window".to_owned(), "128KiB".to_owned())];
        let full = network_of(&profile("fair", &full).unwrap(), Level::Wire).unwrap();
        assert_eq!((full.sharing.window, full.sharing.queue), (Some(Bytes(163_840)), Some(Bytes(250_000))));
        assert_eq!((full.sharing.first_window, wire.sharing.queue), (None, None));
        assert_eq!((full.sharing.send_buffer, automatic.sharing.send_buffer), (Some(Bytes(262_144)), None));
        assert_eq!(wire.sharing.segment, None);
        let short = profile("two-racks", &[("nic.mtu".to_owned(), "576B".to_owned())]).unwrap();
        assert_eq!(network_of(&short, Level::Wire).unwrap().sharing.segment, Some(Bytes(524)));
        assert_eq!(wire.sharing.model.as_deref(), Some("packet"));
        assert_eq!(goodput.sharing.model.as_deref(), Some("closed-loop"));
    }

    #[test]
    fn each_profile_has_networks() {
        for (name, _) in PROFILES {
            for level in [Level::Goodput, Level::Wire] {
                network_of(&profile(name, &[]).unwrap(), level).unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
    }
}
