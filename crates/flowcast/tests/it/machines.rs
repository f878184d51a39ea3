//! Schedulers, sites, threads, several programs at the same time and random perturbation: compared with Dimemas' own times,
//! and with properties that hold for any times.

use std::{fs, path::PathBuf, sync::Arc};

use crate::testing::{self, file, program_of};
use flowcast::{
    convert::{self, Dialect},
    model::{
        machine::{Machine, Mapping, NodeGroup, scheduler::Policy},
        network::Network,
        sharing::model::Model,
    },
    replay::{
        ReplayEngine,
        costs::Rendezvous,
        outcome::Outcome,
        placement::{Application, Placement},
    },
    trace::{Program, Trace, compiled, together::together},
    units::Rank,
};
use flowcast_sensitivity::influence::{FinishedReplay, without_influence};

fn data(name: &str) -> PathBuf {
    file("tests/data/dimemas/machines").join(name)
}

fn network_at(name: &str) -> Network {
    testing::network_at("tests/data/dimemas/machines", name)
}

fn replay(program: &Program, network: &Network) -> Outcome {
    let placement = Placement::of_program(&network.machine, None, program).unwrap();
    ReplayEngine::new(program, network, placement, Rendezvous::AsRecorded)
        .unwrap()
        .run()
        .unwrap()
}

fn network(machine: &str) -> Network {
    let text = format!(
        "schema = \"flowcast/network/2\"\nname = \"test\"\n[point_to_point]\nrule = \"dimemas\"\n[nic]\nlatency = \
         \"2us\"\nbandwidth = \"1000MB/s\"\n{machine}"
    );
    Network::from_toml(&text, &[]).unwrap()
}

#[test]
fn schedulers_sites_and_threads_take_as_long_as_in_dimemas() {
    let table = fs::read_to_string(data("cases.tsv")).unwrap();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let program = program_of(fs::read(data(fields[0])).unwrap());
        let outcome = replay(&program, &network_at(fields[1]));
        let first_threads = (0..program.ranks() as u32)
            .map(Rank)
            .filter(|rank| program.thread(*rank) == 0);
        let end = first_threads
            .map(|rank| outcome.ranks[rank.index()].end.as_nanos())
            .fold(0.0, f64::max);
        assert_eq!(
            format!("{:.9}", (end + 0.5).floor() / 1e9),
            fields[2],
            "{line}"
        );
    }
    assert_eq!(table.lines().count(), 41);
}

/// Two tasks with one burst each.
const TWO_BURSTS: &str = "#DIMEMAS:\"two\":0:2(1,1),0\n1:0:0:0.000010000\n1:1:0:0.000010000\n";

fn ends(outcome: &Outcome) -> Vec<f64> {
    outcome
        .ranks
        .iter()
        .map(|rank| rank.end.as_nanos())
        .collect()
}

fn one_processor(policy: Policy) -> Network {
    let mut network = network("");
    network.machine = Machine {
        nodes: vec![NodeGroup {
            cpus: 1,
            ..NodeGroup::default()
        }],
        mapping: Some(Mapping::List(vec![0, 0])),
        ..Machine::default()
    };
    network.machine.scheduler.policy = policy;
    network
}

#[test]
fn two_bursts_on_one_processor_follow_the_policy() {
    let program = program_of(TWO_BURSTS);
    let mut network = one_processor(Policy::Fifo);
    assert_eq!(ends(&replay(&program, &network)), [10_000.0, 20_000.0]);
    network.machine.scheduler.policy = Policy::RoundRobin;
    // Slices of 3 us: 0 1 0 1 0 1 0 1, the last two of 1 us.
    assert_eq!(ends(&replay(&program, &network)), [19_000.0, 20_000.0]);
    network.machine.scheduler.context_switch = flowcast::units::Time::from_nanos(100.0);
    assert_eq!(ends(&replay(&program, &network)), [19_700.0, 20_800.0]);
    network.machine.scheduler = Default::default();
    network.machine.scheduler.policy = Policy::Priority;
    network.machine.scheduler.priorities = vec![5, 1];
    assert_eq!(ends(&replay(&program, &network)), [20_000.0, 10_000.0]);
}

