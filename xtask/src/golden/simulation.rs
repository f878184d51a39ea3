//! The way from a trace to its makespan through the public library, the same for all kinds that replay.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use flowcast::model::collective::Collectives;
use flowcast::model::machine::{Machine, NodeGroup};
use flowcast::model::network::{Network, Nic, PointToPoint, Rule, SCHEMA};
use flowcast::model::sharing::Sharing;
use flowcast::model::sharing::model::Model;
use flowcast::replay::Engine;
use flowcast::replay::costs::Rendezvous;
use flowcast::replay::loggops::{self, Loggops};
use flowcast::replay::outcome::Outcome;
use flowcast::replay::placement::Placement;
use flowcast::trace::{self, ReadOptions, SharedBytes, Trace};
use flowcast::units::{Rate, Time};

use super::case::Mismatch;

/// Reads a trace and the files that it names beside it.
pub fn open(path: &Path) -> Result<Trace, Mismatch> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let read = |path: &Path| -> io::Result<SharedBytes> { Ok(Arc::new(fs::read(path)?)) };
    let bytes = read(path).map_err(|error| Mismatch::Malformed(format!("{}: {error}", path.display())))?;
    let mut part = |name: &str| read(&folder.join(name));
    trace::read(&path.display().to_string(), bytes, &mut part, ReadOptions::default()).map_err(Mismatch::refused)
}

/// Reads a trace that a case spells out.
pub fn parse(text: String) -> Result<Trace, Mismatch> {
    let mut no_part = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
    trace::read("case", Arc::new(text.into_bytes()), &mut no_part, ReadOptions::default()).map_err(Mismatch::refused)
}

/// Replays a program on a network.
pub fn replay(trace: &Trace, network: &Network) -> Result<Outcome, Mismatch> {
    let Trace::Program(program) = trace else {
        return Err(Mismatch::Malformed("found a schedule, expected a program".into()));
    };
    let placement = Placement::of_program(&network.machine, None, program).map_err(Mismatch::refused)?;
    let engine = Engine::new(program, network, placement, Rendezvous::of(network, None)).map_err(Mismatch::refused)?;
    engine.run().map_err(Mismatch::refused)
}

/// Replays a program whose messages share the links of the nodes fairly.
pub fn replay_fair(trace: &Trace, network: &Network) -> Result<Outcome, Mismatch> {
    let Trace::Program(program) = trace else {
        return Err(Mismatch::Malformed("found a schedule, expected a program".into()));
    };
    let placement = Placement::of_program(&network.machine, None, program).map_err(Mismatch::refused)?;
    let rendezvous = Rendezvous::of(network, None);
    let engine = Engine::sharing(program, network, placement, rendezvous, Model::Fair).map_err(Mismatch::refused)?;
    engine.run().map_err(Mismatch::refused)
}

/// Runs a schedule with LogGOPSim's rules.
pub fn run_schedule(trace: &Trace, parameters: Loggops) -> Result<Outcome, Mismatch> {
    let Trace::Schedule(schedule) = trace else {
        return Err(Mismatch::Malformed("found a program, expected a schedule".into()));
    };
    loggops::run(schedule, parameters).map_err(Mismatch::refused)
}

/// A network of one rule, one latency and one bandwidth, without limits.
pub fn network(rule: Rule, latency: Time, bandwidth: Rate) -> Network {
    let nic = Nic { latency, bandwidth: Some(bandwidth), gap_per_byte: None, overhead: Time::ZERO, gap: Time::ZERO };
    Network {
        schema: SCHEMA.into(),
        name: "case".into(),
        title: String::new(),
        source: String::new(),
        point_to_point: PointToPoint { rule, rendezvous_from: None },
        nic,
        backbone: None,
        topology: None,
        sharing: Sharing::default(),
        machine: Machine::default(),
        collectives: Collectives::default(),
        file_system: Default::default(),
        intervals: Default::default(),
        provenance: Default::default(),
    }
}

/// Equal nodes, as many as ranks, with these links.
pub fn machine(buses: u32, in_links: u32, out_links: u32) -> Machine {
    let group = NodeGroup { count: 0, in_links, out_links, ..NodeGroup::default() };
    Machine { buses, nodes: vec![group], ..Machine::default() }
}
