//! Joins the ranks' streams into a program: every send learns the slot that it fills, every collective its number.
//!
//! Messages match first in, first out for each sender, receiver, tag and communicator, which is what MPI promises.
//! So the k-th send of a channel fills the k-th receive posted for it, and one counter for each channel is enough.

use std::cmp::Ordering;

use super::build::{Channel, RankBuilder};
use super::key_map::KeyMap;
use super::parallel::for_each_mut;
use super::program::{
    CollectiveCall, Communicator, IgnoredRecords, MessageClass, Program, Source, Stream, StreamWords,
};
use super::words::{self, MAX_PAYLOAD, Op};
use super::{ReadOptions, TraceError};
use crate::units::{Bytes, Rank};

/// What a reader has found.
pub struct Parts {
    /// Name of the application.
    pub name: String,
    /// One builder for each rank.
    pub ranks: Vec<RankBuilder>,
    /// The communicators that collectives name.
    pub communicators: Vec<Communicator>,
    /// How the format calls the records that were ignored.
    pub ignored_kind: fn(u32) -> String,
    /// Where the records stand.
    pub source: Option<Source>,
}

/// Joins the parts.
///
/// # Errors
/// A peer out of range, a send or receive without its counterpart, a collective on an unknown communicator or not
/// called by all its members. The message names the record.
pub fn link(parts: Parts, options: ReadOptions) -> Result<Program, TraceError> {
    let tables = Tables::new(&parts)?;
    let mut program = Program {
        name: parts.name,
        bytes: Bytes(parts.ranks.iter().map(|rank| rank.bytes).sum()),
        ignored: ignored_records(&parts.ranks, parts.ignored_kind),
        streams: Vec::with_capacity(parts.ranks.len()),
        slots: tables.slots,
        classes: tables.classes.into_keys(),
        calls: tables.calls.into_keys(),
        communicators: parts.communicators,
        instances: tables.instances,
        self_messages: tables.self_messages,
        events: tables.events.into_keys(),
        source: parts.source,
    };
    let mut words: Vec<Vec<u32>> = Vec::with_capacity(parts.ranks.len());
    let mut ranks = parts.ranks;
    for rank in &mut ranks {
        words.push(std::mem::take(&mut rank.words));
    }
    let mut jobs: Vec<(usize, Vec<u32>)> = words.into_iter().enumerate().collect();
    for_each_mut(&mut jobs, options.threads, |(rank, words)| tables.patches[*rank].apply(words));
    for ((_, words), first_slot) in jobs.into_iter().zip(tables.first_slots) {
        program.streams.push(Stream { words: StreamWords::Owned(words), first_slot });
    }
    check_collectives(&program)?;
    Ok(program)
}

/// Everything that the ranks' own numbers become.
struct Tables {
    classes: KeyMap<MessageClass>,
    calls: KeyMap<CollectiveCall>,
    events: KeyMap<(i64, i64)>,
    instances: Vec<u32>,
    slots: u32,
    self_messages: bool,
    first_slots: Vec<u32>,
    patches: Vec<Patch>,
}

/// What replaces the numbers in one rank's stream.
struct Patch {
    /// Class and sending channel of each route.
    routes: Vec<(u32, u32)>,
    /// The slots that the sends of each channel fill: a range of `slots`.
    starts: Vec<usize>,
    slots: Vec<u32>,
    calls: Vec<(u32, u32)>,
    /// First instance of the communicator of each of the rank's collective counters.
    first_instances: Vec<u32>,
    events: Vec<u32>,
}

