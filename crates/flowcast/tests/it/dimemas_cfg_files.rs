//! Dimemas configurations: the golden files, one file with every record, typical mistakes, and arbitrary bytes.

use std::{
    io,
    path::{Path, PathBuf},
};

use flowcast::{
    model::{
        collective::{Repeats, Row},
        dimemas_cfg::{DimemasConfig, DimemasConfigError, is_dimemas_cfg},
        machine::{
            Machine, Mapping, NodeGroup,
            scheduler::Policy,
            wide_area::{Site, Traffic},
        },
        name::is_hidden,
        network::{MessageRule, Network},
    },
    units::{Bytes, CollectiveOp, Rate, Time},
};
use proptest::prelude::*;

/// Characters that control a terminal or change the reading of a text.
const HIDDEN: [char; 7] = [
    '\u{1b}', '\u{7}', '\r', '\0', '\u{9b}', '\u{202e}', '\u{2066}',
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/dimemas-cfg")
}

fn golden(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn open_beside(name: &str) -> io::Result<Vec<u8>> {
    std::fs::read(folder().join(name))
}

fn read(text: &str) -> Result<DimemasConfig, DimemasConfigError> {
    DimemasConfig::read(text.as_bytes(), &mut open_beside)
}

fn message(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

/// `text` with `old`, which must occur in it, replaced.
fn with(text: &str, old: &str, new: &str) -> String {
    assert!(text.contains(old), "{old}");
    text.replacen(old, new, 1)
}

#[test]
fn every_configuration_reads_and_its_network_survives_its_own_file() {
    let folders = [folder(), folder().join("../../golden/replay")];
    let entries = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|ending| ending == "cfg"));
    assert!(names.len() >= 7 + 42, "{names:?}");
    for path in names {
        let bytes = std::fs::read(&path).unwrap();
        assert!(is_dimemas_cfg(&bytes), "{path:?}");
        let network = DimemasConfig::read(&bytes, &mut open_beside)
            .unwrap()
            .network;
        assert_eq!(
            Network::from_toml(&network.to_toml(), &[]).unwrap(),
            network,
            "{path:?}"
        );
    }
}

#[test]
fn a_plain_machine_becomes_one_group_and_everything_in_it_is_modelled() {
    let config = read(&golden("m_n4b1.cfg")).unwrap();
    assert_eq!(config.not_modelled, [""; 0]);
    let network = config.network;
    assert_eq!(network.point_to_point.rule, MessageRule::Dimemas);
    assert_eq!(network.nic.latency, Time::from_seconds(5e-5));
    assert_eq!(
        network.nic.rate.given_goodput(),
        Some(Rate::from_mebibytes_per_second(100.0).into())
    );
    let group = NodeGroup {
        count: 4,
        cpus: 1,
        in_links: 1,
        out_links: 1,
        intra_latency: Some(Time::from_seconds(1e-6)),
        intra_bandwidth: Some(Rate::from_mebibytes_per_second(1000.0)),
        intra_in_links: 1,
        intra_out_links: 1,
        ..NodeGroup::default()
    };
    let mapping = Some(Mapping::PerNode(1));
    assert_eq!(
        network.machine,
        Machine {
            buses: 1,
            mapping,
            nodes: vec![group],
            ..Machine::default()
        }
    );
}

#[test]
fn a_half_duplex_link_and_an_infinite_bandwidth_keep_their_zeros() {
    let half_duplex = read(&golden("chain_4_3_8192.hd1.cfg")).unwrap().network;
    assert_eq!(
        (
            half_duplex.machine.nodes[0].in_links,
            half_duplex.machine.nodes[0].out_links
        ),
        (1, 0)
    );
    assert_eq!(half_duplex.nic.latency, Time::from_nanos(2000.0));
    assert_eq!(
        half_duplex.nic.per_byte().time_for(Bytes(8192)),
        Time::from_nanos(8192.0)
    );
    let ideal = read(&golden("m_n4ideal.cfg")).unwrap().network;
    assert_eq!(ideal.nic.rate().time_for(Bytes(1 << 30)), Time::ZERO);
}

#[test]
fn without_a_communications_file_each_operation_has_the_model_of_the_environment_but_reduce() {
    for (number, name) in [(1, "CT"), (2, "LIN"), (3, "LOG")] {
        let text = with(
            &golden("halo_16_5_8192.bus1.cfg"),
            "16, 953.67431640625, 1, 3}",
            &format!("16, 1, 1, {number}}}"),
        );
        let collectives = read(&text).unwrap().network.collectives;
        let row: Row = format!("{name} SEND | {name} RECV").parse().unwrap();
        assert_eq!(collectives.row(CollectiveOp::Barrier), row);
        assert_eq!(collectives.row(CollectiveOp::Alltoallw), row);
        assert_eq!(
            collectives.row(CollectiveOp::Reduce),
            "CT SEND | CT RECV".parse().unwrap()
        );
    }
}

