//! Timed patterns in labs of this user. If namespaces are forbidden or a program is missing, each test prints its name and
//! the reason, and checks nothing.

use std::time::Duration;

use flowcast_measure::{
    clocks::ClockPlan,
    lab::{
        FlowConnections, Lab, PatternOptions, check_machine, nominal, profile, run_pattern,
        set_clocks, synchronise_clocks,
    },
};
use flowcast_network::cluster::flow::Flow;
use flowcast_statistics::{interval::StoppingRule, sample::median};
use flowcast_units::{Bytes, Node, Time};

fn lab(test: &str) -> Option<Lab> {
    lab_of(test, "20Mbit/s")
}

fn lab_of(test: &str, rate: &str) -> Option<Lab> {
    if let Err(reason) = check_machine() {
        eprintln!("skipped: {test}: {reason}");
        return None;
    }
    let slow = [("nic.bandwidth", rate), ("cluster.nodes", "3")];
    let slow = slow.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Some(Lab::up(&profile("asymmetric", &slow).unwrap()).unwrap())
}

fn flow(id: u32, src: u32, dst: u32, start_ms: f64) -> Flow {
    Flow {
        id,
        src: Node(src),
        dst: Node(dst),
        size: Bytes(500_000),
        start: Time::from_micros(start_ms * 1e3),
    }
}

fn options(connections: FlowConnections) -> PatternOptions {
    let rule = StoppingRule {
        min_repetitions: 3,
        max_repetitions: 3,
        ..StoppingRule::default()
    };
    PatternOptions {
        connections,
        rule,
        ..PatternOptions::default()
    }
}

#[test]
fn flows_start_at_their_times_and_last_as_long_as_their_rates_require() {
    let Some(lab) = lab("flows_start_at_their_times_and_last_as_long_as_their_rates_require")
    else {
        return;
    };
    let flows = [
        flow(1, 0, 1, 50.0),
        flow(2, 0, 2, 50.0),
        flow(3, 2, 0, 700.0),
    ];
    let run = run_pattern(&lab, &flows, &options(FlowConnections::EachFlow)).unwrap();
    let alone = nominal::one_flow(lab.spec(), 0)
        .time_for(Bytes(500_000))
        .as_seconds();
    for (flow, units) in [2.0, 2.0, 1.0].into_iter().enumerate() {
        let durations = run.durations_of(flow).into_iter();
        let durations: Vec<f64> = durations.map(Time::as_seconds).collect();
        let units_taken = median(&durations).unwrap() / alone;
        assert!(
            (units_taken / units - 1.0).abs() < 0.15,
            "{units_taken} of {units}"
        );
    }
    for repetition in &run.repetitions {
        let late = repetition[2].start.as_seconds() - 0.7;
        assert!((0.0..0.1).contains(&late), "{late}");
    }
}

#[test]
fn offsets_between_clocks_are_found_to_a_microsecond() {
    // This rate is as fast as short messages in a row need: queues in one direction would be asymmetry.
    let Some(lab) = lab_of(
        "offsets_between_clocks_are_found_to_a_microsecond",
        "1Gbit/s",
    ) else {
        return;
    };
    let clocks = set_clocks(3, 1);
    let plan = ClockPlan {
        span: Time::from_micros(300_000.0),
        ..ClockPlan::default()
    };
    let run = synchronise_clocks(&lab, &clocks, &plan, Duration::from_millis(100)).unwrap();
    for ((set, learned), wrong) in clocks.iter().zip(&run.learned).zip(&run.deviations) {
        // The round trips bound the errors that the paths hide, and on a busy machine also the errors due to jitter.
        let known = learned.asymmetry + learned.deviation * 6.0;
        assert!(
            wrong.at_once.as_nanos().abs() <= known.as_nanos() + 100.0,
            "{wrong:?} {learned:?}"
        );
        assert!(
            wrong.at_once.as_micros().abs() < 20.0,
            "{wrong:?} of {set:?}"
        );
        let drift = learned.line.drift - (1.0 / (1.0 + set.drift) - 1.0);
        assert!(
            drift.abs() < 6.0 * learned.drift_deviation + 2e-6,
            "{drift} of {set:?}"
        );
    }
}

#[test]
fn flows_that_share_a_connection_are_sent_one_after_the_other() {
    let Some(lab) = lab("flows_that_share_a_connection_are_sent_one_after_the_other") else {
        return;
    };
    let flows = [flow(1, 0, 1, 0.0), flow(2, 0, 1, 0.0)];
    let run = run_pattern(&lab, &flows, &options(FlowConnections::EachPair)).unwrap();
    for repetition in &run.repetitions {
        let apart = repetition[1].end.as_seconds() - repetition[0].end.as_seconds();
        assert!(apart > 0.5 * repetition[0].end.as_seconds(), "{apart}");
    }
    assert!(
        run_pattern(
            &lab,
            &[flow(1, 0, 9, 0.0)],
            &options(FlowConnections::EachPair)
        )
        .is_err()
    );
}