impl Tables {
    fn new(parts: &Parts) -> Result<Tables, TraceError> {
        let ranks = &parts.ranks;
        let place = |rank: usize, record: u32| record_place(parts, rank, record);
        let mut tables = Tables {
            classes: KeyMap::default(),
            calls: KeyMap::default(),
            events: KeyMap::default(),
            instances: Vec::new(),
            slots: 0,
            self_messages: false,
            first_slots: Vec::with_capacity(ranks.len()),
            patches: Vec::with_capacity(ranks.len()),
        };
        for rank in ranks {
            tables.first_slots.push(tables.slots);
            let posts = u32::try_from(rank.posts.len()).ok();
            tables.slots = posts.and_then(|posts| tables.slots.checked_add(posts)).ok_or_else(too_many_messages)?;
        }
        let posted: Vec<PostedSlots> =
            ranks.iter().zip(&tables.first_slots).map(|(rank, first)| PostedSlots::new(rank, *first)).collect();
        let instances = Instances::new(parts, &place)?;
        tables.instances.clone_from(&instances.communicator);
        let mut received = posted.iter().map(|slots| vec![false; slots.starts.len() - 1]).collect::<Vec<_>>();
        for (index, rank) in ranks.iter().enumerate() {
            let (routes, channels) = number_routes(rank, &mut tables.classes)?;
            let counts = count_sends(rank, &routes, channels.len());
            let mut starts = Vec::with_capacity(channels.len() + 1);
            let mut slots = Vec::with_capacity(rank.sends as usize);
            for (channel, count) in channels.iter().zip(&counts) {
                starts.push(slots.len());
                let receiver = channel.peer as usize;
                if receiver >= ranks.len() {
                    return Err(peer_out_of_range(parts, index, *channel));
                }
                tables.self_messages |= receiver == index;
                let wanted = Channel { peer: index as u32, ..*channel };
                let number = ranks[receiver].channels.get(&wanted);
                let filled = number.map_or(&[][..], |number| posted[receiver].of(number));
                match filled.len().cmp(count) {
                    Ordering::Less => return Err(unmatched_send(parts, index, *channel, (*count, filled.len()))),
                    Ordering::Greater => return Err(unmatched_recv(parts, receiver, wanted, (*count, filled.len()))),
                    Ordering::Equal => slots.extend_from_slice(filled),
                }
                if let Some(number) = number {
                    received[receiver][number as usize] = true;
                }
            }
            tables.patches.push(Patch {
                routes,
                starts,
                slots,
                calls: number_calls(rank, &instances.index, &mut tables.calls),
                first_instances: rank.collective_counts().map(|(id, _)| instances.first(id)).collect(),
                events: rank.events.keys().iter().map(|event| tables.events.number(*event)).collect(),
            });
        }
        check_all_received(parts, &received)?;
        if tables.events.keys().len().max(tables.calls.keys().len()) > MAX_PAYLOAD as usize {
            return Err(too_many_messages());
        }
        Ok(tables)
    }
}

impl Patch {
    fn apply(&self, words: &mut [u32]) {
        let mut next = self.starts.clone();
        let mut at = 0;
        while let Some((op, after)) = words::decode(words, at) {
            match op {
                Op::Send { class: route, .. } => {
                    let (class, channel) = self.routes[route as usize];
                    let slot = self.slots[next[channel as usize]];
                    next[channel as usize] += 1;
                    words::patch_send(words, at, class, slot);
                }
                Op::Collective { call, instance } => {
                    let (number, counter) = self.calls[call as usize];
                    words::patch(words, at, number, Some(self.first_instances[counter as usize] + instance));
                }
                Op::WaitCollective(instance) => {
                    let counter = words[at] & MAX_PAYLOAD;
                    words::patch(words, at, 0, Some(self.first_instances[counter as usize] + instance));
                }
                Op::Event(event) => words::patch(words, at, self.events[event as usize], None),
                _ => {}
            }
            at = after;
        }
    }
}

/// The slots of a receiver, channel by channel in posting order.
struct PostedSlots {
    starts: Vec<usize>,
    slots: Vec<u32>,
}

impl PostedSlots {
    fn new(rank: &RankBuilder, first_slot: u32) -> PostedSlots {
        let channels = rank.channels.keys().len();
        let mut starts = vec![0; channels + 1];
        for channel in &rank.posts {
            starts[*channel as usize + 1] += 1;
        }
        for channel in 0..channels {
            starts[channel + 1] += starts[channel];
        }
        let mut next = starts.clone();
        let mut slots = vec![0; rank.posts.len()];
        for (post, channel) in rank.posts.iter().enumerate() {
            slots[next[*channel as usize]] = first_slot + post as u32;
            next[*channel as usize] += 1;
        }
        PostedSlots { starts, slots }
    }

    fn of(&self, channel: u32) -> &[u32] {
        &self.slots[self.starts[channel as usize]..self.starts[channel as usize + 1]]
    }
}

type NumberedRoutes = (Vec<(u32, u32)>, Vec<Channel>);

fn number_routes(rank: &RankBuilder, classes: &mut KeyMap<MessageClass>) -> Result<NumberedRoutes, TraceError> {
    let mut channels = KeyMap::default();
    let mut routes = Vec::with_capacity(rank.routes.keys().len());
    for route in rank.routes.keys() {
        let class = classes.number(route.class);
        if class > MAX_PAYLOAD {
            return Err(too_many_messages());
        }
        routes.push((class, channels.number(route.channel())));
    }
    Ok((routes, channels.into_keys()))
}

/// How many sends each channel has.
fn count_sends(rank: &RankBuilder, routes: &[(u32, u32)], channels: usize) -> Vec<usize> {
    let mut counts = vec![0; channels];
    for ((_, channel), sends) in routes.iter().zip(&rank.route_sends) {
        counts[*channel as usize] += *sends as usize;
    }
    counts
}

