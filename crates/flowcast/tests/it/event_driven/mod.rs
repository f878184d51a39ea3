//! The reference implementation of the replay: one heap of events in global time order, queues by channel, nothing
//! precomputed.
//!
//! It uses records and numbers only, and follows the table of rules at the top of `simulate/costs.rs` word by word, so that
//! it cannot share a mistake in the matching, the streams or the order of the fast replay.

use flowcast::units::CollectiveOp;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
};

use flowcast::model::network::MessageRule;

use crate::random_programs::{Mode, Numbers, Record, Records};

/// Ends of all ranks.
///
/// # Panics
/// If the ranks wait for each other.
pub(crate) fn end_times(records: &Records, numbers: &Numbers) -> Vec<f64> {
    end_times_where(records, numbers, &|_, _, _| None)
}

/// Ends of all ranks, for messages with their own latencies by sender, receiver and size.
///
/// # Panics
/// If the ranks wait for each other.
pub(crate) fn end_times_where(
    records: &Records,
    numbers: &Numbers,
    latency_of: &LatencyOf<'_>,
) -> Vec<f64> {
    let ranks = records.ranks.len();
    let mut world = World {
        records,
        numbers,
        latency_of,
        events: BinaryHeap::new(),
        created: 0,
        ranks: vec![RankState::default(); ranks],
        messages: Vec::new(),
        receives: Vec::new(),
        channels: HashMap::new(),
        gatherings: HashMap::new(),
    };
    (0..ranks).for_each(|rank| world.at(0.0, Event::Run(rank)));
    while let Some(Reverse((Nanos(now), _, event))) = world.events.pop() {
        world.happen(now, event);
    }
    assert!(
        world.ranks.iter().all(|rank| rank.end.is_some()),
        "ranks wait for each other"
    );
    world.ranks.iter().map(|rank| rank.end.unwrap()).collect()
}

/// Latency of a message by sender, receiver and bytes; `None` for the network's latency.
pub(crate) type LatencyOf<'f> = dyn Fn(usize, usize, u64) -> Option<f64> + 'f;

/// Nanoseconds, never NaN, so they have an order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Nanos(f64);

impl Eq for Nanos {}

impl PartialOrd for Nanos {
    fn partial_cmp(&self, other: &Nanos) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Nanos {
    fn cmp(&self, other: &Nanos) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A rank continues with its next record.
    Run(usize),
    /// The overhead of a sender ends, and its interface is free for the message.
    Ready(usize),
    /// A message has left its interface, or does not hold its sender any more.
    Leave(usize),
    /// The last byte of a message has arrived.
    Arrive(usize),
    /// A receiver requests its receive, which it posts only now if the flag is set.
    Ask(usize, bool),
    /// A rank arrives at a collective.
    Come(usize, Instance),
    /// A rank waits for a collective at which it arrived before.
    WaitFor(usize, Instance),
}

/// A communicator, and the number of the collective on it.
type Instance = (usize, usize);
/// Sender, receiver, tag, communicator.
type ChannelKey = (usize, usize, u32, usize);

#[derive(Debug, Clone, Default)]
struct RankState {
    next: usize,
    interface_free: f64,
    sends: Vec<usize>,
    /// Number of collectives that it has called on each communicator.
    called: HashMap<usize, usize>,
    started: VecDeque<Instance>,
    end: Option<f64>,
}

struct Message {
    channel: ChannelKey,
    cost: Cost,
    rendezvous: bool,
    non_blocking: bool,
    arrived: bool,
    receive: Option<usize>,
    has_left: bool,
    is_awaited: bool,
}

struct Receive {
    channel: ChannelKey,
    arrived: bool,
    asked: bool,
}

#[derive(Default)]
struct Channel {
    sent: VecDeque<usize>,
    posted: VecDeque<usize>,
    /// Non-blocking receives that no wait has completed.
    unwaited: VecDeque<usize>,
}

#[derive(Default)]
struct Gathering {
    came: usize,
    last: f64,
    own_ends: f64,
    finish: Option<f64>,
    waiting: Vec<(f64, usize)>,
}

#[derive(Clone, Copy)]
struct Cost {
    sender: f64,
    receiver_before: f64,
    receiver_after: f64,
    delay: f64,
    busy: f64,
    held: f64,
}

struct World<'a> {
    records: &'a Records,
    numbers: &'a Numbers,
    latency_of: &'a LatencyOf<'a>,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    created: u64,
    ranks: Vec<RankState>,
    messages: Vec<Message>,
    receives: Vec<Receive>,
    channels: HashMap<ChannelKey, Channel>,
    gatherings: HashMap<Instance, Gathering>,
}

