//! Programs over several networks: compared with one network, with calculations by hand, and with a reference scheduler.

use std::fmt::Write as _;

use crate::{
    random_programs::{Numbers, any_numbers, any_records},
    testing::{dim_head, program_of, read_text},
};
use flowcast::{
    Contention, Options, Prediction, Prepared, RailsOptions,
    model::{
        builtin,
        network::{LinkRate, MessageRule, Network, SingleFlowRate},
        sharing::model::Model,
    },
    predict,
    replay::{
        ReplayEngine,
        costs::Rendezvous,
        placement::Placement,
        rails_transit::{ProgramRail, RailRule},
    },
    scheduler::policy::{EAGER_LIMIT, MessagePolicy},
    trace::{Program, Trace},
    units::{Bytes, Time, TimePerByte},
};
use proptest::prelude::*;

/// A network that takes `per_byte` nanoseconds for each byte, without overheads.
fn network(name: &str, latency: f64, per_byte: f64) -> Network {
    let mut network = builtin::network("gige-tcp").unwrap();
    network.name = name.to_owned();
    network.nic.latency = Time::from_nanos(latency);
    network.nic.rate = LinkRate::Goodput(SingleFlowRate::GapPerByte(TimePerByte::from_nanos(
        per_byte,
    )));
    network.nic.overhead = Time::ZERO;
    network.nic.gap = Time::ZERO;
    network
}

/// Each rank of the first half repeatedly computes and sends to its partner in the other half: nanoseconds and bytes.
fn sends(streams: &[Vec<(u64, u64)>]) -> Program {
    let pairs = streams.len();
    let mut text = dim_head(2 * pairs, &[]);
    for (rank, stream) in streams.iter().enumerate() {
        for (pause, bytes) in stream {
            writeln!(text, "1:{rank}:0:{}", *pause as f64 / 1e9).unwrap();
            // Non-blocking, eager.
            writeln!(text, "2:{rank}:0:{}:-1:{bytes}:7:1:2", pairs + rank).unwrap();
        }
    }
    for (rank, stream) in streams.iter().enumerate() {
        for (_, bytes) in stream {
            writeln!(text, "3:{}:0:{rank}:-1:{bytes}:7:1:0", pairs + rank).unwrap();
        }
    }
    program_of(text)
}

fn over(policy: &str, further: &[Network]) -> Options {
    Options {
        rails: RailsOptions {
            further: further.to_vec(),
            policy: policy.parse().unwrap(),
        },
        ..Options::default()
    }
}

fn predicted(program: &Program, rails: &[Network], options: &Options) -> Prediction {
    let trace = Trace::Program(program.clone());
    predict(&trace, &rails[0], options).unwrap()
}

fn makespan(program: &Program, rails: &[Network], policy: &str) -> f64 {
    let prediction = predicted(program, rails, &over(policy, &rails[1..]));
    prediction.outcome.makespan().as_nanos()
}

/// Messages and bytes of each rail.
fn traffic(prediction: &Prediction) -> Vec<(u64, u64)> {
    let rails = &prediction.rails.as_ref().unwrap().rails;
    rails
        .iter()
        .map(|rail| (rail.traffic.messages, rail.traffic.bytes.0))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn one_rail_is_the_network_itself(
        records in any_records(), numbers in any_numbers(), in_calls in any::<bool>(),
    ) {
        // Without overheads after which interfaces pause. With one network, senders wait for these pauses.
        let numbers = Numbers { rule: MessageRule::Hockney, per_byte: numbers.per_byte.max(0.01), ..numbers };
        let (program, mut network) = (records.program(), numbers.network(records.ranks.len()));
        if in_calls {
            network = network.with_overrides(&[("point_to_point.progress".to_owned(), "in calls".to_owned())]).unwrap();
        }
        let placement = Placement::of_program(&network.machine, None, &program).unwrap();
        let rule = RailRule { policy: MessagePolicy::default(), eager_limit: EAGER_LIMIT };
        for model in [Model::Fair, Model::Asymmetric, Model::Independent] {
            let direct = ReplayEngine::sharing(&program, &network, placement.clone(), numbers.rendezvous(), model);
            let rail = ProgramRail { network: network.clone(), model, placement: placement.clone() };
            let rails = ReplayEngine::over_rails(&program, &[rail], numbers.rendezvous(), rule);
            prop_assert_eq!(
                direct.unwrap().run().unwrap().ranks,
                rails.unwrap().run().unwrap().ranks,
                "{:?}", model
            );
        }
    }
}

