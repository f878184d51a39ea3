//! The columns of the replay tables: workloads and collectives on the model that `replay/README.md` fixes, a latency of
//! 2000 ns and 1 ns for each byte.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use flowcast::{
    model::{
        collective::{self, Collectives, Phase, PhaseSize, Repeats},
        dimemas_cfg::DimemasConfig,
        network::{MessageRule, Network},
    },
    replay::loggops::Loggops,
    units::{Bytes, CollectiveOp, Rate, Time, TimePerByte},
};

use super::{ColumnCheck, Row};
use crate::golden::{
    case::{Mismatch, same},
    simulation::{machine, network, open, replay, replay_fair, run_schedule},
};

const LATENCY_NS: f64 = 2000.0;
const BYTES_PER_SECOND: f64 = 1e9;
/// Bytes that SMPI adds to each message; the sizes in the SimGrid traces are smaller by as much.
const ENVELOPE_NS: f64 = 16.0;

/// `expected.tsv`.
pub(super) const WORKLOADS: &[(&str, ColumnCheck)] = &[
    ("dim_inf", |row, expected| {
        dimemas(row, expected, &configuration(row, "inf")?)
    }),
    ("dim_1in1out", |row, expected| {
        dimemas(row, expected, &configuration(row, "l11")?)
    }),
    ("dim_halfdup1", |row, expected| {
        dimemas(row, expected, &configuration(row, "hd1")?)
    }),
    ("dim_bus1", |row, expected| {
        dimemas(row, expected, &configuration(row, "bus1")?)
    }),
    ("dim_bus2", |row, expected| {
        dimemas(row, expected, &configuration(row, "bus2")?)
    }),
    ("dim_S4096rdv", dimemas_rendezvous),
    ("lgs_lo", |row, expected| {
        goal(
            row,
            expected,
            Loggops {
                latency: whole_message(row)?,
                ..free()
            },
        )
    }),
    ("lgs_o", |row, expected| {
        goal(
            row,
            expected,
            Loggops {
                latency: size(row)?,
                overhead: ns(2000.0),
                ..free()
            },
        )
    }),
    ("lgs_lgp", |row, expected| goal(row, expected, per_byte())),
    ("lgs_full", |row, expected| goal(row, expected, full())),
    ("lgs_rdv", |row, expected| {
        goal(
            row,
            expected,
            Loggops {
                eager_up_to: Some(Bytes(4096)),
                ..full()
            },
        )
    }),
    ("sg_bb", simgrid_backbone),
    ("sg_shared", simgrid_shared),
];

/// `expected_collectives.tsv`.
pub(super) const COLLECTIVES: &[(&str, ColumnCheck)] = &[("Dimemas_s", one_collective)];

fn ns(nanos: f64) -> Time {
    Time::from_nanos(nanos)
}

/// Nothing costs anything.
fn free() -> Loggops {
    let nothing = TimePerByte::from_nanos(0.0);
    Loggops {
        latency: Time::ZERO,
        overhead: Time::ZERO,
        gap: Time::ZERO,
        gap_per_byte: nothing,
        eager_up_to: None,
    }
}

fn per_byte() -> Loggops {
    Loggops {
        latency: ns(LATENCY_NS),
        gap_per_byte: TimePerByte::from_nanos(1.0),
        ..free()
    }
}

fn full() -> Loggops {
    Loggops {
        overhead: ns(500.0),
        gap: ns(700.0),
        ..per_byte()
    }
}

fn size(row: &Row) -> Result<Time, Mismatch> {
    Ok(ns(row.number("S")?))
}

fn whole_message(row: &Row) -> Result<Time, Mismatch> {
    Ok(size(row)? + ns(LATENCY_NS))
}

fn file(row: &Row, ending: &str) -> Result<PathBuf, Mismatch> {
    let name: Vec<&str> = ["workload", "P", "I", "S"]
        .iter()
        .map(|key| row.key(key))
        .collect::<Result<_, _>>()?;
    Ok(row.folder.join(format!("{}.{ending}", name.join("_"))))
}

fn common_model(rule: MessageRule) -> Network {
    network(
        rule,
        ns(LATENCY_NS),
        Rate::from_bytes_per_second(BYTES_PER_SECOND),
    )
}

