//! Schedules whose ranks are placed and whose messages share the network by a model: cases calculated by hand.

use flowcast::{
    graph::ScheduleRecorder,
    model::{
        machine::{Machine, Mapping, NodeGroup},
        network::{LinkRate, Network},
        sharing::model::Model,
    },
    observers::{
        journal::{JournalContents, ReplayJournal},
        schedule_explain::ScheduleExplainer,
    },
    replay::{
        loggops::{
            self, Loggops,
            costs::{LogGopsCosts, PlacedCosts},
            sends::Sends,
        },
        observer::Unobserved,
        outcome::RankOutcome,
        placement::Placement,
        time_part::TimePart,
        timeline::{Activity, Segment},
    },
    trace::{Trace, compiled, schedule::Schedule},
    units::{Bytes, Rank, Rate, Time, TimePerByte},
};

fn schedule(text: &str) -> Schedule {
    let Trace::Schedule(schedule) = flowcast::read_text("t.goal", text).unwrap() else {
        panic!("GOAL is a schedule")
    };
    schedule
}

/// 10 us of latency, 2 us of overhead, no gap, 1 ns for each byte.
fn parameters() -> Loggops {
    Loggops {
        latency: Time::from_micros(10.0),
        overhead: Time::from_micros(2.0),
        gap: Time::ZERO,
        gap_per_byte: TimePerByte::from_nanos(1.0),
        eager_up_to: None,
    }
}

fn network() -> Network {
    let mut network = flowcast::model::builtin::network("gige-lam").unwrap();
    network.nic.rate = LinkRate::Goodput(Rate::from_bytes_per_second(1e9).into());
    network.nic.latency = Time::from_micros(10.0);
    network
}

fn nodes(list: &[u32]) -> Placement {
    let group = NodeGroup {
        count: 4,
        intra_latency: Some(Time::from_micros(1.0)),
        intra_bandwidth: Some(Rate::from_bytes_per_second(1e10)),
        ..NodeGroup::default()
    };
    let machine = Machine {
        nodes: vec![group],
        ..Machine::default()
    };
    Placement::new(&machine, Some(&Mapping::List(list.to_vec())), list.len()).unwrap()
}

fn micros(schedule: &Schedule, costs: LogGopsCosts<'_>) -> Vec<f64> {
    let outcome = loggops::placed(schedule, costs, &mut Unobserved).unwrap();
    outcome
        .ranks
        .iter()
        .map(|rank| rank.end.as_micros())
        .collect()
}

fn near(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 1e-6 * b.max(1.0))
}

/// Two ranks that send 100,001 bytes each to a third.
const INTO_ONE: &str = "num_ranks 3\nrank 0 {\nl1: send 100001b to 2 tag 0\n}\nrank 1 {\nl1: send 100001b to 2 tag 0\n}\n\
                        rank 2 {\nl1: recv 100001b from 0 tag 0\nl2: recv 100001b from 1 tag 0\n}\n";

#[test]
fn messages_between_nodes_share_the_network_and_those_inside_do_not_take_it() {
    let schedule = schedule(INTO_ONE);
    let network = network();
    let of = |placement: &Placement, model: Option<&str>| {
        let sharing = model.map(|model| (&network, Model::named(model).unwrap()));
        micros(
            &schedule,
            LogGopsCosts {
                parameters: parameters(),
                placed: Some(PlacedCosts { placement, sharing }),
            },
        )
    };
    let apart = nodes(&[0, 1, 2]);
    // LogGOPSim: the second message waits for the receiver's interface and processor, which the first one occupies.
    assert!(
        near(&of(&apart, None), &[2.0, 2.0, 12.0 + 102.0 + 102.0]),
        "{:?}",
        of(&apart, None)
    );
    // Alone, both arrive after 2 + 10 + 100. The receiver then spends o on each.
    assert!(
        near(&of(&apart, Some("independent")), &[2.0, 2.0, 112.0 + 4.0]),
        "{:?}",
        of(&apart, Some("independent"))
    );
    // They share the receiver's interface: 200 us for the bytes.
    assert!(
        near(&of(&apart, Some("fair")), &[2.0, 2.0, 212.0 + 4.0]),
        "{:?}",
        of(&apart, Some("fair"))
    );
    // Rank 1 is on the node of rank 2: its message takes 2 + 1 + 10 there, and o. The other has the network to itself.
    let together = nodes(&[0, 2, 2]);
    assert!(
        near(&of(&together, Some("fair")), &[2.0, 2.0, 112.0 + 2.0]),
        "{:?}",
        of(&together, Some("fair"))
    );
    // Without a model, the first byte of the other message arrives first, and its bytes occupy the receiver's processor.
    assert!(
        near(&of(&together, None), &[2.0, 2.0, 12.0 + 102.0 + 2.0]),
        "{:?}",
        of(&together, None)
    );
}