#[test]
fn every_record_has_its_effect() {
    let network = read(&golden("every-record.cfg")).unwrap().network;
    assert_eq!(network.name, "alpha");
    assert_eq!(
        (network.machine.buses, network.nic.latency),
        (2, Time::from_seconds(5e-5))
    );
    assert_eq!(
        network.machine.mapping,
        Some(Mapping::List(vec![0, 1, 2, 3, 3, 5]))
    );
    let nodes = &network.machine.nodes;
    assert_eq!(
        nodes.iter().map(|group| group.count).collect::<Vec<_>>(),
        [2, 1, 1, 2]
    );
    assert_eq!(
        nodes.iter().map(|group| group.site).collect::<Vec<_>>(),
        [0, 0, 0, 1]
    );
    let oldest = NodeGroup {
        cpus: 4,
        speed: 2.0,
        in_links: 2,
        out_links: 1,
        latency: Some(Time::from_seconds(6e-5)),
        intra_latency: Some(Time::from_seconds(2e-6)),
        intra_bandwidth: Some(Rate::from_mebibytes_per_second(500.0)),
        intra_buses: 4,
        intra_in_links: 1,
        wide_area_latency: Time::from_seconds(1e-3),
        ..NodeGroup::default()
    };
    assert_eq!(nodes[1], oldest);
    let Machine {
        scheduler,
        wide_area,
        random,
        further_sites,
        further_mappings,
        ..
    } = &network.machine;
    assert_eq!(
        (scheduler.policy, scheduler.context_switch),
        (Policy::RoundRobin, Time::from_seconds(1e-5))
    );
    assert_eq!(
        further_sites[..],
        [Site {
            bandwidth: Some(Rate::from_mebibytes_per_second(50.0)),
            buses: 0
        }]
    );
    assert_eq!(further_mappings[..], [Mapping::PerNode(2)]);
    assert_eq!(
        (wide_area.traffic, wide_area.flight_time(0, 1)),
        (Traffic::Linear, Time::from_seconds(1e-3))
    );
    assert_eq!(wide_area.connection(1, 0, 3, Bytes(1025)), Some(0));
    assert_eq!(wide_area.connection(1, 0, 3, Bytes(1024)), None);
    assert_eq!(
        wide_area.collectives.row(CollectiveOp::Barrier),
        "LOG S+R | LOG S+R".parse().unwrap()
    );
    assert_eq!(
        random.bandwidth.to_string(),
        "uniform 0.1048576MB/s 0.2097152MB/s"
    );
    let row = |op| network.collectives.row(op);
    assert_eq!(
        row(CollectiveOp::Barrier),
        "LIN MAX | LIN MAX".parse().unwrap()
    );
    assert_eq!(
        row(CollectiveOp::Bcast),
        "LOG MAX | CT S+R".parse().unwrap()
    );
    assert_eq!(
        row(CollectiveOp::Gather),
        "LOG MEAN | NULL".parse().unwrap()
    );
    assert_eq!(
        row(CollectiveOp::Reduce),
        "LOG 2MAX | NULL".parse().unwrap()
    );
    assert_eq!(network.collectives.default.fan_in.repeats, Repeats::Linear);
}

#[test]
fn any_field_can_be_set_also_that_of_one_group_of_nodes() {
    let network = read(&golden("every-record.cfg")).unwrap().network;
    let set =
        |key: &str, value: &str| network.with_overrides(&[(key.to_owned(), value.to_owned())]);
    assert_eq!(
        set("machine.nodes.1.in_links", "7").unwrap().machine.nodes[1].in_links,
        7
    );
    assert_eq!(
        set("machine.mapping", "fill").unwrap().machine.mapping,
        Some(Mapping::Fill)
    );
    assert_eq!(
        set("collectives.rows.Scan", "NULL | CT RECV")
            .unwrap()
            .collectives
            .rows
            .len(),
        5
    );
    assert!(
        set("machine.nodes.*.cpus", "9")
            .unwrap()
            .machine
            .nodes
            .iter()
            .all(|group| group.cpus == 9)
    );
    assert_eq!(
        set("machine.wide_area.flight_times.1.0", "3us")
            .unwrap()
            .machine
            .wide_area
            .flight_time(1, 0),
        Time::from_micros(3.0)
    );
    let error = set("machine.nodes.4.in_links", "7")
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "machine.nodes.4.in_links: found `4`, expected an entry of the list, nodes.0 to nodes.3, or nodes.*"
    );
    for key in ["machine.nodes.x.in_links", "machine.nodes.in_links"] {
        let error = set(key, "7").unwrap_err().to_string();
        assert!(
            error.starts_with(&format!(
                "--set {key}: found no such field (did you mean machine.nodes"
            )),
            "{error}"
        );
    }
}

