//! Choice of the model that predicts a trace if none is requested, and the use of a contention-free walk if no messages
//! meet.

use std::collections::BTreeMap;

use crate::{
    random_programs::{any_numbers, any_records},
    testing::{all, dim_head},
};
use flowcast::{
    Collectives, Contention, IntervalOptions, Options, Prediction, Prepared,
    model::{
        accuracy::{Accuracy, CaseKind},
        builtin,
        dimemas_cfg::DimemasConfig,
        machine::{Mapping, NodeGroup},
        network::{FitQuality, Network},
        sharing::model::Model,
    },
    predict, read_text,
    replay::{ReplayEngine, meetings::messages_meet, placement::Placement, walk::Replay},
    sweep,
    trace::Trace,
    units::{Bytes, Time},
};
use proptest::prelude::*;

const PAIR: &str =
    "num_ranks 2\nrank 0 {\nl1: send 100b to 1 tag 0\n}\nrank 1 {\nl1: recv 100b from 0 tag 0\n}\n";

/// Ranks 1 to `senders` send `bytes` to rank 0, which receives in this order.
fn incast(senders: u32, bytes: u64) -> Trace {
    let ranks = senders + 1;
    let mut text = dim_head(ranks as usize, &[all(ranks as usize)]);
    text += &(1..ranks)
        .map(|rank| format!("3:0:0:{rank}:-1:{bytes}:7:1:0\n"))
        .collect::<String>();
    text += &(1..ranks)
        .map(|rank| format!("2:{rank}:0:0:-1:{bytes}:7:1:0\n"))
        .collect::<String>();
    read_text("incast.dim", text).unwrap()
}

fn network(name: &str, overrides: &[(&str, &str)]) -> Network {
    let overrides: Vec<_> = overrides
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    builtin::network(name)
        .unwrap()
        .with_overrides(&overrides)
        .unwrap()
}

fn by_default(trace: &Trace, network: &Network) -> Prediction {
    predict(trace, network, &Options::default()).unwrap()
}

fn by(contention: Contention, trace: &Trace, network: &Network) -> Prediction {
    predict(
        trace,
        network,
        &Options {
            contention,
            ..Options::default()
        },
    )
    .unwrap()
}

#[test]
fn senders_to_one_receiver_share_its_interface_unless_messages_are_independent() {
    let (trace, network) = (incast(15, 8_000_000), network("gige-tcp", &[]));
    let shared = by_default(&trace, &network);
    assert_eq!(
        (shared.model.name(), shared.model.is_uncontended),
        ("fair", false)
    );
    let least = Time::from_seconds(15.0 * 8e6 * 8.49e-9);
    assert!(
        shared.outcome.makespan() >= least,
        "{:?}",
        shared.outcome.makespan()
    );
    let alone = by(Contention::Shared(Model::Independent), &trace, &network);
    assert!(alone.outcome.makespan() * 10.0 < least);
}

#[test]
fn messages_in_opposite_directions_meet_at_a_half_duplex_port_and_on_a_bus() {
    let text = "#DIMEMAS:\"exchange\":1,0:2(1,1),1\nd:1:1:2:0:1\n\
                2:0:0:1:-1:8000000:7:1:0\n3:0:0:1:-1:8000000:7:1:0\n\
                2:1:0:0:-1:8000000:7:1:0\n3:1:0:0:-1:8000000:7:1:0\n";
    let trace = read_text("exchange.dim", text.to_owned()).unwrap();
    let seconds = |overrides: &[(&str, &str)]| {
        let network = network(
            "gige-tcp",
            &[&[("nic.bandwidth", "100MB/s")][..], overrides].concat(),
        );
        by_default(&trace, &network).outcome.makespan().as_seconds()
    };
    let full = seconds(&[]);
    assert!((full - 0.08).abs() < 1e-3, "{full}");
    for shared in [("nic.duplex", "half"), ("bus.bandwidth", "100MB/s")] {
        let both = seconds(&[shared]);
        assert!((both / full - 2.0).abs() < 0.01, "{shared:?}: {both}");
    }
}

#[test]
fn limits_that_independent_messages_ignore_are_reported() {
    let network = network("gige-tcp", &[("machine.buses", "2")]);
    let told = by(
        Contention::Shared(Model::Independent),
        &incast(3, 1000),
        &network,
    )
    .unused;
    assert_eq!(
        (told[0].parameter.as_str(), told[0].reason),
        ("machine.buses", "the model independent has no limits")
    );
}

