//! Goodput that the wire rates allow.
//!
//! A full segment carries MTU - 52 bytes (IP 20, TCP 20 and its timestamps 12) and occupies MTU + 38 on the wire. Every
//! second segment is answered by an acknowledgement of 90 bytes. At an MTU of 1500, the goodput is 0.9415 of the wire rate
//! for a flow alone, and 0.915 if the data of one flow share a direction with the acknowledgements of another.

use flowcast_units::Rate;

use crate::lab::spec::{Duplex, LabSpec};

/// Bytes of Ethernet's preamble, check sequence and gap, which the shapers add to each frame.
pub const FRAME_OVERHEAD: u64 = 24;
/// Bytes of the headers of IP and TCP with timestamps, which are part of the MTU.
pub const PACKET_HEADERS: u64 = 52;
const HEADER: f64 = 14.0;
const ACKNOWLEDGEMENT: f64 = 90.0;

/// Returns the goodput of one flow alone on a rail.
pub fn one_flow(spec: &LabSpec, rail: usize) -> Rate {
    let share = shares(spec);
    let wire = rate(spec, rail);
    let own = if spec.nic.duplex == Duplex::Half {
        wire * share.with_acknowledgements
    } else {
        wire * share.alone
    };
    Rate::from_bytes_per_second(own.min(bus_limit(spec, share, 1.0)))
}

/// Returns the goodput of each flow if every node sends to the next, and the last to the first.
pub fn ring(spec: &LabSpec, rail: usize) -> Rate {
    let share = shares(spec);
    let own = rate(spec, rail) * share.with_acknowledgements;
    let own = if spec.nic.duplex == Duplex::Half {
        own / 2.0
    } else {
        own
    };
    // A ring crosses the border between two racks once in each direction, and its acknowledgements go the other way.
    let crossing = spec
        .backbone_rate()
        .filter(|_| spec.cluster.racks > 1)
        .map_or(f64::INFINITY, |backbone| {
            backbone.as_bytes_per_second() * share.with_acknowledgements
        });
    Rate::from_bytes_per_second(own.min(crossing).min(bus_limit(spec, share, 2.0)))
}

#[derive(Debug, Clone, Copy)]
struct NominalShares {
    alone: f64,
    with_acknowledgements: f64,
}

fn shares(spec: &LabSpec) -> NominalShares {
    let mtu = spec.nic.mtu.0 as f64;
    let (payload, frame) = (
        mtu - PACKET_HEADERS as f64,
        mtu + HEADER + FRAME_OVERHEAD as f64,
    );
    NominalShares {
        alone: payload / frame,
        with_acknowledgements: payload / (frame + ACKNOWLEDGEMENT / 2.0),
    }
}

/// Returns the share of the bus for one of `flows` concurrent flows, in bytes per second; infinite without a bus.
fn bus_limit(spec: &LabSpec, share: NominalShares, flows: f64) -> f64 {
    spec.bus_rate().map_or(f64::INFINITY, |bus| {
        bus.as_bytes_per_second() * share.with_acknowledgements / flows
    })
}

fn rate(spec: &LabSpec, rail: usize) -> f64 {
    spec.wire_rate(rail).as_bytes_per_second()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::profiles::profile;

    #[test]
    fn one_flow_and_a_ring_get_the_wire_rate_less_headers_and_shared_parts() {
        for (name, duplex, alone, share) in [
            ("fair", "full", 0.9415, 1.0),
            ("bus", "bus", 0.9415, 0.75),
            ("fair", "half", 0.9147, 0.5),
        ] {
            let spec = profile(name, &[("nic.duplex".into(), duplex.into())]).unwrap();
            let megabits = |rate: Rate| rate.as_bytes_per_second() * 8e-6;
            assert!((megabits(one_flow(&spec, 0)) - 50.0 * alone).abs() < 0.01);
            assert!((megabits(ring(&spec, 0)) - share * 50.0 * 0.9147).abs() < 0.01);
        }
    }
}
