//! Intervals of predictions: their parts, and a check that they contain the measured times as often as they promise.
//!
//! The measured patterns and runs are those of `tests/data/validation`. `cargo xtask test margins` prints the tables of
//! [validation](../../../docs/reference/validate.md).

use std::collections::BTreeMap;

use flowcast::{
    Collectives, Contention, Interval, IntervalOptions, Options, Outputs, Prepared,
    model::{
        accuracy::{Accuracy, CaseKind},
        cluster::{
            flow::Flow,
            pattern::{Pattern, Steps},
            racks::Racks,
        },
        network::{Network, ParameterInterval as OfField},
        quantity::Quantity,
        sharing::model::Model,
    },
    pattern_intervals, predict, predict_pattern,
    statements::missing_margin_reason,
    statistics::{conformal::share_interval, resampling::percentile_interval, sample::median},
    trace::Trace,
    units::{Bytes, Node, Time},
};
use serde_json::Value;

const CHAINS: &str = include_str!("../../../../tests/data/validation/chains.journal");
const RACKS: &str = include_str!("../../../../tests/data/validation/racks.journal");
/// Fitted to conflicts that were measured in the same two labs.
const CHAINS_NETWORK: &str = include_str!("../../../../tests/data/validation/chains.toml");
const RACKS_NETWORK: &str = include_str!("../../../../tests/data/validation/racks.toml");
const NAS: &str = include_str!("../../../../tests/data/validation/nas.toml");

fn network(intervals: &str) -> Network {
    let text = format!(
        "schema = \"flowcast/network/2\"\nname = \"x\"\n[point_to_point]\nrule = \"hockney\"\n[nic]\nlatency = \"10us\"\n\
         bandwidth = \"100MB/s\"\n[intervals]\n{intervals}"
    );
    Network::from_toml(&text, &[]).unwrap()
}

const OF_BANDWIDTH: &str =
    "\"nic.bandwidth\" = { low = \"80MB/s\", high = \"125MB/s\", level = 0.9 }\n";

/// Rank 0 computes for 1 ms and sends a megabyte to rank 1, twice.
fn trace() -> Trace {
    let send = "1:0:0:0.001\n2:0:0:1:-1:1000000:7:1:0\n";
    let text = format!(
        "#DIMEMAS:\"two\":1,0:2(1,1),1\nd:1:1:2:0:1\n{send}{send}{receive}{receive}",
        receive = "3:1:0:0:-1:1000000:7:1:0\n"
    );
    flowcast::read_text("two.dim", text).unwrap()
}

fn interval_of(
    network: &Network,
    options: &Options,
    asked: &IntervalOptions<'_>,
) -> Option<Interval> {
    let trace = trace();
    let prepared = Prepared::new(&trace, Some(network), options).unwrap();
    let prediction = prepared.predict(Outputs::default(), &[]).unwrap();
    let found = prepared.interval(&prediction.outcome, asked).unwrap();
    if let Some(interval) = &found {
        assert_eq!(interval.predicted, prediction.outcome.makespan());
        assert!(
            interval.low <= interval.predicted && interval.predicted <= interval.high,
            "{interval:?}"
        );
    }
    found
}

fn validated(network: &mut Network, model: &str, kind: CaseKind, errors: &[(&str, f64)]) {
    let errors = errors
        .iter()
        .map(|(name, error)| ((*name).to_owned(), vec![*error]))
        .collect();
    network
        .accuracy
        .push(Accuracy::of_errors(model, kind, "what was run", errors).unwrap());
}

/// Adds an accuracy record without errors for the model.
fn exact(network: &mut Network, model: &str) {
    let names: Vec<String> = (0..999).map(|at| format!("p{at}")).collect();
    let errors: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 0.0)).collect();
    validated(
        network,
        &format!("{model}/openmpi"),
        CaseKind::Programs,
        &errors,
    );
}

