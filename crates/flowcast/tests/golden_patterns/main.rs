//! The worked cases of RR-5910 and of hierarchical Ethernet, through the public library.

mod martinasso;
mod zhu;

use serde_json::Value;

/// Input, expected result, tolerance; the error says what differs.
type Kind = (&'static str, fn(&Value, &Value, &Value) -> Result<(), String>);

/// Kinds that belong to the statistics of measurements, which are checked where those live.
const STATISTICS: [&str; 5] = ["error_metrics", "alpha_band", "interval_cluster", "error_metric", "ci_stop"];

fn run(file: &str, kinds: &[Kind]) {
    let path = format!("{}/../../tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut checked = 0;
    let mut failures = Vec::new();
    for case in document["cases"].as_array().unwrap() {
        let (id, name) = (case["id"].as_str().unwrap(), case["kind"].as_str().unwrap());
        if STATISTICS.contains(&name) {
            continue;
        }
        let (_, check) = kinds.iter().find(|(kind, _)| *kind == name).unwrap_or_else(|| panic!("{id}: kind {name}"));
        checked += 1;
        if let Err(message) = check(&case["input"], &case["expected"], &case["tolerance"]) {
            failures.push(format!("{id}: {message}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(checked >= 10, "{file} has {checked} cases of ours");
}

#[test]
fn every_worked_case_of_flow_cuts_is_met() {
    run("A_martinasso.json", martinasso::KINDS);
}

#[test]
fn every_worked_case_of_hierarchical_ethernet_is_met() {
    run("B_zhu.json", zhu::KINDS);
}
