//! Activities of ranks while their messages move, calculated by hand: under every rule and every model.

use crate::testing::{all, dim, program_of};
use flowcast::{
    Contention, Options, PreparedProgram,
    model::{
        network::{LinkRate, MessageRule, Network, Progress, SingleFlowRate},
        sharing::model::Model,
    },
    trace::Program,
    units::{Bytes, TimePerByte},
};

const MODELS: [Contention; 6] = [
    Contention::Limits,
    Contention::Shared(Model::Independent),
    Contention::Shared(Model::Fair),
    Contention::Shared(Model::Asymmetric),
    Contention::Shared(Model::ClosedLoop),
    Contention::Shared(Model::Packet),
];

/// Records of two ranks, in nanoseconds and bytes: `c10` computes, `i5` and `s5` send to the other rank without and with
/// waiting, `r` receives, `p` posts a receive, `w` waits for it, `l0` waits for the last send, `l1` for the one before.
fn program(ranks: [&str; 2]) -> Program {
    let records = [0, 1].map(|rank: usize| {
        let other = 1 - rank;
        let record = |word: &str| {
            let (kind, number) = word.split_at(1);
            let number = number.parse::<u64>().unwrap_or(0);
            let seconds = (number / 1_000_000_000, number % 1_000_000_000);
            match kind {
                "c" => format!("1:{}.{:09}", seconds.0, seconds.1),
                "i" => format!("2:{other}:-1:{number}:0:1:2"),
                "s" => format!("2:{other}:-1:{number}:0:1:0"),
                "r" => format!("3:{other}:-1:0:0:1:0"),
                "p" => format!("3:{other}:-1:0:0:1:1"),
                "w" => format!("3:{other}:-1:0:0:1:2"),
                "l" => format!("32:{number}"),
                _ => panic!("found {word}"),
            }
        };
        let records: Vec<String> = ranks[rank].split_whitespace().map(record).collect();
        records.join(" ")
    });
    program_of(dim(&[all(2)], &records))
}

/// Gigabit Ethernet in round numbers: 100 us of latency, 8 ns a byte; under LogGOPS 10 us of overhead, 20 us of gap.
fn network(rule: MessageRule) -> Network {
    let mut network = flowcast::model::builtin::network("gige-tcp").unwrap();
    network.point_to_point.rule = rule;
    network.nic.latency = flowcast::units::Time::from_micros(100.0);
    network.nic.rate = LinkRate::Goodput(SingleFlowRate::GapPerByte(TimePerByte::from_nanos(8.0)));
    network.nic.overhead = flowcast::units::Time::from_micros(10.0);
    network.nic.gap = flowcast::units::Time::from_micros(20.0);
    network
}

/// Ends of both ranks, in microseconds; the limits are enough buses for all messages.
fn ends(program: &Program, network: &Network, contention: Contention) -> [f64; 2] {
    let mut network = network.clone();
    network.machine.buses = if contention == Contention::Limits {
        10
    } else {
        0
    };
    let options = Options {
        contention,
        ..Options::default()
    };
    let prepared = PreparedProgram::new(program, &network, &options).unwrap();
    let engine = prepared.engine().unwrap();
    assert!(contention != Contention::Limits || !engine.is_free());
    let outcome = engine.run().unwrap();
    [0, 1].map(|rank| outcome.ranks[rank].end.as_nanos() / 1000.0)
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!(
        (found - expected).abs() < 1e-3,
        "{what}: {found} us, expected {expected}"
    );
}

#[test]
fn computation_hides_two_messages_under_every_rule_and_model() {
    let program = program(["i1000001 i1000001 c20000000 l1 l0", "p p w w"]);
    for (rule, expected) in [
        (MessageRule::Hockney, 20_000.0),
        (MessageRule::Dimemas, 20_200.0),
        (MessageRule::Loggops, 20_020.0),
    ] {
        for model in MODELS {
            let [sender, _] = ends(&program, &network(rule), model);
            assert_near(sender, expected, &format!("{rule:?} {model:?}"));
        }
    }
}

#[test]
fn a_wait_ends_when_the_message_has_left_the_interface() {
    // The second message starts a gap and 8 ms after the first, and leaves 8 ms after its overhead.
    let first = 10.0 + 8000.0;
    let second = 10.0 + 8020.0 + 8000.0;
    for model in MODELS {
        let network = network(MessageRule::Loggops);
        for (records, expected) in [
            ("i1000001 i1000001 c1000000 l1 l0", second),
            ("i1000001 i1000001 c1000000 l0 l1", second),
            ("i1000001 i1000001 c1000000 l1", first),
            ("i1000001 i1000001 c9000000 l1", 9020.0),
            ("i1000001 l0 c1000000", first + 1000.0),
            ("i1000001 i1000001 c1000000", 1020.0),
        ] {
            let sends = records.matches('i').count();
            let receives = ["p w", "p p w w"][sends - 1];
            let [sender, _] = ends(&program([records, receives]), &network, model);
            assert_near(sender, expected, &format!("{records} {model:?}"));
        }
    }
}

