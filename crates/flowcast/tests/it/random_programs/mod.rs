//! Random message-passing programs that cannot deadlock.
//!
//! All events are in one global order. The records of a rank are its part of that order. A blocking record and its
//! counterpart have the same place; a non-blocking receive is before it, and its wait is after it. The earliest event that
//! has not happened can therefore always happen, for any network and any number of sends that wait for their receivers.

// Each test crate uses its own part of this module.
#![allow(dead_code)]

use std::fmt::Write as _;

use flowcast::{
    graph::critical_path::CriticalPath,
    model::{
        machine::{Machine, Mapping, NodeGroup},
        network::{LinkRate, MessageRule, Network, SingleFlowRate},
    },
    observers::{
        explain::{Explainer, Explanation},
        journal::{JournalContents, ReplayJournal},
    },
    replay::{
        ReplayEngine, SimulateError, costs::Rendezvous, outcome::Outcome, placement::Placement,
        time_part::TimePart, walk::Replay,
    },
    trace::{Program, Trace},
    units::{CollectiveOp, Rank, Rate, Time, TimePerByte},
};
use proptest::prelude::*;

/// The replay that `run` carries out, with its timeline.
pub(crate) fn recorded<'a>(
    program: &'a Program,
    run: impl FnOnce(&mut ReplayJournal<'a>) -> Result<Outcome, SimulateError>,
) -> (Outcome, ReplayJournal<'a>) {
    let mut journal = ReplayJournal::new(program, JournalContents::TIMELINE);
    let outcome = run(&mut journal).unwrap();
    assert_times_add_up(&outcome, &journal);
    (outcome, journal)
}

/// Checks that computation, overhead and blocked time of each rank add up to its time, and that the observed times agree.
pub(crate) fn assert_times_add_up(outcome: &Outcome, journal: &ReplayJournal<'_>) {
    for (rank, times) in (0..).map(Rank).zip(&outcome.ranks) {
        assert_eq!(
            times.compute + times.overhead + times.blocked,
            times.end,
            "{times:?}"
        );
        let [compute, overhead, waits @ ..] = journal.times(rank);
        let waits: Time = waits.into_iter().sum();
        for (observed, booked) in [
            (compute, times.compute),
            (overhead, times.overhead),
            (waits, times.blocked),
        ] {
            let difference = (observed - booked).as_nanos().abs();
            assert!(
                difference <= 1e-6 + 1e-9 * times.end.as_nanos(),
                "rank {rank}: {:?} {times:?}",
                journal.times(rank)
            );
        }
    }
}

/// Checks that the steps of a critical path fill the makespan without gaps, each with a cause, and that the shares add up to
/// it.
pub(crate) fn check_path(path: &CriticalPath, outcome: &Outcome) -> Result<(), TestCaseError> {
    prop_assert_eq!(path.makespan, outcome.makespan());
    let mut at = Time::ZERO;
    for step in &path.steps {
        prop_assert_eq!(step.start, at);
        prop_assert!(step.end > step.start);
        prop_assert!(step.limit != TimePart::Other, "{:?}", path);
        at = step.end;
    }
    prop_assert_eq!(at, path.makespan);
    let total = |times: Vec<Time>| times.into_iter().sum::<Time>().as_nanos();
    for sum in [
        total(path.shares().iter().map(|share| share.time).collect()),
        total(path.ranks().iter().map(|(_, time)| *time).collect()),
    ] {
        let makespan = path.makespan.as_nanos();
        prop_assert!((sum - makespan).abs() <= makespan * 1e-12, "{}", sum);
    }
    Ok(())
}

/// A replay, and the causes of its communication time.
pub(crate) fn explained(engine: &ReplayEngine<'_>) -> (Outcome, Explanation) {
    let mut explainer = Explainer::new(engine);
    let outcome = engine.observed(&mut explainer).unwrap();
    let explanation = explainer.finish(&outcome);
    (outcome, explanation)
}

