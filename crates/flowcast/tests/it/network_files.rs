//! Unusual network files: for any text, the result is a network or an error, never a panic.

use flowcast::{
    model::{
        builtin,
        network::{LinkRate, Network},
        network_file::upgrade::upgraded,
        sharing::model::Model,
    },
    units::{Bytes, Rate},
};
use proptest::prelude::*;

/// Values that a careless or hostile author could write.
const VALUES: [&str; 22] = [
    "\"\"",
    "\"5\"",
    "\"-5us\"",
    "\"nans\"",
    "\"1e999s\"",
    "\"9e99MB/s\"",
    "\"0us\"",
    "\"µs\"",
    "\"LOG 2MAX\"",
    "\"|\"",
    "0",
    "-1",
    "1e308",
    "nan",
    "inf",
    "true",
    "[]",
    "{}",
    "[[1]]",
    "99999999999999999999",
    "1979-05-27",
    "4294967296",
];

const KEYS: [&str; 18] = [
    "schema",
    "name",
    "point_to_point.rule",
    "point_to_point.rendezvous_from",
    "nic",
    "nic.latency",
    "nic.bandwidth",
    "nic.gap_per_byte",
    "sharing.alpha",
    "machine.nodes",
    "machine.mapping",
    "collectives.default",
    "nic.count",
    "topology.torus",
    "topology.planes",
    "topology.routing",
    "a.b.c",
    "..",
];

/// One change to a text, with its position as a fraction of the length.
#[derive(Debug, Clone)]
enum Change {
    Cut(f64, f64),
    Insert(f64, String),
    Double(f64),
    Drop(f64),
    Value(f64, &'static str),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0.0..1.0, 0.0..0.2).prop_map(|(at, share)| Change::Cut(at, share)),
        (0.0..1.0, "[\\[\\]{}=\"'.#\\n0-9a-zµ\u{0}-]{1,8}")
            .prop_map(|(at, text)| Change::Insert(at, text)),
        (0.0..1.0).prop_map(Change::Double),
        (0.0..1.0).prop_map(Change::Drop),
        (0.0..1.0, prop::sample::select(VALUES.to_vec()))
            .prop_map(|(at, value)| Change::Value(at, value)),
    ]
}

fn apply(text: &str, change: &Change) -> String {
    match change {
        Change::Cut(at, share) => {
            let (start, length) = (place(text, *at), place(text, *share));
            text.chars()
                .take(start)
                .chain(text.chars().skip(start + length + 1))
                .collect()
        }
        Change::Insert(at, new) => {
            let start = place(text, *at);
            text.chars()
                .take(start)
                .chain(new.chars())
                .chain(text.chars().skip(start))
                .collect()
        }
        Change::Double(at) => change_line(text, *at, |line| format!("{line}\n{line}")),
        Change::Drop(at) => change_line(text, *at, |_| String::new()),
        Change::Value(at, value) => change_line(text, *at, |line| {
            format!("{} = {value}", line.split('=').next().unwrap_or(""))
        }),
    }
}

fn place(text: &str, share: f64) -> usize {
    (share * text.chars().count() as f64) as usize
}

