//! Whether a lab delivers what its file says: on each rail one flow alone, then every node sending to the next; through
//! a cable numbered frames.
//!
//! A machine that is too slow or too busy for the rates falls behind; then no measurement in the lab means anything.

use std::time::Duration;

use flowcast::units::{Bytes, Node, Rate};

use crate::cable::{CableCheck, CableChecker, Lateness};
use crate::error::LabError;
use crate::flows::{Flow, Watch, steady_goodput};
use crate::lab::Lab;
use crate::nominal;
use crate::spec::Duplex;

/// How far a goodput may be from what the wire rates allow.
pub const TOLERANCE: f64 = 0.02;

/// Frames on their own that tell how late a cable is.
const SINGLE_FRAMES: u32 = 200;

/// A busy moment passes; a machine that is too slow is so each time.
const ATTEMPTS: usize = 5;

/// One check: what came through, and what the wire rates allow.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What was run.
    pub what: String,
    /// Goodput of the flow that is farthest from what was expected; the mean where directions share a bus.
    pub found: Rate,
    /// What the wire rates allow.
    pub expected: Rate,
    /// How much later than in virtual time a cable delivers.
    pub lateness: Option<Lateness>,
}

impl Check {
    /// How far it is off, as a share of what was expected.
    pub fn error(&self) -> f64 {
        distance(self.found, self.expected)
    }
}

/// Runs all checks.
///
/// # Errors
/// [`LabError::Busy`] when one is off by more than `tolerance` five times in a row.
pub fn self_test(lab: &Lab, tolerance: f64) -> Result<Vec<Check>, LabError> {
    if lab.spec().cluster.nodes < 2 {
        return Ok(Vec::new());
    }
    if lab.spec().cable.is_some() {
        return cables(lab, tolerance);
    }
    let mut checks = Vec::new();
    for rail in 0..lab.spec().nic.bandwidth.0.len() {
        let one = [Flow { from: Node(0), to: Node(1), rail }];
        let what = format!("one flow on rail {rail}");
        checks.push(passed(lab, &one, what, nominal::one_flow(lab.spec(), rail), tolerance)?);
        let nodes = lab.spec().cluster.nodes;
        let ring: Vec<Flow> =
            lab.spec().nodes().map(|from| Flow { from, to: Node((from.0 + 1) % nodes), rail }).collect();
        let what = format!("a ring of {nodes} nodes on rail {rail}");
        checks.push(passed(lab, &ring, what, nominal::ring(lab.spec(), rail), tolerance)?);
    }
    Ok(checks)
}

fn cables(lab: &Lab, tolerance: f64) -> Result<Vec<Check>, LabError> {
    let mut checker = CableChecker::new(lab);
    let mut checks = checker.check(SINGLE_FRAMES)?;
    for _ in 1..ATTEMPTS {
        if checks.iter().all(|check| check.passes(tolerance)) {
            break;
        }
        checks = checker.check(SINGLE_FRAMES)?;
    }
    checks.into_iter().map(|check| carried(check, tolerance)).collect()
}

fn carried(check: CableCheck, tolerance: f64) -> Result<Check, LabError> {
    let what = format!("the cable of rail {} from node {}", check.rail, check.from);
    let (found, expected) = (check.rate, check.nominal);
    if check.rate_error().abs() > tolerance {
        return Err(LabError::Busy { what, found, expected });
    }
    if !check.passes(tolerance) {
        return Err(LabError::FramesLost { what, astray: check.unexplained, sent: check.sent });
    }
    Ok(Check { what, found, expected, lateness: check.lateness })
}

fn passed(lab: &Lab, flows: &[Flow], what: String, expected: Rate, tolerance: f64) -> Result<Check, LabError> {
    let watch = watch(lab, expected);
    let mut found = Rate::default();
    for _ in 0..ATTEMPTS {
        found = representative(lab, &steady_goodput(lab, flows, &watch)?, expected);
        if distance(found, expected) <= tolerance {
            return Ok(Check { what, found, expected, lateness: None });
        }
    }
    Err(LabError::Busy { what, found, expected })
}

/// The rate that is farthest off; their mean where directions share a bus, because then any split of it between two
/// neighbours of the ring fills all buses.
fn representative(lab: &Lab, rates: &[Rate], expected: Rate) -> Rate {
    let farthest = |a: &&Rate, b: &&Rate| distance(**a, expected).total_cmp(&distance(**b, expected));
    if lab.spec().nic.duplex == Duplex::Full {
        return rates.iter().max_by(farthest).copied().unwrap_or_default();
    }
    let sum: f64 = rates.iter().map(|rate| rate.as_bytes_per_second()).sum();
    Rate::from_bytes_per_second(sum / rates.len().max(1) as f64)
}

/// Fixed buffers, whatever the lab's window: long enough for the wire, short enough to leave the queues at once. The
/// time is that of 1,000 full segments or more.
fn watch(lab: &Lab, expected: Rate) -> Watch {
    // Between two nodes alone, data and acknowledgements wait for each other in step, and short windows leave both
    // directions idle in turn.
    let buffer = if lab.spec().cluster.nodes == 2 { 1 << 20 } else { 128 << 10 };
    let thousand = expected.time_for(Bytes(1_500_000)).as_seconds();
    let count = Duration::from_secs_f64(thousand.clamp(0.6, 5.0));
    Watch { settle: Duration::from_millis(300), count, buffer: Some(Bytes(buffer)) }
}

fn distance(found: Rate, expected: Rate) -> f64 {
    (found.as_bytes_per_second() / expected.as_bytes_per_second() - 1.0).abs()
}
