//! The way from a trace to its makespan through the public library, the same for all kinds that replay.

use std::{fs, io, path::Path, sync::Arc};

use flowcast::{
    Collectives, Contention, Options, PreparedSchedule,
    model::{
        machine::{Machine, NodeGroup},
        network::{MessageRule, Network, Nic},
        sharing::model::Model,
    },
    replay::{loggops::Loggops, observer::Unobserved, outcome::Outcome},
    trace::{ReadOptions, SharedBytes, Trace},
    units::{Rate, Time},
};

use super::case::Mismatch;

/// Reads a trace and the files that it names beside it.
pub(super) fn open(path: &Path) -> Result<Trace, Mismatch> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let read = |path: &Path| -> io::Result<SharedBytes> { Ok(Arc::new(fs::read(path)?)) };
    let bytes =
        read(path).map_err(|error| Mismatch::Malformed(format!("{}: {error}", path.display())))?;
    let mut part = |name: &str| read(&folder.join(name));
    flowcast::formats::read(
        &path.display().to_string(),
        bytes,
        &mut part,
        ReadOptions::default(),
    )
    .map_err(Mismatch::refused)
}

/// Reads a trace that a case spells out.
pub(super) fn parse(text: String) -> Result<Trace, Mismatch> {
    flowcast::read_text("case", text).map_err(Mismatch::refused)
}

/// Replays a program on a network.
pub(super) fn replay(trace: &Trace, network: &Network) -> Result<Outcome, Mismatch> {
    predict(trace, network, Contention::Limits)
}

/// Replays a program whose messages share the links of the nodes fairly.
pub(super) fn replay_fair(trace: &Trace, network: &Network) -> Result<Outcome, Mismatch> {
    predict(trace, network, Contention::Shared(Model::Fair))
}

/// Collectives take what the formula says, as in the tools that the values are of.
fn predict(trace: &Trace, network: &Network, contention: Contention) -> Result<Outcome, Mismatch> {
    if let Trace::Schedule(_) = trace {
        return Err(Mismatch::Malformed(
            "found a schedule, expected a program".into(),
        ));
    }
    let options = Options {
        contention,
        collectives: Collectives::Formula,
        ..Options::default()
    };
    flowcast::predict(trace, network, &options)
        .map(|prediction| prediction.outcome)
        .map_err(Mismatch::refused)
}

/// Runs a schedule with LogGOPSim's rules.
pub(super) fn run_schedule(trace: &Trace, parameters: Loggops) -> Result<Outcome, Mismatch> {
    let Trace::Schedule(schedule) = trace else {
        return Err(Mismatch::Malformed(
            "found a program, expected a schedule".into(),
        ));
    };
    let options = Options {
        loggops: Some(parameters),
        ..Options::default()
    };
    let prepared = PreparedSchedule::new(schedule, None, &options).map_err(Mismatch::refused)?;
    prepared.observe(&mut Unobserved).map_err(Mismatch::refused)
}

/// A network of one rule, one latency and one bandwidth, without limits.
pub(super) fn network(rule: MessageRule, latency: Time, bandwidth: Rate) -> Network {
    Network::new("case", rule, Nic::new(latency, bandwidth))
}

/// Equal nodes, as many as ranks, with these links.
pub(super) fn machine(buses: u32, in_links: u32, out_links: u32) -> Machine {
    let group = NodeGroup {
        count: 0,
        in_links,
        out_links,
        ..NodeGroup::default()
    };
    Machine {
        buses,
        nodes: vec![group],
        ..Machine::default()
    }
}
