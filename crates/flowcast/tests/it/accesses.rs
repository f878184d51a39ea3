//! One-sided communication and files: costs, waiting, and completeness of all accesses.

use crate::{
    random_programs::{check_path, explained, recorded},
    testing::{all, begun, dim, program_of, read_text},
};
use flowcast::{
    graph::EventGraph,
    model::{
        file_system::FileSystem,
        machine::{NodeGroup, wide_area::Site},
        network::{LinkRate, MessageRule, Network, SingleFlowRate},
        sharing::model::Model,
    },
    replay::{
        ReplayEngine, costs::Rendezvous, placement::Placement, time_part::TimePart, walk::Replay,
    },
    trace::{Program, Trace, compiled},
    units::{Bytes, Rate, Time},
};
use proptest::prelude::*;

/// 1 us of latency and 1 ns for each byte; for files 10 us, 2 ns for each byte, and `requests` requests at the same time.
fn network(rule: MessageRule, requests: u32) -> Network {
    let mut network = flowcast::model::builtin::network("gige-tcp").unwrap();
    network.point_to_point.rule = rule;
    network.nic.latency = Time::from_nanos(1000.0);
    network.nic.rate = LinkRate::Goodput(SingleFlowRate::GapPerByte(
        flowcast::units::TimePerByte::from_nanos(1.0),
    ));
    network.nic.overhead = Time::from_nanos(300.0);
    network.nic.gap = Time::from_nanos(100.0);
    let bandwidth = Rate::from_bytes_per_second(5e8);
    network.file_system = FileSystem {
        latency: Time::from_nanos(10_000.0),
        bandwidth,
        requests,
    };
    network
}

/// A trace of these records by rank, with all ranks in communicator 1.
fn text(ranks: &[&str]) -> String {
    dim(&[all(ranks.len())], &begun(ranks))
}

fn program(ranks: &[&str]) -> Program {
    program_of(text(ranks))
}

fn ends(program: &Program, network: &Network) -> Vec<f64> {
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    ends_by(
        program,
        &ReplayEngine::new(program, network, placement, Rendezvous::AsRecorded).unwrap(),
    )
}

/// Ends of the ranks if messages and transfers share the network.
fn ends_sharing(program: &Program, network: &Network, model: Model) -> Vec<f64> {
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    ends_by(
        program,
        &ReplayEngine::sharing(program, network, placement, Rendezvous::AsRecorded, model).unwrap(),
    )
}

/// The network with `links` links into each node and out of it, and `cpus` processors.
fn limited(mut network: Network, links: u32, cpus: u32) -> Network {
    let links = NodeGroup {
        count: 4,
        cpus,
        in_links: links,
        out_links: links,
        ..NodeGroup::default()
    };
    network.machine.nodes = vec![links];
    network
}

fn ends_by(program: &Program, engine: &ReplayEngine<'_>) -> Vec<f64> {
    let (outcome, explanation) = explained(engine);
    for (sums, times) in explanation.ranks.iter().zip(&outcome.ranks) {
        let (found, expected) = (
            sums.total().as_nanos(),
            (times.blocked + times.overhead).as_nanos(),
        );
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        assert!((expected + times.compute.as_nanos() - times.end.as_nanos()).abs() < 1e-6);
    }
    assert_eq!(
        recorded(program, |journal| engine.observed(journal)).0,
        outcome
    );
    let (_, graph) = EventGraph::record(engine).unwrap();
    check_path(&graph.critical_path(), &outcome).unwrap();
    outcome
        .ranks
        .iter()
        .map(|rank| rank.end.as_nanos())
        .collect()
}

#[test]
fn a_transfer_takes_latency_and_bytes_and_leaves_the_target_alone() {
    for kind in 0..3 {
        // Transfer 5000 bytes, compute 2 us, flush. The target computes 1 us.
        let program = program(&[
            &format!("30:{kind}:1:1:5000 1:0.000002 30:7:1:1:0"),
            "1:0.000001",
        ]);
        assert_eq!(
            ends(&program, &network(MessageRule::Hockney, 0)),
            [6000.0, 1000.0]
        );
        assert_eq!(
            ends(&program, &network(MessageRule::Dimemas, 0)),
            [6000.0, 1000.0]
        );
        assert_eq!(
            ends(&program, &network(MessageRule::Loggops, 0)),
            [300.0 + 1000.0 + 4999.0, 1000.0]
        );
    }
}