#[test]
fn parameters_are_drawn_together_and_the_ends_are_those_of_the_interval() {
    let mut network = network(OF_BANDWIDTH);
    for model in ["independent", "fair"] {
        exact(&mut network, model);
    }
    let independent = Options {
        contention: Contention::Shared(Model::Independent),
        ..Options::default()
    };
    let asked = IntervalOptions::default();
    let found = interval_of(&network, &independent, &asked).unwrap();
    assert_eq!(
        found.covers,
        "parameters (slopes of a walk) and the model's error on 999 programs"
    );
    // Two messages one after the other, 10 ms each at 100 MB/s: the ends follow from those of the bandwidth.
    let at = |rate: &str| {
        let other = network
            .with_overrides(&[("nic.bandwidth".to_owned(), rate.to_owned())])
            .unwrap();
        predict(&trace(), &other, &independent)
            .unwrap()
            .outcome
            .makespan()
            .as_seconds()
    };
    let near = |found: Time, expected: f64| {
        assert!(
            (found.as_seconds() / expected - 1.0).abs() < 0.02,
            "{found} {expected}"
        )
    };
    near(found.low, at("125MB/s"));
    near(found.high, at("80MB/s"));
    assert_eq!(
        Some(found.clone()),
        interval_of(&network, &independent, &asked)
    );
    // A replay gives the same interval as the walk.
    let shared = Options {
        contention: Contention::Shared(Model::Fair),
        ..Options::default()
    };
    let apart = interval_of(&network, &shared, &asked).unwrap();
    let factors = |one: &Interval| {
        [one.low, one.high].map(|end| end.as_seconds() / one.predicted.as_seconds())
    };
    let ([low, high], more) = (factors(&apart), apart.predicted.as_seconds() - 2e-3);
    assert!(
        (low - (2e-3 + more * 0.8) / (2e-3 + more)).abs() < 0.02,
        "{apart}"
    );
    assert!(
        (high - (2e-3 + more * 1.25) / (2e-3 + more)).abs() < 0.02,
        "{apart}"
    );
    let wider = interval_of(
        &network,
        &independent,
        &IntervalOptions {
            level: 0.99,
            ..asked
        },
    )
    .unwrap();
    assert!(wider.low < found.low && wider.high > found.high);
    assert_eq!(
        interval_of(&network, &shared, &asked).unwrap().covers,
        "parameters (slopes of a replay) and the model's error on 999 programs"
    );
}

#[test]
fn the_models_errors_widen_the_interval_and_those_of_the_held_out_program_are_left_out() {
    let mut network = network(OF_BANDWIDTH);
    let names: Vec<String> = (0..19).map(|at| format!("p{at}.4")).collect();
    let errors: Vec<(&str, f64)> = names
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_str(), at as f64 * 0.01 - 0.09))
        .collect();
    validated(&mut network, "fair/openmpi", CaseKind::Programs, &errors);
    validated(&mut network, "fair", CaseKind::Flows, &[("a", 0.5)]);
    let fair = Options {
        contention: Contention::Shared(Model::Fair),
        ..Options::default()
    };
    let asked = IntervalOptions::default();
    let both = interval_of(&network, &fair, &asked).unwrap();
    assert_eq!(
        both.covers,
        "parameters (slopes of a replay) and the model's error on 19 programs"
    );
    network.intervals.clear();
    let alone = interval_of(&network, &fair, &asked).unwrap();
    let seconds = alone.predicted.as_seconds();
    assert!(
        (alone.low.as_seconds() - seconds / 1.09).abs() < 1e-9 * seconds,
        "{alone}"
    );
    assert!(
        (alone.high.as_seconds() - seconds / 0.91).abs() < 1e-9 * seconds,
        "{alone}"
    );
    assert!(both.low < alone.low && alone.high < both.high);
    // Eighteen errors give ends on both sides of the prediction.
    let without = interval_of(
        &network,
        &fair,
        &IntervalOptions {
            held_out: Some("p0"),
            ..asked
        },
    )
    .unwrap();
    assert_eq!(without.covers, "the model's error on 18 programs");
    assert!(without.high < alone.high);
    assert_eq!(without.level, 0.9);
    let packet = Options {
        contention: Contention::Shared(Model::Packet),
        ..Options::default()
    };
    let elsewhere = interval_of(&network, &packet, &asked).unwrap();
    assert!(
        elsewhere
            .covers
            .starts_with("at least the model's error on ten programs"),
        "{}",
        elsewhere.covers
    );
    let by_formula = Options {
        collectives: Collectives::Formula,
        ..packet
    };
    let elsewhere = interval_of(&network, &by_formula, &asked).unwrap();
    assert!(
        elsewhere
            .covers
            .starts_with("at least the error of packet/openmpi"),
        "{}",
        elsewhere.covers
    );
    let penalty = Options {
        contention: Contention::Shared(Model::IbPenalty),
        ..Options::default()
    };
    assert_eq!(interval_of(&network, &penalty, &asked), None);
    assert!(missing_margin_reason(&network).contains("apply to this model"));
}