/// The sender of a rendezvous message writes the data after it has the CTS, here with an envelope, as for eager messages.
#[test]
fn one_rail_by_packets_is_nearly_the_network_itself() {
    let network = builtin::network("gige-lam").unwrap();
    let program = sends(&[vec![(1000, 3000), (2000, 200_000)], vec![(500, 70_000)]]);
    for rendezvous in [Rendezvous::AsRecorded, Rendezvous::From(Bytes(65_536))] {
        let placement = Placement::of_program(&network.machine, None, &program).unwrap();
        let rule = RailRule {
            policy: MessagePolicy::default(),
            eager_limit: EAGER_LIMIT,
        };
        let rail = ProgramRail {
            network: network.clone(),
            model: Model::Packet,
            placement: placement.clone(),
        };
        let direct =
            ReplayEngine::sharing(&program, &network, placement, rendezvous, Model::Packet)
                .unwrap();
        let rails = ReplayEngine::over_rails(&program, &[rail], rendezvous, rule).unwrap();
        let (direct, rails) = (direct.run().unwrap(), rails.run().unwrap());
        let ratio = rails.makespan().as_nanos() / direct.makespan().as_nanos();
        assert!((ratio - 1.0).abs() < 0.002, "{ratio}");
    }
}

#[test]
fn two_equal_rails_halve_the_time_of_messages_sent_at_once() {
    let [one, other] = ["a", "b"].map(|name| network(name, 50_000.0, 100.0));
    for bytes in [1000, 30_000, 400_000] {
        let program = sends(&[vec![(0, bytes); 40]]);
        let alone = makespan(&program, std::slice::from_ref(&one), "earliest-delivery");
        let rails = [one.clone(), other.clone()];
        let together = makespan(&program, &rails, "earliest-delivery");
        let ratio = (together - 50_000.0) / (alone - 50_000.0);
        assert!((ratio - 0.5).abs() < 0.001, "{bytes}: {ratio}");
    }
    let by_packets = |rails: &[Network]| {
        let program = sends(&[vec![(0, 30_000); 40]]);
        let options = Options {
            contention: Contention::Shared(Model::Packet),
            ..over("earliest-delivery", &rails[1..])
        };
        predicted(&program, rails, &options)
            .outcome
            .makespan()
            .as_nanos()
    };
    let rail = builtin::network("gige-lam").unwrap();
    let ratio = by_packets(&[rail.clone(), rail.clone()]) / by_packets(&[rail]);
    assert!((0.5..0.52).contains(&ratio), "{ratio}");
}

#[test]
fn rails_of_40_and_10_mbit_carry_a_long_message_in_pieces_by_bandwidth() {
    let rails = [network("a", 0.0, 200.0), network("b", 0.0, 800.0)];
    let program = sends(&[vec![(0, 400_000)]]);
    for policy in ["earliest-delivery", "stock"] {
        let prediction = predicted(&program, &rails, &over(policy, &rails[1..]));
        assert_eq!(
            traffic(&prediction),
            [(1, 320_000), (1, 80_000)],
            "{policy}"
        );
        let makespan = prediction.outcome.makespan().as_nanos();
        assert!((makespan - 320_000.0 * 200.0).abs() < 1000.0, "{makespan}");
    }
    let whole = predicted(&program, &rails, &over("whole-messages", &rails[1..]));
    assert_eq!(traffic(&whole), [(1, 400_000), (0, 0)]);
}

#[test]
fn open_mpi_sends_all_eager_messages_over_the_slower_rail() {
    let rails = [network("a", 0.0, 200.0), network("b", 0.0, 800.0)];
    let program = sends(&[vec![(0, 30_000); 6], vec![(10, 30_000); 6]]);
    let prediction = predicted(&program, &rails, &over("stock", &rails[1..]));
    assert_eq!(traffic(&prediction), [(0, 0), (12, 360_000)]);
    let equal = [rails[0].clone(), rails[0].clone()];
    let prediction = predicted(&program, &equal, &over("stock", &equal[1..]));
    assert_eq!(traffic(&prediction), [(0, 0), (12, 360_000)]);
}