#[test]
fn transfers_follow_each_other_at_the_interface_and_a_flush_waits_for_its_own_target() {
    let program = program(&[
        "30:0:1:1:5000 30:0:1:2:1 30:7:1:1:0 1:0.0 30:7:1:-1:0",
        "",
        "",
    ]);
    // The second starts when the interface is free again: at 100 + 4999. It arrives 300 + 1000 later.
    assert_eq!(
        ends(&program, &network(MessageRule::Loggops, 0)),
        [5099.0 + 1300.0, 0.0, 0.0]
    );
}

#[test]
fn a_fence_waits_for_all_transfers_and_all_ranks() {
    let records = [
        "30:0:1:1:5000 30:3:1:-1:0 1:0.000001",
        "1:0.000002 30:3:1:-1:0",
    ];
    let found = ends(&program(&records), &network(MessageRule::Hockney, 0));
    // A barrier by formula takes two latencies and two overheads, for 2 ranks.
    assert_eq!(found, [6000.0 + 3200.0 + 1000.0, 6000.0 + 3200.0]);
}

#[test]
fn ranks_get_an_exclusive_lock_in_the_order_of_their_requests() {
    let hold = "30:5:1:0:0 1:0.000010 30:6:1:0:0";
    // Ranks 1, 2 and 3 send requests at 0, 2 and 1 us; request and answer take 1 us each.
    let records = [
        "",
        hold,
        &format!("1:0.000002 {hold}"),
        &format!("1:0.000001 {hold}"),
    ];
    assert_eq!(
        ends(&program(&records), &network(MessageRule::Hockney, 0)),
        [0.0, 12_000.0, 34_000.0, 23_000.0]
    );
    let shared = hold.replace("30:5", "30:4");
    let records = [
        "",
        &shared,
        &format!("1:0.000002 {shared}"),
        &format!("1:0.000001 {shared}"),
    ];
    assert_eq!(
        ends(&program(&records), &network(MessageRule::Hockney, 0)),
        [0.0, 12_000.0, 14_000.0, 13_000.0]
    );
}

#[test]
fn shared_locks_wait_for_an_exclusive_lock_that_was_requested_before() {
    let hold =
        |kind: u32, late: u32| format!("1:0.{late:06} 30:{kind}:1:0:0 1:0.000010 30:6:1:0:0");
    let records = [String::new(), hold(4, 0), hold(5, 1), hold(4, 2)];
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    assert_eq!(
        ends(&program(&records), &network(MessageRule::Hockney, 0)),
        [0.0, 12_000.0, 23_000.0, 34_000.0]
    );
}

#[test]
fn a_rank_that_never_gets_a_lock_is_reported() {
    let program = program(&["", "30:5:1:0:0", "1:0.000001 30:5:1:0:0"]);
    let network = network(MessageRule::Hockney, 0);
    let placement = Placement::new(&network.machine, None, 3).unwrap();
    let error = ReplayEngine::new(&program, &network, placement, Rendezvous::AsRecorded)
        .unwrap()
        .run()
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("rank 2 waits for a lock on the memory of rank 0"),
        "{error}"
    );
}

#[test]
fn requests_to_files_take_turns_if_only_some_fit() {
    // 5000 bytes take 10 us and 10 us.
    let write = "31:3:0:0:5000";
    let late = format!("1:0.000001 {write}");
    let records = [&late, write, write];
    assert_eq!(
        ends(&program(&records), &network(MessageRule::Hockney, 0)),
        [21_000.0, 20_000.0, 20_000.0]
    );
    assert_eq!(
        ends(&program(&records), &network(MessageRule::Hockney, 2)),
        [40_000.0, 20_000.0, 20_000.0]
    );
    assert_eq!(
        ends(&program(&records), &network(MessageRule::Hockney, 1)),
        [60_000.0, 20_000.0, 40_000.0]
    );
    // Opening and closing take the latency. In a collective call, all ranks first wait for the last.
    let open = [
        "31:0:0:0:0 31:1:0:0:0",
        "1:0.000005 31:2:0:1:5000",
        "31:2:0:1:0",
    ];
    let found = ends(&program(&open[..1]), &network(MessageRule::Hockney, 0));
    assert_eq!(found, [20_000.0]);
    assert!(read_text(text(&open)).is_err(), "rank 0 does not take part");
    let all = ends(&program(&open[1..]), &network(MessageRule::Hockney, 0));
    assert_eq!(
        all,
        [5000.0 + 3200.0 + 20_000.0, 5000.0 + 3200.0 + 10_000.0]
    );
}