impl World<'_> {
    fn at(&mut self, time: f64, event: Event) {
        self.created += 1;
        self.events
            .push(Reverse((Nanos(time), self.created, event)));
    }

    fn happen(&mut self, now: f64, event: Event) {
        match event {
            Event::Run(rank) => self.run(now, rank),
            Event::Ready(message) => self.ready(now, message),
            Event::Leave(message) => self.leave(now, message),
            Event::Arrive(message) => self.arrive(now, message),
            Event::Ask(receive, posts) => self.ask(now, receive, posts),
            Event::Come(rank, instance) => self.come(now, rank, instance),
            Event::WaitFor(rank, instance) => self.wait_for(now, rank, instance),
        }
    }

    fn run(&mut self, now: f64, rank: usize) {
        let Some(record) = self.records.ranks[rank].get(self.ranks[rank].next).copied() else {
            self.ranks[rank].end = Some(now);
            return;
        };
        self.ranks[rank].next += 1;
        match record {
            Record::Compute(nanos) => {
                self.at(now + nanos as f64 / self.numbers.speed, Event::Run(rank))
            }
            Record::Send {
                to,
                bytes,
                tag,
                comm,
                sync,
                non_blocking,
            } => {
                let rendezvous = self
                    .numbers
                    .rendezvous_from
                    .map_or(sync, |from| bytes >= from);
                let cost = self.cost(rank, to, bytes);
                let channel = (rank, to, tag, comm);
                self.messages.push(Message {
                    channel,
                    cost,
                    rendezvous,
                    non_blocking,
                    arrived: false,
                    receive: None,
                    has_left: false,
                    is_awaited: false,
                });
                let number = self.messages.len() - 1;
                let start = now.max(self.ranks[rank].interface_free);
                self.ranks[rank].interface_free = start + cost.busy;
                self.ranks[rank].sends.push(number);
                self.at(start + cost.sender, Event::Ready(number));
                if non_blocking {
                    self.at(now + cost.sender, Event::Run(rank));
                }
            }
            Record::WaitSend(ago) => {
                let sends = &self.ranks[rank].sends;
                let message = &mut self.messages[sends[sends.len() - 1 - ago]];
                message.is_awaited = true;
                if message.has_left {
                    self.at(now, Event::Run(rank));
                }
            }
            Record::Recv { from, tag, comm } => {
                let receive = self.receive((from, rank, tag, comm));
                self.at(
                    now + self.cost(from, rank, 0).receiver_before,
                    Event::Ask(receive, true),
                );
            }
            Record::Irecv { from, tag, comm } => {
                let receive = self.receive((from, rank, tag, comm));
                self.channels
                    .entry((from, rank, tag, comm))
                    .or_default()
                    .unwaited
                    .push_back(receive);
                self.post(now, receive);
                self.at(now, Event::Run(rank));
            }
            Record::Wait { from, tag, comm } => {
                let channel = self.channels.get_mut(&(from, rank, tag, comm)).unwrap();
                let receive = channel.unwaited.pop_front().unwrap();
                self.at(
                    now + self.cost(from, rank, 0).receiver_before,
                    Event::Ask(receive, false),
                );
            }
            Record::Collective { comm, mode, .. } => {
                let called = self.ranks[rank].called.entry(comm).or_default();
                let instance = (comm, *called);
                *called += 1;
                let startup = if mode == Mode::Blocking {
                    0.0
                } else {
                    self.startup(comm).trunc()
                };
                self.at(now + startup, Event::Come(rank, instance));
            }
            Record::WaitCollective => {
                let instance = self.ranks[rank].started.pop_front().unwrap();
                self.at(
                    now + self.startup(instance.0),
                    Event::WaitFor(rank, instance),
                );
            }
        }
    }

    fn ready(&mut self, now: f64, message: usize) {
        let Message {
            channel,
            cost,
            rendezvous,
            non_blocking,
            ..
        } = self.messages[message];
        self.channels
            .entry(channel)
            .or_default()
            .sent
            .push_back(message);
        if !rendezvous {
            self.at(now + cost.delay, Event::Arrive(message));
        }
        if !rendezvous {
            self.at(now + cost.held.min(cost.busy), Event::Leave(message));
        }
        if !rendezvous && !non_blocking {
            self.at(now, Event::Run(channel.0));
        }
        self.pair(now, channel);
    }

    fn leave(&mut self, now: f64, message: usize) {
        let message = &mut self.messages[message];
        message.has_left = true;
        let rank = message.channel.0;
        if message.is_awaited || message.rendezvous && !message.non_blocking {
            self.at(now, Event::Run(rank));
        }
    }

    fn receive(&mut self, channel: ChannelKey) -> usize {
        self.receives.push(Receive {
            channel,
            arrived: false,
            asked: false,
        });
        self.receives.len() - 1
    }

    fn post(&mut self, now: f64, receive: usize) {
        let channel = self.receives[receive].channel;
        self.channels
            .entry(channel)
            .or_default()
            .posted
            .push_back(receive);
        self.pair(now, channel);
    }

    /// The first send and the first receive of a channel match; a rendezvous begins to move.
    fn pair(&mut self, now: f64, key: ChannelKey) {
        let channel = self.channels.get_mut(&key).unwrap();
        let (Some(&sent), Some(&posted)) = (channel.sent.front(), channel.posted.front()) else {
            return;
        };
        channel.sent.pop_front();
        channel.posted.pop_front();
        let message = &mut self.messages[sent];
        message.receive = Some(posted);
        self.receives[posted].arrived = message.arrived;
        let Message {
            cost, rendezvous, ..
        } = *message;
        if rendezvous {
            self.at(now + cost.delay, Event::Arrive(sent));
            self.at(now + cost.held, Event::Leave(sent));
        }
    }

    fn arrive(&mut self, now: f64, message: usize) {
        let message = &mut self.messages[message];
        message.arrived = true;
        let after = message.cost.receiver_after;
        let Some(receive) = message.receive else {
            return;
        };
        self.receives[receive].arrived = true;
        if self.receives[receive].asked {
            self.at(now + after, Event::Run(self.receives[receive].channel.1));
        }
    }

    fn ask(&mut self, now: f64, receive: usize, posts: bool) {
        if posts {
            self.post(now, receive);
        }
        let (from, rank, ..) = self.receives[receive].channel;
        self.receives[receive].asked = true;
        if self.receives[receive].arrived {
            self.at(
                now + self.cost(from, rank, 0).receiver_after,
                Event::Run(rank),
            );
        }
    }

    fn come(&mut self, now: f64, rank: usize, instance: Instance) {
        let Record::Collective {
            op,
            comm,
            root,
            send,
            recv,
            mode,
        } = self.records.ranks[rank][self.ranks[rank].next - 1]
        else {
            unreachable!("a rank stays at its collective until it has arrived");
        };
        let own_end = if mode == Mode::RootSynchronous && rank != root {
            now + self.per_byte(rank, root) * send as f64
        } else {
            now
        };
        let cost = self.collective_cost(op, comm, send, recv);
        let members = self.records.comms[comm].len();
        let gathering = self.gatherings.entry(instance).or_default();
        gathering.came += 1;
        gathering.last = now;
        gathering.own_ends = gathering.own_ends.max(own_end);
        if gathering.came == members {
            let finish = if mode == Mode::RootSynchronous {
                gathering.own_ends
            } else {
                gathering.last + cost
            };
            gathering.finish = Some(finish);
            let waiting = std::mem::take(&mut gathering.waiting);
            waiting
                .into_iter()
                .for_each(|(came, rank)| self.at(finish.max(came), Event::Run(rank)));
        }
        match mode {
            Mode::NonBlocking => {
                self.ranks[rank].started.push_back(instance);
                self.at(now, Event::Run(rank));
            }
            Mode::RootSynchronous if rank != root => self.at(own_end, Event::Run(rank)),
            _ => self.wait_for(now, rank, instance),
        }
    }

    fn wait_for(&mut self, now: f64, rank: usize, instance: Instance) {
        let gathering = self.gatherings.get_mut(&instance).unwrap();
        match gathering.finish {
            Some(finish) => self.at(finish.max(now), Event::Run(rank)),
            None => gathering.waiting.push((now, rank)),
        }
    }

    fn shares_node(&self, a: usize, b: usize) -> bool {
        self.numbers.node(a) == self.numbers.node(b)
    }

    fn per_byte(&self, a: usize, b: usize) -> f64 {
        match (self.shares_node(a, b), self.numbers.inside_rate) {
            (false, _) => self.numbers.per_byte,
            (true, 0.0) => 0.0,
            (true, rate) => 1e9 / rate,
        }
    }

    fn cost(&self, from: usize, to: usize, bytes: u64) -> Cost {
        let Numbers {
            rule,
            latency,
            overhead,
            gap,
            inside_latency,
            ..
        } = *self.numbers;
        let inside = self.shares_node(from, to);
        let (latency, overhead, gap) = if inside {
            (inside_latency, 0.0, 0.0)
        } else {
            (latency, overhead, gap)
        };
        let latency = (self.latency_of)(from, to, bytes).unwrap_or(latency);
        let per_byte = self.per_byte(from, to);
        let transfer = bytes as f64 * per_byte;
        let none = Cost {
            sender: 0.0,
            receiver_before: 0.0,
            receiver_after: 0.0,
            delay: 0.0,
            busy: 0.0,
            held: 0.0,
        };
        match rule {
            MessageRule::Hockney => Cost {
                delay: latency + transfer,
                held: transfer,
                ..none
            },
            MessageRule::Dimemas => Cost {
                sender: latency,
                receiver_before: latency,
                delay: transfer,
                ..none
            },
            MessageRule::Loggops => {
                let transfer = bytes.saturating_sub(1) as f64 * per_byte;
                Cost {
                    sender: overhead,
                    receiver_after: overhead,
                    delay: latency + transfer,
                    busy: gap + transfer,
                    held: transfer,
                    ..none
                }
            }
        }
    }

    /// Number of members of a communicator on each node.
    fn tasks_on_nodes(&self, comm: usize) -> Vec<usize> {
        let mut tasks = vec![0; self.records.ranks.len()];
        self.records.comms[comm]
            .iter()
            .for_each(|rank| tasks[self.numbers.node(*rank)] += 1);
        tasks.into_iter().filter(|tasks| *tasks > 0).collect()
    }

    /// Start-up of a collective: its start counts whole nanoseconds only, the wait of a rank counts all of it.
    fn startup(&self, comm: usize) -> f64 {
        let tasks = self.tasks_on_nodes(comm);
        let between = if tasks.len() > 1 {
            self.numbers.latency
        } else {
            0.0
        };
        let inside = if tasks.iter().any(|tasks| *tasks > 1) {
            self.numbers.inside_latency
        } else {
            0.0
        };
        let startup = between.max(inside);
        if startup < 1.0 { 0.0 } else { startup }
    }

    fn collective_cost(&self, op: CollectiveOp, comm: usize, send: u64, recv: u64) -> f64 {
        let Numbers {
            latency,
            overhead,
            per_byte,
            inside_latency,
            inside_rate,
            ..
        } = *self.numbers;
        let tasks = self.tasks_on_nodes(comm);
        let between = formula(
            op,
            tasks.len(),
            (latency + 2.0 * overhead, per_byte),
            (send, recv),
        );
        let per_byte = if inside_rate == 0.0 {
            0.0
        } else {
            1e9 / inside_rate
        };
        let inside = tasks
            .iter()
            .map(|tasks| formula(op, *tasks, (inside_latency, per_byte), (send, recv)));
        between + inside.fold(0.0, f64::max)
    }
}

/// Fan-in and fan-out of the operations that the random programs use, from the table of the SGI Origin.
fn formula(
    op: CollectiveOp,
    processes: usize,
    (latency, per_byte): (f64, f64),
    (send, recv): (u64, u64),
) -> f64 {
    let linear = (processes - 1) as f64;
    let logarithmic = (0..).find(|steps| 1 << steps >= processes).unwrap() as f64;
    let phase = |bytes: u64| latency + bytes as f64 * per_byte;
    let (most, mean) = (send.max(recv), (send + recv) / 2);
    match op {
        CollectiveOp::Barrier => 2.0 * linear * phase(most),
        CollectiveOp::Bcast => logarithmic * phase(most),
        CollectiveOp::Alltoall => logarithmic * (phase(mean) + phase(most)),
        CollectiveOp::Allreduce => logarithmic * (phase(2 * most) + phase(most)),
        other => panic!("random programs have no {}", other.name()),
    }
}
