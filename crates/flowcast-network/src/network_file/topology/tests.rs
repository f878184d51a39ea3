use super::*;

fn read(text: &str) -> Result<Topology, SharingError> {
    toml::from_str::<TopologyFile>(text).unwrap().try_into()
}

#[test]
fn the_default_routing_may_be_written() {
    assert_eq!(
        read("fat_tree = 8\nrouting = \"d-mod-k\"").unwrap(),
        read("fat_tree = 8").unwrap()
    );
}

#[test]
fn both_forms_give_the_same_tree() {
    let short = read("fat_tree = 8\noversubscription = 2").unwrap();
    let levels =
        "[[levels]]\ndown = 4\nup = 2\n[[levels]]\ndown = 4\nup = 4\n[[levels]]\ndown = 8\nup = 0";
    let long = read(levels).unwrap();
    let wired = |topology: &Topology| format!("{:?}", topology.wiring().unwrap());
    assert_eq!(wired(&short), wired(&long));
    assert_eq!(short.classes(), long.classes());
    assert_eq!(short.nodes().unwrap(), Some(128));
}

#[test]
fn errors_name_the_field() {
    for (text, start) in [
        (
            "fat_tree = 7",
            "topology.fat_tree: found 7 ports, expected an even number",
        ),
        (
            "fat_tree = 8\noversubscription = 3",
            "topology.oversubscription: found 3, expected a divisor of 4, half of the ports (3:1 needs a multiple of 6 ports)",
        ),
        (
            "fat_tree = 8\noversubscription = 0",
            "topology.oversubscription: found 0, expected a divisor of 4",
        ),
        (
            "fat_tree = 8\nrouting = \"ugal\"",
            "topology.routing: found `ugal`, expected one of d-mod-k, s-mod-k, ecmp, random",
        ),
        (
            "fat_tree = 8\nrouting = \"adaptive\"",
            "topology.routing: found `adaptive`, expected one of d-mod-k",
        ),
        (
            "oversubscription = 2",
            "topology.oversubscription: found it without fat_tree",
        ),
        (
            "bandwidth = \"1GB/s\"",
            "topology.bandwidth: found it without fat_tree",
        ),
        (
            "wire_rate = \"1GB/s\"",
            "topology.wire_rate: found it without fat_tree",
        ),
        (
            "fat_tree = 4\nbandwidth = \"0B/s\"",
            "topology.bandwidth: found 0MB/s",
        ),
        (
            "[[levels]]\ndown = 4\n[[levels]]\ndown = 0",
            "topology.levels.1: found down = 0",
        ),
        (
            "[[levels]]\ndown = 4\nbandwidth = \"0B/s\"",
            "topology.levels.0.bandwidth: found 0MB/s",
        ),
        (
            "fat_tree = 4\n[[levels]]\ndown = 4",
            "topology.levels: found it together with fat_tree",
        ),
        ("", "topology.levels.0: found 0 levels"),
    ] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.starts_with(start), "{text}: {message}");
    }
}

/// A section for each shape with all of its fields.
const SECTIONS: [&str; 8] = [
    "fat_tree = 8\noversubscription = 2\nbandwidth = \"1GB/s\"\nlatency = \"100ns\"\nrouting = \"ecmp\"\nseed = 3",
    "oversubscription = 2\nrouting = \"random\"\n[k_ary_n_tree]\narity = 4\nlevels = 3",
    "planes = 2\n[[levels]]\ndown = 4\nup = 2\ncables = 3\nwire_rate = \"10Gbit/s\"\n[[levels]]\ndown = 2\nup = 0\nlatency = \"1us\"",
    "torus = [4, 3, 2]\nnodes_per_switch = 2\nlatency = \"50ns\"",
    "mesh = [4, 3]\nwire_rate = \"1Gbit/s\"",
    "routing = \"ugal\"\n[dragonfly]\ngroups = 9\nswitches = 4\nnodes = 2\nglobal = 2\n[dragonfly.global_cables]\nlatency = \"1us\"",
    "routing = \"valiant\"\n[dragonfly_plus]\ngroups = 3\nleaves = 2\nspines = 2\nnodes = 2\nglobal = 2\nper_pair = 1\n\
     [dragonfly_plus.local_cables]\nbandwidth = \"1GB/s\"",
    "[graph]\nnodes = [0, 0, 1]\n[[graph.cables]]\nclass = \"ring\"\nbetween = [[0, 1], [1, 2]]\ncount = 2",
];

