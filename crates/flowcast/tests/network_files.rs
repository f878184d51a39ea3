//! Network files that nobody would write: whatever the text, the answer is a network or an error, never a panic.

use flowcast::model::builtin;
use flowcast::model::network::Network;
use proptest::prelude::*;

/// What a careless or hostile hand could put where a value belongs.
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

const KEYS: [&str; 14] = [
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
    "a.b.c",
    "..",
];

/// One change to a text, its place given as a share of the length.
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
        (0.0..1.0, "[\\[\\]{}=\"'.#\\n0-9a-zµ\u{0}-]{1,8}").prop_map(|(at, text)| Change::Insert(at, text)),
        (0.0..1.0).prop_map(Change::Double),
        (0.0..1.0).prop_map(Change::Drop),
        (0.0..1.0, prop::sample::select(VALUES.to_vec())).prop_map(|(at, value)| Change::Value(at, value)),
    ]
}

fn apply(text: &str, change: &Change) -> String {
    match change {
        Change::Cut(at, share) => {
            let (start, length) = (place(text, *at), place(text, *share));
            text.chars().take(start).chain(text.chars().skip(start + length + 1)).collect()
        }
        Change::Insert(at, new) => {
            let start = place(text, *at);
            text.chars().take(start).chain(new.chars()).chain(text.chars().skip(start)).collect()
        }
        Change::Double(at) => change_line(text, *at, |line| format!("{line}\n{line}")),
        Change::Drop(at) => change_line(text, *at, |_| String::new()),
        Change::Value(at, value) => {
            change_line(text, *at, |line| format!("{} = {value}", line.split('=').next().unwrap_or("")))
        }
    }
}

fn place(text: &str, share: f64) -> usize {
    (share * text.chars().count() as f64) as usize
}

fn change_line(text: &str, share: f64, change: impl Fn(&str) -> String) -> String {
    let chosen = (share * text.lines().count() as f64) as usize;
    let lines = text.lines().enumerate().map(|(at, line)| if at == chosen { change(line) } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

fn start() -> impl Strategy<Value = String> {
    prop::sample::select(builtin::NETWORKS.to_vec()).prop_map(|(_, text)| text.to_owned())
}

fn value() -> impl Strategy<Value = String> {
    let known = prop::sample::select(VALUES.to_vec()).prop_map(|value| value.trim_matches('"').to_owned());
    prop_oneof![known, ".{0,8}"]
}

/// A network that was accepted can be written and read back; one that held NaN would differ from itself.
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
        let error = network.with_overrides(&[("sharing.alpha".into(), value.into())]).unwrap_err().to_string();
        assert!(error.contains("sharing.alpha"), "{value}: {error}");
        let text = network.to_toml().replace("speed = 1.0", &format!("speed = {value}"));
        let error = Network::from_toml(&text, &[]).unwrap_err().to_string();
        assert!(error.contains("machine.nodes.0.speed"), "{value}: {error}");
    }
}

const PAGE: &str = include_str!("../../../docs/network-file.md");

/// The blocks of the page that explains the network file; the first is a whole file, the others are sections.
fn examples() -> Vec<&'static str> {
    PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn each_example_of_the_documentation_is_accepted() {
    let examples = examples();
    assert!(examples.len() > 3, "{}", examples.len());
    Network::from_toml(examples[0], &[]).unwrap();
    for section in &examples[1..] {
        let file = format!("{}\n{section}", examples[0]);
        let network = Network::from_toml(&file, &[]).unwrap_or_else(|error| panic!("{error}\n{file}"));
        assert_ne!(network, Network::from_toml(examples[0], &[]).unwrap(), "{section}");
    }
}

#[test]
fn each_field_of_the_built_in_networks_is_documented() {
    for (name, text) in builtin::NETWORKS {
        for field in text.lines().filter_map(|line| line.split_once(" = ")).map(|(field, _)| field) {
            assert!(PAGE.contains(&format!("`{field}`")), "{name}: {field}");
        }
    }
}