/// Executions of collectives, numbered over all communicators.
struct Instances {
    /// Index of each communicator by its id.
    index: KeyMap<i32>,
    firsts: Vec<u32>,
    communicator: Vec<u32>,
}

impl Instances {
    fn new(parts: &Parts, place: &dyn Fn(usize, u32) -> String) -> Result<Instances, TraceError> {
        let mut index = KeyMap::default();
        for communicator in &parts.communicators {
            index.number(communicator.id);
        }
        let counts = collective_counts(parts, &index, place)?;
        let mut firsts = Vec::with_capacity(counts.len());
        let mut communicator = Vec::new();
        for (number, count) in counts.iter().enumerate() {
            firsts.push(communicator.len() as u32);
            communicator.extend(std::iter::repeat_n(number as u32, *count as usize));
        }
        Ok(Instances { index, firsts, communicator })
    }

    fn first(&self, id: i32) -> u32 {
        self.index.get(&id).map_or(0, |number| self.firsts[number as usize])
    }
}

/// How often each communicator's members call a collective; all must agree.
fn collective_counts(
    parts: &Parts,
    index: &KeyMap<i32>,
    place: &dyn Fn(usize, u32) -> String,
) -> Result<Vec<u32>, TraceError> {
    let mut counts = vec![0; parts.communicators.len()];
    let members: Vec<Vec<Rank>> = parts.communicators.iter().map(sorted_members).collect();
    for (rank, builder) in parts.ranks.iter().enumerate() {
        for (id, count) in builder.collective_counts() {
            let fault = |found: String, expected: String| {
                let record = nth_collective(builder, id, 0);
                TraceError::At { place: place(rank, record), found, expected }
            };
            let Some(number) = index.get(&id) else {
                return Err(fault(
                    format!("a collective on communicator {id}"),
                    "a communicator that is defined".into(),
                ));
            };
            if members[number as usize].binary_search(&Rank(rank as u32)).is_err() {
                let found = format!("a collective of rank {rank} on communicator {id}");
                return Err(fault(found, "a communicator that the rank belongs to".into()));
            }
            counts[number as usize] = counts[number as usize].max(count);
        }
    }
    for (number, communicator) in parts.communicators.iter().enumerate() {
        check_members(parts, communicator, counts[number], place)?;
    }
    Ok(counts)
}

fn sorted_members(communicator: &Communicator) -> Vec<Rank> {
    let mut members = communicator.members.clone();
    members.sort_unstable();
    members
}

fn check_members(
    parts: &Parts,
    communicator: &Communicator,
    count: u32,
    place: &dyn Fn(usize, u32) -> String,
) -> Result<(), TraceError> {
    let called = |rank: usize| {
        let mut counts = parts.ranks[rank].collective_counts();
        counts.find(|(id, _)| *id == communicator.id).map_or(0, |(_, count)| count)
    };
    let Some(short) = communicator.members.iter().find(|rank| called(rank.index()) < count) else { return Ok(()) };
    let have = called(short.index());
    let long = communicator.members.iter().find(|rank| called(rank.index()) > have);
    let long = long.expect("some member calls it `count` times").index();
    let record = nth_collective(&parts.ranks[long], communicator.id, have);
    Err(TraceError::At {
        place: place(long, record),
        found: format!("collective number {} on communicator {}, by rank {long}", have + 1, communicator.id),
        expected: format!("the same call by rank {short}, which makes only {have}"),
    })
}

/// The record of the n-th collective (from 0) of a rank on a communicator.
fn nth_collective(builder: &RankBuilder, id: i32, n: u32) -> u32 {
    let calls = builder.calls.keys();
    let found = words::iterate(&builder.words).find(|(_, op)| match op {
        Op::Collective { call, instance } => calls[*call as usize].communicator == id && *instance == n,
        _ => false,
    });
    found.map_or(0, |(record, _)| record)
}

fn number_calls(rank: &RankBuilder, index: &KeyMap<i32>, calls: &mut KeyMap<CollectiveCall>) -> Vec<(u32, u32)> {
    let counters: Vec<i32> = rank.collective_counts().map(|(id, _)| id).collect();
    let number = |call: &super::build::CallRecord| {
        let communicator = index.get(&call.communicator).expect("counted communicators are defined");
        let counter = counters.iter().position(|id| *id == call.communicator).expect("a call is counted");
        (calls.number(call.resolved(communicator)), counter as u32)
    };
    rank.calls.keys().iter().map(number).collect()
}

