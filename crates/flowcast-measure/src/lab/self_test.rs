//! Self-test of a lab: its rates are compared with the lab file. On each rail, first one flow runs alone, then every node
//! sends to the next. Link emulators are tested with numbered frames.
//!
//! A machine that is too slow or too busy for the rates delivers less, and measurements in the lab are then meaningless.
//!
//! The self-test checks the machine, not the lab's congestion control. Its flows have fixed windows that fit into the
//! shortest queue, so no loss slows them down, and they fill these windows immediately (reno). With cubic, a flow of a ring
//! leaves slow start when the queues of its neighbours delay its acknowledgements, and stays below its share for seconds. If
//! the queues are so short that such windows do not keep a ring busy, the packet model gives a lower expected rate.

use std::time::Duration;

use flowcast_network::{
    cluster::{flow as pattern, racks::Racks},
    sharing::{flow_cuts::Strictness, model::Model},
};
use flowcast_traffic::flows::concurrent::{Method, predict_ends};
use flowcast_units::{Bytes, Node, Rate, Time};

use crate::lab::{
    as_network::{IN_FLIGHT, windows_alone},
    cable::{CableCheck, CableChecker, Lateness},
    error::LabError,
    flows::{ByteFlow, FlowWatch, steady_goodput},
    nominal,
    running::Lab,
    spec::{Duplex, LabSpec},
};

/// Largest relative difference between a goodput and the goodput that the wire rates allow.
pub const TOLERANCE: f64 = 0.02;

/// Number of single frames for measuring the lateness of a link emulator.
const SINGLE_FRAMES: u32 = 200;

/// Share of the shortest queue that is available for payload in flight.
const HELD: f64 = 0.8;
/// Smallest buffer of a socket that the system allows.
const LEAST_BUFFER: u64 = 4 << 10;
/// Minimum size of the transfers with which the packet model predicts the expected rate, in bytes.
const LONG: u64 = 4_000_000;

/// Number of attempts. A busy moment passes, while a slow machine fails every attempt.
const ATTEMPTS: usize = 5;

/// Result of one check: measured goodput and the goodput that the wire rates allow.
#[derive(Debug, Clone, PartialEq)]
pub struct WireCheck {
    /// Description of the check for users.
    pub what: String,
    /// Goodput of the flow with the largest difference from the expected goodput, or the mean goodput if directions share a
    /// bus.
    pub found: Rate,
    /// Goodput that the wire rates allow.
    pub expected: Rate,
    /// Lateness of a link emulator's deliveries relative to virtual time.
    pub lateness: Option<Lateness>,
}

impl WireCheck {
    /// Returns the relative error of the goodput.
    pub fn error(&self) -> f64 {
        distance(self.found, self.expected)
    }
}

/// Runs all checks.
///
/// # Errors
/// Returns [`LabError::Busy`] if the error of a check exceeds `tolerance` five times in a row.
pub fn self_test(lab: &Lab, tolerance: f64) -> Result<Vec<WireCheck>, LabError> {
    if lab.spec().cluster.nodes < 2 {
        return Ok(Vec::new());
    }
    if lab.spec().cable.is_some() {
        return cables(lab, tolerance);
    }
    let mut checks = Vec::new();
    for rail in 0..lab.spec().nic.bandwidth.0.len() {
        let one = [ByteFlow {
            from: Node(0),
            to: Node(1),
            rail,
        }];
        let what = format!("one flow on rail {rail}");
        checks.push(passed(
            lab,
            &one,
            what,
            nominal::one_flow(lab.spec(), rail),
            tolerance,
        )?);
        let nodes = lab.spec().cluster.nodes;
        let ring: Vec<ByteFlow> = lab
            .spec()
            .nodes()
            .map(|from| ByteFlow {
                from,
                to: Node((from.0 + 1) % nodes),
                rail,
            })
            .collect();
        let what = format!("a ring of {nodes} nodes on rail {rail}");
        let expected =
            nominal::ring(lab.spec(), rail).as_bytes_per_second() * ring_share(lab.spec(), rail)?;
        checks.push(passed(
            lab,
            &ring,
            what,
            Rate::from_bytes_per_second(expected),
            tolerance,
        )?);
    }
    Ok(checks)
}

fn cables(lab: &Lab, tolerance: f64) -> Result<Vec<WireCheck>, LabError> {
    let mut checker = CableChecker::new(lab);
    let mut checks = checker.check(SINGLE_FRAMES)?;
    for _ in 1..ATTEMPTS {
        if checks.iter().all(|check| check.passes(tolerance)) {
            break;
        }
        checks = checker.check(SINGLE_FRAMES)?;
    }
    checks
        .into_iter()
        .map(|check| carried(check, tolerance))
        .collect()
}

fn carried(check: CableCheck, tolerance: f64) -> Result<WireCheck, LabError> {
    let what = format!("the cable on rail {} from node {}", check.rail, check.from);
    let (found, expected) = (check.rate, check.nominal);
    if check.rate_error().abs() > tolerance {
        return Err(LabError::Busy {
            what,
            found,
            expected,
        });
    }
    if !check.passes(tolerance) {
        return Err(LabError::FramesLost {
            what,
            astray: check.unexplained,
            sent: check.sent,
        });
    }
    Ok(WireCheck {
        what,
        found,
        expected,
        lateness: check.lateness,
    })
}

