//! The names of all fields of a network file, and those that are near to a misspelt one.
//!
//! The names are taken from a network that has every field, so that the list cannot fall behind.

use std::sync::LazyLock;

use super::sharing::SharingFile;
use super::topology::{LevelFile, TopologyFile};
use super::{BusFile, LinkFile, NetworkFile, NicFile, SCHEMA, table_of};
use crate::algorithm::AlgorithmTable;
use crate::collective::{Collectives, Repeats};
use crate::file_system::FileSystem;
use crate::ledger::Accuracy;
use crate::ledger::Judged;
use crate::machine::random::{Distribution, Randomness, Shape};
use crate::machine::scheduler::{Policy, Scheduler};
use crate::machine::wide_area::{Comparison, Connection, Joined, Site, SizeCondition, WideArea};
use crate::machine::{Machine, Mapping, NodeGroup};
use crate::near;
use crate::network::{Duplex, FitQuality, OverheadPiece, Overheads, PointToPoint, Progress, Rule};
use crate::parameter_interval::Interval;

use crate::origin::{Origin, OriginKind};
use crate::quantity::Quantity;
use crate::sharing::parameters::{
    AlphaParameters, FlowCutParameters, LoopParameters, PacketParameters, PenaltyParameters,
    SaturationParameters,
};
use crate::sharing::protocol::{Congestion, Connections};
use flowcast_units::{Bytes, CollectiveOp, Rate, Time, TimePerByte};

/// How many near names an error lists.
const NEAR: usize = 3;

/// Refuses a dotted name that no network file has; the error lists the names that are nearest.
pub(crate) fn check(key: &str) -> Result<(), String> {
    if ALL.iter().any(|name| is_same(name, key)) {
        return Ok(());
    }
    let (section, name) = key.split_once('.').unwrap_or(("", key));
    Err(match near::not_modelled(section, name) {
        Some(absent) => format!("found no such field; {absent}"),
        None => format!(
            "found no such field; near to it are {}",
            nearest(key, ALL.iter().map(String::as_str))
        ),
    })
}

/// The known names that are nearest to a misspelt one, for its error.
pub(crate) fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near: Vec<&str> = near::nearest(wrong, known).into_iter().take(NEAR).collect();
    near.join(", ")
}

/// Whether a name from the list, in which `N` is any place of a list, is this one.
fn is_same(name: &str, key: &str) -> bool {
    let place = |part: &str| part == "*" || part.parse::<usize>().is_ok();
    let (mut known, mut given) = (name.split('.'), key.split('.'));
    loop {
        match (known.next(), given.next()) {
            (None, None) => return true,
            (Some("N"), Some(part)) if place(part) => {}
            // Anything may be noted under these.
            (Some("NAME"), Some(part)) if !part.is_empty() => {}
            (Some(a), Some(b)) if a == b => {}
            _ => return false,
        }
    }
}

/// All dotted names, sections and lists as a whole among them; `N` stands for any place of a list, `NAME` for any name.
pub fn all() -> &'static [String] {
    &ALL
}

/// Collected once, since a file may have many origins.
static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
    let table = table_of(&every_field());
    let mut names = vec!["machine.mapping.per-node".to_owned()];
    CollectiveOp::ALL
        .iter()
        .for_each(|op| names.push(format!("collectives.rows.{}", row_name(*op))));
    CollectiveOp::ALL.iter().for_each(|op| {
        names.push(format!(
            "machine.wide_area.collectives.rows.{}",
            row_name(*op)
        ))
    });
    collect("", &toml::Value::Table(table), &mut names);
    names.sort();
    names.dedup();
    names
});

fn row_name(op: CollectiveOp) -> String {
    let value = toml::Value::try_from(op).expect("an operation is a text");
    value.as_str().unwrap_or_default().to_owned()
}

fn collect(name: &str, value: &toml::Value, names: &mut Vec<String>) {
    let below = |part: &str| {
        if name.is_empty() {
            part.to_owned()
        } else {
            format!("{name}.{part}")
        }
    };
    if !name.is_empty() {
        names.push(name.to_owned());
    }
    match value {
        toml::Value::Table(table) => table
            .iter()
            .for_each(|(key, value)| collect(&below(key), value, names)),
        toml::Value::Array(items) => items
            .iter()
            .take(1)
            .for_each(|value| collect(&below("N"), value, names)),
        _ => {}
    }
}