#[test]
fn relevant_settings_that_are_not_modelled_are_reported_by_line_and_field() {
    let notes = read(&golden("every-record.cfg")).unwrap().not_modelled;
    let expected = [
        "line 13, \"accelerator node information\", field 1 (node): 2 accelerators at node 3",
        "line 18, \"modules information\", field 3 (ratio): -0.25;",
        "line 19, \"file system parameters\", field 3 (block size): 8;",
        "line 19, \"file system parameters\", field 5 (hit ratio from 0 to 1): 1;",
        "line 16, \"configuration files\", field 2 (file system): every-record.fs;",
        "every-record.comms: Barrier of machine 1: the rows of machine 0 apply to all machines",
        "every-record.comms: line 2, \"Machine policy\", field 2 (policy): RR;",
    ];
    assert_eq!(notes.len(), expected.len(), "{notes:#?}");
    for (note, expected) in notes.iter().zip(expected) {
        assert!(
            note.starts_with(expected),
            "found {note}\nexpected {expected}"
        );
    }
}

#[test]
fn settings_without_effect_are_not_reported() {
    let plain = golden("m_n4.cfg");
    let text = with(
        &plain,
        "\"\", 1, 0, 4, 0.0, 0.0, 1",
        "\"\", 1, 3, 1, 9.0, 9.0, 2",
    );
    let text = with(&text, "1, 1, 0.0}", "1, 1, 0.5}") + "\"modules information\" {1, 2, 1.0};;\n";
    let one_machine = read(&text).unwrap();
    assert_eq!(one_machine.not_modelled, [""; 0]);
    assert_eq!(one_machine.network, read(&plain).unwrap().network);
}

#[test]
fn a_wrong_field_is_named_with_line_record_number_and_expected_type() {
    let plain = golden("m_n4.cfg");
    for (old, new, expected) in [
        (
            "4, 100.0, 0, 1}",
            "4, fast, 0, 1}",
            "line 4, \"environment information\", field 5 (bandwidth in MB/s): found `fast`, expected a bandwidth in MB/s, a number that is not negative",
        ),
        (
            "4, 100.0, 0, 1}",
            "4, 100.0, 0.5, 1}",
            "line 4, \"environment information\", field 6 (buses): found `0.5`, expected a whole number of at least 0",
        ),
        (
            "4, 100.0, 0, 1}",
            "4, 100.0, 0, 4}",
            "field 7 (collective model, 1 CT 2 LIN 3 LOG): found `4`, expected a whole number from 1 to 3",
        ),
        (
            "4, 100.0, 0, 1}",
            "5, 100.0, 0, 1}",
            "line 4, \"environment information\", field 4 (nodes): found `5`, expected 4, the number of nodes",
        ),
        (
            "4, 100.0, 0, 1}",
            "4, 100.0, 0}",
            "line 4: found `\"environment information\" with 6 fields`, expected 7: machine name",
        ),
        (
            "{0, 4, \"\", 1,",
            "{1, 4, \"\", 1,",
            "line 6, \"multi node information\", field 1 (machine): found `1`, expected a machine with",
        ),
        (
            "5e-05",
            "-5e-05",
            "line 6, \"multi node information\", field 11 (latency in seconds): found `-5e-05`, expected a time in seconds",
        ),
        (
            "5e-05",
            "1e300",
            "field 11 (latency in seconds): found `1e300`",
        ),
        ("5e-05", "nan", "field 11 (latency in seconds): found `nan`"),
        (
            "1 TASKS_PER_NODE",
            "0 TASKS_PER_NODE",
            "line 8, \"predefined mapping information\", field 1 (mapping)",
        ),
        (
            "{\"1 TASKS_PER_NODE\"}",
            "{\"x\", 2, \"FILL\"}",
            "line 8: found `\"predefined mapping information\" with 3 fields`",
        ),
        (
            "\"predefined mapping",
            "\"predefined maping",
            "line 8: found `\"predefined maping information\"`, expected a record named",
        ),
        (
            "\"1 TASKS_PER_NODE\"};;",
            "\"1 TASKS_PER_NODE\"",
            "line 8: found `\"predefined mapping information\" {\"1 TASKS_PER_NODE\"`, expected a `}`",
        ),
        (
            "\"1 TASKS_PER_NODE\"};;",
            "\"FILL_NODES\"};; x",
            "expected nothing but `;;` after the record",
        ),
        (
            "\"predefined",
            "/* \"predefined",
            "line 8: found `/*`, expected a `*/`",
        ),
        (
            "{\"\", \"\", \"\", \"\"}",
            "{\"\", \"\", \"none.comms\", \"\"}",
            "line 10, \"configuration files\", field 3 (communications): cannot read none.comms:",
        ),
    ] {
        let found = message(&with(&plain, old, new));
        assert!(
            found.contains(expected),
            "found    {found}\nexpected {expected}"
        );
    }
    assert_eq!(
        message(""),
        "found no \"environment information\" record, expected at least one"
    );
}