#[test]
fn an_urgent_rank_takes_the_processor_only_where_priorities_preempt() {
    // Rank 1 waits for a message of rank 2, which arrives while rank 0 computes.
    let program = program_of(
        "#DIMEMAS:\"p\":0:3(1,1,1),0\n1:0:0:0.000100000\n1:1:0:0.000000000\n3:1:0:2:-1:0:0:1:0\n1:1:0:0.000010000\n\
         1:2:0:0.000020000\n2:2:0:1:-1:0:0:1:0\n",
    );
    let mut network = one_processor(Policy::Priority);
    network.machine.nodes[0].count = 2;
    network.machine.mapping = Some(Mapping::List(vec![0, 0, 1]));
    network.machine.scheduler.priorities = vec![1, 0, 0];
    let calm = replay(&program, &network);
    assert_eq!(ends(&calm), [102_000.0, 112_000.0, 22_000.0]);
    network.machine.scheduler.preemptive = true;
    let urgent = replay(&program, &network);
    assert_eq!(ends(&urgent), [112_000.0, 32_000.0, 22_000.0]);
    let compute = |outcome: &Outcome| {
        outcome
            .ranks
            .iter()
            .map(|rank| rank.compute.as_nanos())
            .collect::<Vec<_>>()
    };
    assert_eq!(compute(&urgent), compute(&calm));
    assert!(urgent.waits.preemptions > 0);
}

fn joined(programs: &[&Program], network: &Network, mappings: [&Mapping; 2]) -> Outcome {
    let pairs = programs.iter().zip(mappings);
    let own: Vec<Application> = pairs
        .map(|(program, mapping)| Application {
            threads: program.threads_of_tasks(),
            mapping: Some(mapping),
        })
        .collect();
    let placement = Placement::of_applications(&network.machine, &own).unwrap();
    let whole = together(programs).unwrap();
    ReplayEngine::new(&whole, network, placement, Rendezvous::AsRecorded)
        .unwrap()
        .run()
        .unwrap()
}

#[test]
fn programs_that_number_their_communicators_alike_are_compiled_together() {
    let text = "#DIMEMAS:\"t\":0:2(1,1),1\nd:1:4:2:0:1\n10:0:0:8:4:0:0:8:8:1\n2:0:0:1:-1:80:7:4:1\n\
        10:1:0:8:4:0:0:8:8:1\n3:1:0:0:-1:80:7:4:0\n";
    let one = program_of(text);
    let whole = together(&[&one, &one, &one]).unwrap();
    let ids: Vec<i32> = whole
        .communicators()
        .iter()
        .map(|communicator| communicator.id)
        .collect();
    assert_eq!(ids, [4, 5, 6]);
    let of_messages: Vec<i32> = whole
        .classes()
        .iter()
        .map(|class| class.communicator)
        .collect();
    assert_eq!(of_messages, ids);
    let file = compiled::parts(&Trace::Program(whole.clone())).concat();
    let Trace::Program(again) = compiled::read("t", Arc::new(file)).unwrap() else {
        panic!("a program stays one")
    };
    let network = network("");
    assert_eq!(replay(&again, &network), replay(&whole, &network));
    let mut text = Vec::new();
    convert::dim(&whole, Dialect::Own, &mut text).unwrap();
    assert_eq!(program_of(text).messages(), 3);
}

#[test]
fn programs_that_share_nothing_end_as_alone_and_those_that_share_a_processor_later() {
    let ring = program_of(fs::read(data("schedule00.dim")).unwrap());
    let bursts = program_of(TWO_BURSTS);
    let mut network = network("");
    network.machine.nodes = vec![NodeGroup {
        count: 64,
        cpus: 1,
        in_links: 1,
        out_links: 1,
        ..NodeGroup::default()
    }];
    let alone = (replay(&ring, &network), replay(&bursts, &network));
    let near = Mapping::List((0..ring.ranks() as u32).collect());
    let far = Mapping::List(vec![40, 41]);
    let apart = joined(&[&ring, &bursts], &network, [&near, &far]);
    assert_eq!(apart.ranks[..ring.ranks()], alone.0.ranks);
    assert_eq!(apart.ranks[ring.ranks()..], alone.1.ranks);
    let same = joined(&[&bursts, &bursts], &network, [&far, &far]);
    assert_eq!(ends(&same), [10_000.0, 10_000.0, 20_000.0, 20_000.0]);
}

