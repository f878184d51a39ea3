//! All pairs of a lab with a slowed-down node. If namespaces are forbidden, the test prints its name and the reason, and
//! checks nothing.

use std::time::Duration;

use flowcast_fit::pairs::{
    PairOptions, Slow, analyse,
    samples::{ConcurrentLoad, PairSamples},
    steps::steps,
};
use flowcast_measure::lab::{Lab, PatternOptions, check_machine, profile, run_pattern};
use flowcast_network::cluster::tournament::rounds;
use flowcast_statistics::interval::StoppingRule;
use flowcast_units::{Bytes, Node};

const SIZE: Bytes = Bytes(200_000);

fn measured(lab: &Lab) -> PairSamples {
    let rule = StoppingRule {
        min_repetitions: 3,
        max_repetitions: 3,
        ..StoppingRule::default()
    };
    let options = PatternOptions {
        warm_ups: 1,
        rule,
        pause: Duration::from_millis(5),
        ..PatternOptions::default()
    };
    let mut samples = PairSamples::default();
    for round in rounds(&lab.spec().nodes().collect::<Vec<_>>()) {
        for (company, flows) in steps(&round, &[SIZE]) {
            let run = run_pattern(lab, &flows, &options).unwrap();
            for (at, flow) in flows.iter().enumerate() {
                samples.extend(SIZE, company, flow.src, flow.dst, run.durations_of(at));
            }
        }
    }
    samples
}

#[test]
fn a_node_that_sends_at_half_its_rate_is_named() {
    if let Err(reason) = check_machine() {
        eprintln!("skipped: a_node_that_sends_at_half_its_rate_is_named: {reason}");
        return;
    }
    let set = [("nic.bandwidth", "20Mbit/s"), ("cluster.nodes", "6")]
        .map(|(key, value)| (key.into(), value.into()));
    let lab = Lab::up(&profile("fair", &set).unwrap()).unwrap();
    let half = "qdisc replace dev eth0 root handle 1: tbf rate 10mbit burst 3100 limit 3000000 overhead 24";
    let status = lab
        .command_in(Node(4), "tc")
        .unwrap()
        .args(half.split(' '))
        .status()
        .unwrap();
    assert!(status.success());
    let samples = measured(&lab);
    let alone = samples.typical(SIZE, ConcurrentLoad::Alone).unwrap();
    let analysis = analyse(
        &alone,
        samples.typical(SIZE, ConcurrentLoad::Both).as_ref(),
        PairOptions::default(),
    )
    .unwrap();
    let first = analysis.findings.first().expect("something is slow");
    assert_eq!(first.slow, Slow::Sender(Node(4)), "{:?}", analysis.findings);
    assert!((1.5..2.5).contains(&first.times), "{first:?}");
}