fn change_line(text: &str, share: f64, change: impl Fn(&str) -> String) -> String {
    let chosen = (share * text.lines().count() as f64) as usize;
    let lines = text.lines().enumerate().map(|(at, line)| {
        if at == chosen {
            change(line)
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Files of both schemas, and sections of topologies.
fn start() -> impl Strategy<Value = String> {
    let topologies: Vec<&str> = examples()
        .into_iter()
        .filter(|section| section.contains("topology"))
        .collect();
    let built_in = (
        prop::sample::select(builtin::NETWORKS.to_vec()),
        any::<bool>(),
    );
    let built_in = built_in.prop_map(|((name, text), is_old)| {
        if is_old { in_schema_1(name) } else { None }.unwrap_or_else(|| text.to_owned())
    });
    let with_topology = prop::sample::select(topologies).prop_map(|section| {
        // Short, so that changes affect the topology.
        format!(
            "schema = \"flowcast/network/2\"\nname = \"x\"\npoint_to_point.rule = \"hockney\"\n[nic]\nlatency = \"1us\"\n\
             bandwidth = \"1GB/s\"\ncount = 2\n{section}"
        )
    });
    prop_oneof![built_in, with_topology]
}

fn value() -> impl Strategy<Value = String> {
    let known =
        prop::sample::select(VALUES.to_vec()).prop_map(|value| value.trim_matches('"').to_owned());
    prop_oneof![known, ".{0,8}"]
}

/// Checks that an accepted network can be written and read back. A network with NaN would differ from itself.
fn assert_sound(network: &Network) {
    let text = network.to_toml();
    assert_eq!(&Network::from_toml(&text, &[]).unwrap(), network, "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_mutated_file_gives_a_network_or_an_error(text in start(), changes in prop::collection::vec(change(), 1..6)) {
        let mutated = changes.iter().fold(text, |text, change| apply(&text, change));
        if let Ok(network) = Network::from_toml(&mutated, &[]) {
            assert_sound(&network);
        }
    }

    #[test]
    fn any_override_gives_a_network_or_an_error(
        text in start(),
        key in prop_oneof![prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned), "[a-z_.]{0,12}"],
        value in value(),
    ) {
        if let Ok(network) = Network::from_toml(&text, &[(key, value)]) {
            assert_sound(&network);
        }
    }

    #[test]
    fn a_text_that_is_not_a_network_file_gives_an_error(text in ".{0,200}") {
        prop_assert!(Network::from_toml(&text, &[]).is_err());
    }
}

#[test]
fn impossible_numbers_are_refused_by_field_wherever_they_stand() {
    let network = builtin::network("sgi-origin").unwrap();
    for value in ["nan", "inf", "-0.5"] {
        let error = network
            .with_overrides(&[("sharing.alpha".into(), value.into())])
            .unwrap_err()
            .to_string();
        assert!(error.contains("sharing.alpha"), "{value}: {error}");
        let text = network
            .to_toml()
            .replace("speed = 1.0", &format!("speed = {value}"));
        let error = Network::from_toml(&text, &[]).unwrap_err().to_string();
        assert!(error.contains("machine.nodes.0.speed"), "{value}: {error}");
    }
}

/// The pages that explain the network file.
const PAGES: &str = concat!(
    include_str!("../../../../docs/reference/network-file.md"),
    include_str!("../../../../docs/reference/network-topology.md"),
    include_str!("../../../../docs/reference/network-sharing.md"),
    include_str!("../../../../docs/reference/network-machine.md"),
    include_str!("../../../../docs/reference/network-provenance.md"),
);

/// Code blocks of the pages that explain the network file; the first is a whole file, the others are sections.
fn examples() -> Vec<&'static str> {
    PAGES
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect()
}

#[test]
fn each_example_of_the_documentation_is_accepted() {
    let examples = examples();
    assert!(examples.len() > 3, "{}", examples.len());
    Network::from_toml(examples[0], &[]).unwrap();
    for section in &examples[1..] {
        let file = format!("{}\n{section}", examples[0]);
        let network =
            Network::from_toml(&file, &[]).unwrap_or_else(|error| panic!("{error}\n{file}"));
        assert_ne!(
            network,
            Network::from_toml(examples[0], &[]).unwrap(),
            "{section}"
        );
    }
}

#[test]
fn each_field_of_the_built_in_networks_is_documented() {
    for (name, text) in builtin::NETWORKS {
        for field in text
            .lines()
            .filter_map(|line| line.split_once(" = "))
            .map(|(field, _)| field)
        {
            // Below `[origins]`, a quoted name is the name of a field.
            let field = field
                .trim_matches('"')
                .rsplit('.')
                .next()
                .unwrap_or_default();
            assert!(PAGES.contains(&format!("`{field}`")), "{name}: {field}");
        }
    }
}

/// Text of a built-in network in schema 1.
fn in_schema_1(name: &str) -> Option<String> {
    let file = format!(
        "{}/../../tests/data/networks-1/{name}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(file).ok()
}

#[test]
fn a_file_of_schema_1_is_the_network_that_it_was_and_is_upgraded_to_the_built_in_file() {
    let files = builtin::NETWORKS
        .iter()
        .filter_map(|(name, text)| Some((name, text, in_schema_1(name)?)));
    let files: Vec<_> = files.collect();
    assert_eq!(files.len(), 8);
    for (name, text, old) in files {
        let now = Network {
            origins: Default::default(),
            ..builtin::network(name).unwrap()
        };
        assert_eq!(Network::from_toml(&old, &[]).unwrap(), now);
        // Since then, each value has an origin, at the end of the file.
        assert_eq!(
            upgraded(&old).unwrap().as_deref(),
            text.split("\n[origins]").next()
        );
    }
}

#[test]
fn an_error_in_a_file_of_schema_1_names_the_line_that_the_user_wrote() {
    let old = in_schema_1("gige-lam")
        .unwrap()
        .replace("io_out = 3.0", "io_out = \"three\"");
    let error = Network::from_toml(&old, &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("line 17, `io_out = \"three\"`: invalid type"),
        "{error}"
    );
}

fn with(text: &str, overrides: &[(&str, &str)]) -> Network {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    Network::from_toml(text, &overrides).unwrap()
}

/// An interface with both rates, and a backbone and cables that have both as well.
const BOTH: &str = "schema = \"flowcast/network/2\"\nname = \"x\"\n[point_to_point]\nrule = \"hockney\"\n[nic]\n\
                    latency = \"9us\"\nbandwidth = \"94MB/s\"\nwire_rate = \"100MB/s\"\n[backbone]\nbandwidth = \"188MB/s\"\n\
                    wire_rate = \"200MB/s\"\n[sharing.packet]\nlatency = \"7us\"\n[sharing.alpha_fair]\nalpha = 3.0\n";

#[test]
fn each_model_sees_the_rates_of_its_own_kind() {
    let seen = |overrides: &[(&str, &str)], model: Model| {
        let network = with(BOTH, overrides);
        let network = network.seen_by(model);
        let rates = [network.nic.rate(), network.backbone.unwrap().goodput()];
        (
            rates.map(|rate| rate.as_bytes_per_second() / 1e6),
            network.nic.latency.as_micros(),
        )
    };
    assert_eq!(seen(&[], Model::Fair), ([94.0, 188.0], 9.0));
    assert_eq!(seen(&[], Model::Packet), ([100.0, 200.0], 7.0));
    // A rate that is set applies to the requested model.
    let set = [
        ("nic.bandwidth", "50MB/s"),
        ("backbone.bandwidth", "70MB/s"),
        ("nic.latency", "5us"),
    ];
    assert_eq!(seen(&set, Model::Fair), ([50.0, 70.0], 5.0));
    assert_eq!(seen(&set, Model::Packet), ([50.0, 70.0], 5.0));
    let wire = [("nic.wire_rate", "60MB/s")];
    assert_eq!(
        (
            seen(&wire, Model::Fair).0[0],
            seen(&wire, Model::Packet).0[0]
        ),
        (94.0, 60.0)
    );
}

#[test]
fn names_of_schema_1_set_what_they_set_before() {
    let network = with(
        BOTH,
        &[
            ("sharing.alpha", "2"),
            ("sharing.window", "50kB"),
            ("sharing.penalty_in", "0.5"),
        ],
    );
    assert_eq!(
        (
            network.sharing.closed_loop.alpha,
            network.sharing.alpha_fair.alpha
        ),
        (Some(2.0), None)
    );
    assert_eq!(network.sharing.packet.window, Some(Bytes(50_000)));
    assert_eq!(network.sharing.ib_penalty.into, Some(0.5));
    let packet = "schema = \"flowcast/network/1\"\nname = \"x\"\n[point_to_point]\nrule = \"hockney\"\n[nic]\nlatency = \"0us\"\n\
                  bandwidth = \"100MB/s\"\n[sharing]\nmodel = \"packet\"\nwindow = \"50kB\"\n";
    let network = with(packet, &[]);
    assert_eq!(
        network.nic.rate,
        LinkRate::Wire(Rate::from_bytes_per_second(1e8))
    );
    assert_eq!(
        network.seen_by(Model::Fair).nic.rate(),
        network.seen_by(Model::Packet).nic.rate()
    );
}

#[test]
fn contradictory_fields_are_refused_by_name() {
    for (more, expected) in [
        ("[nic2]\n", "unknown field `nic2`"),
        (
            "[sharing]\nmodel = \"fare\"\n",
            "sharing.model: no sharing model is named `fare`, expected one of independent",
        ),
        (
            "[sharing.closed_loop]\nwindow = \"1MB\"\n",
            "unknown field `window`, expected one of",
        ),
        ("[sharing.packet]\nio_out = 1.0\n", "unknown field `io_out`"),
        (
            "[overheads]\nsend = [{ from = \"1B\", fixed = \"1us\", per_byte = \"0ns/B\" }]\n",
            "overheads.send.0.from: found 1B",
        ),
        (
            "[overheads]\nreceive = [{ from = \"0B\", fixed = \"1us\", per_byte = \"0ns/B\" }, { from = \"0B\", fixed = \"1us\", \
             per_byte = \"0ns/B\" }]\n",
            "overheads.receive.1.from: found 0B, expected more than in the previous piece",
        ),
        (
            "[intervals]\n\"nic.latncy\" = { low = \"1us\", high = \"2us\", level = 0.9 }\n",
            "intervals.nic.latncy: found no such",
        ),
        (
            "[intervals]\n\"nic.latency\" = { low = \"1us\", high = \"2us\", level = 95.0 }\n",
            "intervals.nic.latency.level: found 95",
        ),
        (
            "[origins]\n\"nic.gapp\" = { source = \"x\" }\n",
            "origins.nic.gapp: found no such field (did you mean nic.gap?)",
        ),
        (
            "[origins]\n\"nic.gap\" = { source = \"x\", vendor = \"y\" }\n",
            "found several texts, expected one of measured_by, source, vendor",
        ),
        (
            "[origins]\n\"nic.gap\" = { year = 2020 }\n",
            "found no text, expected one of measured_by",
        ),
        (
            "[[accuracy]]\nmodel = \"magic\"\nvalidated_on = \"x\"\ncases = 1\n",
            "accuracy.0.model: found `magic`",
        ),
        (
            "[[accuracy]]\nmodel = \"fair\"\nvalidated_on = \"x\"\ncases = 0\n",
            "accuracy.0.cases: found 0",
        ),
        (
            "[[accuracy]]\nmodel = \"limits/openmpi\"\nvalidated_on = \"x\"\ncases = 1\nquantiles = { \"95\" = 0.1 }\n",
            "accuracy.0.quantiles: found `95`, expected fractions of cases from 0 to 1",
        ),
    ] {
        let text = format!("{}{more}", BOTH.split("[sharing").next().unwrap());
        let error = Network::from_toml(&text, &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{more}: {error}");
    }
    let neither = BOTH.replace("bandwidth = \"94MB/s\"\nwire_rate = \"100MB/s\"\n", "");
    let error = Network::from_toml(&neither, &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("nic.bandwidth: found nothing, expected one of nic.bandwidth"),
        "{error}"
    );
}