/// Ranks of one node share the account of that node: the second message accounts for the bytes that the first still has to
/// send.
#[test]
fn ranks_of_a_node_share_a_scheduler() {
    let rails = ["a", "b"].map(|name| network(name, 0.0, 100.0));
    let program = sends(&[vec![(0, 5000)], vec![(10, 5000)]]);
    let on_nodes = |nodes: Vec<u32>| {
        let options = Options {
            mapping: Some(flowcast::model::machine::Mapping::List(nodes)),
            ..over("earliest-delivery", &rails[1..])
        };
        traffic(&predicted(&program, &rails, &options))
    };
    assert_eq!(on_nodes(vec![0, 0, 1, 1]), [(1, 5000), (1, 5000)]);
    assert_eq!(on_nodes(vec![0, 1, 2, 3]), [(2, 10_000), (0, 0)]);
}

/// Messages and bytes of each rail, for messages in the order of time and one account for each sender: the reference.
fn reference(streams: &[Vec<(u64, u64)>], rails: &[Network]) -> Vec<(u64, u64)> {
    let mut taken = vec![(0, 0); rails.len()];
    for stream in streams {
        let mut until = vec![0.0f64; rails.len()];
        let mut now = 0.0;
        for (pause, bytes) in stream {
            now += *pause as f64;
            let tail = bytes.saturating_sub(1) as f64;
            let delivered = |rail: usize| {
                let nic = &rails[rail].nic;
                let sending = nic.per_byte().as_nanos() * tail;
                until[rail].max(now)
                    + nic.overhead.as_nanos() * 2.0
                    + nic.latency.as_nanos()
                    + sending
            };
            let per_byte = |rail: &usize| rails[*rail].nic.per_byte().as_nanos();
            let all = || 0..rails.len();
            let fastest = all()
                .min_by(|one, other| per_byte(one).total_cmp(&per_byte(other)))
                .unwrap();
            let earliest = all()
                .min_by(|one, other| delivered(*one).total_cmp(&delivered(*other)))
                .unwrap();
            // The fastest rail is given up if this saves more than ten microseconds.
            let leaves = delivered(earliest) + 10_000.0 < delivered(fastest);
            let best = if leaves { earliest } else { fastest };
            let nic = &rails[best].nic;
            until[best] =
                until[best].max(now) + nic.gap.as_nanos() + nic.per_byte().as_nanos() * tail;
            taken[best].0 += 1;
            taken[best].1 += bytes;
        }
    }
    taken
}

fn any_sends(most: u64) -> impl Strategy<Value = Vec<Vec<(u64, u64)>>> {
    let send = (0u64..200_000, 1..most);
    proptest::collection::vec(proptest::collection::vec(send, 1..25), 1..4)
}