#[test]
fn waiting_for_others_is_distinguished_from_the_request_itself() {
    let program = program(&["31:3:0:0:5000", "31:3:0:0:5000"]);
    let network = network(MessageRule::Hockney, 1);
    let placement = Placement::new(&network.machine, None, 2).unwrap();
    let engine = ReplayEngine::new(&program, &network, placement, Rendezvous::AsRecorded).unwrap();
    let (_, explanation) = explained(&engine);
    let of = |cost| explanation.ranks[1].time(cost).as_nanos();
    assert_eq!(
        [
            of(TimePart::Contention),
            of(TimePart::Latency),
            of(TimePart::Bandwidth)
        ],
        [20_000.0, 10_000.0, 10_000.0]
    );
    let names: Vec<_> = explanation
        .sites
        .iter()
        .map(|(site, _)| flowcast::report::sites::site_name(site))
        .collect();
    assert_eq!(names, ["MPI_File_write"]);
}

#[test]
fn transfers_take_turns_on_the_links_that_their_data_cross() {
    let flush = "30:7:1:-1:0";
    let put = |to: u32| format!("30:0:1:{to}:5000");
    let (to_0, to_1) = (format!("{} {flush}", put(0)), format!("{} {flush}", put(1)));
    let gets = format!("30:1:1:1:5000 30:1:1:2:5000 {flush}");
    for (records, expected) in [
        // Two transfers into one node: the link is occupied for 5 us when the second requests it.
        (vec!["", &to_0, &to_0], vec![0.0, 6000.0, 11_000.0]),
        // Each direction has its link, and the target computes at the same time.
        (
            vec![&to_1, &to_0, "1:0.000001"],
            vec![6000.0, 6000.0, 1000.0],
        ),
        // The data of a get use the link into the node.
        (vec![&gets, "", ""], vec![11_000.0, 0.0, 0.0]),
        // A message waits for its turn among them: it is sent first, and received at 6 us.
        (
            vec![
                "3:2:-1:5000:0:1:0",
                &format!("1:0.000001 {to_0}"),
                "2:0:-1:5000:0:1:0",
            ],
            vec![6000.0, 11_000.0, 0.0],
        ),
    ] {
        let (program, network) = (program(&records), network(MessageRule::Hockney, 0));
        assert_eq!(
            ends(&program, &limited(network, 1, 1)),
            expected,
            "{records:?}"
        );
    }
}

#[test]
fn transfers_take_turns_under_dimemas_rules_too() {
    let put = "30:0:1:0:5000 30:7:1:-1:0";
    let program = program(&["", put, put]);
    assert_eq!(
        ends(&program, &limited(network(MessageRule::Dimemas, 0), 1, 1)),
        [0.0, 6000.0, 11_000.0]
    );
}

#[test]
fn locks_and_files_under_limits_wait_as_without() {
    let hold = |late: u32| format!("1:0.{late:06} 30:5:1:0:0 1:0.000010 30:6:1:0:0");
    let records = [
        "1:0.000001 31:3:0:0:5000".to_owned(),
        hold(0),
        hold(2),
        hold(1),
    ];
    let program = program(&records.each_ref().map(String::as_str));
    let expected = [21_000.0, 12_000.0, 34_000.0, 23_000.0];
    let network = network(MessageRule::Hockney, 1);
    assert_eq!(ends(&program, &network), expected);
    assert_eq!(ends(&program, &limited(network.clone(), 1, 1)), expected);
    for model in [Model::Fair, Model::ClosedLoop] {
        assert_eq!(ends_sharing(&program, &network, model), expected);
    }
}

