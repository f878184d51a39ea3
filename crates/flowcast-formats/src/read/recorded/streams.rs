//! Streams of threads: each stream is a thread of its rank with its own messages and collectives.
//!
//! Messages match by rank, source, tag and communicator. The order of the steps determines which thread's send matches which
//! thread's receive. It also determines which threads execute a collective: one thread of each rank.

use std::collections::BTreeMap;

use super::{
    actions::{Action, ActionStep, RankActions},
    threads::ThreadOrder,
};
use flowcast_program::{
    build::{CallRecord, Channel},
    program::{CollectiveMode, Communicator},
};
use flowcast_units::Rank;

/// Streams of all ranks.
pub(super) struct Streams {
    /// Task and thread of each stream; empty if each rank has one.
    pub threads: Vec<(u32, u32)>,
    /// Steps of each stream of each rank.
    pub steps: Vec<Vec<Vec<ActionStep>>>,
    /// Communicators whose members are streams.
    pub communicators: Vec<Communicator>,
}

/// Divides the ordered steps of ranks among the streams of their threads.
pub(super) fn divide(
    ranks: &mut [RankActions],
    orders: &[ThreadOrder],
    communicators: Vec<Communicator>,
) -> Streams {
    let numbers = StreamNumbers::new(ranks, orders);
    if numbers.count as usize == ranks.len() {
        let steps = ranks
            .iter_mut()
            .map(|rank| vec![std::mem::take(&mut rank.steps)])
            .collect();
        return Streams {
            threads: Vec::new(),
            steps,
            communicators,
        };
    }
    address_messages(ranks, &numbers);
    address_accesses(ranks, &numbers);
    let mut communicators =
        StreamMeetings::new(ranks, &numbers).divide(ranks, &numbers, communicators);
    let steps = (0..)
        .map(Rank)
        .zip(ranks)
        .map(|(rank, actions)| numbers.split(rank, actions, &mut communicators));
    let steps: Vec<Vec<Vec<ActionStep>>> = steps.collect();
    let tasks = (0..)
        .zip(&steps)
        .flat_map(|(task, streams)| (0..streams.len() as u32).map(move |thread| (task, thread)));
    Streams {
        threads: tasks.collect(),
        steps,
        communicators,
    }
}

/// Numbers of all streams.
struct StreamNumbers {
    /// First stream of each rank, and the offset of each thread from it. A rank whose threads are in one row has no offsets.
    of_rank: Vec<(u32, BTreeMap<u32, u32>)>,
    count: u32,
}

impl StreamNumbers {
    fn new(ranks: &[RankActions], orders: &[ThreadOrder]) -> StreamNumbers {
        let mut numbers = StreamNumbers {
            of_rank: Vec::with_capacity(ranks.len()),
            count: 0,
        };
        for (actions, order) in ranks.iter().zip(orders) {
            let mut threads = BTreeMap::new();
            if *order == ThreadOrder::Streams && !actions.calls.is_empty() {
                threads.extend(actions.steps.iter().map(|step| (step.thread, 0)));
                threads
                    .values_mut()
                    .zip(0..)
                    .for_each(|(place, number)| *place = number);
            }
            let streams = threads.len().max(1) as u32;
            numbers.of_rank.push((numbers.count, threads));
            numbers.count += streams;
        }
        numbers
    }

    fn stream(&self, rank: Rank, thread: u32) -> Rank {
        let (first, threads) = &self.of_rank[rank.index()];
        Rank(first + threads.get(&thread).copied().unwrap_or(0))
    }

    /// Returns the steps of each stream of a rank, in which a blocking call is a single step again.
    fn split(
        &self,
        rank: Rank,
        actions: &mut RankActions,
        communicators: &mut Vec<Communicator>,
    ) -> Vec<Vec<ActionStep>> {
        let (first, threads) = &self.of_rank[rank.index()];
        let steps = std::mem::take(&mut actions.steps);
        if threads.is_empty() {
            return vec![steps];
        }
        let mut pairs: BTreeMap<(Rank, Rank), i32> = BTreeMap::new();
        let mut streams = vec![Vec::new(); threads.len()];
        for step in steps {
            let own = self.stream(rank, step.thread);
            let pair = match step.action {
                Action::Signal(to) => {
                    Some((own, self.stream(rank, to), CollectiveMode::NonBlocking))
                }
                Action::Await(from) => {
                    Some((self.stream(rank, from), own, CollectiveMode::Blocking))
                }
                _ => None,
            };
            let mut step = step;
            if let Some((from, to, mode)) = pair {
                let id = *pairs
                    .entry((from, to))
                    .or_insert_with(|| define(communicators, vec![from, to]));
                step.action = meet(actions, id, mode);
            }
            push(&mut streams[(own.0 - first) as usize], step, actions);
        }
        streams
    }
}

/// Adds a communicator and returns its number. Recordings number communicators from 0.
pub(super) fn define(communicators: &mut Vec<Communicator>, members: Vec<Rank>) -> i32 {
    let id = communicators.len() as i32;
    communicators.push(Communicator { id, members });
    id
}

/// Adds a synchronisation of two streams of a rank. It takes no time, and the signalling thread continues immediately.
fn meet(actions: &mut RankActions, communicator: i32, mode: CollectiveMode) -> Action {
    Action::Collective(actions.add_collective(CallRecord::barrier(communicator, mode)))
}