/// The configuration `NAME.KIND.cfg`; it names no other file.
fn configuration(row: &Row, kind: &str) -> Result<Network, Mismatch> {
    let path = file(row, &format!("{kind}.cfg"))?;
    let bytes = fs::read(&path)
        .map_err(|error| Mismatch::Malformed(format!("{}: {error}", path.display())))?;
    let mut no_part = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
    DimemasConfig::read(&bytes, &mut no_part)
        .map(|config| config.network)
        .map_err(Mismatch::refused)
}

fn dimemas(row: &Row, expected: &str, network: &Network) -> Result<(), Mismatch> {
    let outcome = replay(&open(&file(row, "dim")?)?, network)?;
    same_nanos(expected, 1e9, outcome.makespan())
}

/// Every sender of 4096 bytes or more waits for its receiver.
fn dimemas_rendezvous(row: &Row, expected: &str) -> Result<(), Mismatch> {
    let mut network = configuration(row, "rdv")?;
    network.point_to_point.rendezvous_from = Some(Bytes(4096));
    dimemas(row, expected, &network)
}

fn goal(row: &Row, expected: &str, parameters: Loggops) -> Result<(), Mismatch> {
    let outcome = run_schedule(&open(&file(row, "goal")?)?, parameters)?;
    same_nanos(expected, 1.0, outcome.makespan())
}

/// SimGrid over a backbone that never fills: latency and bytes, no processor time.
fn simgrid_backbone(row: &Row, expected: &str) -> Result<(), Mismatch> {
    let mut network = common_model(MessageRule::Hockney);
    network.nic.latency = ns(LATENCY_NS + ENVELOPE_NS);
    let outcome = replay(&open(&file(row, "ti.list")?)?, &network)?;
    same_nanos(expected, 1e6, outcome.makespan())
}

/// SimGrid over links that the messages of a node share. The Dimemas trace of the same workload is replayed, whose
/// sizes count the envelope that SMPI adds to those of the time-independent one.
fn simgrid_shared(row: &Row, expected: &str) -> Result<(), Mismatch> {
    let outcome = replay_fair(
        &open(&file(row, "dim")?)?,
        &common_model(MessageRule::Hockney),
    )?;
    same_nanos(expected, 1e6, outcome.makespan())
}

/// Without a table of its own Dimemas takes one model for all operations, but a constant one for `MPI_Reduce`.
fn one_collective(row: &Row, expected: &str) -> Result<(), Mismatch> {
    let name = format!(
        "c_{}_{}_{}.dim",
        row.key("op")?,
        row.key("P")?,
        row.key("S")?
    );
    let repeats = match row.key("model")? {
        "1" => Repeats::Constant,
        "2" => Repeats::Linear,
        "3" => Repeats::Logarithmic,
        other => {
            return Err(Mismatch::Malformed(format!(
                "model: found `{other}`, expected 1, 2 or 3"
            )));
        }
    };
    let rows = BTreeMap::from([(CollectiveOp::Reduce, sent_and_received(Repeats::Constant))]);
    let collectives = Collectives {
        default: sent_and_received(repeats),
        rows,
        ..Collectives::default()
    };
    let machine = machine(row.number("buses")?, 1, 1);
    let network = Network {
        collectives,
        machine,
        ..common_model(MessageRule::Dimemas)
    };
    let outcome = replay(&open(&row.folder.join(name))?, &network)?;
    same_nanos(expected, 1e9, outcome.makespan())
}

fn sent_and_received(repeats: Repeats) -> collective::Row {
    collective::Row {
        fan_in: Phase {
            repeats,
            size: PhaseSize::Send,
        },
        fan_out: Phase {
            repeats,
            size: PhaseSize::Recv,
        },
    }
}

/// The tables print whole nanoseconds in units of their own.
fn same_nanos(expected: &str, nanos_per_unit: f64, found: Time) -> Result<(), Mismatch> {
    let number: f64 = expected
        .parse()
        .map_err(|_| Mismatch::Malformed(format!("found `{expected}`, expected a number")))?;
    same(
        "makespan in ns",
        (number * nanos_per_unit).round(),
        found.as_nanos().round(),
    )
}