#[test]
fn equal_seeds_give_equal_results_and_other_seeds_others() {
    let messages = program_of(fs::read(data("sites00.dim")).unwrap());
    let of = |seed: &str, distribution: &str| {
        let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let overrides = [
            set("machine.random.latency", distribution),
            set("machine.random.seed", seed),
        ];
        ends(&replay(
            &messages,
            &network("").with_overrides(&overrides).unwrap(),
        ))
    };
    assert_eq!(of("1", "uniform 0ns 500ns"), of("1", "uniform 0ns 500ns"));
    assert_ne!(of("1", "uniform 0ns 500ns"), of("2", "uniform 0ns 500ns"));
    // A perturbation that is always the same equals a longer latency.
    let longer = network("")
        .with_overrides(&[("nic.latency".to_owned(), "2.5us".to_owned())])
        .unwrap();
    assert_eq!(
        of("7", "uniform 500ns 500ns"),
        ends(&replay(&messages, &longer))
    );
}

#[test]
fn accelerators_compute_beside_the_processors_at_their_own_speed() {
    let program = program_of(
        "#DIMEMAS:\"a\":0:2(1,1),0\n1:0:0:0.000001000\n11:0:0:0.000010000\n1:1:0:0.000005000\n",
    );
    let mut network = one_processor(Policy::Fifo);
    network.machine.nodes[0].accelerator_speed = 2.0;
    assert_eq!(ends(&replay(&program, &network)), [6_000.0, 6_000.0]);
    // The replay without events gives the same times.
    network.machine.nodes[0].cpus = 2;
    assert_eq!(ends(&replay(&program, &network)), [6_000.0, 5_000.0]);
}

#[test]
fn parameters_that_nothing_used_are_named_and_others_are_not() {
    let program = program_of(TWO_BURSTS);
    let network = network(
        "[machine]\nbuses = 3\n[[machine.nodes]]\ncount = 0\nintra_latency = \"1us\"\nspeed = 2.0\n",
    );
    let placement = Placement::of_program(&network.machine, None, &program).unwrap();
    let outcome = replay(&program, &network);
    let done = FinishedReplay {
        program: &program,
        network: &network,
        placement: &placement,
        rendezvous: Rendezvous::AsRecorded,
        model: None,
        outcome: &outcome,
    };
    let names = |asked: &[&str]| {
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        without_influence(&done, &asked)
            .into_iter()
            .map(|one| one.parameter)
            .collect::<Vec<_>>()
    };
    let found = [
        "nic.latency",
        "nic.bandwidth",
        "machine.buses",
        "machine.nodes.intra_latency",
    ];
    assert_eq!(names(&[]), found);
    // A parameter that the user set is named even if it has its default value.
    assert!(names(&["machine.nodes.0.in_links"]).contains(&"machine.nodes.in_links".to_owned()));
}

#[test]
fn unread_fields_are_always_named_and_parameters_of_other_models_on_request() {
    let program = program_of(TWO_BURSTS);
    let more = "[sharing.closed_loop]\nkappa = 0.5\n[sharing.packet]\nwindow = \"44kB\"\n";
    let network = network(more);
    let placement = Placement::of_program(&network.machine, None, &program).unwrap();
    let rendezvous = Rendezvous::AsRecorded;
    let engine = ReplayEngine::sharing(
        &program,
        &network,
        placement.clone(),
        rendezvous,
        Model::ClosedLoop,
    )
    .unwrap();
    let outcome = engine.run().unwrap();
    let (program, network, placement, outcome) = (&program, &network, &placement, &outcome);
    let done = FinishedReplay {
        program,
        network,
        placement,
        rendezvous,
        model: Some(Model::ClosedLoop),
        outcome,
    };
    let names = |asked: &[&str]| {
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        without_influence(&done, &asked)
            .into_iter()
            .map(|one| one.parameter)
            .collect::<Vec<_>>()
    };
    let always = ["nic.latency", "nic.bandwidth"];
    assert_eq!(names(&[]), always);
    assert_eq!(names(&["sharing.kappa"]), always);
    let with_others = [&always[..], &["nic.wire_rate", "sharing.packet"]].concat();
    assert_eq!(names(&["nic.wire_rate", "sharing.window"]), with_others);
}

#[test]
fn threads_that_share_a_channel_are_refused_with_the_line() {
    let text = "#DIMEMAS:\"t\":0:2(2,1),0\n1:0:0:0.0\n2:0:0:1:-1:8:5:1:0\n1:0:1:0.0\n2:0:1:1:-1:8:5:1:0\n1:1:0:0.0\n";
    let error = flowcast::read_text("t.dim", text).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("t.dim:5: found a send of thread 1, after one of thread 0"),
        "{error}"
    );
}