#[test]
fn each_shape_is_written_as_it_was_read() {
    for text in SECTIONS {
        let topology = read(text).unwrap();
        let written = toml::to_string(&TopologyFile::from(&topology)).unwrap();
        assert_eq!(read(&written).unwrap(), topology, "{written}");
    }
}

#[test]
fn errors_of_every_shape_name_the_field() {
    for (text, start) in [
        ("torus = []", "topology.torus: found 0 sides"),
        ("torus = [4, 0]", "topology.torus: found a side of 0"),
        (
            "mesh = [1024, 1024, 1024]",
            "topology.mesh: found more than",
        ),
        (
            "torus = [4]\nmesh = [4]",
            "topology.mesh: found it together with torus",
        ),
        (
            "torus = [4]\nnodes_per_switch = 0",
            "topology.nodes_per_switch: found 0",
        ),
        (
            "torus = [4]\noversubscription = 2",
            "topology.oversubscription: found it without",
        ),
        (
            "torus = [4]\nrouting = \"ecmp\"",
            "topology.routing: found `ecmp`, expected one of dimension-order",
        ),
        ("planes = 0\ntorus = [4]", "topology.planes: found 0"),
        (
            "[k_ary_n_tree]\narity = 3\nlevels = 9",
            "topology.k_ary_n_tree: found 9 levels",
        ),
        (
            "oversubscription = 2\n[k_ary_n_tree]\narity = 3\nlevels = 2",
            "topology.oversubscription: found 2, expected a divisor of 3",
        ),
        (
            "[[levels]]\ndown = 4\ncables = 0",
            "topology.levels.0: found cables = 0",
        ),
        (
            "[dragonfly]\ngroups = 9\nswitches = 2\nnodes = 2\nglobal = 2",
            "topology.dragonfly.global: found 4 global cables of a group, expected at least 8",
        ),
        (
            "[dragonfly]\ngroups = 0\nswitches = 2\nnodes = 2\nglobal = 2",
            "topology.dragonfly.groups: found 0, expected 1 to 4096",
        ),
        (
            "[dragonfly_plus]\ngroups = 3\nleaves = 0\nspines = 2\nnodes = 2\nglobal = 2",
            "topology.dragonfly_plus.leaves: found 0",
        ),
        (
            "[dragonfly_plus]\ngroups = 3\nleaves = 1\nspines = 2\nnodes = 2\nglobal = 2\nper_pair = 3",
            "topology.dragonfly_plus.per_pair: found 3, expected 1 to 2",
        ),
        (
            "[dragonfly]\ngroups = 3\nswitches = 2\nnodes = 2\nglobal = 1\n[dragonfly.global_cables]\nbandwidth = \"0B/s\"",
            "topology.dragonfly.global_cables.bandwidth: found 0MB/s",
        ),
        (
            "bandwidth = \"1GB/s\"\n[dragonfly]\ngroups = 3\nswitches = 2\nnodes = 2\nglobal = 1",
            "topology.bandwidth: found it without fat_tree",
        ),
        (
            "[graph]\nnodes = []\ncables = []",
            "topology.graph.nodes: found no node",
        ),
        (
            "[graph]\nnodes = [0, 1]\ncables = []",
            "topology.graph.cables: found no route between nodes 0 and 1",
        ),
        (
            "[graph]\nnodes = [0, 1]\n[[graph.cables]]\nclass = \"node\"\nbetween = [[0, 1]]",
            "topology.graph.cables.0.class: found \"node\"",
        ),
        (
            "[graph]\nnodes = [0, 1]\n[[graph.cables]]\nclass = \"a\"\nbetween = [[1, 1]]",
            "topology.graph.cables.0.between: found a cable from switch 1 to itself",
        ),
        (
            "[graph]\nnodes = [4294967295]\ncables = []",
            "topology.graph.nodes: found 4294967295 switches",
        ),
    ] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.starts_with(start), "{text}: {message}");
    }
}