#[test]
fn an_unlock_waits_for_the_transfers_that_the_links_hold_up() {
    let put = "30:5:1:0:0 30:0:1:0:5000 30:6:1:0:0";
    // The lock is held from 0 to 2 us. A transfer of rank 2 occupies the link from 1.5 to 6.5 us.
    let program = program(&[
        "",
        put,
        "1:0.0000015 30:0:1:0:5000 30:7:1:-1:0",
        "1:0.000003 30:5:1:0:0 30:6:1:0:0",
    ]);
    let found = ends(&program, &limited(network(MessageRule::Hockney, 0), 1, 1));
    assert_eq!(found, [0.0, 12_500.0, 7500.0, 13_500.0]);
}

#[test]
fn transfers_share_bandwidth_where_messages_do() {
    let put = "30:0:1:0:5000 30:7:1:-1:0";
    let network = network(MessageRule::Hockney, 0);
    for model in [Model::Fair, Model::ClosedLoop] {
        let found = ends_sharing(&program(&["", put, put]), &network, model);
        assert!(
            found
                .iter()
                .zip([0.0, 11_000.0, 11_000.0])
                .all(|(one, other)| (one - other).abs() < 11.0),
            "{found:?}"
        );
        // A transfer and a message from another rank into the same node get half of the rate each.
        let both = program(&["3:2:-1:5000:0:1:0", put, "2:0:-1:5000:0:1:0"]);
        let found = ends_sharing(&both, &network, model);
        let expected = [11_000.0, 11_000.0, 0.0];
        assert!(
            found
                .iter()
                .zip(expected)
                .all(|(one, other)| (one - other).abs() < 11.0),
            "{found:?}"
        );
    }
}

/// A transfer in the sender's buffer releases no rank; only messages do.
#[test]
fn transfers_pass_a_send_buffer_beside_messages_that_wait_for_their_receiver() {
    let program = program(&[
        "30:0:1:1:1000000 30:7:1:1:0 2:1:-1:200000:7:1:1",
        "3:0:-1:200000:7:1:0",
    ]);
    let mut network = network(MessageRule::Hockney, 0);
    let packet = &mut network.sharing.packet;
    (packet.window, packet.first_window) = (Some(Bytes(160_000)), Some(Bytes(160_000)));
    packet.send_buffer = Some(Bytes(256_000));
    network.point_to_point.rendezvous_from = Some(Bytes(65_536));
    for processors in [0, 1] {
        network.machine.processors = processors;
        let placement = Placement::new(&network.machine, None, 2).unwrap();
        let waits = Rendezvous::from_network(&network, None);
        let engine = ReplayEngine::sharing(&program, &network, placement, waits, Model::Packet);
        let [sent, received] = ends_by(&program, &engine.unwrap())[..] else {
            panic!("two ranks")
        };
        // The sender continues when the end of its message fits into the buffer.
        assert!(1_000_000.0 < sent && sent < received && received > 1_200_000.0);
    }
}

#[test]
fn delays_of_a_transfer_by_links_and_others_are_conflict() {
    let put = "30:0:1:0:5000 30:7:1:-1:0";
    let program = program(&["", put, put]);
    let network = network(MessageRule::Hockney, 0);
    let limits = limited(network, 1, 1);
    let placement = Placement::new(&limits.machine, None, 3).unwrap();
    let engine = ReplayEngine::new(&program, &limits, placement, Rendezvous::AsRecorded).unwrap();
    let (_, explanation) = explained(&engine);
    let of = |cost| explanation.ranks[2].time(cost).as_nanos();
    assert_eq!(
        [
            of(TimePart::Contention),
            of(TimePart::Latency),
            of(TimePart::Bandwidth)
        ],
        [5000.0, 1000.0, 5000.0]
    );
}

#[test]
fn a_wrong_record_is_named() {
    for (records, message) in [
        (
            "30:9:1:1:0",
            "trace:4: found operation 9, expected a one-sided operation, 0 to 7",
        ),
        (
            "30:0:1:7:0",
            "trace:4: found target 7, expected a task from 0 to 1",
        ),
        (
            "31:4:0:0:0",
            "trace:4: found operation 4, expected a file operation, 0 to 3",
        ),
        (
            "31:3:0:0:-1",
            "trace:4: found size -1, expected a size of at least 0 bytes",
        ),
        (
            "30:3:2:-1:0",
            "trace:4: found a collective on communicator 2, expected a defined communicator",
        ),
    ] {
        assert_eq!(
            read_text(text(&[records, ""])).unwrap_err().to_string(),
            message
        );
    }
}