#[test]
fn the_network_file_determines_the_model() {
    let trace = incast(3, 1000);
    let chosen = |name: &str, overrides: &[(&str, &str)]| {
        by_default(&trace, &network(name, overrides)).model.name()
    };
    assert_eq!(chosen("gige-tcp", &[]), "fair");
    assert_eq!(chosen("gige-tcp", &[("machine.buses", "2")]), "limits");
    assert_eq!(chosen("sgi-origin", &[]), "limits");
    assert_eq!(chosen("gige-tcp", &[("sharing.window", "44KB")]), "packet");
    assert_eq!(chosen("gige-lam", &[]), "flow-cuts");
    assert_eq!(chosen("gige-lam", &[("sharing.model", "limits")]), "limits");
    // Too many packets to follow.
    let long = incast(3, 1 << 40);
    let choice = by_default(&long, &network("gige-tcp", &[("sharing.window", "44KB")])).model;
    assert_eq!(choice.name(), "fair");
    assert!(choice.reason.contains("--model packet"), "{choice}");
}

#[test]
fn flow_cuts_leave_more_than_128_ranks_to_max_min() {
    let network = network("gige-lam", &[]);
    let few = by_default(&incast(127, 1000), &network);
    assert_eq!(few.model.contention, Contention::Shared(Model::FlowCuts));
    let many = by_default(&incast(128, 1000), &network);
    assert_eq!(many.model.contention, Contention::Shared(Model::Fair));
    assert!(
        many.model.to_string().contains(
            "the network's flow cuts take too long for a program of this size (--model flow-cuts uses them anyway)"
        ),
        "{}",
        many.model
    );
}

#[test]
fn the_most_accurate_model_comes_first_if_the_trace_supports_it() {
    let mut network = network("gige-tcp", &[]);
    let validated = |model: &str, error: f64| {
        let errors = BTreeMap::from([("cg".to_owned(), vec![error])]);
        Accuracy::of_errors(model, CaseKind::Programs, "NAS", errors).unwrap()
    };
    network.accuracy = vec![
        validated("asymmetric", 0.3),
        validated("alpha-fair/openmpi", 0.1),
    ];
    let program = incast(3, 1000);
    let schedule = read_text("pair.goal", PAIR).unwrap();
    assert_eq!(by_default(&program, &network).model.name(), "alpha-fair");
    assert_eq!(by_default(&schedule, &network).model.name(), "alpha-fair");
    network.accuracy.push(validated("limits/formula", 0.01));
    assert_eq!(by_default(&program, &network).model.name(), "limits");
    assert_eq!(by_default(&schedule, &network).model.name(), "fair");
}

#[test]
fn patterns_of_long_messages_do_not_decide_for_a_program() {
    let validated = |model: &str, error: f64| {
        let errors = BTreeMap::from([("random-1".to_owned(), vec![error])]);
        let entry =
            Accuracy::of_errors(model, CaseKind::Flows, "random patterns, in no fit", errors)
                .unwrap();
        Accuracy {
            messages: Some([Bytes(2_000_000), Bytes(4_000_000)]),
            ..entry
        }
    };
    let accuracy = vec![
        validated("closed-loop/transient", 0.007),
        validated("packet", 0.02),
        validated("asymmetric", 0.1),
    ];
    let chosen = |overrides: &[(&str, &str)], bytes: u64| {
        let network = Network {
            accuracy: accuracy.clone(),
            ..network("gige-tcp", overrides)
        };
        by_default(&incast(3, bytes), &network).model
    };
    let by_packets = chosen(&[("sharing.window", "44KB")], 20_000);
    assert_eq!(by_packets.name(), "packet");
    assert!(
        by_packets
            .reason
            .contains("half of the bytes are in messages of up to 20 kB"),
        "{by_packets}"
    );
    // Without the parameters of packets, the accuracy for messages of this size decides, if it is known.
    assert_eq!(chosen(&[], 20_000).name(), "fair");
    assert_eq!(chosen(&[], 3_000_000).name(), "closed-loop");
}

