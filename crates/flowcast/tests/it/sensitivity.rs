//! The curve of the makespan over a field, compared with predictions at single values of it.

use std::path::Path;

use crate::{
    random_programs::{any_numbers, any_records},
    testing::{bundled, program_of},
};
use flowcast::{
    Collectives, Contention, Inexact, Options, Parameter, Sensitivity,
    model::{
        builtin, machine::NodeGroup, network::Network, quantity::Quantity, sharing::model::Model,
    },
    predict, sensitivity,
    trace::Trace,
    units::Bytes,
};
use proptest::prelude::*;

/// Fields and ranges of all kinds: times, times per byte, rates, speeds.
const FIELDS: [(&str, &str, &str); 9] = [
    ("nic.latency", "0us", "200us"),
    ("nic.latency", "20us", "40us"),
    ("nic.overhead", "0us", "50us"),
    ("nic.gap", "0us", "80us"),
    ("nic.gap_per_byte", "0ns/B", "20ns/B"),
    ("nic.bandwidth", "50MB/s", "10GB/s"),
    ("machine.nodes.0.speed", "0.25", "4"),
    ("machine.nodes.*.intra_latency", "0us", "90us"),
    ("machine.nodes.0.intra_bandwidth", "100MB/s", "20GB/s"),
];

fn parameter((field, from, to): (&str, &str, &str)) -> Parameter {
    Parameter::new(
        field,
        Quantity::parse(from).unwrap(),
        Quantity::parse(to).unwrap(),
    )
    .unwrap()
}

fn independent() -> Options {
    Options {
        contention: Contention::Shared(Model::Independent),
        ..Options::default()
    }
}

/// Difference between the curve and a prediction at this fraction of its range, in nanoseconds.
fn off(trace: &Trace, network: &Network, curve: &Sensitivity, part: f64, options: &Options) -> f64 {
    let (from, to) = curve.parameter.range();
    let at = from + part * (to - from);
    let set = network
        .with_overrides(&[(curve.parameter.field().to_owned(), curve.parameter.text(at))])
        .unwrap();
    let predicted = predict(trace, &set, options).unwrap().outcome.makespan();
    (curve.curve.at(at).unwrap() - predicted).as_nanos().abs()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_curve_equals_the_prediction_at_every_value(
        records in any_records(),
        numbers in any_numbers(),
        field in proptest::sample::select(&FIELDS[..]),
        parts in proptest::collection::vec(0.0..=1.0f64, 8),
    ) {
        let trace = Trace::Program(records.program());
        let network = numbers.network(trace.ranks());
        let options = Options { rendezvous_from: numbers.rendezvous_from.map(Bytes), ..independent() };
        let curve = sensitivity(&trace, &network, parameter(field), 10_000, &options).unwrap();
        if let Some(reason) = curve.inexact {
            let reasons = [Inexact::NotLinear, Inexact::Rendezvous, Inexact::Order, Inexact::Sizes];
            prop_assert!(reasons.contains(&reason), "{reason}");
            return Ok(());
        }
        prop_assert!(curve.curve.walks <= 2 * curve.curve.pieces.len() + 3, "{curve:?}");
        for part in parts.into_iter().chain([0.0, 1e-9, 1.0]) {
            let off = off(&trace, &network, &curve, part, &options);
            prop_assert!(off <= 0.1, "{off} ns at {part} of {field:?}: {:?}", curve.curve);
        }
    }
}

#[test]
fn curves_of_bundled_traces_equal_predictions() {
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let golden = [
        "halo_16_5_8192",
        "binbcast_16_3_16",
        "c_callreduce_8_1024",
        "alltoall_8_2_16",
    ];
    let golden = golden.map(|name| format!("tests/golden/replay/{name}.dim"));
    for path in golden
        .iter()
        .map(String::as_str)
        .chain(["examples/lu.S.4.dim.gz", "examples/is.S.4.dim.gz"])
    {
        let trace = bundled(path);
        for field in [
            ("nic.latency", "0us", "1ms"),
            ("nic.bandwidth", "10MB/s", "10GB/s"),
            ("nic.overhead", "0us", "90us"),
        ] {
            let curve =
                sensitivity(&trace, &network, parameter(field), 10_000, &independent()).unwrap();
            assert_eq!(curve.inexact, None, "{path} {field:?}");
            for part in [0.0, 0.000_7, 0.07, 0.3, 0.501, 0.83, 0.999, 1.0] {
                let off = off(&trace, &network, &curve, part, &independent());
                assert!(off <= 0.01, "{off} ns at {part} of {field:?}: {path}");
            }
        }
    }
}

#[test]
fn the_time_at_the_tolerance_is_longer_by_the_stated_fraction() {
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let trace = bundled("examples/lu.S.4.dim.gz");
    let curve = sensitivity(
        &trace,
        &network,
        parameter(("nic.latency", "0us", "1ms")),
        1000,
        &independent(),
    )
    .unwrap();
    for factor in [0.9, 0.99, 1.01, 1.1] {
        let at = curve.value_at(factor).unwrap();
        let set = network
            .with_overrides(&[("nic.latency".into(), curve.parameter.text(at))])
            .unwrap();
        let predicted = predict(&trace, &set, &independent())
            .unwrap()
            .outcome
            .makespan();
        let ratio = predicted.as_nanos() / curve.base_makespan.as_nanos();
        assert!((ratio - factor).abs() < 1e-9, "{factor}: {ratio}");
    }
    assert_eq!(curve.value_at(1e6), None);
    assert_eq!(curve.base, Some(network.nic.latency.as_nanos()));
}