#[test]
fn a_network_without_intervals_and_accuracy_record_has_no_margin() {
    let network = network("");
    assert_eq!(
        interval_of(&network, &Options::default(), &IntervalOptions::default()),
        None
    );
    assert_eq!(
        missing_margin_reason(&network),
        "no margin known: the network file has neither intervals nor an accuracy record"
    );
    let limits = Options {
        contention: Contention::Limits,
        ..Options::default()
    };
    let mut few = network.clone();
    validated(
        &mut few,
        "limits/formula",
        CaseKind::Programs,
        &[("cg.S.4", -0.2), ("is.S.4", 0.1)],
    );
    let found = interval_of(&few, &limits, &IntervalOptions::default()).unwrap();
    // Two errors can promise at most two out of three.
    assert!(
        (found.level - 2.0 / 3.0).abs() < 1e-12 && found.to_string().ends_with("66.7 %)"),
        "{found}"
    );
    assert!(
        interval_of(
            &few,
            &limits,
            &IntervalOptions {
                held_out: Some("is"),
                ..IntervalOptions::default()
            }
        )
        .is_some()
    );
}

/// Width of the interval of a program by slopes, relative to the width by 64 draws.
fn width_by_slopes(trace: &Trace, network: &Network, model: Model) -> f64 {
    let options = Options {
        contention: Contention::Shared(model),
        ..Options::default()
    };
    let prepared = Prepared::new(trace, Some(network), &options).unwrap();
    let outcome = prepared.predict(Outputs::default(), &[]).unwrap().outcome;
    let asked = IntervalOptions::default();
    let found = prepared.interval(&outcome, &asked).unwrap().unwrap();
    let slopes = (found.high.as_seconds() / found.low.as_seconds()).ln();
    let matters = |field: &str| flowcast::matters(field, Some(model));
    let drawn = network.drawn(&matters, 64, 1).unwrap();
    let times = drawn.iter().map(|network| {
        let predicted = predict(trace, network, &options).unwrap();
        predicted.outcome.makespan().as_seconds().ln()
    });
    let (low, high) = percentile_interval(&times.collect::<Vec<_>>(), 0.9).unwrap();
    let draws = high - low;
    println!(
        "{} on {} by {}: {:.2} % by slopes, {:.2} % by 64 draws",
        trace.name(),
        network.name,
        model.name(),
        slopes * 50.0,
        draws * 50.0
    );
    slopes / draws
}

#[test]
fn slopes_give_nearly_the_width_of_64_draws() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lu.S.4.dim.gz");
    let lu = flowcast::read_files(file, |name| std::fs::read(name)).unwrap();
    let mut wide = network(&format!(
        "{OF_BANDWIDTH}\"nic.latency\" = {{ low = \"4us\", high = \"30us\", level = 0.9 }}\n"
    ));
    wide.name = "wide".to_owned();
    let [chains, racks] =
        [CHAINS_NETWORK, RACKS_NETWORK].map(|text| Network::from_toml(text, &[]).unwrap());
    for mut network in [chains, racks, wide] {
        network.accuracy.clear();
        network.fit.misfit = None;
        for model in [Model::Independent, Model::Fair, Model::AlphaFair] {
            exact(&mut network, model.name());
            let ratio = width_by_slopes(&lu, &network, model);
            assert!((0.8..1.25).contains(&ratio), "{ratio}");
        }
    }
}

#[test]
fn a_schedule_has_the_interval_of_its_parameters() {
    let text = "num_ranks 2\nrank 0 {\nl1: send 1000000b to 1 tag 5\n}\nrank 1 {\nl1: recv 1000000b from 0 tag 5\n}\n";
    let trace = flowcast::read_text("one.goal", text).unwrap();
    let mut network = network(OF_BANDWIDTH);
    exact(&mut network, "fair");
    let prepared = Prepared::new(&trace, Some(&network), &Options::default()).unwrap();
    let outcome = prepared.predict(Outputs::default(), &[]).unwrap().outcome;
    let found = prepared
        .interval(&outcome, &IntervalOptions::default())
        .unwrap()
        .unwrap();
    let share = |time: Time| time.as_seconds() / outcome.makespan().as_seconds();
    assert!(
        (share(found.low) - 0.8).abs() < 0.02 && (share(found.high) - 1.25).abs() < 0.02,
        "{found}"
    );
}

#[test]
fn an_interval_is_a_sentence() {
    let of = |predicted: f64, low: f64, high: f64, level: f64| {
        let [predicted, low, high] =
            [predicted, low, high].map(|millis| Time::from_micros(millis * 1e3));
        Interval {
            predicted,
            low,
            high,
            level,
            covers: String::new(),
        }
        .to_string()
    };
    assert_eq!(of(397.2, 372.0, 421.4, 0.9), "397 ms (372 to 421, 90 %)");
    assert_eq!(
        of(73.2, 73.19, 73.22, 0.95),
        "73.20 ms (73.19 to 73.22, 95 %)"
    );
    assert_eq!(
        of(9876.0, 9000.0, 10_400.0, 0.9),
        "9.88 s (9.00 to 10.40, 90 %)"
    );
    assert_eq!(of(0.0, 0.0, 0.0, 0.9), "0 ns (0 to 0, 90 %)");
}

