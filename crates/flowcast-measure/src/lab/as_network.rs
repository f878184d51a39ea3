//! Network file of a lab, derived from its rates and windows without measurements.

use flowcast_network::{
    machine::Machine,
    network::{self, Bus, LinkRate, MessageRule, Network, Nic, Progress},
    sharing::{
        FlowCutParameters, LoopParameters, PacketParameters,
        model::Model,
        protocol::{Congestion, SEGMENT},
    },
};
use flowcast_units::{Bytes, Node, Rate, Time};

use crate::lab::{
    nominal,
    script::burst,
    spec::{CongestionControl, Duplex, LabSpec, Window},
};

/// Bytes in flight for each byte of a fixed window. The system doubles the buffer that a program requests and subtracts its
/// own needs: receivers offer 40,448 bytes for 32 KiB and 164,864 for 128 KiB.
pub(crate) const IN_FLIGHT: f64 = 1.25;

/// Smallest message for which Open MPI 4.1 uses rendezvous over TCP. Its limit `btl_tcp_eager_limit`, 64 KiB, includes the
/// largest of its headers, 56 bytes.
const RENDEZVOUS_FROM: Bytes = Bytes((64 << 10) - 56 + 1);

/// Bytes of the system's buffer for each byte that a program requests.
pub(crate) const SYSTEM_BUFFER: u64 = 2;

/// Variation between repetitions of the same flow alone in a lab: the pooled standard deviation of the logarithm over 56
/// repetitions in eight measurements of conflicts, on a virtual machine with two cores. `docs/explanation/packet.md` has
/// more.
const NOISE: f64 = 0.015;

/// Returns the first rail of a lab as a network, with goodput and wire rates.
///
/// Fixed windows give the closed loop's theoretical parameters, alpha = kappa = 1; windows that the system tunes share
/// fairly. The flow cuts are those of RR-5910 for Gigabit Ethernet under LAM, because they do not follow from the lab. The
/// bus is a property of the nodes. The order of access to it is not modelled.
pub fn network_of(spec: &LabSpec) -> Network {
    let wire = spec.wire_rate(0);
    let share = nominal::one_flow(spec, 0).as_bytes_per_second() / wire.as_bytes_per_second();
    let goodput = |wire: Rate| Rate::from_bytes_per_second(wire.as_bytes_per_second() * share);
    let latency = spec
        .direction(0, Node(0))
        .map_or(spec.nic.delay * (2.0 * spec.slow_motion), |direction| {
            direction.delay
        });
    let rate = LinkRate::Both {
        goodput: goodput(wire).into(),
        wire,
    };
    let duplex = if spec.nic.duplex == Duplex::Half {
        network::Duplex::Half
    } else {
        network::Duplex::Full
    };
    let backbone = spec.backbone_rate().filter(|_| spec.cluster.racks > 1);
    let mut network = Network {
        title: format!("The lab {}", spec.name),
        source: "the lab file; flow cuts: RR-5910 table 2, Gigabit Ethernet, LAM".to_owned(),
        backbone: backbone.map(|wire| LinkRate::Both {
            goodput: goodput(wire),
            wire,
        }),
        bus: spec.bus_rate().map(|wire| Bus {
            nodes: Some(1),
            rate: LinkRate::Both {
                goodput: goodput(wire),
                wire,
            },
        }),
        ..Network::new(
            &spec.name,
            MessageRule::Hockney,
            Nic {
                rate,
                duplex,
                ..Nic::new(latency, wire)
            },
        )
    };
    network.point_to_point.rendezvous_from = Some(RENDEZVOUS_FROM);
    network.point_to_point.progress = Progress::InCalls;
    network.machine = machine(spec.cluster.nodes, spec.cluster.racks);
    let [odd_end, odd_inner, io_out, include, start_end] = [0.5, 2.0, 3.0, 0.5, 0.0].map(Some);
    network.sharing.flow_cuts = FlowCutParameters {
        odd_end,
        odd_inner,
        io_out,
        include,
        start_end,
    };
    network.sharing.packet = transport(spec);
    network.sharing.model = Some(Model::Fair);
    if let Window::Fixed(window) = spec.tcp.window {
        let transient = loses_nothing(spec, in_flight(window)).then_some(true);
        network.sharing.closed_loop = LoopParameters {
            alpha: Some(1.0),
            kappa: Some(1.0),
            transient,
        };
        network.sharing.model = Some(Model::ClosedLoop);
    }
    network
}

/// Returns the machine with a lab's nodes, all of which take turns on the processors of this machine.
pub(crate) fn machine(nodes: u32, racks: u32) -> Machine {
    let processors =
        std::thread::available_parallelism().map_or(0, |processors| processors.get() as u32);
    let nodes_per_rack = if racks > 1 && nodes.is_multiple_of(racks) {
        nodes / racks
    } else {
        0
    };
    Machine {
        processors,
        nodes_per_rack,
        ..Machine::default()
    }
}

/// Returns a lossless switch between senders with these fixed buffers and without slow start, for the packet level.
pub(crate) fn windows_alone(wire: Rate, buffer: Bytes) -> Network {
    let nic = Nic {
        rate: LinkRate::Wire(wire),
        ..Nic::new(Time::ZERO, wire)
    };
    let mut network = Network::new("windows", MessageRule::Hockney, nic);
    let window = Some(in_flight(buffer));
    network.sharing.packet = PacketParameters {
        window,
        first_window: window,
        ..PacketParameters::default()
    };
    network
}

