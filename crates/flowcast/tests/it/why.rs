//! Scenarios, noise, slopes and changes of bundled traces, compared with predictions.

use crate::testing::bundled;
use flowcast::{
    Collectives, Contention, Options, Parameter, Prepared, changes,
    convert::generate::{ProgramShape, Workload},
    graph::{To, noise::ComputeNoise, selector::Selector},
    model::{network::Network, quantity::Quantity, sharing::model::Model},
    predict, sensitivity,
    trace::Trace,
    units::{Bytes, Node, Time},
    why::{self, Cost, NoiseOptions, Scenario, parse_noise},
};

fn network() -> Network {
    flowcast::model::builtin::network("gige-tcp").unwrap()
}

fn independent(threads: usize) -> Options {
    Options {
        contention: Contention::Shared(Model::Independent),
        threads,
        ..Options::default()
    }
}

fn noise(noise: ComputeNoise) -> NoiseOptions {
    NoiseOptions {
        noise,
        runs: 50,
        seed: 7,
        level: 0.9,
        threads: 2,
    }
}

fn scenario(name: &str, options: &Options) -> Scenario {
    Scenario {
        name: name.to_owned(),
        network: network(),
        options: options.clone(),
        slow_nodes: Vec::new(),
        aggregate: None,
        costs: Vec::new(),
        noise: None,
    }
}

#[test]
fn scenarios_equal_their_predictions_on_any_number_of_threads() {
    let trace = bundled("examples/lu.S.4.dim.gz");
    let options = independent(1);
    let half = network()
        .with_overrides(&[("nic.latency".into(), "32.7us".into())])
        .unwrap();
    let latency = Cost {
        selector: Selector::parse("latency[link=between]").unwrap(),
        to: To::Factor(0.5),
    };
    // Collectives by formula have their own latencies, so the program has messages only.
    let messages = bundled("tests/golden/replay/halo_16_5_8192.dim");
    let all = |options: &Options| {
        vec![
            scenario("unchanged", options),
            Scenario {
                costs: vec![latency.clone()],
                ..scenario("by costs", options)
            },
            Scenario {
                network: half.clone(),
                ..scenario("by the network", options)
            },
            Scenario {
                slow_nodes: vec![(Node(2), 2.0)],
                ..scenario("slow", options)
            },
            Scenario {
                costs: vec![Cost::slow_link(Node(0), 0.5).unwrap()],
                ..scenario("link", options)
            },
            Scenario {
                costs: Cost::perfect_overlap().into(),
                ..scenario("overlap", options)
            },
            Scenario {
                noise: Some(noise(ComputeNoise::Exponential(Time::from_micros(20.0)))),
                ..scenario("noise", options)
            },
        ]
    };
    let of =
        |trace: &Trace, threads| why::scenarios(trace, &all(&independent(threads)), None).unwrap();
    assert_eq!(of(&trace, 1), of(&trace, 3));
    let answer = of(&messages, 2);
    let times: Vec<f64> = (0..7)
        .map(|index| {
            answer.json().unwrap()["scenarios"][index]["makespan_s"]
                .as_f64()
                .unwrap()
        })
        .collect();
    let predicted = |network: &Network| {
        predict(&messages, network, &options)
            .unwrap()
            .outcome
            .makespan()
            .as_seconds()
    };
    assert_eq!(times[0], predicted(&network()));
    assert!(
        (times[1] - times[2]).abs() < 1e-12 && (times[2] - predicted(&half)).abs() < 1e-15,
        "{times:?}"
    );
    assert!(
        times[3] > times[0] && times[4] > times[0] && times[5] < times[1] && times[6] > times[0],
        "{times:?}"
    );
}

#[test]
fn a_scenario_with_unknown_names_is_refused() {
    let trace = bundled("examples/lu.S.4.dim.gz");
    let options = independent(1);
    let refused = |scenario: Scenario| {
        why::scenarios(&trace, &[scenario], None)
            .unwrap_err()
            .to_string()
    };
    let slow = Scenario {
        slow_nodes: vec![(Node(9), 2.0)],
        ..scenario("slow", &options)
    };
    assert!(refused(slow).contains("node 9"));
    let selector = Selector::parse("latency[pair=0-9]").unwrap();
    let none = Scenario {
        costs: vec![Cost {
            selector,
            to: To::Factor(2.0),
        }],
        ..scenario("none", &options)
    };
    let error = refused(none);
    assert!(
        error.contains("no costs `latency[pair=0-9]` in the program (scenario `none`)"),
        "{error}"
    );
    assert!(why::scenarios(&trace, &[], None).is_err());
}

#[test]
fn noise_is_the_same_for_a_seed_and_another_for_another() {
    let trace = bundled("examples/lu.S.4.dim.gz");
    let (network, options) = (network(), independent(1));
    let prepared = Prepared::new(&trace, Some(&network), &options).unwrap();
    let run = |seed, threads| {
        let options = NoiseOptions {
            seed,
            threads,
            ..noise(ComputeNoise::Exponential(Time::from_micros(5.0)))
        };
        prepared.with_noise(&options).unwrap()
    };
    assert_eq!(run(1, 1), run(1, 3));
    assert_ne!(run(1, 1).makespans, run(2, 1).makespans);
    let ComputeNoise::Factors(factors) = parse_noise("empirical", prepared.program()).unwrap()
    else {
        panic!("factors")
    };
    assert!(factors.iter().all(|factor| (0.0..=1.0).contains(factor)) && factors.len() > 100);
    assert!(
        prepared
            .with_noise(&NoiseOptions {
                runs: 0,
                ..noise(ComputeNoise::Factors(factors))
            })
            .is_err()
    );
}