/// A measured pattern, with the medians of its durations and of the time until its last flow ended.
struct Carried {
    name: String,
    pattern: Pattern,
    durations: Vec<Time>,
    makespan: Time,
}

fn carried(journal: &str, racks: u32) -> Vec<Carried> {
    let one = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let flows = line["flows"].as_array().unwrap();
        let number = |flow: &Value, key: &str| flow[key].as_u64().unwrap();
        let times = |flow: &Value| {
            flow["durations_s"]
                .as_array()
                .unwrap()
                .iter()
                .map(|s| s.as_f64().unwrap())
                .collect::<Vec<_>>()
        };
        let flow = |flow: &Value| Flow {
            id: number(flow, "id") as u32,
            src: Node(number(flow, "src") as u32),
            dst: Node(number(flow, "dst") as u32),
            size: Bytes(number(flow, "bytes")),
            start: Time::from_seconds(flow["start_s"].as_f64().unwrap()),
        };
        let repetitions = times(&flows[0]).len();
        let ends = (0..repetitions).map(|run| {
            flows
                .iter()
                .map(|flow| flow["start_s"].as_f64().unwrap() + times(flow)[run])
                .fold(0.0, f64::max)
        });
        Carried {
            name: line["name"].as_str().unwrap().to_owned(),
            durations: flows
                .iter()
                .map(|flow| Time::from_seconds(median(&times(flow)).unwrap()))
                .collect(),
            makespan: Time::from_seconds(median(&ends.collect::<Vec<_>>()).unwrap()),
            pattern: Pattern {
                flows: flows.iter().map(flow).collect(),
                racks: racks_of(racks),
            },
        }
    };
    journal.lines().skip(1).map(one).collect()
}

/// Ten nodes, half of them in each rack, or all in one rack.
fn racks_of(count: u32) -> Racks {
    let mut racks = Racks::default();
    if count == 2 {
        for node in 0..10 {
            racks
                .place(Node(node), Node(node), if node < 5 { "A" } else { "B" })
                .unwrap();
        }
    }
    racks
}

/// Results of 90 % intervals.
#[derive(Default)]
struct Tally {
    inside: usize,
    widths: Vec<f64>,
}

impl Tally {
    fn add(&mut self, interval: &Interval, measured: Time) {
        self.inside += usize::from(interval.low <= measured && measured <= interval.high);
        self.widths
            .push((interval.high - interval.low).as_seconds() / interval.predicted.as_seconds());
    }

    fn share(&self) -> f64 {
        self.inside as f64 / self.widths.len() as f64
    }
}

/// Row of a table: the share of the measurements that the intervals contain.
fn row(what: &str, model: &str, accuracy_record: &str, (kind, tally): (&str, &Tally)) -> String {
    let (low, high) = share_interval(tally.inside, tally.widths.len(), 0.95).unwrap();
    let [share, low, high, width] =
        [tally.share(), low, high, median(&tally.widths).unwrap()].map(|part| part * 100.0);
    let cases = tally.widths.len();
    format!(
        "| {what} | {model} | {accuracy_record} | {cases} {kind} | {share:.1} % ({low:.1} to {high:.1}) | {width:.1} % |"
    )
}

/// The network with an accuracy record of a model's errors on these patterns.
fn with_ledger(carried: &[Carried], network: &Network, model: Model) -> Network {
    let options = Options {
        contention: Contention::Shared(model),
        ..Options::default()
    };
    let error =
        |predicted: Time, measured: Time| predicted.as_seconds() / measured.as_seconds() - 1.0;
    let (mut of_flows, mut of_patterns) = (BTreeMap::new(), BTreeMap::new());
    for one in carried {
        let predicted = predict_pattern(&one.pattern, network, &options)
            .unwrap()
            .prediction;
        let flows = predicted.flows.iter().zip(&one.durations);
        of_flows.insert(
            one.name.clone(),
            flows
                .map(|(flow, measured)| error(flow.duration, *measured))
                .collect(),
        );
        of_patterns.insert(
            one.name.clone(),
            vec![error(predicted.makespan(), one.makespan)],
        );
    }
    let entry = |kind, errors| Accuracy::of_errors(model.name(), kind, "these", errors).unwrap();
    let accuracy = vec![
        entry(CaseKind::Flows, of_flows),
        entry(CaseKind::Patterns, of_patterns),
    ];
    Network {
        accuracy,
        ..network.clone()
    }
}

