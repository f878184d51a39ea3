//! The fast engine for schedules and the plain one give the same results, to the last bit. The fast one allocates nothing
//! after its queues have grown.

#[path = "it/random_programs/mod.rs"]
mod random_programs;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use flowcast::{
    convert::{
        generate::{ProgramShape, Workload},
        write,
    },
    graph::ScheduleRecorder,
    observers::{
        explain::Explanation,
        journal::{JournalContents, ReplayJournal},
        schedule_explain::ScheduleExplainer,
    },
    read_text,
    replay::{
        loggops::{
            self, Loggops, PreparedOperations, costs::LogGopsCosts, plain, queues, sends::Sends,
        },
        observer::{Observer, ReceivedMessage, Sent, Unobserved},
        time_part::TimePart,
    },
    trace::{
        Trace,
        schedule::{After, Dependency, Operation, Schedule, graph, node},
        slot::Slot,
    },
    units::{Bytes, Rank, Time, TimePerByte},
};
use proptest::prelude::*;
use random_programs::{assert_times_add_up, check_path};

/// Counts the allocations of this thread.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator that counts")]
// Sound, because all calls are passed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[derive(Debug, Clone, Copy)]
enum Step {
    Calc(u32, u32),
    Message {
        from: u32,
        to: u32,
        size: u64,
        tag: u32,
        dropped: u8,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![Just(0u64), Just(1), 2u64..100, 100u64..100_000];
    prop_oneof![
        1 => (0u32..6, prop_oneof![Just(0u32), 1u32..5000]).prop_map(|(rank, nanos)| Step::Calc(rank, nanos)),
        3 => (0u32..6, 0u32..6, size, 0u32..2, 0u8..60).prop_map(|(from, to, size, tag, dropped)| {
            Step::Message { from, to, size, tag, dropped }
        }),
    ]
}

/// Operations of each rank in the order of the steps. Dependencies point to earlier operations, some to the start of an
/// operation.
fn schedule(ranks: u32, steps: &[Step], links: &[(u32, u32, bool)]) -> Schedule {
    let mut nodes = vec![Vec::new(); ranks as usize];
    let mut add = |rank: u32, operation| nodes[(rank % ranks) as usize].push(node(operation, 0));
    for step in steps {
        match *step {
            Step::Calc(rank, nanos) => {
                add(rank, Operation::Calc(Time::from_nanos(f64::from(nanos))))
            }
            Step::Message {
                from,
                to,
                size,
                tag,
                dropped,
            } => {
                let (size, tag) = (Bytes(size), Some(tag));
                if dropped != 1 {
                    add(
                        to,
                        Operation::Recv {
                            from: Some(Rank(from % ranks)),
                            size,
                            tag,
                        },
                    );
                }
                if dropped != 2 {
                    add(
                        from,
                        Operation::Send {
                            to: Rank(to % ranks),
                            size,
                            tag,
                        },
                    );
                }
            }
        }
    }
    let graphs = nodes.into_iter().map(|nodes| {
        let count = nodes.len() as u32;
        let dependency = |&(later, back, starts): &(u32, u32, bool)| {
            let later = later.checked_rem(count)?;
            let earlier = later.checked_sub(1 + back % 5)?;
            Some(Dependency {
                later,
                earlier,
                after: if starts { After::Start } else { After::End },
            })
        };
        let dependencies: Vec<Dependency> = links.iter().filter_map(dependency).collect();
        graph(nodes, &dependencies)
    });
    Schedule {
        name: "random".into(),
        graphs: graphs.collect(),
    }
}

fn any_parameters() -> impl Strategy<Value = Loggops> {
    let time = || {
        prop_oneof![
            Just(0.0),
            Just(1000.0),
            (0u32..5000).prop_map(f64::from),
            0.1..5000.0f64
        ]
    };
    let limit = prop_oneof![
        Just(None),
        Just(Some(Bytes(0))),
        Just(Some(Bytes(50))),
        Just(Some(Bytes(5000)))
    ];
    (
        time(),
        time(),
        time(),
        prop_oneof![Just(0.0), Just(1.0), 0.01..3.0f64],
        limit,
    )
        .prop_map(|(latency, overhead, gap, per_byte, eager_up_to)| Loggops {
            latency: Time::from_nanos(latency),
            overhead: Time::from_nanos(overhead),
            gap: Time::from_nanos(gap),
            gap_per_byte: TimePerByte::from_nanos(per_byte),
            eager_up_to,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn both_engines_report_the_same(
        ranks in 1u32..7, steps in proptest::collection::vec(any_step(), 0..60),
        links in proptest::collection::vec((0u32..60, 0u32..20, any::<bool>()), 0..80), parameters in any_parameters(),
    ) {
        let schedule = schedule(ranks, &steps, &links);
        let fast = loggops::placed(&schedule, parameters.into(), &mut Unobserved);
        let prepared = PreparedOperations::instead_of(schedule.clone()).unwrap();
        let consuming = queues::run(&prepared, parameters);
        prop_assert_eq!(consuming.as_ref(), fast.as_ref().ok());
        prop_assert_eq!(&fast, &plain::run(&schedule, parameters.into(), &mut Unobserved));
        let (mut told, mut told_plainly) = (Notes::default(), Notes::default());
        prop_assert_eq!(&fast, &loggops::placed(&schedule, parameters.into(), &mut told));
        prop_assert_eq!(&fast, &plain::run(&schedule, parameters.into(), &mut told_plainly));
        if let Ok(outcome) = fast {
            prop_assert_eq!(told, told_plainly);
            let costs = LogGopsCosts { parameters, placed: None };
            let sends = Sends::from_schedule(&schedule);
            let mut explainer = ScheduleExplainer::new(&sends, costs);
            prop_assert_eq!(&loggops::placed(&schedule, costs, &mut explainer).unwrap(), &outcome);
            let explanation = explainer.finish();
            compare_forms((&schedule, &sends), costs, &explanation)?;
            for (rank, sums) in outcome.ranks.iter().zip(&explanation.ranks) {
                let accounted = sums.total().as_nanos();
                let communication = rank.communication().as_nanos();
                prop_assert!((accounted - communication).abs() <= 1e-9 * rank.end.as_nanos(), "{sums:?} {rank:?}");
                prop_assert!(TimePart::COMMUNICATION.iter().all(|cost| sums.time(*cost).as_nanos() >= -1e-6), "{sums:?}");
            }
        }
    }
}

/// All notifications of an observer, in order.
#[derive(Debug, Default, PartialEq)]
struct Notes(Vec<(&'static str, u32, u32, Vec<Time>)>);

impl Observer for Notes {
    fn computed(&mut self, rank: Rank, start: Time, end: Time) {
        self.0.push(("computed", rank.0, 0, vec![start, end]));
    }

    fn sent(&mut self, rank: Rank, slot: Slot, sent: Sent) {
        self.0.push((
            "sent",
            rank.0,
            slot.0,
            vec![sent.call, sent.start, sent.end, sent.arrival],
        ));
    }

    fn queued(&mut self, slot: Slot, asked: Time) {
        self.0.push(("queued", 0, slot.0, vec![asked]));
    }

    fn posted(&mut self, slot: Slot, time: Time) {
        self.0.push(("posted", 0, slot.0, vec![time]));
    }

    fn held(&mut self, rank: Rank, slot: Slot, start: Time, end: Time) {
        self.0.push(("held", rank.0, slot.0, vec![start, end]));
    }

    fn received(&mut self, rank: Rank, slot: Slot, received: ReceivedMessage) {
        self.0.push((
            "received",
            rank.0,
            slot.0,
            vec![received.call, received.taken, received.end],
        ));
    }
}

fn generated(workload: Workload, ranks: u32, iterations: u32) -> Schedule {
    let compute = Time::from_nanos(10_000.0);
    let shape = ProgramShape {
        workload,
        ranks,
        iterations,
        size: Bytes(8192),
        compute,
        jitter: 0.2,
        seed: 1,
        period: 0,
    };
    let mut text = Vec::new();
    write::goal(shape, &mut text).unwrap();
    match read_text("generated", text).unwrap() {
        Trace::Schedule(schedule) => schedule,
        _ => panic!("expected a schedule"),
    }
}

fn parameters() -> Loggops {
    Loggops {
        latency: Time::from_nanos(2000.0),
        overhead: Time::from_nanos(500.0),
        gap: Time::from_nanos(700.0),
        gap_per_byte: TimePerByte::from_nanos(1.0),
        eager_up_to: Some(Bytes(65_536)),
    }
}

/// A schedule that is laid out for the fast engine gives observers the same notifications as the schedule in the form in
/// which it was read.
fn compare_forms(
    (schedule, sends): (&Schedule, &Sends<'_>),
    costs: LogGopsCosts<'_>,
    explanation: &Explanation,
) -> Result<(), TestCaseError> {
    let layout = loggops::Layout::new(schedule.clone(), costs);
    prop_assert!(matches!(layout, loggops::Layout::Prepared(_)));
    let lean = layout.sends();
    prop_assert_eq!(
        (lean.ranks(), lean.count(), lean.cpus()),
        (sends.ranks(), sends.count(), sends.cpus())
    );
    let mut number = 0;
    for (rank, graph) in (0..).map(Rank).zip(&schedule.graphs) {
        for (slot, node) in (schedule.bases()[rank.index()]..)
            .map(Slot)
            .zip(&graph.nodes)
        {
            let Operation::Send { to, size, .. } = node.operation else {
                continue;
            };
            prop_assert_eq!((lean.number(slot), lean.sender(slot)), (number, rank));
            prop_assert_eq!((sends.number(slot), sends.sender(slot)), (number, rank));
            let sent = lean.sent(rank, slot);
            prop_assert_eq!((sent.to, sent.size), (to, size));
            prop_assert_eq!(sent, sends.sent(rank, slot));
            number += 1;
        }
    }
    let keeps = JournalContents {
        timeline: true,
        ..JournalContents::FILES
    };
    let mut explainer = ScheduleExplainer::new(&lean, costs);
    let (mut journal, mut plain_journal) = (
        ReplayJournal::of_schedule(&lean, keeps),
        ReplayJournal::of_schedule(sends, keeps),
    );
    layout
        .observed(costs, &mut (&mut journal, &mut explainer))
        .unwrap()
        .unwrap();
    prop_assert_eq!(&explainer.finish(), explanation);
    let outcome = plain::run(schedule, costs.parameters.into(), &mut plain_journal).unwrap();
    assert_times_add_up(&outcome, &plain_journal);
    for rank in (0..sends.ranks() as u32).map(Rank) {
        prop_assert_eq!(of_rank(&journal, rank), of_rank(&plain_journal, rank));
    }
    prop_assert_eq!(journal.timeline(), plain_journal.timeline());
    let mut lean_recorder = ScheduleRecorder::new(&lean, costs).unwrap();
    let mut plain_recorder = ScheduleRecorder::new(sends, costs).unwrap();
    layout.observed(costs, &mut lean_recorder).unwrap().unwrap();
    plain::run(schedule, costs.parameters.into(), &mut plain_recorder).unwrap();
    let path = plain_recorder.finish().critical_path();
    prop_assert_eq!(&lean_recorder.finish().critical_path(), &path);
    check_path(&path, &outcome)?;
    Ok(())
}

/// All data of a journal on a rank.
fn of_rank(journal: &ReplayJournal<'_>, rank: Rank) -> String {
    let list = (
        journal.slices(rank).collect::<Vec<_>>(),
        journal.calls(rank).collect::<Vec<_>>(),
    );
    let messages = (
        journal.sent(rank).collect::<Vec<_>>(),
        journal.received(rank).collect::<Vec<_>>(),
    );
    let sums = (
        journal.times(rank),
        journal.traffic_sent(rank),
        journal.traffic_received(rank),
    );
    assert_eq!(journal.traffic_sent(rank).messages, messages.0.len() as u64);
    assert_eq!(
        journal.traffic_received(rank).messages,
        messages.1.len() as u64
    );
    format!("{list:?} {messages:?} {sums:?}")
}

#[test]
fn generated_workloads_end_alike() {
    for workload in [
        Workload::Chain,
        Workload::Halo,
        Workload::Dissemination,
        Workload::Alltoall,
    ] {
        for ranks in [2, 16, 27] {
            let schedule = generated(workload, ranks, 3);
            for eager_up_to in [None, Some(Bytes(100)), Some(Bytes(65_536))] {
                let parameters = Loggops {
                    eager_up_to,
                    ..parameters()
                };
                let fast = queues::run(&PreparedOperations::new(&schedule).unwrap(), parameters);
                assert_eq!(
                    fast,
                    plain::run(&schedule, parameters.into(), &mut Unobserved).ok(),
                    "{workload:?} {ranks}"
                );
            }
        }
    }
}

#[test]
fn generated_workloads_of_many_ranks_end_alike() {
    for (workload, iterations) in [
        (Workload::Chain, 2),
        (Workload::Halo, 2),
        (Workload::Dissemination, 1),
    ] {
        let schedule = generated(workload, 2500, iterations);
        for eager_up_to in [Some(Bytes(100)), Some(Bytes(65_536))] {
            let parameters = Loggops {
                eager_up_to,
                ..parameters()
            };
            let fast = queues::run(&PreparedOperations::new(&schedule).unwrap(), parameters);
            assert_eq!(
                fast,
                plain::run(&schedule, parameters.into(), &mut Unobserved).ok(),
                "{workload:?}"
            );
        }
    }
}

#[test]
fn ten_times_the_messages_need_no_more_allocations() {
    let allocations = |iterations| {
        let schedule = generated(Workload::Halo, 16, iterations);
        let prepared = PreparedOperations::new(&schedule).unwrap();
        let before = ALLOCATED.with(Cell::get);
        let outcome = queues::run(&prepared, parameters()).unwrap();
        (ALLOCATED.with(Cell::get) - before, outcome.messages)
    };
    let ((few, some_messages), (many, more_messages)) = (allocations(50), allocations(500));
    assert_eq!(more_messages, 10 * some_messages);
    assert!(
        many <= few,
        "{few} allocations for {some_messages} messages, {many} for {more_messages}"
    );
}