/// One record of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    Compute(u64),
    Send {
        to: usize,
        bytes: u64,
        tag: u32,
        comm: usize,
        sync: bool,
        non_blocking: bool,
    },
    Recv {
        from: usize,
        tag: u32,
        comm: usize,
    },
    Irecv {
        from: usize,
        tag: u32,
        comm: usize,
    },
    Wait {
        from: usize,
        tag: u32,
        comm: usize,
    },
    /// Waits for the send that was this number of sends ago.
    WaitSend(usize),
    Collective {
        op: CollectiveOp,
        comm: usize,
        root: usize,
        send: u64,
        recv: u64,
        mode: Mode,
    },
    WaitCollective,
}

/// Way in which a collective ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Blocking,
    NonBlocking,
    RootSynchronous,
}

/// Records by rank, and the communicators of collectives (number 0 contains all ranks).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Records {
    pub ranks: Vec<Vec<Record>>,
    pub comms: Vec<Vec<usize>>,
}

/// Events, with numbers that are taken modulo the number of available items.
#[derive(Debug, Clone)]
enum Event {
    Compute {
        rank: usize,
        nanos: u64,
    },
    Message {
        src: usize,
        dst: usize,
        bytes: u64,
        tag: u32,
        comm: usize,
        mode: (bool, bool),
        early: Option<(usize, Option<usize>)>,
        awaited: Option<usize>,
    },
    Collective {
        op: usize,
        comm: usize,
        root: usize,
        sizes: (u64, u64),
        mode: Mode,
        later: usize,
    },
}

const OPS: [CollectiveOp; 4] = [
    CollectiveOp::Barrier,
    CollectiveOp::Bcast,
    CollectiveOp::Alltoall,
    CollectiveOp::Allreduce,
];

fn any_event() -> impl Strategy<Value = Event> {
    let mode = prop_oneof![
        Just(Mode::Blocking),
        Just(Mode::NonBlocking),
        Just(Mode::RootSynchronous)
    ];
    let bytes = || prop_oneof![Just(0u64), Just(1), 2u64..5000, 5000u64..2_000_000];
    let awaited = proptest::option::weighted(0.7, 0usize..6);
    let early = proptest::option::of((0usize..6, proptest::option::weighted(0.9, 0usize..6)));
    prop_oneof![
        3 => (0usize..8, prop_oneof![Just(0u64), 1u64..2_000_000]).prop_map(|(rank, nanos)| Event::Compute { rank, nanos }),
        6 => (0usize..8, 0usize..8, bytes(), 0u32..2, 0usize..3, any::<(bool, bool)>(), early, awaited)
            .prop_map(|(src, dst, bytes, tag, comm, mode, early, awaited)| Event::Message { src, dst, bytes, tag, comm, mode, early, awaited }),
        1 => (0usize..4, 0usize..3, 0usize..8, (bytes(), bytes()), mode, 0usize..6)
            .prop_map(|(op, comm, root, sizes, mode, later)| Event::Collective { op, comm, root, sizes, mode, later }),
    ]
}

/// Programs of 1 to 7 ranks.
pub(crate) fn any_records() -> impl Strategy<Value = Records> {
    (
        1usize..8,
        1u32..128,
        1u32..128,
        proptest::collection::vec(any_event(), 0..50),
    )
        .prop_map(|(ranks, first, second, events)| {
            Layout::new(ranks, [first, second]).records(&events)
        })
}

/// Several programs with the same ranks and communicators.
pub(crate) fn any_alike() -> impl Strategy<Value = Vec<Records>> {
    let events = proptest::collection::vec(proptest::collection::vec(any_event(), 0..12), 1..4);
    (1usize..8, 1u32..128, 1u32..128, events).prop_map(|(ranks, first, second, all)| {
        all.iter()
            .map(|events| Layout::new(ranks, [first, second]).records(events))
            .collect()
    })
}