/// Returns the parameters of the packet level. Connections persist between repetitions. With a fixed window, they keep their
/// whole window; with automatic windows, they keep the state that earlier repetitions left, two of which are warm-ups.
fn transport(spec: &LabSpec) -> PacketParameters {
    let payload = spec.nic.mtu.0 - nominal::PACKET_HEADERS;
    let idle = spec.tcp.slow_start_after_idle;
    let all = PacketParameters {
        segment: (payload != SEGMENT).then_some(Bytes(payload)),
        burst: spec
            .cable
            .is_none()
            .then(|| Bytes(burst(spec, spec.wire_rate(0)))),
        shortest_timeout: spec.shortest_timeout(),
        noise: Some(NOISE),
        ..PacketParameters::default()
    };
    let fixed = |window: Bytes| PacketParameters {
        window: Some(in_flight(window)),
        send_buffer: Some(Bytes(SYSTEM_BUFFER * window.0)),
        ..all
    };
    let losing = |all: PacketParameters| PacketParameters {
        congestion: Some(match spec.tcp.congestion_control {
            CongestionControl::Reno => Congestion::Reno,
            CongestionControl::Cubic => Congestion::Cubic,
            CongestionControl::Bbr => Congestion::Bbr,
        }),
        queue: Some(spec.queues.port),
        idle_restart: Some(idle),
        warm_ups: Some(2),
        ..all
    };
    match spec.tcp.window {
        Window::Fixed(window) if !loses_nothing(spec, in_flight(window)) => losing(fixed(window)),
        Window::Fixed(window) if idle => fixed(window),
        Window::Fixed(window) => PacketParameters {
            first_window: Some(in_flight(window)),
            idle_restart: Some(false),
            ..fixed(window)
        },
        Window::Automatic => losing(all),
    }
}

fn in_flight(window: Bytes) -> Bytes {
    Bytes((window.0 as f64 * IN_FLIGHT).round() as u64)
}

/// Returns `true` if the windows of the flows from all other nodes fit into the queue of one port.
fn loses_nothing(spec: &LabSpec, in_flight: Bytes) -> bool {
    u64::from(spec.cluster.nodes.saturating_sub(1)) * in_flight.0 <= spec.queues.port.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::profiles::{PROFILES, profile};
    use flowcast_network::sharing::protocol::Protocol;

    #[test]
    fn a_network_has_goodput_and_wire_rates_and_its_window_is_the_bytes_in_flight() {
        let small = [("tcp.window".to_owned(), "32KiB".to_owned())];
        let network = network_of(&profile("two-racks", &small).unwrap());
        let packet = network.sharing.packet;
        let megabits = |rate: Rate| rate.as_bytes_per_second() * 8e-6;
        assert!((megabits(network.nic.rate()) - 47.07).abs() < 0.01);
        assert!((megabits(network.backbone.unwrap().goodput()) - 141.2).abs() < 0.1);
        assert_eq!(
            (
                megabits(network.nic.rate.wire()),
                megabits(network.backbone.unwrap().wire())
            ),
            (50.0, 150.0)
        );
        assert_eq!(
            (packet.window, packet.first_window),
            (Some(Bytes(40_960)), Some(Bytes(40_960)))
        );
        let automatic = network_of(&profile("fair", &[]).unwrap()).sharing.packet;
        assert_eq!(
            (automatic.first_window, automatic.queue),
            (None, Some(Bytes(250_000)))
        );
        let full = [("tcp.window".to_owned(), "128KiB".to_owned())];
        let full = network_of(&profile("fair", &full).unwrap()).sharing.packet;
        assert_eq!(
            (full.window, full.queue),
            (Some(Bytes(163_840)), Some(Bytes(250_000)))
        );
        assert_eq!((full.first_window, packet.queue), (None, None));
        assert_eq!(
            (full.send_buffer, automatic.send_buffer),
            (Some(Bytes(262_144)), None)
        );
        assert_eq!(packet.segment, None);
        let short = profile("two-racks", &[("nic.mtu".to_owned(), "576B".to_owned())]).unwrap();
        assert_eq!(network_of(&short).sharing.packet.segment, Some(Bytes(524)));
        assert_eq!(network.sharing.model, Some(Model::ClosedLoop));
        let slowest = [("nic.bandwidth", "1Gbit/s"), ("slow_motion", "1000")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let slowest = network_of(&profile("fair", &slowest).unwrap());
        assert!(Protocol::new(&slowest.sharing.packet).is_ok());
    }

    #[test]
    fn rates_that_directions_share_in_the_lab_are_shared_in_the_network() {
        let set = |name, key: &str, value: &str| {
            profile(name, &[(key.to_owned(), value.to_owned())]).unwrap()
        };
        let half = network_of(&set("fair", "nic.duplex", "half"));
        assert_eq!((half.nic.duplex, half.bus), (network::Duplex::Half, None));
        assert!(
            half.to_toml().contains("duplex = \"half\""),
            "{}",
            half.to_toml()
        );
        // Acknowledgements share the port with the data.
        assert!((half.nic.rate().as_bytes_per_second() * 8e-6 - 50.0 * 0.9147).abs() < 0.01);
        let bus = network_of(&set("bus", "nic.bus_share", "1.5"));
        let rate = bus.bus.unwrap().rate;
        assert_eq!(
            (bus.nic.duplex, bus.bus.unwrap().nodes),
            (network::Duplex::Full, Some(1))
        );
        assert_eq!(rate.wire().as_bytes_per_second() * 8e-6, 75.0);
    }

    #[test]
    fn each_profile_has_a_network_that_reads_back() {
        for (name, _) in PROFILES {
            let network = network_of(&profile(name, &[]).unwrap());
            let read = Network::from_toml(&network.to_toml(), &[])
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(read.sharing, network.sharing, "{name}");
        }
    }
}