#[test]
fn a_program_on_a_network_without_programs_has_the_margin_of_programs_in_laboratories() {
    let mut network = network("gige-tcp", &[("sharing.window", "44KB")]);
    let trace = incast(3, 20_000);
    let interval = |network: &Network| {
        let prepared = Prepared::new(&trace, Some(network), &Options::default()).unwrap();
        let outcome = by_default(&trace, network).outcome;
        prepared
            .interval(&outcome, &IntervalOptions::default())
            .unwrap()
    };
    assert_eq!(
        interval(&network),
        None,
        "nothing says how sure its numbers are"
    );
    let errors = BTreeMap::from([("random-1".to_owned(), vec![0.001, -0.001])]);
    network.accuracy =
        vec![Accuracy::of_errors("packet", CaseKind::Flows, "random patterns", errors).unwrap()];
    let known = interval(&network).unwrap();
    let [low, high] =
        [known.low, known.high].map(|end| end.as_seconds() / known.predicted.as_seconds());
    assert!(
        (0.7..0.97).contains(&low) && (1.1..1.5).contains(&high),
        "{low} {high}"
    );
    assert!(
        known.covers.contains("at least") && known.covers.contains("not measured on this network"),
        "{}",
        known.covers
    );
    network.fit = FitQuality {
        misfit: Some(3.0),
        warnings: vec!["L is held at 0".to_owned()],
    };
    let poor = interval(&network).unwrap();
    assert!(
        (poor.high.as_seconds() / poor.predicted.as_seconds() - 4.0).abs() < 1e-9,
        "{poor:?}"
    );
    assert!(
        by_default(&trace, &network)
            .notes
            .iter()
            .any(|note| note.contains("L is held at 0"))
    );
}

#[test]
fn a_dimemas_configuration_keeps_its_rules_even_where_nothing_is_limited() {
    let cfg = include_bytes!("../../../../tests/data/dimemas-cfg/m_n4.cfg");
    let mut none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let network = DimemasConfig::read(cfg, &mut none).unwrap().network;
    assert_eq!(
        by_default(&incast(3, 1000), &network).model.name(),
        "limits"
    );
    let again = Network::from_toml(&network.to_toml(), &[]).unwrap();
    assert_eq!(again, network);
}

#[test]
fn schedules_with_parameters_of_their_own_follow_loggopsim_and_others_the_network() {
    let trace = read_text("pair.goal", PAIR).unwrap();
    let network = network("gige-tcp", &[]);
    assert_eq!(by_default(&trace, &network).model.name(), "fair");
    assert_eq!(
        by(Contention::Loggops, &trace, &network).model.name(),
        "loggops"
    );
    assert!(
        predict(
            &trace,
            &network,
            &Options {
                contention: Contention::Limits,
                ..Options::default()
            }
        )
        .is_err()
    );
    let program = incast(2, 10);
    assert!(
        predict(
            &program,
            &network,
            &Options {
                contention: Contention::Loggops,
                ..Options::default()
            }
        )
        .is_err()
    );
}

#[test]
fn nodes_have_as_many_processors_as_ranks_unless_the_network_states_a_number() {
    let text = "#DIMEMAS:\"two\":1,0:2(1,1),1\nd:1:1:2:0:1\n1:0:0:1\n1:1:0:1\n";
    let trace = read_text("two.dim", text).unwrap();
    let options = Options {
        mapping: Some(Mapping::PerNode(2)),
        ..Options::default()
    };
    let mut network = network("gige-tcp", &[]);
    let free = predict(&trace, &network, &options).unwrap();
    assert_eq!(free.outcome.makespan(), Time::from_seconds(1.0));
    assert!(free.notes[0].contains("2 processors"), "{:?}", free.notes);
    network.machine.nodes = vec![NodeGroup {
        count: 0,
        cpus: 1,
        ..NodeGroup::default()
    }];
    let turns = by_mapping(&trace, &network, &options);
    assert_eq!(
        (turns.outcome.makespan(), turns.notes.len()),
        (Time::from_seconds(2.0), 0)
    );
}

fn by_mapping(trace: &Trace, network: &Network, options: &Options) -> Prediction {
    predict(
        trace,
        network,
        &Options {
            contention: Contention::Limits,
            ..options.clone()
        },
    )
    .unwrap()
}