fn passed(
    lab: &Lab,
    flows: &[ByteFlow],
    what: String,
    expected: Rate,
    tolerance: f64,
) -> Result<WireCheck, LabError> {
    let watch = watch(lab, expected);
    let mut found = Rate::default();
    for _ in 0..ATTEMPTS {
        found = representative(lab, &steady_goodput(lab, flows, &watch)?, expected);
        if distance(found, expected) <= tolerance {
            return Ok(WireCheck {
                what,
                found,
                expected,
                lateness: None,
            });
        }
    }
    Err(LabError::Busy {
        what,
        found,
        expected,
    })
}

/// Returns the rate with the largest error. If directions share a bus, returns the mean, because every split of the bus
/// between two neighbours of the ring fills all buses.
fn representative(lab: &Lab, rates: &[Rate], expected: Rate) -> Rate {
    if lab.spec().nic.duplex == Duplex::Full {
        return rates
            .iter()
            .max_by(|a, b| distance(**a, expected).total_cmp(&distance(**b, expected)))
            .copied()
            .unwrap_or_default();
    }
    let sum: f64 = rates.iter().map(|rate| rate.as_bytes_per_second()).sum();
    Rate::from_bytes_per_second(sum / rates.len().max(1) as f64)
}

/// Returns the observation of flows with fixed buffers, for any window of the lab. It counts bytes during the time of about
/// 1,000 full segments, but at least 0.6 s and at most 5 s.
fn watch(lab: &Lab, expected: Rate) -> FlowWatch {
    let thousand = expected.time_for(Bytes(1_500_000)).as_seconds();
    let count = Duration::from_secs_f64(thousand.clamp(0.6, 5.0));
    FlowWatch {
        settle: Duration::from_millis(300),
        count,
        buffer: Some(buffer(lab.spec())),
    }
}

/// Returns the buffer of the test's flows. It is large enough to fill the wire and small enough to drain the queues
/// immediately. The shortest queue can hold the bytes in flight with their headers and the acknowledgements of another flow.
fn buffer(spec: &LabSpec) -> Bytes {
    let queues = &spec.queues;
    let backbone = if spec.cluster.racks > 1 {
        queues.backbone
    } else {
        queues.port
    };
    let shortest = queues.host.min(queues.port).min(backbone);
    let held = (shortest.0 as f64 * HELD / IN_FLIGHT) as u64;
    Bytes(ample(spec).0.min(held).max(LEAST_BUFFER))
}

fn ample(spec: &LabSpec) -> Bytes {
    // With only two nodes, data and acknowledgements wait for each other in lockstep, and short windows leave both
    // directions idle in turn.
    Bytes(if spec.cluster.nodes == 2 {
        1 << 20
    } else {
        128 << 10
    })
}

/// Returns the goodput of a ring with the test's windows, as a share of the goodput with ample windows, by the packet model.
/// All nodes of a ring are alike, so four nodes represent any larger number.
fn ring_share(spec: &LabSpec, rail: usize) -> Result<f64, LabError> {
    let (own, ample) = (buffer(spec), ample(spec));
    if own == ample {
        return Ok(1.0);
    }
    let nodes = spec.cluster.nodes.min(4);
    let [ample, own] = [ample, own].map(|buffer| -> Result<f64, LabError> {
        let network = windows_alone(spec.wire_rate(rail), buffer);
        let flows: Vec<pattern::Flow> = (0..nodes)
            .map(|id: u32| pattern::Flow {
                id,
                src: Node(id),
                dst: Node((id + 1) % nodes),
                size: Bytes(LONG.max(10 * buffer.0)),
                start: Time::ZERO,
            })
            .collect();
        let method = Method {
            model: Model::Packet,
            strictness: Strictness::Extended,
        };
        let predicted = predict_ends(&flows, &Racks::default(), &network, method)?;
        Ok(predicted.makespan().as_seconds() / flows[0].size.0 as f64)
    });
    Ok((ample? / own?).min(1.0))
}

fn distance(found: Rate, expected: Rate) -> f64 {
    (found.as_bytes_per_second() / expected.as_bytes_per_second() - 1.0).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::profiles::profile;

    fn short_queues(port: &str, nodes: &str) -> LabSpec {
        let fields = [
            ("cluster.nodes", nodes),
            ("nic.bandwidth", "20Mbit/s"),
            ("queues.port", port),
        ];
        profile(
            "asymmetric",
            &fields.map(|(key, value)| (key.to_owned(), value.to_owned())),
        )
        .unwrap()
    }

    #[test]
    fn windows_of_the_test_fit_the_shortest_queue_and_are_otherwise_ample() {
        assert_eq!(
            buffer(&profile("asymmetric", &[]).unwrap()),
            Bytes(128 << 10)
        );
        assert_eq!(buffer(&profile("fair", &[]).unwrap()), Bytes(128 << 10));
        assert_eq!(buffer(&profile("rails", &[]).unwrap()), Bytes(1 << 20));
        assert_eq!(buffer(&short_queues("100kB", "31")), Bytes(64_000));
        assert_eq!(buffer(&short_queues("4kB", "31")), Bytes(4096));
    }

    #[test]
    fn a_ring_is_expected_to_lose_only_what_short_windows_cannot_fill() {
        assert_eq!(ring_share(&short_queues("3MB", "31"), 0).unwrap(), 1.0);
        let share = |port| ring_share(&short_queues(port, "31"), 0).unwrap();
        assert!(
            (0.995..=1.0).contains(&share("100kB")),
            "{}",
            share("100kB")
        );
        assert!((0.85..0.97).contains(&share("20kB")), "{}", share("20kB"));
        assert!((0.6..0.9).contains(&share("6kB")), "{}", share("6kB"));
        assert!(ring_share(&short_queues("20kB", "2"), 0).unwrap() <= 1.0);
    }
}