/// Possible records of a rank, with computations of odd lengths in between; locks are released.
fn any_rank(ranks: u32) -> impl Strategy<Value = Vec<String>> {
    let record =
        (0u32..6, 0..ranks, 0u64..20_000, 1u32..40_000).prop_map(|(kind, target, size, odd)| {
            let body = match kind {
                0 => format!("31:{}:0:0:{size}", target % 4),
                1 => format!(
                    "30:{}:1:{target}:0 30:0:1:{target}:{size} 30:6:1:{target}:0",
                    4 + size % 2
                ),
                2 => format!("30:7:1:{target}:0"),
                3 => "30:7:1:-1:0".to_owned(),
                kind => format!("30:{}:1:{target}:{size}", kind - 4),
            };
            format!("1:0.{odd:06}{:03} {body}", odd % 997)
        });
    proptest::collection::vec(record, 0..12)
}

proptest! {
    #[test]
    fn events_and_the_walk_give_the_same_without_limits(
        records in proptest::collection::vec(any_rank(4), 4), requests in 0u32..3, rule in 0usize..3,
    ) {
        let records: Vec<String> = records.iter().map(|own| own.join(" ")).collect();
        let program = program(&records.iter().map(String::as_str).collect::<Vec<_>>());
        let network = network([MessageRule::Hockney, MessageRule::Dimemas, MessageRule::Loggops][rule], requests);
        let placement = || Placement::new(&network.machine, None, 4).unwrap();
        let contention = ReplayEngine::limited(Replay::new(&program, &network, placement(), Rendezvous::AsRecorded).unwrap(), &network);
        let by_events = contention.run().unwrap();
        let walked = ReplayEngine::new(&program, &network, placement(), Rendezvous::AsRecorded).unwrap().run().unwrap();
        for (one, other) in by_events.ranks.iter().zip(&walked.ranks) {
            prop_assert!((one.end.as_nanos() - other.end.as_nanos()).abs() < 1e-3, "{by_events:?} {walked:?}");
            prop_assert!((one.blocked.as_nanos() - other.blocked.as_nanos()).abs() < 1e-3);
        }
        // Messages do not meet, so sharing models give each message its rate alone.
        let model = Model::Independent;
        let shared = ReplayEngine::sharing(&program, &network, placement(), Rendezvous::AsRecorded, model).unwrap().run().unwrap();
        for (one, other) in shared.ranks.iter().zip(&walked.ranks) {
            prop_assert!((one.end.as_nanos() - other.end.as_nanos()).abs() < 1e-3, "{shared:?} {walked:?}");
        }
        // Links for which no message waits change nothing, although transfers share the network.
        let mut with_empty_site = network.clone();
        with_empty_site.machine.further_sites.push(Site::default());
        for (by_events, model) in [(limited(network.clone(), 1000, 1), Model::Fair), (with_empty_site, Model::Packet)] {
            let by_events = ends_sharing(&program, &by_events, model);
            for (one, other) in by_events.iter().zip(ends_sharing(&program, &network, model)) {
                prop_assert!((one - other).abs() < 1e-3 + 1e-6 * other, "{:?}: {} {}", model, one, other);
            }
        }
    }

    #[test]
    fn compiling_keeps_accesses(records in proptest::collection::vec((0u32..8, 0u32..3, 0u64..10_000), 0..20), files: bool) {
        let own: Vec<String> = records.iter().map(|(kind, target, size)| match kind {
            3 => "30:7:1:-1:0".to_owned(),
            kind if files => format!("31:{}:{target}:0:{size}", kind % 4),
            kind => format!("30:{kind}:1:{target}:{size}"),
        }).collect();
        let program = program(&[&own.join(" "), "", ""]);
        let bytes: Vec<u8> = compiled::parts(&Trace::Program(program.clone())).concat();
        let again = program_of(bytes);
        prop_assert_eq!(again.accesses(), program.accesses());
        prop_assert_eq!(again.words(flowcast::units::Rank(0)), program.words(flowcast::units::Rank(0)));
    }
}