/// Programs of 2 to 4 groups of 2 to 4 ranks, with at least `messages` messages. Most messages stay inside a group, and they
/// do not make senders wait. Collectives may include all ranks.
pub(crate) fn any_groups(messages: usize) -> impl Strategy<Value = Records> {
    let event = (
        any_event(),
        0usize..4,
        proptest::option::weighted(0.02, 0usize..4),
    );
    let events = proptest::collection::vec(event, 20..60);
    (2usize..5, 2usize..5, 1u32..128, 1u32..128, events).prop_map(
        move |(groups, size, first, second, events)| {
            let events: Vec<Event> = events
                .iter()
                .map(|(event, group, other)| {
                    event.within(size, group % groups, other.unwrap_or(*group) % groups)
                })
                .collect();
            let is_message = |event: &&Event| matches!(event, Event::Message { .. });
            let times = messages.div_ceil(events.iter().filter(is_message).count().max(1));
            Layout::new(groups * size, [first, second]).records(&vec![events; times].concat())
        },
    )
}

impl Event {
    /// The event from a rank of one group to a rank of another or the same group, each with `size` ranks.
    fn within(&self, size: usize, from: usize, to: usize) -> Event {
        match *self {
            Event::Compute { rank, nanos } => Event::Compute {
                rank: from * size + rank % size,
                nanos,
            },
            Event::Message {
                src,
                dst,
                bytes,
                tag,
                comm,
                mode: (_, non_blocking),
                early,
                awaited,
            } => Event::Message {
                src: from * size + src % size,
                dst: to * size + dst % size,
                bytes,
                tag,
                comm,
                mode: (false, non_blocking),
                early,
                awaited,
            },
            ref same => same.clone(),
        }
    }
}

/// Puts events at places of the global order.
struct Layout {
    comms: Vec<Vec<usize>>,
    /// Place and record, indexed by rank.
    placed: Vec<Vec<(usize, Record)>>,
    /// Place of the last receive posted on each channel; receives are posted in the order of their messages.
    posted: std::collections::BTreeMap<(usize, usize, u32, usize), usize>,
}

impl Layout {
    fn new(ranks: usize, masks: [u32; 2]) -> Layout {
        let part = |mask: u32| {
            (0..ranks)
                .filter(move |rank| mask >> rank & 1 == 1)
                .collect::<Vec<_>>()
        };
        let mut comms = vec![(0..ranks).collect::<Vec<_>>()];
        comms.extend(
            masks
                .into_iter()
                .map(part)
                .filter(|members| !members.is_empty()),
        );
        Layout {
            comms,
            placed: vec![Vec::new(); ranks],
            posted: Default::default(),
        }
    }

    fn records(mut self, events: &[Event]) -> Records {
        for (index, event) in events.iter().enumerate() {
            self.put(16 * (index + 8), event);
        }
        let in_order = |mut placed: Vec<(usize, Record)>| {
            placed.sort_by_key(|(place, _)| *place);
            with_counted_sends(placed)
        };
        Records {
            ranks: self.placed.into_iter().map(in_order).collect(),
            comms: self.comms,
        }
    }

    fn put(&mut self, place: usize, event: &Event) {
        let ranks = self.placed.len();
        match *event {
            Event::Compute { rank, nanos } => {
                self.placed[rank % ranks].push((place, Record::Compute(nanos)))
            }
            Event::Message {
                src,
                dst,
                bytes,
                tag,
                comm,
                mode: (sync, non_blocking),
                early,
                awaited,
            } => {
                let (src, dst, comm) = (src % ranks, dst % ranks, comm % self.comms.len());
                // A rank cannot wait for itself, so its own messages are always requested before.
                let early = if src == dst {
                    early.or(Some((0, Some(0))))
                } else {
                    early
                };
                self.put_receive(place, (src, dst, tag, comm), early);
                let record = Record::Send {
                    to: dst,
                    bytes,
                    tag,
                    comm,
                    sync,
                    non_blocking,
                };
                self.placed[src].push((place, record));
                self.put_wait(place, (src, dst, tag, comm), early);
                if let Some(slots) = awaited.filter(|_| non_blocking) {
                    // Contains the place of the send here, which later becomes the number of sends since.
                    self.placed[src].push((place + 16 * slots + 7, Record::WaitSend(place)));
                }
            }
            Event::Collective {
                op,
                comm,
                root,
                sizes,
                mode,
                later,
            } => {
                let comm = comm % self.comms.len();
                let members = self.comms[comm].clone();
                let root = members[root % members.len()];
                let record = Record::Collective {
                    op: OPS[op],
                    comm,
                    root,
                    send: sizes.0,
                    recv: sizes.1,
                    mode,
                };
                for member in members {
                    self.placed[member].push((place, record));
                    if mode == Mode::NonBlocking {
                        // Waits are in the order of their collectives, so that each waits for its own.
                        self.placed[member].push((place + 16 * later + 9, Record::WaitCollective));
                    }
                }
            }
        }
    }

