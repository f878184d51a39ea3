//! The explained costs of communication equal its actual costs, under every engine.

use crate::{
    random_programs::{Numbers, any_numbers, any_records, recorded},
    testing::program_of,
};
use flowcast::{
    model::{
        machine::NodeGroup,
        network::{LinkRate, MessageRule, Network},
        sharing::model::Model,
    },
    observers::{
        explain::{Explanation, Sums},
        journal::{JournalContents, ReplayJournal},
        run_times::RunTimer,
    },
    replay::{
        ReplayEngine, costs::Rendezvous, outcome::Outcome, placement::Placement,
        time_part::TimePart,
    },
    report::export::{
        Replayed,
        paraver::{self, Stamp},
    },
    trace::{
        Program, TraceRef,
        paraver_events::{CALLED, FunctionNumber},
    },
    units::Time,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn explained(program: &Program, network: &Network, model: Option<Model>) -> (Outcome, Explanation) {
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let rendezvous = Rendezvous::from_network(network, None);
    let engine = match model {
        Some(model) => {
            ReplayEngine::sharing(program, network, placement, rendezvous, model).unwrap()
        }
        None => ReplayEngine::new(program, network, placement, rendezvous).unwrap(),
    };
    recorded(program, |journal| engine.observed(journal));
    crate::random_programs::explained(&engine)
}

fn is_equal(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-6 + 1e-9 * expected
}

/// Checks that causes add up to blocked time and overhead, and places to ranks.
fn check_sums((outcome, explanation): &(Outcome, Explanation)) -> Result<(), TestCaseError> {
    for (rank, (sums, times)) in explanation.ranks.iter().zip(&outcome.ranks).enumerate() {
        let (total, expected) = (
            sums.total().as_nanos(),
            (times.blocked + times.overhead).as_nanos(),
        );
        prop_assert!(
            is_equal(total, expected),
            "rank {}: {} {} {:?}",
            rank,
            total,
            expected,
            sums
        );
    }
    for cost in TimePart::COMMUNICATION {
        let of = |sums: &Sums| sums.time(cost).as_nanos();
        prop_assert!(explanation.ranks.iter().all(|sums| of(sums) >= 0.0));
        let (ranks, sites) = (
            explanation.ranks.iter().map(of).sum::<f64>(),
            explanation
                .sites
                .iter()
                .map(|(_, sums)| of(sums))
                .sum::<f64>(),
        );
        prop_assert!(is_equal(ranks, sites), "{:?}: {} {}", cost, ranks, sites);
    }
    Ok(())
}

fn limited(numbers: Numbers, ranks: usize, (links, buses, cpus): (u32, u32, u32)) -> Network {
    let mut network = numbers.network(ranks);
    network.machine.buses = buses;
    let group: &mut NodeGroup = &mut network.machine.nodes[0];
    (group.in_links, group.out_links, group.cpus) = (links, links, cpus.min(group.cpus));
    network
}

proptest! {
    #[test]
    fn causes_add_up_without_contention(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let explained = explained(&program, &numbers.network(program.ranks()), None);
        check_sums(&explained)?;
        let conflict = explained.1.ranks.iter().map(|sums| sums.time(TimePart::Contention).as_nanos()).fold(0.0, f64::max);
        prop_assert!(conflict <= 1e-6 * explained.0.makespan().as_nanos().max(1.0), "{}", conflict);
    }

    #[test]
    fn causes_add_up_with_limits(records in any_records(), numbers in any_numbers(), limits in (0u32..3, 0u32..3, 1u32..4)) {
        let program = records.program();
        check_sums(&explained(&program, &limited(numbers, program.ranks(), limits), None))?;
    }

    #[test]
    fn causes_add_up_where_messages_share(records in any_records(), numbers in any_numbers(), closed: bool) {
        let program = records.program();
        let model = Model::named(if closed { "closed-loop" } else { "fair" }).unwrap();
        check_sums(&explained(&program, &numbers.network(program.ranks()), Some(model)))?;
    }
}

/// Two messages over one link: the second receiver waits for the first message, then for its own.
#[test]
fn each_cause_is_distinguished_from_the_others() {
    let text = "#DIMEMAS:\"c\":0:3(1,1,1),1\nd:1:1:3:0:1:2\n\
        1:0:0:0.000001000\n20:0:0:60000019:7\n2:0:0:1:-1:1000:0:1:2\n2:0:0:2:-1:1000:0:1:2\n\
        1:1:0:0.0\n3:1:0:0:-1:1000:0:1:0\n1:2:0:0.0\n3:2:0:0:-1:1000:0:1:1\n3:2:0:0:-1:1000:0:1:2\n";
    let program = program_of(text);
    let mut network = flowcast::model::builtin::network("gige-lam").unwrap();
    network.point_to_point.rule = MessageRule::Hockney;
    network.nic.latency = Time::from_nanos(500.0);
    network.nic.rate = LinkRate::Goodput(flowcast::units::Rate::from_bytes_per_second(1e9).into());
    network.machine.nodes = vec![NodeGroup {
        count: 3,
        in_links: 1,
        out_links: 1,
        ..NodeGroup::default()
    }];
    let (outcome, explanation) = explained(&program, &network, None);
    let of = |rank: usize| {
        TimePart::COMMUNICATION.map(|cost| explanation.ranks[rank].time(cost).as_nanos())
    };
    assert_eq!(of(0), [0.0; 9]);
    assert_eq!(of(1), [0.0, 500.0, 1000.0, 0.0, 1000.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(
        of(2),
        [0.0, 500.0, 1000.0, 1000.0, 1000.0, 0.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(outcome.makespan().as_nanos(), 3500.0);
    let names: Vec<String> = explanation
        .sites
        .iter()
        .map(|(site, _)| flowcast::report::sites::site_name(site))
        .collect();
    assert_eq!(names, ["MPI_Wait", "MPI_Recv"]);
}

/// A wait for two messages is one call in all outputs that name calls.
#[test]
fn calls_that_events_name_have_these_names_everywhere() {
    let [waitall, startall] =
        ["Waitall", "Startall"].map(|name| FunctionNumber::named(name).unwrap());
    let text = format!(
        "#DIMEMAS:\"c\":0:2(1,1),1\nd:1:1:2:0:1\n20:0:0:{CALLED}:{}\n2:0:0:1:-1:1000:0:1:2\n2:0:0:1:-1:1000:0:1:2\n\
         20:0:0:{CALLED}:0\n2:0:0:1:-1:1000:0:1:0\n3:1:0:0:-1:1000:0:1:1\n3:1:0:0:-1:1000:0:1:1\n20:1:0:{CALLED}:{}\n\
         3:1:0:0:-1:1000:0:1:2\n3:1:0:0:-1:1000:0:1:2\n20:1:0:{CALLED}:0\n3:1:0:0:-1:1000:0:1:0\n",
        startall.get(),
        waitall.get()
    );
    let program = program_of(text);
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let rendezvous = Rendezvous::from_network(&network, None);
    let engine = ReplayEngine::new(&program, &network, placement.clone(), rendezvous).unwrap();
    let keeps = JournalContents {
        timeline: true,
        ..JournalContents::FILES
    };
    let (mut journal, mut timer) = (
        ReplayJournal::new(&program, keeps),
        RunTimer::new(&program, &[]),
    );
    let outcome = engine.observed(&mut (&mut journal, &mut timer)).unwrap();
    let tallies = journal.call_tallies().into_iter();
    let mut counts: Vec<(&str, u64)> = tallies
        .map(|(kind, tally)| (kind.function().unwrap().name(), tally.times.number()))
        .collect();
    counts.sort_unstable();
    assert_eq!(
        counts,
        [("Recv", 1), ("Send", 1), ("Startall", 1), ("Waitall", 1)]
    );
    let names = ["MPI_Recv", "MPI_Send", "MPI_Startall", "MPI_Waitall"];
    assert!(timer.finish(&outcome).calls.keys().eq(names));
    let (_, explanation) = crate::random_programs::explained(&engine);
    let places = explanation.sites.iter().map(|(site, _)| site.call.name());
    assert!(places.collect::<BTreeSet<_>>().iter().eq(names));
    let replayed = Replayed {
        trace: TraceRef::Program(&program),
        placement: &placement,
        outcome: &outcome,
        journal: &journal,
    };
    let (mut events, mut legend) = (Vec::new(), Vec::new());
    paraver::prv(replayed, &Stamp("01/02/2026 at 03:04".into()), &mut events).unwrap();
    paraver::pcf(replayed, &mut legend).unwrap();
    let [events, legend] = [events, legend].map(|text| String::from_utf8(text).unwrap());
    let begins = |name: &str| {
        let value = legend.lines().find_map(|line| line.strip_suffix(name));
        let event = format!(":50000001:{}", value.unwrap().trim());
        events.lines().filter(|line| line.ends_with(&event)).count()
    };
    assert_eq!(names.map(begins), [1; 4]);
    assert!(!events.contains(&CALLED.to_string()));
}