#[test]
fn the_critical_path_leads_through_the_receiver_of_two_messages() {
    let schedule = schedule(INTO_ONE);
    let sends = Sends::from_schedule(&schedule);
    let shares = |gap: f64| {
        let mut parameters = parameters();
        parameters.gap = Time::from_micros(gap);
        let costs = LogGopsCosts::from(parameters);
        let mut recorder = ScheduleRecorder::new(&sends, costs).unwrap();
        loggops::placed(&schedule, costs, &mut recorder).unwrap();
        let path = recorder.finish().critical_path();
        let share = |part: TimePart| {
            let times = path.shares().into_iter();
            let own = times.filter(|share| share.limit == part);
            own.map(|share| share.time.as_micros()).sum::<f64>()
        };
        [
            TimePart::Overhead,
            TimePart::Gap,
            TimePart::Latency,
            TimePart::Bandwidth,
        ]
        .map(share)
    };
    // The second message is received when the processor has moved the bytes of the first, at 114 us: o, L, o, 100 us, o, 100
    // us.
    assert!(
        near(&shares(0.0), &[6.0, 0.0, 10.0, 200.0]),
        "{:?}",
        shares(0.0)
    );
    // With a gap, the receiving interface is free later, at 116 us.
    assert!(
        near(&shares(4.0), &[4.0, 4.0, 10.0, 200.0]),
        "{:?}",
        shares(4.0)
    );
}

#[test]
fn a_message_above_the_limit_moves_at_once_and_holds_its_sender_until_it_has_met_its_receive() {
    let text = "num_ranks 2\nrank 0 {\nl1: send 100001b to 1 tag 0\nl2: calc 7000\nl2 requires l1\n}\n\
                rank 1 {\nl1: calc 500000\nl2: recv 100001b from 0 tag 0\nl2 requires l1\n}\n";
    let (schedule, network, apart) = (schedule(text), network(), nodes(&[0, 1]));
    let sharing = Some((&network, Model::named("fair").unwrap()));
    let mut costs = LogGopsCosts {
        parameters: parameters(),
        placed: Some(PlacedCosts {
            placement: &apart,
            sharing,
        }),
    };
    assert!(near(&micros(&schedule, costs), &[2.0 + 7.0, 502.0]));
    costs.parameters.eager_up_to = Some(Bytes(1000));
    // The receiver's processor is free at 500. The message that has waited since 112 is received then.
    assert!(
        near(&micros(&schedule, costs), &[500.0 + 7.0, 502.0]),
        "{:?}",
        micros(&schedule, costs)
    );
}

#[test]
fn packet_by_packet_a_message_is_frames_with_the_latency_behind_them() {
    let text = "num_ranks 2\nrank 0 {\nl1: send 1426b to 1 tag 0\n}\nrank 1 {\nl1: recv 1426b from 0 tag 0\n}\n";
    let (schedule, network) = (schedule(text), network());
    let of = |list: &[u32], model: &str| {
        let (placement, sharing) = (nodes(list), Some((&network, Model::named(model).unwrap())));
        micros(
            &schedule,
            LogGopsCosts {
                parameters: parameters(),
                placed: Some(PlacedCosts {
                    placement: &placement,
                    sharing,
                }),
            },
        )
    };
    // With the bytes that the library puts before it, 1538 bytes out of one node and into the other.
    assert!(
        near(
            &of(&[0, 1], "packet"),
            &[2.0, 2.0 + 2.0 * 1.538 + 10.0 + 2.0]
        ),
        "{:?}",
        of(&[0, 1], "packet")
    );
    assert_eq!(of(&[1, 1], "packet"), of(&[1, 1], "fair"));
}