/// Compares every pattern with its intervals, each from the accuracy record without the pattern itself.
fn judge(carried: &[Carried], network: &Network, model: Model) -> (Tally, Tally) {
    let options = Options {
        contention: Contention::Shared(model),
        ..Options::default()
    };
    let (mut flows, mut patterns) = (Tally::default(), Tally::default());
    for one in carried {
        let predicted = predict_pattern(&one.pattern, network, &options).unwrap();
        let asked = IntervalOptions {
            held_out: Some(&one.name),
            ..IntervalOptions::default()
        };
        let steps = Steps {
            steps: vec![one.pattern.flows.clone()],
            racks: one.pattern.racks.clone(),
        };
        let found = pattern_intervals(&steps, network, &options, &[predicted], &asked)
            .unwrap()
            .unwrap();
        found
            .flows
            .iter()
            .zip(&one.durations)
            .for_each(|(interval, measured)| flows.add(interval, *measured));
        patterns.add(&found.makespan, one.makespan);
    }
    (flows, patterns)
}

fn sets() -> [(&'static str, Vec<Carried>, Network); 2] {
    let read = |text: &str| Network::from_toml(text, &[]).unwrap();
    [
        (
            "thirty flows of a chain",
            carried(CHAINS, 1),
            read(CHAINS_NETWORK),
        ),
        (
            "random flows over two racks",
            carried(RACKS, 2),
            read(RACKS_NETWORK),
        ),
    ]
}

#[test]
fn nine_of_ten_measured_flows_lie_in_intervals_of_90_percent() {
    for (what, carried, network) in sets() {
        assert!(network.intervals.contains_key("nic.bandwidth"), "{what}");
        for model in [Model::Fair, Model::Asymmetric, Model::AlphaFair] {
            let (flows, _) = judge(&carried, &with_ledger(&carried, &network, model), model);
            assert!(
                (0.85..=0.95).contains(&flows.share()),
                "{what} {}: {}",
                model.name(),
                flows.share()
            );
        }
    }
}

#[test]
#[ignore = "run by cargo xtask test margins"]
fn the_table_of_coverage_of_all_models() {
    let models = [
        Model::Fair,
        Model::Asymmetric,
        Model::FlowCuts,
        Model::AlphaFair,
        Model::ClosedLoop,
        Model::Packet,
    ];
    for (what, carried, network) in sets() {
        for model in models {
            let others = with_ledger(&carried, &network, model);
            for (accuracy_record, network) in [("other patterns", &others), ("conflicts", &network)]
            {
                let (flows, patterns) = judge(&carried, network, model);
                println!(
                    "{}",
                    row(what, model.name(), accuracy_record, ("flows", &flows))
                );
                println!(
                    "{}",
                    row(what, model.name(), accuracy_record, ("patterns", &patterns))
                );
                // Other patterns resemble the predicted one. Conflicts do not, and promise nothing.
                let is_like = accuracy_record == "other patterns";
                assert!(
                    !is_like || (0.85..=0.95).contains(&flows.share()),
                    "{what} {}",
                    model.name()
                );
            }
        }
    }
}

#[test]
fn nine_of_ten_runs_of_programs_lie_in_intervals_from_the_other_programs() {
    let network = Network::from_toml(NAS, &[]).unwrap();
    let covered = network
        .accuracy_record()
        .coverage(network.accuracy_record(), 0.9)
        .unwrap();
    assert_eq!(covered.len(), 4);
    let inside: usize = covered.iter().map(|one| one.inside).sum();
    let all: usize = covered.iter().map(|one| one.all).sum();
    assert_eq!(all, 4 * 42);
    assert!(
        (0.85..=0.95).contains(&(inside as f64 / all as f64)),
        "{inside} of {all}"
    );
    assert_eq!(
        network
            .accuracy_record()
            .best(CaseKind::Programs, None)
            .unwrap()
            .model,
        "packet/openmpi"
    );
}

#[test]
fn fitted_networks_have_intervals_of_what_was_fitted() {
    for (what, _, network) in sets() {
        let OfField {
            low, high, level, ..
        } = &network.intervals["nic.bandwidth"];
        assert!(
            matches!((low, high), (Quantity::Rate(low), Quantity::Rate(high)) if low <= high),
            "{what}"
        );
        assert!((0.0..1.0).contains(level));
        let best = network
            .accuracy_record()
            .best(CaseKind::Patterns, None)
            .unwrap();
        assert!(
            !best.fitted && best.mean < Some(0.03),
            "{what}: {}",
            best.model
        );
    }
}