#[test]
fn a_mistake_in_a_named_file_names_that_file_and_its_line() {
    let named = with(
        &golden("m_n4.cfg"),
        "{\"\", \"\", \"\", \"\"}",
        "{\"s\", \"\", \"c\", \"r\"}",
    );
    let found = |scheduler: &str, comms: &str, random: &str| {
        let mut open = |name: &str| {
            Ok(match name {
                "s" => scheduler,
                "c" => comms,
                _ => random,
            }
            .as_bytes()
            .to_vec())
        };
        DimemasConfig::read(named.as_bytes(), &mut open)
            .unwrap_err()
            .to_string()
    };
    for (scheduler, comms, random, expected) in [
        (
            "Policy: LIFO",
            "",
            "",
            "s: line 1, \"Policy\", field 1 (policy): found `LIFO`, expected one of FIFO, RR",
        ),
        (
            "Policy: FIFO\nBusy wait (seconds): long",
            "",
            "",
            "s: line 2, \"Busy wait (seconds)\", field 1 (seconds): found `long`",
        ),
        (
            "Policy: FIFO\nBusy",
            "",
            "",
            "s: line 2: found `Busy`, expected Policy: NAME",
        ),
        (
            "",
            "Machine globalop: 0 16 LIN MAX LIN MAX",
            "",
            "c: line 1, \"Machine globalop\", field 2 (operation): found `16`, expected a whole number from 0 to 15",
        ),
        (
            "",
            "\nMachine globalop: 1 0 LIN MAX LIN MAX",
            "",
            "c: line 2, \"Machine globalop\", field 1 (machine): found `1`",
        ),
        (
            "",
            "3 LIN MAX LIN SEND 0",
            "",
            "c: line 1, \"globalop\", field 5 (fan-out size): found `SEND`, expected one of MIN, MAX, MEAN, 2MAX, S+R",
        ),
        (
            "",
            "External globalop: 0 FIX MAX LIN MAX",
            "",
            "field 2 (fan-in model): found `FIX`, expected one of 0, CTE, LIN, LOG",
        ),
        (
            "",
            "Flight time: 0 1 2",
            "",
            "c: line 1: found `Flight time with 3 fields`, expected a machine and its flight times to 1 machines",
        ),
        (
            "",
            "Flight time: 0 soon",
            "",
            "c: line 1, \"Flight time\", field 2 (seconds): found `soon`",
        ),
        (
            "",
            "Machine globlop: 0 0",
            "",
            "c: line 1: found `Machine globlop: 0 0`, expected a line that begins with",
        ),
        (
            "",
            "",
            "\"processor_dist\" NORMAL 0 0",
            "r: line 1: found `\"processor_dist\" NORMAL 0 0`, expected one of",
        ),
        (
            "",
            "",
            "Processor: GAUSS 0 0",
            "r: line 1, \"Processor\", field 1 (distribution): found `GAUSS`",
        ),
    ] {
        let found = found(scheduler, comms, random);
        assert!(
            found.contains(expected),
            "found    {found}\nexpected {expected}"
        );
    }
}

