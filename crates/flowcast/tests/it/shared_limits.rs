//! Links, buses and processors of a machine together with a sharing model. With enough of them, the ranks run as without
//! limits; otherwise ranks or messages wait for them.

use crate::{
    random_programs::{Numbers, Record, Records, any_numbers, any_records, explained},
    testing::program_of,
};
use flowcast::{
    graph::EventGraph,
    model::{
        builtin,
        machine::{Mapping, wide_area::Site},
        network::Network,
        sharing::model::Model,
    },
    observers::{
        journal::{JournalContents, ReplayJournal},
        run_times::RunTimer,
    },
    replay::{
        ReplayEngine, SimulateError, costs::Rendezvous, outcome::Outcome, placement::Placement,
        time_part::TimePart,
    },
    report::export::{
        Replayed,
        paraver::{self, Stamp},
    },
    trace::{Program, TraceRef},
    units::Time,
};
use flowcast_sensitivity::influence::{FinishedReplay, without_influence};
use proptest::prelude::*;

fn engine<'a>(
    program: &'a Program,
    network: &Network,
    rendezvous: Rendezvous,
    model: Model,
) -> ReplayEngine<'a> {
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    ReplayEngine::sharing(program, network, placement, rendezvous, model).unwrap()
}

/// The network with enough links that no message ever waits for one.
fn with_many_links(mut network: Network) -> Network {
    network
        .machine
        .nodes
        .iter_mut()
        .for_each(|group| (group.in_links, group.out_links) = (1000, 1000));
    network
}

/// The network with a second site that has no node.
fn with_empty_site(mut network: Network) -> Network {
    network.machine.further_sites.push(Site::default());
    network
}

fn compare(found: &Outcome, expected: &Outcome) -> Result<(), TestCaseError> {
    for (rank, (found, expected)) in found.ranks.iter().zip(&expected.ranks).enumerate() {
        for (found, expected) in [
            (found.end, expected.end),
            (found.compute, expected.compute),
            (found.blocked, expected.blocked),
            (found.overhead, expected.overhead),
        ] {
            let (found, expected) = (found.as_nanos(), expected.as_nanos());
            let is_equal = (found - expected).abs() <= (1e-6 * expected).max(1.0);
            prop_assert!(is_equal, "rank {}: {} {}", rank, found, expected);
        }
    }
    Ok(())
}

fn check_causes(engine: &ReplayEngine<'_>) -> Result<(), TestCaseError> {
    let (outcome, explanation) = explained(engine);
    for (sums, times) in explanation.ranks.iter().zip(&outcome.ranks) {
        let (found, expected) = (
            sums.total().as_nanos(),
            (times.blocked + times.overhead).as_nanos(),
        );
        prop_assert!(
            (found - expected).abs() <= 1e-6 + 1e-9 * expected,
            "{} {}",
            found,
            expected
        );
    }
    Ok(())
}