#[test]
fn a_blocking_send_waits_until_the_interface_accepts_the_message() {
    for model in MODELS {
        for (records, expected) in [
            ("s1000001", 10.0),
            ("s1000001 s1000001", 8030.0),
            ("i1000001 s1000001", 8030.0),
        ] {
            let receives = ["p w", "p p w w"][records.split(' ').count() - 1];
            let [sender, _] = ends(
                &program([records, receives]),
                &network(MessageRule::Loggops),
                model,
            );
            assert_near(sender, expected, &format!("{records} {model:?}"));
        }
    }
}

#[test]
fn messages_that_are_queued_arrive_as_those_of_a_sender_that_waits() {
    let network = network(MessageRule::Loggops);
    for model in MODELS {
        let [_, blocking] = ends(&program(["s1000001 s1000001", "p p w w"]), &network, model);
        let [_, queued] = ends(
            &program(["i1000001 i1000001 c1000", "p p w w"]),
            &network,
            model,
        );
        assert_near(queued, blocking, &format!("{model:?}"));
    }
}

/// A network whose messages of 64 KiB and more wait for their receiver.
fn rendezvous(rule: MessageRule, progress: Progress) -> Network {
    let mut network = network(rule);
    network.point_to_point.rendezvous_from = Some(Bytes(65_536));
    network.point_to_point.progress = progress;
    network
}

#[test]
fn a_rendezvous_moves_while_ranks_compute_or_when_they_wait() {
    const BY_RATES: [Contention; 4] = [
        Contention::Limits,
        Contention::Shared(Model::Independent),
        Contention::Shared(Model::Fair),
        Contention::Shared(Model::Asymmetric),
    ];
    // One million bytes take 8 ms, and 100 us more to arrive.
    for model in BY_RATES {
        for (records, asynchronous, in_calls) in [
            // Both compute: the data move from the time at which the sender waits.
            (
                ["i1000000 c10000000 l0", "p c10000000 w"],
                [10_000.0, 10_000.0],
                [18_000.0, 18_100.0],
            ),
            // The receiver waits and answers immediately; the sender computes.
            (
                ["i1000000 c10000000 l0", "r"],
                [10_000.0, 8_100.0],
                [18_000.0, 18_100.0],
            ),
            // The sender waits; the receiver computes, and answers when it has finished.
            (
                ["i1000000 l0", "p c10000000 w"],
                [8_000.0, 10_000.0],
                [18_000.0, 18_100.0],
            ),
            (
                ["s1000000", "p c10000000 w"],
                [8_000.0, 10_000.0],
                [18_000.0, 18_100.0],
            ),
            // No rank computes, or one is inside MPI when the other arrives.
            (["s1000000", "r"], [8_000.0, 8_100.0], [8_000.0, 8_100.0]),
            (
                ["c5000000 s1000000", "r"],
                [13_000.0, 13_100.0],
                [13_000.0, 13_100.0],
            ),
            (
                ["s1000000", "c5000000 r"],
                [13_000.0, 13_100.0],
                [13_000.0, 13_100.0],
            ),
            // The receiver polls while it waits for another message, so it has the RTS when it posts the receive.
            (
                ["s1000 i1000000 l0", "r c5000000 p c10000000 w"],
                [13_108.0, 15_108.0],
                [13_108.0, 15_108.0],
            ),
            // Small messages are sent immediately.
            (
                ["i1000 c10000000 l0", "p c10000000 w"],
                [10_000.0, 10_000.0],
                [10_000.0, 10_000.0],
            ),
        ] {
            let program = program(records);
            for (progress, expected) in [
                (Progress::Asynchronous, asynchronous),
                (Progress::InCalls, in_calls),
            ] {
                let found = ends(&program, &rendezvous(MessageRule::Hockney, progress), model);
                for rank in [0, 1] {
                    assert_near(
                        found[rank],
                        expected[rank],
                        &format!("{records:?} {model:?} {progress:?} rank {rank}"),
                    );
                }
            }
        }
    }
}

#[test]
fn packets_of_a_rendezvous_move_while_ranks_compute_if_progress_is_asynchronous() {
    let program = program(["i1000000 c30000000 l0", "p c30000000 w"]);
    let packets = |progress| {
        ends(
            &program,
            &rendezvous(MessageRule::Hockney, progress),
            Contention::Shared(Model::Packet),
        )
    };
    let (hidden, moved_late) = (packets(Progress::Asynchronous), packets(Progress::InCalls));
    assert_eq!(hidden, [30_000.0; 2]);
    assert!(
        moved_late.iter().all(|end| *end > 37_000.0),
        "{moved_late:?}"
    );
}