#[test]
fn recorded_and_explained_times_add_up() {
    let text = "num_ranks 3\nrank 0 {\nl1: calc 3000\nl2: send 100001b to 2 tag 0\nl2 requires l1\nl3: send 5b to 1 tag 0\nl3 requires l2\n}\n\
                rank 1 {\nl1: send 50001b to 2 tag 0\nl2: recv 5b from 0 tag 0\nl2 requires l1\nl3: calc 1000\nl3 requires l2\n}\n\
                rank 2 {\nl1: recv 100001b from 0 tag 0\nl2: recv 50001b from 1 tag 0\nl3: calc 9000\nl3 requires l1\nl3 requires l2\n}\n";
    let (schedule, network) = (schedule(text), network());
    let placements = [nodes(&[0, 1, 2]), nodes(&[0, 0, 1])];
    for (placement, model) in placements
        .iter()
        .flat_map(|placement| [None, Some("fair")].map(|model| (placement, model)))
    {
        let sharing = model.map(|model| (&network, Model::named(model).unwrap()));
        let mut parameters = parameters();
        parameters.gap = Time::from_micros(4.0);
        let costs = LogGopsCosts {
            parameters,
            placed: Some(PlacedCosts { placement, sharing }),
        };
        let sends = Sends::from_schedule(&schedule);
        let mut journal = ReplayJournal::of_schedule(
            &sends,
            JournalContents {
                timeline: true,
                ..JournalContents::FILES
            },
        );
        let mut explainer = ScheduleExplainer::new(&sends, costs);
        let mut recorder = ScheduleRecorder::new(&sends, costs).unwrap();
        let outcome = loggops::placed(
            &schedule,
            costs,
            &mut (&mut journal, (&mut explainer, &mut recorder)),
        )
        .unwrap();
        assert_eq!(
            outcome,
            loggops::placed(&schedule, costs, &mut Unobserved).unwrap()
        );
        let path = recorder.finish().critical_path();
        assert_eq!(path.makespan, outcome.makespan());
        assert!(
            path.shares()
                .iter()
                .all(|share| share.limit != TimePart::Other),
            "{model:?} {:?}",
            path.shares()
        );
        let sum: Time = path.shares().iter().map(|share| share.time).sum();
        assert!(near(&[sum.as_micros()], &[path.makespan.as_micros()]));
        assert_eq!(journal.timeline().messages.len(), 3);
        assert_eq!(
            (0..3)
                .map(|rank| journal.received(Rank(rank)).count())
                .collect::<Vec<_>>(),
            [0, 1, 2]
        );
        let explanation = explainer.finish();
        for (rank, sums) in outcome.ranks.iter().zip(&explanation.ranks) {
            assert!(
                near(
                    &[sums.total().as_micros()],
                    &[(rank.blocked + rank.overhead).as_micros()]
                ),
                "{sums:?} {rank:?}"
            );
        }
        let conflict = explanation.ranks[2].time(TimePart::Contention);
        assert_eq!(
            conflict > Time::ZERO,
            model.is_some(),
            "{model:?} {conflict}"
        );
    }
}

#[test]
fn a_rank_with_several_processors_is_drawn_by_their_first_activity() {
    let text = "num_ranks 2\nrank 0 {\nl1: calc 5000 cpu 0\nl2: calc 8000 cpu 1\nl3: send 1b to 1 tag 0 cpu 0\nl3 requires l1\n}\n\
                rank 1 {\nl1: calc 4000 cpu 1\nl2: recv 1b from 0 tag 0 cpu 0\nl3: calc 1000 cpu 0\nl3 requires l2\n}\n";
    let schedule = schedule(text);
    let (sends, costs) = (
        Sends::from_schedule(&schedule),
        LogGopsCosts {
            parameters: parameters(),
            placed: None,
        },
    );
    assert_eq!(sends.cpus(), 2);
    let mut journal = ReplayJournal::of_schedule(&sends, JournalContents::TIMELINE);
    let outcome = loggops::placed(&schedule, costs, &mut journal).unwrap();
    // By rank: end, computation, overhead, blocked. Concurrent work of its processors counts once.
    let times = |rank: &RankOutcome| {
        [rank.end, rank.compute, rank.overhead, rank.blocked].map(Time::as_micros)
    };
    assert_eq!(
        outcome.ranks.iter().map(times).collect::<Vec<_>>(),
        [[8.0, 8.0, 0.0, 0.0], [20.0, 5.0, 2.0, 13.0]]
    );
    let timeline = journal.timeline();
    let drawn = |rank: usize| {
        let segment = |segment: &Segment| {
            (
                segment.start.as_micros(),
                segment.end.as_micros(),
                segment.activity,
            )
        };
        timeline.ranks[rank].iter().map(segment).collect::<Vec<_>>()
    };
    // The computation of the other processor, up to 8, hides the overhead of the send, from 5 to 7.
    assert_eq!(drawn(0), [(0.0, 8.0, Activity::Compute)]);
    // Sent at 5, ready at 7, arrived at 17. Before, the processor waits, which is visible after the other one has computed.
    let rest = [
        (4.0, 7.0, Activity::LateSender),
        (7.0, 17.0, Activity::Transfer),
        (17.0, 19.0, Activity::Overhead),
    ];
    assert_eq!(drawn(1)[..1], [(0.0, 4.0, Activity::Compute)]);
    assert_eq!(drawn(1)[1..4], rest);
    assert_eq!(drawn(1)[4..], [(19.0, 20.0, Activity::Compute)]);
    assert!(ScheduleRecorder::new(&sends, costs).is_none());
    assert_eq!(timeline.messages.len(), 1);
}