#[test]
fn an_idle_wave_reaches_neighbours_and_leaves_far_ranks_alone() {
    // Each rank waits for its neighbour in each of four steps: the wave reaches one more rank in each step.
    let trace = bundled("tests/golden/replay/shift_8_4_8192.dim");
    let (network, options) = (network(), independent(1));
    let prepared = Prepared::new(&trace, Some(&network), &options).unwrap();
    let once = NoiseOptions {
        runs: 1,
        ..noise(ComputeNoise::parse("once:10ms,0").unwrap())
    };
    let late = prepared.with_noise(&once).unwrap().later;
    let reached = late.iter().filter(|late| late.as_nanos() > 1e6).count();
    // In four steps, the wave reaches at most four neighbours on each side from which a rank receives.
    assert!(
        late[0].as_nanos() > 9e6 && (2..8).contains(&reached),
        "{late:?}"
    );
}

#[test]
fn the_ten_changes_are_replayed_and_name_algorithms_where_messages_carry_collectives_out() {
    let trace = bundled("examples/is.S.4.dim.gz");
    let options = Options {
        collectives: Collectives::OpenMpi,
        ..independent(1)
    };
    // The program computes so much that on unchanged processors its messages hardly matter.
    let network = || {
        network()
            .with_overrides(&[("machine.nodes.*.speed".into(), "1000".into())])
            .unwrap()
    };
    let changes = flowcast::changes(&trace, &network(), &options).unwrap();
    assert!(changes.len() <= 10 && changes.is_sorted_by_key(|change| change.makespan));
    let algorithm = changes
        .iter()
        .find(|change| change.what == "Alltoallv")
        .expect("another algorithm helps");
    let table = flowcast::model::algorithm::AlgorithmTable::from_toml(&format!(
        "[rows]\nAlltoallv = ['{}']",
        algorithm.to
    ));
    let other = Options {
        collectives: Collectives::Table(table.unwrap()),
        ..independent(1)
    };
    assert_eq!(
        predict(&trace, &network(), &other)
            .unwrap()
            .outcome
            .makespan(),
        algorithm.makespan
    );
    let answer = why::gradient(&trace, &network(), &options).unwrap();
    assert_eq!(
        answer.json().unwrap()["changes"].as_array().unwrap().len(),
        changes.len()
    );
    let now: f64 = answer.json().unwrap()["slopes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|slope| slope["now_s"].as_f64().unwrap())
        .sum();
    let (other, whole) = (
        answer.json().unwrap()["other_s"].as_f64().unwrap(),
        answer.json().unwrap()["makespan_s"].as_f64().unwrap(),
    );
    assert!((now + other - whole).abs() < 1e-9, "{now} {other} {whole}");
}

#[test]
fn a_curve_under_limits_has_a_fixed_order_curve_that_meets_the_prediction() {
    let trace = bundled("tests/golden/replay/halo_16_5_8192.dim");
    let links = [
        ("machine.nodes.*.in_links", "1"),
        ("machine.nodes.*.out_links", "1"),
    ];
    let links = links.map(|(field, value)| (field.to_owned(), value.to_owned()));
    let network = network().with_overrides(&links).unwrap();
    let options = Options {
        contention: Contention::Limits,
        ..Options::default()
    };
    let range = ["0us", "1ms"].map(|value| Quantity::parse(value).unwrap());
    let parameter = |field: &str| Parameter::new(field, range[0], range[1]).unwrap();
    let found = sensitivity(&trace, &network, parameter("nic.latency"), 1000, &options).unwrap();
    let fixed = found
        .fixed_order
        .as_ref()
        .expect("a curve of a fixed order");
    let base = found.base.unwrap();
    assert!(
        (fixed.at(base).unwrap() - found.base_makespan)
            .as_nanos()
            .abs()
            < 1.0
    );
    let selected = sensitivity(
        &trace,
        &network,
        parameter("latency[link=between]"),
        1000,
        &options,
    )
    .unwrap();
    assert_eq!(&selected.curve, fixed);
    assert!(selected.inexact.unwrap().to_string().contains("limits"));
}

#[test]
fn a_program_that_takes_no_time_has_no_infinite_figures() {
    let shape = ProgramShape {
        workload: Workload::Shift,
        ranks: 2,
        iterations: 0,
        size: Bytes(0),
        compute: Time::ZERO,
        jitter: 0.0,
        seed: 1,
        period: 0,
    };
    let (trace, network, options) = (shape.trace().unwrap(), network(), independent(1));
    let helpful = changes(&trace, &network, &options).unwrap();
    assert!(helpful.is_empty(), "{helpful:?}");
    for answer in [why::path, why::gradient, why::slack] {
        let document = answer(&trace, &network, &options).unwrap();
        document.check().unwrap();
        let words: Vec<&str> = document.words().collect();
        assert!(!words.concat().contains("NaN"), "{words:?}");
    }
}