/// Appends a step. A start and a wait in one call become a blocking step.
fn push(stream: &mut Vec<ActionStep>, step: ActionStep, actions: &mut RankActions) {
    use Action::*;
    let Some(last) = stream.last_mut().filter(|last| last.item == step.item) else {
        return stream.push(step);
    };
    match (last.action, step.action) {
        (Irecv(post), WaitRecv(awaited)) if post == awaited => last.action = Recv(post),
        (Send(send), WaitSend(awaited)) if send == awaited => {
            actions.sends[send as usize].mode.non_blocking = false;
        }
        (Collective(number), WaitCollective(awaited)) if number == awaited => {
            actions.collectives[number as usize].record.mode = CollectiveMode::Blocking;
        }
        _ => stream.push(step),
    }
}

/// Sends and receives of a channel, each with its number in its rank and its stream.
#[derive(Default)]
struct StreamEnds {
    sends: Vec<(u32, Rank)>,
    posts: Vec<(u32, Rank)>,
}

/// Assigns each message its sending and its receiving stream.
fn address_messages(ranks: &mut [RankActions], numbers: &StreamNumbers) {
    // Indexed by receiver and its channel.
    let mut channels: BTreeMap<(Rank, Channel), StreamEnds> = BTreeMap::new();
    for (rank, actions) in (0..).map(Rank).zip(ranks.iter()) {
        for step in &actions.steps {
            let stream = numbers.stream(rank, step.thread);
            match step.action {
                Action::Send(send) if !actions.sends[send as usize].dropped => {
                    let seen = actions.sends[send as usize].seen_by_receiver(rank);
                    channels.entry(seen).or_default().sends.push((send, stream));
                }
                Action::Recv(post) | Action::Irecv(post) => {
                    if let Some(channel) = actions.posts[post as usize].channel {
                        channels
                            .entry((rank, channel))
                            .or_default()
                            .posts
                            .push((post, stream));
                    }
                }
                _ => {}
            }
        }
    }
    for ((receiver, channel), StreamEnds { sends, posts }) in channels {
        for ((send, from), (post, to)) in sends.into_iter().zip(posts) {
            ranks[channel.peer.index()].sends[send as usize]
                .channel
                .peer = to;
            ranks[receiver.index()].posts[post as usize].channel = Some(Channel {
                peer: from,
                ..channel
            });
        }
    }
}

/// Assigns the memory of a rank to its first stream.
fn address_accesses(ranks: &mut [RankActions], numbers: &StreamNumbers) {
    for access in ranks.iter_mut().flat_map(|rank| &mut rank.accesses) {
        if let Some(target) = access.target_mut() {
            *target = Rank(numbers.of_rank[target.index()].0);
        }
    }
}

/// Collective calls of each rank on each communicator, with the stream that makes each call.
struct StreamMeetings(BTreeMap<(i32, Rank), Vec<(u32, Rank)>>);

impl StreamMeetings {
    fn new(ranks: &[RankActions], numbers: &StreamNumbers) -> StreamMeetings {
        let mut all: BTreeMap<(i32, Rank), Vec<(u32, Rank)>> = BTreeMap::new();
        for (rank, actions) in (0..).map(Rank).zip(ranks) {
            for step in &actions.steps {
                let Action::Collective(number) = step.action else {
                    continue;
                };
                let call = actions.collectives[number as usize];
                if !call.dropped {
                    let stream = numbers.stream(rank, step.thread);
                    all.entry((call.record.communicator, rank))
                        .or_default()
                        .push((number, stream));
                }
            }
        }
        StreamMeetings(all)
    }

    /// Returns the communicators with streams as members: one for each set of threads that execute a collective together.
    fn divide(
        &self,
        ranks: &mut [RankActions],
        numbers: &StreamNumbers,
        communicators: Vec<Communicator>,
    ) -> Vec<Communicator> {
        let mut next = communicators.len() as i32;
        let mut divided = Vec::with_capacity(communicators.len());
        for Communicator { id, members } in communicators {
            let mut known: BTreeMap<Vec<Rank>, i32> = BTreeMap::new();
            let calls: Vec<&[(u32, Rank)]> = members
                .iter()
                .map(|rank| self.0.get(&(id, *rank)).map_or(&[][..], Vec::as_slice))
                .collect();
            for turn in 0..calls.iter().map(|calls| calls.len()).min().unwrap_or(0) {
                let streams: Vec<Rank> = calls.iter().map(|calls| calls[turn].1).collect();
                let own = match known.get(&streams) {
                    Some(own) => *own,
                    None => {
                        let own = if known.is_empty() { id } else { next };
                        next += i32::from(!known.is_empty());
                        known.insert(streams.clone(), own);
                        divided.push(Communicator {
                            id: own,
                            members: streams,
                        });
                        own
                    }
                };
                for (rank, calls) in members.iter().zip(&calls) {
                    ranks[rank.index()].collectives[calls[turn].0 as usize]
                        .record
                        .communicator = own;
                }
            }
            if known.is_empty() {
                let members = members
                    .iter()
                    .map(|rank| Rank(numbers.of_rank[rank.index()].0))
                    .collect();
                divided.push(Communicator { id, members });
            }
        }
        divided
    }
}
