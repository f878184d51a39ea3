//! Ends that SimGrid and ns-3 gave for the same networks and messages. `benches/simgrid_zones.py` and
//! `benches/ns3_fabrics.py` compare many more cases if these programs are installed. They wrote the files with `--keep`.

use flowcast::{
    flows::concurrent::{Method, predict_ends},
    model::{
        cluster::{flow::Flow, racks::Racks},
        network::Network,
        sharing::{flow_cuts::Strictness, model::Model},
    },
    units::{Bytes, Node, Time},
};
use serde_json::Value;

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn flows(case: &Value) -> Vec<Flow> {
    let mut flows = Vec::new();
    for (id, row) in (1..).zip(list(&case["flows"])) {
        let field = |place: usize| row[place].as_u64().unwrap();
        flows.push(Flow {
            id,
            src: Node(field(0) as u32),
            dst: Node(field(1) as u32),
            size: Bytes(field(2)),
            start: Time::from_nanos(field(3) as f64),
        });
    }
    flows
}

/// Checks that the end of each message differs by a fraction of at most 1e-9.
fn check(text: &str) {
    let kept: Value = serde_json::from_str(text).unwrap();
    let method = Method {
        model: Model::named(kept["model"].as_str().unwrap()).unwrap(),
        strictness: Strictness::Extended,
    };
    for case in list(&kept["cases"]) {
        let network = Network::from_toml(case["network"].as_str().unwrap(), &[]).unwrap();
        let ours = predict_ends(&flows(case), &Racks::default(), &network, method).unwrap();
        let theirs = list(&case["ends_s"]);
        assert_eq!(ours.flows.len(), theirs.len());
        for (flow, end) in ours.flows.iter().zip(theirs) {
            let (our, their) = (flow.end.as_seconds(), end.as_f64().unwrap());
            assert!(
                (our - their).abs() <= 1e-9 * their,
                "{}, {:?}: {our} and {their}",
                case["name"],
                flow.flow
            );
        }
    }
}

#[test]
fn flows_through_zones_of_simgrid_end_when_they_do_there() {
    check(include_str!(
        "../../../../tests/data/peers/simgrid-zones.json"
    ));
}

#[test]
fn packets_over_links_of_ns_3_arrive_when_they_do_there() {
    check(include_str!(
        "../../../../tests/data/peers/ns3-fabrics.json"
    ));
}