#[test]
fn white_space_line_ends_and_comments_do_not_matter() {
    let plain = golden("halo_16_5_8192.bus1.cfg");
    let expected = read(&plain).unwrap();
    let tight = plain.replace(", ", ",").replace("\" {", "\"{");
    let wide = plain
        .replace(", ", "  ,\t")
        .replace("};;", "  } ; ;  ")
        .replace(" {", "   {  ");
    let commented = plain
        .replace("\n\"env", "\n/* \"x\" {\n*/ /**/ \"env")
        .replace("\n\"file", "\n// none\n\"file");
    for text in [
        tight,
        wide,
        commented,
        plain.replace('\n', "\r\n"),
        format!("\u{feff}{plain}"),
        plain.replace(";;", ""),
    ] {
        assert_eq!(read(&text).unwrap(), expected, "{text}");
    }
    let hidden = read(&plain.replace("NODE\"};;", "NODE\"};; // one each")).unwrap();
    assert_eq!(hidden.network.machine.mapping, None);
    assert_eq!(
        hidden.not_modelled,
        ["line 6: skipped, as Dimemas skips every line with `//` in it"]
    );
}

#[test]
fn a_file_without_a_title_is_recognised_by_its_first_record() {
    let plain = golden("m_n4.cfg");
    let (_, untitled) = plain.split_once('\n').unwrap();
    assert!(
        is_dimemas_cfg(untitled.as_bytes())
            && is_dimemas_cfg(format!("/* x */\n{untitled}").as_bytes())
    );
    assert_eq!(read(untitled).unwrap(), read(&plain).unwrap());
    for other in [
        "",
        "schema = \"flowcast/network/1\"",
        "#DIMEMAS:\"x\":1,9:1(1),0",
        "\"environment information\" {}",
    ] {
        assert!(!is_dimemas_cfg(other.as_bytes()), "{other}");
    }
}

const SOURCES: [&str; 4] = [
    "m_n16.cfg",
    "every-record.cfg",
    "chain_4_3_8192.hd1.cfg",
    "every-record.comms",
];

/// Reads arbitrary bytes as a `.cfg`, and as each of the files that a `.cfg` names. A configuration that is read can be
/// written and read back.
fn read_as_anything(bytes: &[u8]) {
    let naming = with(
        &golden("m_n4.cfg"),
        "{\"\", \"\", \"\", \"\"}",
        "{\"x\", \"\", \"x\", \"x\"}",
    );
    is_dimemas_cfg(bytes);
    for text in [bytes, naming.as_bytes()] {
        if let Ok(config) = DimemasConfig::read(text, &mut |_| Ok(bytes.to_vec())) {
            assert_eq!(
                Network::from_toml(&config.network.to_toml(), &[]).unwrap(),
                config.network
            );
        }
    }
}

proptest! {
    #[test]
    fn a_mutated_file_never_panics_and_what_is_read_survives_its_own_file(
        source in 0..SOURCES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, any::<u8>()), 1..6),
    ) {
        let mut bytes = golden(SOURCES[source]).into_bytes();
        for (at, kind, byte) in edits {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, b" {}\"/*,;0129e-.\n"[usize::from(byte) % 16]),
                _ => drop(bytes.remove(at)),
            }
        }
        read_as_anything(&bytes);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_as_anything(&bytes);
    }

    #[test]
    fn no_name_is_more_than_its_text(hidden in prop::sample::select(HIDDEN.to_vec())) {
        let text = golden("every-record.cfg").replacen("\"alpha\"", &format!("\"al{hidden}pha\""), 1);
        prop_assert!(read(&text).is_err());
    }

    #[test]
    fn any_machine_survives_its_own_file(
        seconds in 0.0..1e3f64,
        rate in prop::num::f64::POSITIVE.prop_map(|rate| rate % 1e200),
        counts in prop::collection::vec((1u32..5, 1u32..9, 0u32..4), 1..5),
        name in "[^\"{}]{0,8}",
    ) {
        let nodes: u32 = counts.iter().map(|(count, ..)| count).sum();
        let mut text = format!("#DIMEMAS_CONFIGURATION\n\"environment information\" {{\"{}\", 0, \"\", {nodes}, {:e}, 0, 2}};;\n",
            name.replace(|it: char| it == '/' || is_hidden(it), ""), rate);
        for (count, cpus, links) in counts {
            let speed = 1.0 / f64::from(cpus);
            text += &format!("\"multi node information\" {{0, {count}, \"\", {cpus}, {speed}, {seconds}, {}, 0, {links}, 0, {}, 1, {links}, 0}};;\n",
                rate / 3.0, seconds / f64::from(cpus));
        }
        let network = read(&text).unwrap().network;
        prop_assert_eq!(network.machine.nodes.iter().map(|group| group.count).sum::<u32>(), nodes);
        prop_assert_eq!(Network::from_toml(&network.to_toml(), &[]).unwrap(), network);
    }
}