#[test]
fn a_sweep_uses_the_model_of_a_prediction() {
    let Trace::Program(program) = incast(4, 100_000) else {
        panic!("a .dim file is a program")
    };
    let networks = [
        network("gige-tcp", &[]),
        network("gige-tcp", &[("nic.latency", "1ms")]),
        network("sgi-origin", &[]),
    ];
    for contention in [
        Contention::Automatic,
        Contention::Shared(Model::Independent),
        Contention::Limits,
    ] {
        let options = Options {
            contention,
            ..Options::default()
        };
        let swept = sweep(&program, &networks, &options).unwrap();
        for (network, swept) in networks.iter().zip(swept) {
            let one = predict(&Trace::Program(program.clone()), network, &options).unwrap();
            assert_eq!(swept.makespan(), one.outcome.makespan(), "{contention:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_walk_agrees_with_rate_models_if_no_messages_meet(
        records in any_records(), numbers in any_numbers()
    ) {
        let program = records.program();
        let mut network = numbers.network(program.ranks());
        network.machine = Default::default();
        let rendezvous = numbers.rendezvous();
        let placement = Placement::of_program(&network.machine, None, &program).unwrap();
        let walk = Replay::new(&program, &network, placement.clone(), rendezvous).unwrap();
        let alone = walk.run().unwrap();
        let meet = messages_meet(&walk).unwrap();
        for model in [Model::Fair, Model::DegreeFair] {
            let shared = ReplayEngine::sharing(&program, &network, placement.clone(), rendezvous, model).unwrap().run().unwrap();
            if !meet {
                let difference = (shared.makespan() - alone.makespan()).as_nanos().abs();
                prop_assert!(difference < 0.1, "{model:?}: {:?} {:?}", shared.makespan(), alone.makespan());
            }
        }
    }
}

/// Prediction with all senders of an incast on the receiver's node.
fn on_one_node(network: &Network) -> Prediction {
    let options = Options {
        mapping: Some(Mapping::PerNode(4)),
        ..Options::default()
    };
    predict(&incast(3, 1_000_000), network, &options).unwrap()
}

#[test]
fn messages_inside_a_node_have_shared_memory_costs_unless_the_network_states_others() {
    let default = on_one_node(&network("gige-tcp", &[]));
    assert!(
        default.outcome.makespan() >= Time::from_micros(25.0),
        "1 MB at 39 GB/s: {}",
        default.outcome.makespan()
    );
    assert!(
        default
            .model
            .to_string()
            .contains("inside nodes as shared-memory"),
        "{}",
        default.model
    );
    let free = [
        ("machine.nodes.*.intra_latency", "0us"),
        ("machine.nodes.*.intra_bandwidth", "0B/s"),
    ];
    let stated = on_one_node(&network("gige-tcp", &free));
    assert!(
        stated.outcome.makespan() < Time::from_micros(1.0),
        "{}",
        stated.outcome.makespan()
    );
    assert!(
        stated
            .model
            .to_string()
            .contains("inside nodes free, as the network states"),
        "{}",
        stated.model
    );
    let between = by_default(&incast(3, 1_000_000), &network("gige-tcp", &[]));
    assert!(
        !between.model.to_string().contains("inside nodes"),
        "{}",
        between.model
    );
}

#[test]
fn collectives_are_messages_unless_the_network_prescribes_a_formula() {
    // Ten alltoalls of 100 kB to each of four ranks.
    let mut text = "#DIMEMAS:\"alltoall\":1,0:4(1,1,1,1),1\nd:1:1:4:0:1:2:3\n".to_owned();
    for rank in 0..4 {
        text += &format!("10:{rank}:0:11:1:-1:-1:300000:300000\n").repeat(10);
    }
    let trace = read_text("alltoall.dim", text).unwrap();
    let gige = network("gige-tcp", &[]);
    let default = by_default(&trace, &gige);
    assert!(
        default
            .model
            .to_string()
            .contains("collectives as in openmpi"),
        "{}",
        default.model
    );
    let formula = predict(
        &trace,
        &gige,
        &Options {
            collectives: Collectives::Formula,
            ..Options::default()
        },
    )
    .unwrap();
    assert!(
        formula.model.to_string().contains("collectives by formula"),
        "{}",
        formula.model
    );
    assert!(default.outcome.makespan() * 2.0 < formula.outcome.makespan());
    let origin = by_default(
        &trace,
        &network("sgi-origin", &[("sharing.model", "limits")]),
    );
    assert!(
        origin.model.to_string().contains("collectives by formula"),
        "{}",
        origin.model
    );
}