#[test]
fn a_compiled_schedule_is_read_piece_by_piece_or_at_once_and_a_damaged_one_not_at_all() {
    let schedule = schedule(INTO_ONE);
    let trace = Trace::Schedule(schedule.clone());
    let bytes: Vec<u8> = compiled::parts(&trace).concat();
    let mut written = Vec::new();
    compiled::write(&trace, &mut written).unwrap();
    assert_eq!(written, bytes);
    assert!(compiled::is_schedule(&bytes));
    let read = |bytes: &[u8]| compiled::read_schedule("t", &mut &bytes[..]);
    let again = read(&bytes).unwrap();
    let run = |schedule: &Schedule| {
        loggops::placed(schedule, parameters().into(), &mut Unobserved).unwrap()
    };
    assert_eq!(run(&again), run(&schedule));
    for at in 0..bytes.len() {
        assert!(
            at == bytes.len() || read(&bytes[..at]).is_err(),
            "cut at {at}"
        );
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let is_known = at < 12 || (24..32).contains(&at);
        assert!(is_known || read(&damaged).is_err(), "damaged at {at}");
    }
}

#[test]
fn messages_of_one_tag_that_share_the_network_do_not_overtake_each_other() {
    // The large message arrives at 114 us, the small one long before. A computation after the receive of the large one waits
    // for it.
    let (network, apart) = (network(), nodes(&[0, 1]));
    for tag in [0, 1] {
        let text = format!(
            "num_ranks 2\nrank 0 {{\nl1: send 100000b to 1 tag 0\nl2: send 10b to 1 tag {tag}\nl2 requires l1\n}}\n\
             rank 1 {{\nl1: recv 100000b from 0 tag 0\nl2: recv 10b from 0 tag {tag}\nl2 requires l1\nl3: calc 50000\n\
             l3 requires l1\n}}\n"
        );
        let costs = LogGopsCosts {
            parameters: parameters(),
            placed: Some(PlacedCosts {
                placement: &apart,
                sharing: Some((&network, Model::named("fair").unwrap())),
            }),
        };
        let end = micros(&schedule(&text), costs)[1];
        assert!(end > 164.0, "tag {tag}: {end} us");
    }
}

#[test]
fn a_receive_smaller_than_its_message_is_refused_whichever_comes_first() {
    for (before_send, before_recv) in [(0, 90_000_000), (90_000_000, 0)] {
        for (sent, posted, is_refused) in [
            (1000, 10, true),
            (10, 1000, false),
            (10, 10, false),
            (200_000, 100, true),
        ] {
            // The other engine carries out a receive of any tag.
            for tag in [3, -1] {
                let text = format!(
                    "num_ranks 2\nrank 0 {{\nl1: calc {before_send}\nl2: send {sent}b to 1 tag 3\nl2 requires l1\n}}\n\
                     rank 1 {{\nl1: calc {before_recv}\nl2: recv {posted}b from 0 tag {tag}\nl2 requires l1\n}}\n"
                );
                let ran = loggops::placed(&schedule(&text), parameters().into(), &mut Unobserved);
                assert_eq!(ran.is_err(), is_refused, "{sent} {posted} {tag}");
                let said = ran.map_or_else(|error| error.to_string(), |_| String::new());
                let place = "t.goal:9: found a receive that is smaller than its message of ";
                assert!(said.is_empty() || said.starts_with(place), "{said}");
            }
        }
    }
}