    fn put_receive(
        &mut self,
        place: usize,
        channel: (usize, usize, u32, usize),
        early: Option<(usize, Option<usize>)>,
    ) {
        let (from, dst, tag, comm) = channel;
        let before = self.posted.get(&channel).copied().unwrap_or(0);
        let (posted, record) = match early {
            Some((slots, _)) => (
                (place - 16 * slots - 3).max(before + 1),
                Record::Irecv { from, tag, comm },
            ),
            None => (place, Record::Recv { from, tag, comm }),
        };
        self.posted.insert(channel, posted);
        self.placed[dst].push((posted, record));
    }

    fn put_wait(
        &mut self,
        place: usize,
        channel: (usize, usize, u32, usize),
        early: Option<(usize, Option<usize>)>,
    ) {
        let (from, dst, tag, comm) = channel;
        if let Some((_, Some(slots))) = early {
            self.placed[dst].push((place + 16 * slots + 5, Record::Wait { from, tag, comm }));
        }
    }
}

/// The records in order. Waits for sends contain the number of sends since, instead of a place.
fn with_counted_sends(placed: Vec<(usize, Record)>) -> Vec<Record> {
    let mut sends = Vec::new();
    let mut records = Vec::new();
    for (place, record) in placed {
        records.push(match record {
            Record::WaitSend(at) => {
                Record::WaitSend(sends.iter().rev().position(|send| *send == at).unwrap())
            }
            other => other,
        });
        if let Record::Send { .. } = record {
            sends.push(place);
        }
    }
    records
}

/// Naming of byte offsets in the header of a `.dim` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offsets {
    Absent,
    Present,
}

impl Records {
    /// Text of a Dimemas trace.
    pub(crate) fn to_dim(&self, offsets: Offsets) -> String {
        let threads = vec!["1"; self.ranks.len()].join(",");
        let tail = format!(":{}({threads}),{}\n", self.ranks.len(), self.comms.len());
        let mut body = String::new();
        for (number, members) in self.comms.iter().enumerate() {
            let members: Vec<String> = members.iter().map(usize::to_string).collect();
            writeln!(
                body,
                "d:1:{}:{}:{}",
                number + 1,
                members.len(),
                members.join(":")
            )
            .unwrap();
        }
        let mut starts = Vec::new();
        for (rank, records) in self.ranks.iter().enumerate() {
            starts.push(body.len());
            records
                .iter()
                .for_each(|record| body.push_str(&dim_line(rank, *record)));
        }
        if offsets == Offsets::Absent {
            return format!("#DIMEMAS:\"random\":0{tail}{body}");
        }
        let head = |footer: usize| format!("#DIMEMAS:\"random\":1,{footer:020}{tail}");
        let length = head(0).len();
        let footer: String = starts
            .iter()
            .enumerate()
            .map(|(rank, start)| format!("s:{rank}:{}\n", length + start))
            .collect();
        format!("{}{body}{footer}", head(length + body.len()))
    }