#[test]
fn curves_that_depend_on_the_order_of_events_are_sampled_with_a_note() {
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let trace = bundled("tests/golden/replay/halo_16_5_8192.dim");
    let run = |field, options: &Options| {
        sensitivity(&trace, &network, parameter(field), 1000, options).unwrap()
    };
    let fair = Options {
        contention: Contention::Shared(Model::Fair),
        ..Options::default()
    };
    let curve = run(("nic.latency", "0us", "1ms"), &fair);
    assert_eq!(curve.inexact, Some(Inexact::Model("fair")));
    assert!(off(&trace, &network, &curve, 0.5, &fair) < 1e-3 * curve.base_makespan.as_nanos());
    let whole = run(("machine.buses", "1", "4"), &Options::default());
    assert_eq!(whole.inexact, Some(Inexact::WholeNumbers));
    assert_eq!(whole.curve.pieces.len(), 3);
}

#[test]
fn collectives_that_start_at_whole_nanoseconds_limit_the_error_of_a_curve_to_these() {
    let ranks = [0, 1].map(|rank| {
        format!(
            "1:{rank}:0:0.0000{rank}1\n10:{rank}:0:10:1:0:0:8:8:0\n1:{rank}:0:0.001\n10:{rank}:0:10:1:0:0:0:0:2\n"
        )
    });
    let text = format!("#DIMEMAS:\"c\":0:2(1,1),1\nd:1:1:2:0:1\n{}", ranks.concat());
    let trace = Trace::Program(program_of(text));
    let network = builtin::network("gige-tcp").unwrap();
    let options = Options {
        collectives: Collectives::Formula,
        ..independent()
    };
    let range = parameter(("nic.latency", "0us", "1ms"));
    let found = sensitivity(&trace, &network, range, 1000, &options).unwrap();
    assert_eq!(found.inexact, Some(Inexact::Error(1000)));
    let error = found.curve.error.as_nanos();
    assert!(error > 0.0 && error <= 2.0, "{error}");
    for part in [0.0, 1e-7, 0.1234567, 0.7, 1.0] {
        assert!(off(&trace, &network, &found, part, &options) <= error + 0.01);
    }
}

#[test]
fn a_curve_over_the_speed_of_a_rank_leaves_out_its_accelerator() {
    let text = "#DIMEMAS:\"a\":0:2(1,1),0\n1:0:0:0.000001\n11:0:0:0.00001\n1:1:0:0.00002\n";
    let trace = Trace::Program(program_of(text));
    let mut network = builtin::network("gige-tcp").unwrap();
    let group = NodeGroup {
        count: 1,
        ..NodeGroup::default()
    };
    network.machine.nodes = vec![group; 2];
    let curve = |field| {
        let range = parameter((field, "0.25", "4"));
        sensitivity(&trace, &network, range, 1000, &independent()).unwrap()
    };
    for (field, pieces) in [("machine.nodes.0.speed", 1), ("machine.nodes.1.speed", 2)] {
        let found = curve(field);
        assert_eq!((found.inexact, found.curve.pieces.len()), (None, pieces));
        for part in [0.0, 0.1, 0.7, 1.0] {
            assert!(off(&trace, &network, &found, part, &independent()) < 1e-3);
        }
    }
}

#[test]
fn the_most_helpful_changes_come_first_and_equal_predictions() {
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let trace = bundled("examples/lu.S.4.dim.gz");
    let base = predict(&trace, &network, &independent())
        .unwrap()
        .outcome
        .makespan();
    let changes = flowcast::changes(&trace, &network, &independent()).unwrap();
    assert!(
        changes.is_sorted_by_key(|change| change.makespan)
            && changes.iter().all(|change| change.makespan < base)
    );
    let best = &changes[0];
    assert_eq!(best.what, "nic.latency");
    let set = network
        .with_overrides(&[(best.what.clone(), "32.7us".into())])
        .unwrap();
    assert_eq!(
        predict(&trace, &set, &independent())
            .unwrap()
            .outcome
            .makespan(),
        best.makespan
    );
}

#[test]
fn many_pieces_are_combined_to_rows_that_cover_the_whole_range() {
    let folder = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/heat.rec"
    ));
    let open = |file: &str| std::fs::read(folder.join(file));
    let trace = flowcast::read_files(flowcast::recording::format::RECORDING, open).unwrap();
    let network = builtin::network("gige-tcp").unwrap();
    let parameter = Parameter::parse("nic.latency", "0us..100us").unwrap();
    let found = sensitivity(&trace, &network, parameter, 10_000, &independent()).unwrap();
    let rows = |most: usize| {
        found
            .answer("", &network, most)
            .tables()
            .next()
            .unwrap()
            .texts(usize::MAX)
            .split_off(1)
    };
    assert_eq!(rows(usize::MAX).len(), 44);
    let joined = rows(4);
    let ends: Vec<&str> = joined.iter().map(|row| row[1].as_str()).collect();
    assert!(
        joined.len() <= 4 && ends.last() == Some(&"100.0 us"),
        "{joined:?}"
    );
    assert!(
        joined.windows(2).all(|pair| pair[0][1] == pair[1][0]),
        "{joined:?}"
    );
    let [time, growth] = [2, 3].map(|cell| {
        joined[0][cell]
            .split(' ')
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
    });
    let width: f64 = ends[0].split(' ').next().unwrap().parse().unwrap();
    let next: f64 = joined[1][2].split(' ').next().unwrap().parse().unwrap();
    assert!(
        (time + width * growth / 1000.0 - next).abs() < 0.01,
        "{joined:?}"
    );
}