/// All members of a communicator must call the same operation at the same turn.
fn check_collectives(program: &Program) -> Result<(), TraceError> {
    let mut seen: Vec<Option<(u32, Rank)>> = vec![None; program.instances.len()];
    if program.calls.iter().all(|call| call.op == program.calls[0].op) {
        return Ok(());
    }
    for rank in (0..program.ranks() as u32).map(Rank) {
        for (record, op) in program.ops(rank) {
            let Op::Collective { call, instance } = op else { continue };
            let own = program.calls[call as usize].op;
            match seen[instance as usize] {
                None => seen[instance as usize] = Some((call, rank)),
                Some((first, other)) if program.calls[first as usize].op != own => {
                    let expected = program.calls[first as usize].op.name();
                    return Err(TraceError::At {
                        place: program.place(rank, record),
                        found: format!("{} by rank {rank}", own.name()),
                        expected: format!("{expected}, which rank {other} calls at this turn"),
                    });
                }
                Some(_) => {}
            }
        }
    }
    Ok(())
}

fn check_all_received(parts: &Parts, received: &[Vec<bool>]) -> Result<(), TraceError> {
    for (rank, channels) in received.iter().enumerate() {
        if let Some(number) = channels.iter().position(|matched| !matched) {
            let channel = parts.ranks[rank].channels.keys()[number];
            if channel.peer as usize >= parts.ranks.len() {
                return Err(peer_out_of_range(parts, rank, channel));
            }
            let posted = parts.ranks[rank].posts.iter().filter(|post| **post == number as u32).count();
            return Err(unmatched_recv(parts, rank, channel, (0, posted)));
        }
    }
    Ok(())
}

fn record_place(parts: &Parts, rank: usize, record: u32) -> String {
    let rank = Rank(rank as u32);
    let line = parts.source.as_ref().and_then(|source| source.line(rank, record));
    line.unwrap_or_else(|| format!("rank {rank}, record {record}"))
}

/// The record of the n-th send of a rank on a channel.
fn nth_send(builder: &RankBuilder, channel: Channel, n: usize) -> u32 {
    let routes = builder.routes.keys();
    let sends = words::iterate(&builder.words).filter(|(_, op)| match op {
        Op::Send { class: route, .. } => routes[*route as usize].channel() == channel,
        _ => false,
    });
    sends.map(|(record, _)| record).nth(n).unwrap_or(0)
}

/// The record of the n-th receive that a rank posts on a channel.
fn nth_post(builder: &RankBuilder, channel: Channel, n: usize) -> u32 {
    let number = builder.channels.get(&channel);
    let posts = words::iterate(&builder.words).filter(|(_, op)| matches!(op, Op::Recv | Op::Irecv));
    let on_channel = posts.zip(&builder.posts).filter(|(_, post)| Some(**post) == number);
    on_channel.map(|((record, _), _)| record).nth(n).unwrap_or(0)
}

fn unmatched_send(parts: &Parts, rank: usize, channel: Channel, (sends, recvs): (usize, usize)) -> TraceError {
    let Channel { peer, tag, communicator } = channel;
    TraceError::At {
        place: record_place(parts, rank, nth_send(&parts.ranks[rank], channel, recvs)),
        found: format!(
            "a send from rank {rank} to rank {peer} (tag {tag}, communicator {communicator}) that nobody receives"
        ),
        expected: format!("a receive for each of {sends} sends, {recvs} there are"),
    }
}

fn unmatched_recv(parts: &Parts, rank: usize, channel: Channel, (sends, recvs): (usize, usize)) -> TraceError {
    let Channel { peer, tag, communicator } = channel;
    TraceError::At {
        place: record_place(parts, rank, nth_post(&parts.ranks[rank], channel, sends)),
        found: format!(
            "a receive of rank {rank} from rank {peer} (tag {tag}, communicator {communicator}) that nobody sends"
        ),
        expected: format!("a send for each of {recvs} receives, {sends} there are"),
    }
}

fn peer_out_of_range(parts: &Parts, rank: usize, channel: Channel) -> TraceError {
    let builder = &parts.ranks[rank];
    let record = match nth_send(builder, channel, 0) {
        0 => nth_post(builder, channel, 0),
        record => record,
    };
    TraceError::At {
        place: record_place(parts, rank, record),
        found: format!("rank {}", channel.peer),
        expected: format!("a rank below {}", parts.ranks.len()),
    }
}

fn too_many_messages() -> TraceError {
    TraceError::Limit("more messages, message kinds or events than a compiled trace can number (2^32, 2^27, 2^27)")
}

fn ignored_records(ranks: &[RankBuilder], kind: fn(u32) -> String) -> Vec<IgnoredRecords> {
    let mut counts = std::collections::BTreeMap::new();
    for (number, count) in ranks.iter().flat_map(|rank| &rank.ignored) {
        *counts.entry(*number).or_insert(0) += count;
    }
    counts.into_iter().map(|(number, count)| IgnoredRecords { kind: kind(number), count }).collect()
}