    /// The program that the reader makes from it.
    pub(crate) fn program(&self) -> Program {
        match flowcast::read_text("trace", self.to_dim(Offsets::Absent)).unwrap() {
            Trace::Program(program) => program,
            _ => unreachable!("a trace of Dimemas is a program"),
        }
    }

    /// The program in which rank `r` is called `names[r]`.
    pub(crate) fn renamed(&self, names: &[usize]) -> Records {
        let renamed = |record: Record| match record {
            Record::Send {
                to,
                bytes,
                tag,
                comm,
                sync,
                non_blocking,
            } => Record::Send {
                to: names[to],
                bytes,
                tag,
                comm,
                sync,
                non_blocking,
            },
            Record::Recv { from, tag, comm } => Record::Recv {
                from: names[from],
                tag,
                comm,
            },
            Record::Irecv { from, tag, comm } => Record::Irecv {
                from: names[from],
                tag,
                comm,
            },
            Record::Wait { from, tag, comm } => Record::Wait {
                from: names[from],
                tag,
                comm,
            },
            Record::Collective {
                op,
                comm,
                root,
                send,
                recv,
                mode,
            } => Record::Collective {
                op,
                comm,
                root: names[root],
                send,
                recv,
                mode,
            },
            same => same,
        };
        let mut ranks = vec![Vec::new(); self.ranks.len()];
        for (rank, records) in self.ranks.iter().enumerate() {
            ranks[names[rank]] = records.iter().copied().map(renamed).collect();
        }
        let comms = self
            .comms
            .iter()
            .map(|members| members.iter().map(|rank| names[*rank]).collect())
            .collect();
        Records { ranks, comms }
    }

    /// The program with all times and sizes multiplied.
    pub(crate) fn scaled(&self, factor: u64) -> Records {
        let scaled = |record: &Record| match *record {
            Record::Compute(nanos) => Record::Compute(nanos * factor),
            Record::Send {
                to,
                bytes,
                tag,
                comm,
                sync,
                non_blocking,
            } => Record::Send {
                to,
                bytes: bytes * factor,
                tag,
                comm,
                sync,
                non_blocking,
            },
            Record::Collective {
                op,
                comm,
                root,
                send,
                recv,
                mode,
            } => Record::Collective {
                op,
                comm,
                root,
                send: send * factor,
                recv: recv * factor,
                mode,
            },
            same => same,
        };
        let ranks = self
            .ranks
            .iter()
            .map(|records| records.iter().map(scaled).collect())
            .collect();
        Records {
            ranks,
            comms: self.comms.clone(),
        }
    }
}

fn dim_line(rank: usize, record: Record) -> String {
    match record {
        Record::Compute(nanos) => format!(
            "1:{rank}:0:{}.{:09}\n",
            nanos / 1_000_000_000,
            nanos % 1_000_000_000
        ),
        Record::Send {
            to,
            bytes,
            tag,
            comm,
            sync,
            non_blocking,
        } => {
            let mode = u8::from(sync) + 2 * u8::from(non_blocking);
            format!("2:{rank}:0:{to}:-1:{bytes}:{tag}:{}:{mode}\n", comm + 1)
        }
        Record::Recv { from, tag, comm } => {
            format!("3:{rank}:0:{from}:-1:0:{tag}:{}:0\n", comm + 1)
        }
        Record::Irecv { from, tag, comm } => {
            format!("3:{rank}:0:{from}:-1:0:{tag}:{}:1\n", comm + 1)
        }
        Record::Wait { from, tag, comm } => {
            format!("3:{rank}:0:{from}:-1:0:{tag}:{}:2\n", comm + 1)
        }
        Record::Collective {
            op,
            comm,
            root,
            send,
            recv,
            mode,
        } => {
            let (root, sync) = match mode {
                Mode::Blocking => (usize::from(root == rank), 1),
                Mode::NonBlocking => (usize::from(root == rank), 0),
                Mode::RootSynchronous => (root, 3),
            };
            format!(
                "10:{rank}:0:{}:{}:{root}:0:{send}:{recv}:{sync}\n",
                op as u8,
                comm + 1
            )
        }
        Record::WaitSend(ago) => format!("32:{rank}:0:{ago}\n"),
        Record::WaitCollective => format!("10:{rank}:0:0:1:0:0:0:0:2\n"),
    }
}