/// A file in which nothing is left out.
fn every_field() -> NetworkFile {
    let time = Time::from_nanos(1.0);
    let per_byte = TimePerByte::from_nanos(1.0);
    let rate = Rate::from_bytes_per_second(1.0);
    let interval = Interval {
        low: Quantity::Number(0.0),
        high: Quantity::Number(0.0),
        level: 0.5,
        correlations: [("NAME".to_owned(), 0.0)].into(),
    };
    let piece = OverheadPiece {
        from: Bytes(0),
        fixed: time,
        per_byte,
    };
    NetworkFile {
        schema: SCHEMA.to_owned(),
        name: "every".to_owned(),
        title: String::new(),
        source: String::new(),
        point_to_point: PointToPoint {
            rule: Rule::Dimemas,
            rendezvous_from: Some(Bytes(1)),
            progress: Progress::InCalls,
        },
        nic: NicFile {
            latency: time,
            bandwidth: Some(rate),
            gap_per_byte: Some(per_byte),
            wire_rate: Some(rate),
            overhead: time,
            gap: time,
            duplex: Duplex::Half,
        },
        backbone: Some(LinkFile {
            bandwidth: Some(rate),
            wire_rate: Some(rate),
        }),
        bus: Some(BusFile {
            nodes: Some(1),
            bandwidth: Some(rate),
            wire_rate: Some(rate),
        }),
        topology: Some(TopologyFile {
            fat_tree: Some(2),
            oversubscription: Some(1),
            bandwidth: Some(rate),
            wire_rate: Some(rate),
            routing: Some("d-mod-k".to_owned()),
            levels: vec![LevelFile {
                down: 2,
                up: 1,
                bandwidth: Some(rate),
                wire_rate: Some(rate),
            }],
        }),
        overheads: Overheads {
            send: vec![piece],
            receive: vec![piece],
        },
        sharing: every_field_of_sharing(time, rate),
        machine: every_field_of_machine(time, rate),
        collectives: Collectives {
            algorithms: Some(AlgorithmTable::default()),
            ..Collectives::uniform(Repeats::Null)
        },
        file_system: FileSystem {
            latency: time,
            bandwidth: rate,
            requests: 1,
        },
        intervals: [("NAME".to_owned(), interval)].into(),
        origins: [(
            "NAME".to_owned(),
            Origin {
                kind: OriginKind::Published,
                text: String::new(),
                year: None,
            },
        )]
        .into(),
        accuracy: vec![Accuracy {
            model: String::new(),
            validated_on: String::new(),
            judged: Some(Judged::Flows),
            is_fitted: true,
            messages: Some([Bytes(1); 2]),
            cases: 1,
            mean: Some(0.0),
            machine: "x".to_owned(),
            date: "x".to_owned(),
            quantiles: [("NAME".to_owned(), 0.0)].into(),
            errors: [("NAME".to_owned(), vec![0.0])].into(),
        }],
        fit: FitQuality {
            misfit: Some(0.0),
            warnings: vec![String::new()],
        },
        provenance: [("NAME".to_owned(), String::new())].into(),
    }
}

fn every_field_of_sharing(time: Time, rate: Rate) -> SharingFile {
    let number = Some(1.0);
    let size = Some(Bytes(1));
    SharingFile {
        model: Some(String::new()),
        flow_cuts: FlowCutParameters {
            odd_end: number,
            odd_inner: number,
            io_out: number,
            include: number,
            start_end: number,
        },
        closed_loop: LoopParameters {
            alpha: number,
            kappa: number,
            transient: Some(true),
        },
        alpha_fair: AlphaParameters { alpha: number },
        asymmetric: SaturationParameters {
            backbone_from: Some(1),
            backbone_share: Some(rate),
        },
        ib_penalty: PenaltyParameters {
            out: number,
            into: number,
            crowded: number,
        },
        packet: PacketParameters {
            latency: Some(time),
            segment: size,
            window: size,
            send_buffer: size,
            congestion: Some(Congestion::default()),
            first_window: size,
            queue: size,
            burst: size,
            connections: Some(Connections::default()),
            idle_restart: Some(true),
            warm_ups: Some(1),
            small_queues: Some(true),
            jitter: Some(time),
            noise: number,
            most_packets: Some(1),
        },
    }
}

fn every_field_of_machine(time: Time, rate: Rate) -> Machine {
    let size = SizeCondition {
        is: Comparison::Below,
        size: Bytes(1),
    };
    let connection = Connection {
        sites: [0, 1],
        bandwidth: rate,
        latency: time,
        flight_time: time,
        tags: vec![0],
        first: size,
        joined: Joined::And,
        second: size,
    };
    let group = NodeGroup {
        latency: Some(time),
        intra_latency: Some(time),
        intra_bandwidth: Some(rate),
        site: 1,
        wide_area_latency: time,
        accelerator_speed: 2.0,
        ..NodeGroup::default()
    };
    Machine {
        buses: 1,
        processors: 1,
        nodes_per_rack: 1,
        mapping: Some(Mapping::List(vec![0])),
        further_mappings: vec![Mapping::Fill],
        nodes: vec![group],
        scheduler: Scheduler {
            policy: Policy::Priority,
            priorities: vec![0],
            ..Scheduler::default()
        },
        further_sites: vec![Site {
            bandwidth: Some(rate),
            buses: 1,
        }],
        wide_area: WideArea {
            flight_times: vec![vec![time]],
            collectives: Collectives::uniform(Repeats::Null),
            connections: vec![connection],
            ..WideArea::default()
        },
        random: Randomness {
            speed: Distribution::new(Shape::Uniform {
                least: 0.0,
                most: 1.0,
            }),
            ..Randomness::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_kind_are_known() {
        for name in [
            "nic.latency",
            "machine.nodes.0.cpus",
            "machine.nodes.*.intra_latency",
            "machine.wide_area.flight_times.1.0",
            "machine.wide_area.connections.2.first.size",
            "machine.scheduler.quantum",
            "machine.random.latency",
            "collectives.rows.Bcast",
            "collectives.default",
            "collectives.algorithms.base",
            "file_system.requests",
            "provenance.host",
            "machine.mapping.per-node",
            "sharing.flow_cuts.io_out",
            "topology.levels.0.wire_rate",
            "nic.duplex",
            "bus.nodes",
            "accuracy.0.quantiles.1",
        ] {
            assert!(check(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_misspelt_name_is_refused_with_those_that_are_near() {
        let error = check("machine.scheduler.qantum").unwrap_err();
        assert!(error.contains("machine.scheduler.quantum"), "{error}");
        let error = check("nic.latncy").unwrap_err();
        assert!(error.contains("near to it are nic.latency"), "{error}");
        assert!(check("machine.nodes.first.cpus").is_err());
    }
}