/// The program with sends that never wait for their receivers.
fn without_rendezvous(records: &Records) -> Records {
    let eager = |record: &Record| match *record {
        Record::Send {
            to,
            bytes,
            tag,
            comm,
            non_blocking,
            ..
        } => Record::Send {
            to,
            bytes,
            tag,
            comm,
            sync: false,
            non_blocking,
        },
        same => same,
    };
    let ranks = records
        .ranks
        .iter()
        .map(|records| records.iter().map(eager).collect())
        .collect();
    Records {
        ranks,
        comms: records.comms.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn links_without_waiting_messages_change_no_time(
        records in any_records(), numbers in any_numbers(),
        model in prop_oneof![Just(Model::Fair), Just(Model::FlowCuts), Just(Model::ClosedLoop)],
    ) {
        let program = records.program();
        let mut network = numbers.network(program.ranks());
        network.sharing.flow_cuts = builtin::network("gige-lam").unwrap().sharing.flow_cuts;
        let walked = engine(&program, &network, numbers.rendezvous(), model).run().unwrap();
        let limited = engine(&program, &with_many_links(network), numbers.rendezvous(), model).run().unwrap();
        prop_assert_eq!(limited.waits.links, 0);
        compare(&limited, &walked)?;
    }

    #[test]
    fn causes_add_up_where_messages_wait_and_then_share(
        records in any_records(), numbers in any_numbers(), limits in (0u32..3, 0u32..3, 1u32..3),
    ) {
        let program = records.program();
        let mut network = numbers.network(program.ranks());
        let group = &mut network.machine.nodes[0];
        (group.in_links, group.out_links, group.cpus) = (limits.0, limits.1, limits.2.min(group.cpus));
        check_causes(&engine(&program, &network, numbers.rendezvous(), Model::Fair))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn packets_do_not_depend_on_other_limits_of_the_machine(records in any_records(), numbers in any_numbers()) {
        let program = without_rendezvous(&records).program();
        let numbers = Numbers { per_byte: numbers.per_byte.max(0.1), ..numbers };
        let network = numbers.network(program.ranks());
        let run = |network: &Network| engine(&program, network, Rendezvous::AsRecorded, Model::Packet).run();
        let walked: Result<Outcome, SimulateError> = run(&network);
        compare(&run(&with_empty_site(network)).unwrap(), &walked.unwrap())?;
    }

    #[test]
    fn causes_add_up_where_ranks_take_turns_and_packets_queue(
        records in any_records(), numbers in any_numbers(), cpus in 1u32..3,
    ) {
        let program = records.program();
        let numbers = Numbers { per_byte: numbers.per_byte.max(0.1), ..numbers };
        let mut network = with_empty_site(numbers.network(program.ranks()));
        network.machine.nodes[0].cpus = cpus;
        check_causes(&engine(&program, &network, numbers.rendezvous(), Model::Packet))?;
    }
}

/// A network with 1 ns for each byte, and with processors and links from `machine`.
fn network(machine: &str) -> Network {
    let text = format!(
        "schema = \"flowcast/network/2\"\nname = \"test\"\n[point_to_point]\nrule = \"hockney\"\n[nic]\nlatency = \
         \"2us\"\nbandwidth = \"1GB/s\"\n[[machine.nodes]]\ncount = 4\n{machine}"
    );
    Network::from_toml(&text, &[]).unwrap()
}

/// Ranks 0 and 1 compute for 1 ms and send 1 MB to ranks 2 and 3.
fn two_pairs() -> Program {
    let text = "#DIMEMAS:\"x\":0:4(1,1,1,1),0\n1:0:0:0.001\n2:0:0:2:-1:1000000:0:1:0\n1:1:0:0.001\n\
                2:1:0:3:-1:1000000:0:1:0\n1:2:0:0.0\n3:2:0:0:-1:1000000:0:1:0\n1:3:0:0.0\n3:3:0:1:-1:1000000:0:1:0\n";
    program_of(text)
}

/// Ends of ranks 2 and 3 in microseconds, if ranks 0 and 1 share node 0, and ranks 2 and 3 node 1.
fn ends(machine: &str, model: Model) -> [f64; 2] {
    let (program, mut network) = (two_pairs(), network(machine));
    network.machine.mapping = Some(Mapping::List(vec![0, 0, 1, 1]));
    let outcome = engine(&program, &network, Rendezvous::AsRecorded, model)
        .run()
        .unwrap();
    [2, 3].map(|rank| outcome.ranks[rank].end.as_micros())
}

fn assert_close(found: [f64; 2], expected: [f64; 2]) {
    let is_close = found
        .iter()
        .zip(expected)
        .all(|(found, expected)| (found - expected).abs() < 1e-6);
    assert!(is_close, "{found:?} {expected:?}");
}

#[test]
fn ranks_on_one_processor_take_turns_before_their_messages_share() {
    // The bytes of both through one interface: 2 ms.
    assert_close(ends("cpus = 2", Model::Fair), [3002.0, 3002.0]);
    // The second computes while the first sends alone.
    assert_close(ends("cpus = 1", Model::Fair), [2002.0, 3002.0]);
    let packets = ends("cpus = 1", Model::Packet);
    assert!(packets[1] - packets[0] > 900.0, "{packets:?}");
}

#[test]
fn nodes_of_one_machine_take_turns_on_its_processors() {
    let ends = |processors: u32| {
        let (program, mut network) = (two_pairs(), network("cpus = 1"));
        network.machine.processors = processors;
        let outcome = engine(&program, &network, Rendezvous::AsRecorded, Model::Fair)
            .run()
            .unwrap();
        [2, 3].map(|rank| outcome.ranks[rank].end.as_micros())
    };
    assert_close(ends(0), [2002.0, 2002.0]);
    assert_close(ends(2), [2002.0, 2002.0]);
    assert_close(ends(1), [2002.0, 3002.0]);
}

#[test]
fn messages_that_wait_for_a_link_share_no_bandwidth() {
    assert_close(
        ends("cpus = 2\nout_links = 1\nin_links = 1", Model::Fair),
        [2002.0, 3002.0],
    );
    // Packets wait at interfaces instead.
    let packets = |links| {
        ends(
            &format!("cpus = 2\nout_links = {links}\nin_links = {links}"),
            Model::Packet,
        )
    };
    assert_eq!(packets(1), packets(0));
}

#[test]
fn all_observers_see_waiting_and_sharing_messages() {
    let (program, mut network) = (
        two_pairs(),
        network("cpus = 1\nout_links = 1\nin_links = 1"),
    );
    network.machine.mapping = Some(Mapping::List(vec![0, 0, 1, 1]));
    let engine = engine(&program, &network, Rendezvous::AsRecorded, Model::Fair);
    let mut journal = ReplayJournal::new(
        &program,
        JournalContents {
            timeline: true,
            ..JournalContents::FILES
        },
    );
    let mut timer = RunTimer::new(&program, &[]);
    let outcome = engine.observed(&mut (&mut journal, &mut timer)).unwrap();
    assert_eq!(timer.finish(&outcome).total, outcome.makespan());
    let (_, graph) = EventGraph::record(&engine).unwrap();
    assert_eq!(graph.critical_path().makespan, outcome.makespan());
    assert_eq!(journal.last_arrival(), Time::from_micros(3002.0));
    let (again, explanation) = explained(&engine);
    assert_eq!(again, outcome);
    // Rank 1 waits for the processor while rank 0 computes.
    assert_eq!(
        explanation.ranks[1].time(TimePart::Processor),
        Time::from_micros(1000.0)
    );
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let replayed = Replayed {
        trace: TraceRef::Program(&program),
        placement: &placement,
        outcome: &outcome,
        journal: &journal,
    };
    let mut text = Vec::new();
    paraver::prv(replayed, &Stamp("01/02/2026 at 03:04".into()), &mut text).unwrap();
    assert_eq!(
        String::from_utf8(text)
            .unwrap()
            .lines()
            .filter(|line| line.starts_with("3:"))
            .count(),
        2
    );
}

#[test]
fn ranks_that_wait_for_each_other_are_named() {
    let text = "#DIMEMAS:\"x\":0:2(1,1),0\n1:0:0:0.0\n3:0:0:1:-1:8:0:1:0\n2:0:0:1:-1:8:0:1:0\n1:1:0:0.0\n\
                3:1:0:0:-1:8:0:1:0\n2:1:0:0:-1:8:0:1:0\n";
    let (program, mut network) = (program_of(text), network("cpus = 1"));
    network.machine.mapping = Some(Mapping::List(vec![0, 0]));
    for model in [Model::Fair, Model::Packet] {
        let error = engine(&program, &network, Rendezvous::AsRecorded, model)
            .run()
            .unwrap_err();
        assert!(
            matches!(error, SimulateError::Deadlock { waiting: 2, .. }),
            "{error}"
        );
    }
}

#[test]
fn limits_have_their_influence_under_a_model_and_links_have_none_on_packets() {
    let (program, mut network) = (
        two_pairs(),
        network("cpus = 2\nout_links = 1\nin_links = 1"),
    );
    network.machine.mapping = Some(Mapping::List(vec![0, 0, 1, 1]));
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let rendezvous = Rendezvous::AsRecorded;
    let unused = |model| {
        let outcome = engine(&program, &network, rendezvous, model).run().unwrap();
        let (program, network, placement, outcome) = (&program, &network, &placement, &outcome);
        let unused = without_influence(
            &FinishedReplay {
                program,
                network,
                placement,
                rendezvous,
                model: Some(model),
                outcome,
            },
            &[],
        );
        unused
            .into_iter()
            .filter(|one| one.parameter.ends_with("links"))
            .collect::<Vec<_>>()
    };
    assert_eq!(unused(Model::Fair), []);
    let packets = unused(Model::Packet);
    assert_eq!(packets.len(), 2);
    assert!(
        packets.iter().all(|one| one.reason.contains("packets")),
        "{packets:?}"
    );
}