fn any_rails() -> impl Strategy<Value = Vec<Network>> {
    let rail = (0u32..100_000, 1u32..1000)
        .prop_map(|(latency, per_byte)| network("rail", f64::from(latency), f64::from(per_byte)));
    proptest::collection::vec(rail, 2..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn short_messages_take_the_rails_that_a_reference_scheduler_chooses(
        streams in any_sends(8192), rails in any_rails(),
    ) {
        let prediction = predicted(&sends(&streams), &rails, &over("earliest-delivery", &rails[1..]));
        prop_assert_eq!(traffic(&prediction), reference(&streams, &rails));
    }

    #[test]
    fn rails_together_are_no_slower_than_the_best_alone(
        streams in any_sends(300_000), rails in any_rails(),
    ) {
        let program = sends(&streams);
        let best = rails.iter().map(|rail| makespan(&program, std::slice::from_ref(rail), "earliest-delivery"));
        let best = best.fold(f64::INFINITY, f64::min);
        let together = makespan(&program, &rails, "earliest-delivery");
        // A message that is placed before the next one is known may block it: up to 1.4 times on bursts, less here.
        prop_assert!(together <= best * 1.10, "{together} {best}");
    }

    #[test]
    fn all_schedulers_carry_all_bytes_in_pieces_that_arrive(
        streams in any_sends(300_000), rails in any_rails(), threads in 1usize..5,
    ) {
        let program = sends(&streams);
        for policy in ["earliest-delivery", "stock", "whole-messages", "round-robin", "wfq", "vtrr", "latency", "fixed-point-printed"] {
            let options = over(policy, &rails[1..]);
            let prediction = predicted(&program, &rails, &options);
            let bytes: u64 = traffic(&prediction).iter().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(bytes, program.bytes().0, "{}", policy);
            let on_threads = predicted(&program, &rails, &Options { threads, ..options });
            prop_assert_eq!(prediction, on_threads, "{}", policy);
        }
    }

    #[test]
    fn any_program_finishes_over_rails(
        records in any_records(), numbers in any_numbers(), in_calls in any::<bool>(), processors in 0u32..3,
    ) {
        let numbers = Numbers { per_byte: numbers.per_byte.max(0.01), ..numbers };
        let (program, mut rail) = (records.program(), numbers.network(records.ranks.len()));
        rail.point_to_point.rendezvous_from = numbers.rendezvous_from.map(Bytes);
        rail.machine.processors = processors;
        let progress = if in_calls { "in calls" } else { "asynchronous" };
        let fields = [("point_to_point.progress", progress), ("sharing.window", "44kB")];
        rail = rail.with_overrides(&fields.map(|(key, value)| (key.to_owned(), value.to_owned()))).unwrap();
        let mut slow = rail.clone();
        slow.nic.latency = rail.nic.latency * 3.0;
        for model in [Model::Fair, Model::Packet] {
            let options = Options {
                contention: Contention::Shared(model),
                ..over("earliest-delivery", &[slow.clone()])
            };
            let prediction = predicted(&program, &[rail.clone()], &options);
            prop_assert!(prediction.outcome.messages >= u64::from(program.messages()));
        }
    }
}

#[test]
fn models_that_do_not_support_several_rails_are_refused() {
    let rails = ["a", "b"].map(|name| network(name, 0.0, 100.0));
    let refused = |trace: &Trace, rails: &[Network], options: &Options| {
        let error = Prepared::new(trace, Some(&rails[0]), options)
            .and_then(|prepared| prepared.predict(flowcast::Outputs::default(), &[]))
            .unwrap_err();
        error.to_string()
    };
    let program = Trace::Program(sends(&[vec![(0, 5000)]]));
    let options = over("earliest-delivery", &rails[1..]);
    let mut limited = rails.clone();
    limited[1].machine.buses = 2;
    let limits = refused(&program, &rails, &over("earliest-delivery", &limited[1..]));
    assert!(
        limits.contains("--rail: found the model limits"),
        "{limits}"
    );
    let fair = Options {
        contention: Contention::Shared(Model::Fair),
        ..over("earliest-delivery", &limited[1..])
    };
    let Trace::Program(sent) = &program else {
        panic!("a program")
    };
    let noted = predicted(sent, &rails, &fair).notes;
    assert!(
        noted[0].contains("links and buses of machines"),
        "{noted:?}"
    );
    let packet = ("sharing.model".to_owned(), "packet".to_owned());
    let by_packets = builtin::network("gige-lam").unwrap();
    let by_packets = by_packets.with_overrides(&[packet]).unwrap();
    let mixed = refused(&program, &rails, &over("earliest-delivery", &[by_packets]));
    assert!(
        mixed.contains("expected the packet model for all rails or for none"),
        "{mixed}"
    );
    let goal = read_text(
        "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n",
    )
    .unwrap();
    assert!(refused(&goal, &rails, &options).contains("several --rail: found a GOAL schedule"));
    let many = vec![rails[1].clone(); 16];
    assert!(refused(&program, &rails, &over("stock", &many)).contains("expected 1 to 16"));
}

/// If ranks take turns on processors, messages have the same costs as without limits.
#[test]
fn processors_that_are_limited_change_nothing_for_ranks_that_have_one() {
    let rails = [network("a", 3000.0, 200.0), network("b", 9000.0, 800.0)];
    let mut streams = vec![vec![(1000, 30_000), (5_000_000, 100), (10, 400_000)]; 2];
    streams[1].push((700, 5000));
    let program = sends(&streams);
    let mut limited = rails.clone();
    limited[0].machine.processors = 3;
    for rendezvous_from in [None, Some(Bytes(65_536))] {
        for progress in ["asynchronous", "in calls"] {
            let progress = ("point_to_point.progress".to_owned(), progress.to_owned());
            let on = |rails: &[Network; 2]| {
                let first = rails[0]
                    .clone()
                    .with_overrides(std::slice::from_ref(&progress))
                    .unwrap();
                let options = Options {
                    rendezvous_from,
                    ..over("earliest-delivery", &rails[1..])
                };
                predicted(&program, &[first], &options).outcome.makespan()
            };
            assert_eq!(on(&rails), on(&limited), "{rendezvous_from:?} {progress:?}");
        }
    }
}