/// Numbers of a network: times in nanoseconds, rates in nanoseconds for each byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub rule: MessageRule,
    pub latency: f64,
    pub per_byte: f64,
    pub overhead: f64,
    pub gap: f64,
    pub inside_latency: f64,
    pub inside_rate: f64,
    pub speed: f64,
    pub ranks_per_node: usize,
    pub rendezvous_from: Option<u64>,
}

/// Networks of all rules; one in two has several ranks on a node.
pub(crate) fn any_numbers() -> impl Strategy<Value = Numbers> {
    let rule = prop_oneof![
        Just(MessageRule::Hockney),
        Just(MessageRule::Dimemas),
        Just(MessageRule::Loggops)
    ];
    let time = || prop_oneof![1 => Just(0.0), 3 => 1.0..100_000.0f64, 2 => (1u32..100_000).prop_map(f64::from)];
    let between = (
        time(),
        prop_oneof![1 => Just(0.0), 4 => 0.01..20.0f64],
        time(),
        time(),
    );
    let inside = (time(), prop_oneof![1 => Just(0.0), 4 => 1e8..1e11f64]);
    let rendezvous = prop_oneof![Just(None), Just(Some(0)), Just(Some(4000))];
    (
        rule,
        between,
        inside,
        prop_oneof![Just(1.0), 0.5..4.0f64],
        1usize..5,
        rendezvous,
    )
        .prop_map(
            |(
                rule,
                (latency, per_byte, overhead, gap),
                (inside_latency, inside_rate),
                speed,
                ranks_per_node,
                rendezvous_from,
            )| {
                Numbers {
                    rule,
                    latency,
                    per_byte,
                    overhead,
                    gap,
                    inside_latency,
                    inside_rate,
                    speed,
                    ranks_per_node,
                    rendezvous_from,
                }
            },
        )
}

impl Numbers {
    pub(crate) fn node(&self, rank: usize) -> usize {
        rank / self.ranks_per_node
    }

    /// The network with nodes for this many ranks.
    pub(crate) fn network(&self, ranks: usize) -> Network {
        let mut network = flowcast::model::builtin::network("gige-tcp").unwrap();
        network.point_to_point.rule = self.rule;
        network.nic.latency = Time::from_nanos(self.latency);
        network.nic.rate = LinkRate::Goodput(SingleFlowRate::GapPerByte(TimePerByte::from_nanos(
            self.per_byte,
        )));
        network.nic.overhead = Time::from_nanos(self.overhead);
        network.nic.gap = Time::from_nanos(self.gap);
        let group = NodeGroup {
            count: ranks.div_ceil(self.ranks_per_node) as u32,
            cpus: self.ranks_per_node as u32,
            speed: self.speed,
            intra_latency: Some(Time::from_nanos(self.inside_latency)),
            intra_bandwidth: Some(Rate::from_bytes_per_second(self.inside_rate)),
            ..NodeGroup::default()
        };
        let nodes = (0..ranks).map(|rank| self.node(rank) as u32).collect();
        network.machine = Machine {
            mapping: Some(Mapping::List(nodes)),
            nodes: vec![group],
            ..Machine::default()
        };
        network
    }

    pub(crate) fn rendezvous(&self) -> Rendezvous {
        self.rendezvous_from.map_or(Rendezvous::AsRecorded, |from| {
            Rendezvous::From(flowcast::units::Bytes(from))
        })
    }

    /// A replay of the program on this network.
    pub(crate) fn replay<'a>(&self, program: &'a Program) -> Replay<'a> {
        let network = self.network(program.ranks());
        let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
        Replay::new(program, &network, placement, self.rendezvous()).unwrap()
    }
}
