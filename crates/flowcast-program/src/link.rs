//! Joins the ranks' streams into a program: each send gets the slot that it fills, and each collective its number.
//!
//! Messages match first in, first out for each sender, receiver, tag and communicator, as MPI guarantees. The k-th send of a
//! channel therefore fills the k-th receive posted for it, and one counter for each channel is enough.

mod collectives;

use std::collections::BTreeMap;

use super::{
    ReadOptions, TraceError,
    access::Access,
    build::{Channel, RankBuilder, RecordFault},
    key_map::KeyMap,
    opcodes::{self, MAX_PAYLOAD, Op},
    parallel::for_each_mut,
    program::{
        CollectiveCall, Communicator, IgnoredRecords, MessageClass, Program, RankStream,
        RecordSources, StreamWords,
    },
    slot::Slot,
};
use collectives::{Instances, check_collectives, executions_of_several_roots, number_calls};
use flowcast_units::{Bytes, Rank, Time};

/// Content of a trace, as a reader found it.
pub struct ProgramParts {
    /// Name of the application.
    pub name: String,
    /// Builders, one for each rank.
    pub ranks: Vec<RankBuilder>,
    /// Communicators that collectives name.
    pub communicators: Vec<Communicator>,
    /// Returns the format's name for ignored records, by the number of their kind.
    pub ignored_kind: fn(u32) -> String,
    /// Places of the records in the text.
    pub source: Option<RecordSources>,
    /// Task and thread of each rank; empty if each task has one thread.
    pub threads: Vec<(u32, u32)>,
}

/// Builds a program from ranks that are generated one by one rather than read.
///
/// # Errors
/// [`TraceError::Limit`] if there are more messages than can be numbered.
pub fn link_generated(
    name: &str,
    ranks: u32,
    build: impl Fn(Rank) -> Result<RankBuilder, RecordFault>,
) -> Result<Program, TraceError> {
    const TOO_MANY: TraceError =
        TraceError::Limit("more messages of a rank than can be numbered (2^27)");
    let parts = ProgramParts {
        name: name.to_owned(),
        ranks: (0..ranks)
            .map(|rank| build(Rank(rank)).map_err(|_| TOO_MANY))
            .collect::<Result<_, _>>()?,
        communicators: Vec::new(),
        ignored_kind: |_| String::new(),
        source: None,
        threads: Vec::new(),
    };
    link(parts, ReadOptions::default())
}

/// Joins the parts into a program.
///
/// # Errors
/// A peer out of range, a send or receive without its counterpart, a collective on an unknown communicator or not called by
/// all its members, each with its record. Also a computation that is longer than [`Time::LONGEST`] or not a valid time.
pub fn link(parts: ProgramParts, options: ReadOptions) -> Result<Program, TraceError> {
    let tables = LinkTables::new(&parts)?;
    let truncated = tables.count_truncated(&parts.ranks);
    let mut program = Program {
        name: parts.name,
        bytes: Bytes(
            parts
                .ranks
                .iter()
                .map(RankBuilder::bytes)
                .fold(0, u64::saturating_add),
        ),
        ignored: ignored_records(&parts.ranks, parts.ignored_kind),
        streams: Vec::with_capacity(parts.ranks.len()),
        slots: tables.slots,
        classes: tables.classes.keys().collect(),
        calls: tables.calls.keys().collect(),
        communicators: parts.communicators,
        instances: tables.instances,
        self_messages: tables.self_messages,
        events: tables.events.keys().collect(),
        accesses: tables.accesses.keys().collect(),
        source: parts.source,
        threads: parts.threads,
        ..Program::default()
    };
    let awaited_sends: Vec<u32> = parts.ranks.iter().map(|rank| rank.awaited_sends).collect();
    let words = parts.ranks.into_iter().map(|rank| rank.words);
    let jobs = words.enumerate().map(|(rank, words)| (rank, words, 0));
    let mut jobs: Vec<(usize, Vec<u32>, usize)> = jobs.collect();
    let (patches, posted) = (&tables.patches, &tables.posted);
    for_each_mut(&mut jobs, options.threads, |(rank, words, end)| {
        *end = patches[*rank].apply(posted, words);
    });
    for (((rank, words, end), first_slot), awaited_sends) in
        jobs.into_iter().zip(tables.first_slots).zip(awaited_sends)
    {
        if end < words.len() {
            return Err(no_duration(rank));
        }
        program.streams.push(RankStream {
            words: StreamWords::Owned(words),
            first_slot,
            awaited_sends,
        });
    }
    check_collectives(&program)?;
    let several = executions_of_several_roots(&program);
    for (kind, count) in [(TRUNCATED, truncated), (SEVERAL_ROOTS, several)] {
        if count > 0 {
            program.ignored.push(IgnoredRecords {
                kind: kind.to_owned(),
                count,
            });
        }
    }
    Ok(program)
}

const TRUNCATED: &str =
    "sends that are larger than any receive of their channel; the size of the send counts";
const SEVERAL_ROOTS: &str = "executions of collectives whose ranks disagree on the root; if several ranks call themselves \
                             the root, the last of them counts";

/// Tables of the program, and the numbers in them that replace the ranks' own numbers.
#[derive(Default)]
struct LinkTables {
    classes: KeyMap<MessageClass>,
    calls: KeyMap<CollectiveCall>,
    events: KeyMap<(i64, i64)>,
    accesses: KeyMap<Access>,
    instances: Vec<u32>,
    slots: u32,
    self_messages: bool,
    /// Size of the largest receive of each channel with a larger send, by the sender and its number of the channel.
    rooms: BTreeMap<(Rank, u32), Bytes>,
    first_slots: Vec<Slot>,
    posted: Vec<PostedSlots>,
    patches: Vec<Patch>,
}

/// Replacements for the numbers in one rank's stream.
struct Patch {
    /// Class and sending channel of each route.
    routes: Box<[(u32, u32)]>,
    /// Position of the slots that the sends of each channel fill.
    targets: Box<[SlotPosition]>,
    calls: Box<[(u32, u32)]>,
    /// First instance on the communicator of each of the rank's collective counters.
    first_instances: Box<[u32]>,
    events: Vec<u32>,
    accesses: Vec<u32>,
}

/// A position in the posted slots of a receiver.
#[derive(Debug, Clone, Copy)]
struct SlotPosition {
    receiver: Rank,
    next: u32,
}

/// A channel of a sender, seen from its receiver.
struct Incoming {
    /// Channel with the sender as its peer.
    channel: Channel,
    /// Number of the channel at the sender.
    number: u32,
    sends: u32,
    /// Size of the largest send.
    largest: Bytes,
}

impl LinkTables {
    fn new(parts: &ProgramParts) -> Result<LinkTables, TraceError> {
        let ranks = &parts.ranks;
        let instances = Instances::new(parts, &|rank, record| record_place(parts, rank, record))?;
        let mut tables = LinkTables {
            first_slots: Vec::with_capacity(ranks.len()),
            posted: Vec::with_capacity(ranks.len()),
            patches: Vec::with_capacity(ranks.len()),
            ..LinkTables::default()
        };
        for rank in ranks {
            tables.first_slots.push(Slot(tables.slots));
            let posts = u32::try_from(rank.posts.len()).ok();
            tables.slots = posts
                .and_then(|posts| tables.slots.checked_add(posts))
                .ok_or_else(too_many_messages)?;
        }
        let mut incoming: Vec<Vec<Incoming>> = ranks.iter().map(|_| Vec::new()).collect();
        for (number, rank) in numbered(ranks) {
            let (routes, channels) = number_routes(rank, &mut tables.classes)?;
            let sends = count_sends(rank, &routes, channels.len());
            let mut largest = vec![Bytes(0); channels.len()];
            for ((_, channel), route) in routes.iter().zip(rank.routes.keys()) {
                largest[*channel as usize] = largest[*channel as usize].max(route.class.size);
            }
            for (((place, channel), sends), largest) in
                (0..).zip(channels.keys()).zip(sends).zip(largest)
            {
                let to = incoming
                    .get_mut(channel.peer.index())
                    .ok_or_else(|| peer_out_of_range(parts, number, channel))?;
                tables.self_messages |= channel.peer == number;
                to.push(Incoming {
                    channel: Channel {
                        peer: number,
                        ..channel
                    },
                    number: place,
                    sends,
                    largest,
                });
            }
            tables.patches.push(Patch {
                routes,
                targets: vec![
                    SlotPosition {
                        receiver: Rank(0),
                        next: 0
                    };
                    channels.len()
                ]
                .into(),
                calls: number_calls(rank, &instances.index, &mut tables.calls),
                first_instances: rank
                    .collective_counts()
                    .map(|(id, _)| instances.first(id))
                    .collect(),
                events: tables.events.numbers(rank.beyond_messages().events.keys()),
                accesses: tables
                    .accesses
                    .numbers(rank.beyond_messages().accesses.keys()),
            });
        }
        // The incoming channels of a receiver are dropped after they are matched, so that not all channels and all slots
        // exist at the same time.
        for (receiver, incoming) in (0..).map(Rank).zip(incoming) {
            let first_slot = tables.first_slots[receiver.index()];
            tables
                .posted
                .push(PostedSlots::new(&ranks[receiver.index()], first_slot));
            tables.match_receiver(parts, receiver, &incoming)?;
        }
        tables.instances = instances.communicator;
        if tables
            .events
            .len()
            .max(tables.calls.len())
            .max(tables.accesses.len())
            > MAX_PAYLOAD as usize
        {
            return Err(too_many_messages());
        }
        Ok(tables)
    }

    /// Finds the slots posted for each channel into a receiver. Matching proceeds receiver by receiver, because one
    /// receiver's table then stays in the cache while all its senders look into it.
    fn match_receiver(
        &mut self,
        parts: &ProgramParts,
        receiver: Rank,
        incoming: &[Incoming],
    ) -> Result<(), TraceError> {
        let rank = &parts.ranks[receiver.index()];
        let mut matched = vec![false; rank.channels.len()];
        for Incoming {
            channel: wanted,
            number,
            sends,
            largest,
        } in incoming
        {
            let sender = wanted.peer;
            let channel = Channel {
                peer: receiver,
                ..*wanted
            };
            let own = rank.channels.get(wanted);
            let (next, posts) = own.map_or((0, 0), |own| self.posted[receiver.index()].slots(own));
            if posts != *sends {
                let (rank, channel) = if posts < *sends {
                    (sender, channel)
                } else {
                    (receiver, *wanted)
                };
                return Err(unmatched(
                    parts,
                    rank,
                    channel,
                    *sends as usize,
                    posts as usize,
                ));
            }
            self.patches[sender.index()].targets[*number as usize] =
                SlotPosition { receiver, next };
            if let Some(own) = own {
                matched[own as usize] = true;
                let room = rank.largest_receives.get(own as usize).copied().flatten();
                if let Some(room) = room.filter(|room| *largest > *room) {
                    self.rooms.insert((sender, *number), room);
                }
            }
        }
        match matched.iter().position(|matched| !matched) {
            Some(own) => Err(never_sent(parts, receiver, own as u32)),
            None => Ok(()),
        }
    }

    /// Number of sends that are larger than any receive of their channel.
    fn count_truncated(&self, ranks: &[RankBuilder]) -> u64 {
        if self.rooms.is_empty() {
            return 0;
        }
        let mut truncated = 0;
        for ((sender, rank), patch) in numbered(ranks).zip(&self.patches) {
            let routes = rank.routes.keys().zip(&rank.route_sends);
            for ((route, sends), (_, channel)) in routes.zip(patch.routes.iter()) {
                let room = self.rooms.get(&(sender, *channel));
                if room.is_some_and(|room| route.class.size > *room) {
                    truncated += u64::from(*sends);
                }
            }
        }
        truncated
    }
}

/// Error for a computation that readers do not accept; decoding of the stream stops there.
fn no_duration(rank: usize) -> TraceError {
    TraceError::At {
        place: format!("rank {rank}"),
        found: "a computation with an invalid or too long time".to_owned(),
        expected: format!(
            "times of at most {}: look for a time, a factor or a rate that is too large or too small",
            Time::LONGEST
        ),
    }
}

impl Patch {
    /// Replaces the numbers. Returns the end of the instructions, which is before the end of the words if one is invalid.
    fn apply(&self, posted: &[PostedSlots], words: &mut [u32]) -> usize {
        let mut targets = self.targets.clone();
        let mut at = 0;
        while let Some((op, after)) = opcodes::decode(words, at) {
            match op {
                Op::Send { class: route, .. } => {
                    let (class, channel) = self.routes[route as usize];
                    let target = &mut targets[channel as usize];
                    let slot = posted[target.receiver.index()].slots[target.next as usize];
                    target.next += 1;
                    opcodes::patch_send(words, at, class, slot);
                }
                Op::Collective { call, instance } => {
                    let (number, counter) = self.calls[call as usize];
                    opcodes::patch(
                        words,
                        at,
                        number,
                        Some(self.first_instances[counter as usize] + instance),
                    );
                }
                Op::WaitCollective(instance) => {
                    let counter = words[at] & MAX_PAYLOAD;
                    opcodes::patch(
                        words,
                        at,
                        0,
                        Some(self.first_instances[counter as usize] + instance),
                    );
                }
                Op::Event(event) => opcodes::patch(words, at, self.events[event as usize], None),
                Op::Access(access) => {
                    opcodes::patch(words, at, self.accesses[access as usize], None)
                }
                _ => {}
            }
            at = after;
        }
        at
    }
}

/// Slots of a receiver, ordered by channel and then by posting.
struct PostedSlots {
    starts: Box<[u32]>,
    slots: Box<[Slot]>,
}

impl PostedSlots {
    fn new(rank: &RankBuilder, first_slot: Slot) -> PostedSlots {
        let channels = rank.channels.len();
        let mut starts = vec![0; channels + 1];
        for channel in &rank.posts {
            starts[*channel as usize + 1] += 1;
        }
        for channel in 0..channels {
            starts[channel + 1] += starts[channel];
        }
        let mut next = starts.clone();
        let mut slots = vec![Slot(0); rank.posts.len()];
        for (post, channel) in rank.posts.iter().enumerate() {
            slots[next[*channel as usize] as usize] = Slot(first_slot.0.wrapping_add(post as u32));
            next[*channel as usize] += 1;
        }
        PostedSlots {
            starts: starts.into(),
            slots: slots.into(),
        }
    }

    /// Start and number of a channel's slots.
    fn slots(&self, channel: u32) -> (u32, u32) {
        let (start, end) = (
            self.starts[channel as usize],
            self.starts[channel as usize + 1],
        );
        (start, end - start)
    }
}

type NumberedRoutes = (Box<[(u32, u32)]>, KeyMap<Channel>);

fn number_routes(
    rank: &RankBuilder,
    classes: &mut KeyMap<MessageClass>,
) -> Result<NumberedRoutes, TraceError> {
    let mut channels = KeyMap::with_capacity(rank.routes.len());
    let mut routes = Vec::with_capacity(rank.routes.len());
    for route in rank.routes.keys() {
        let class = classes.number(route.class);
        if class > MAX_PAYLOAD {
            return Err(too_many_messages());
        }
        routes.push((class, channels.number(route.channel())));
    }
    Ok((routes.into(), channels))
}

/// Number of sends on each channel.
fn count_sends(rank: &RankBuilder, routes: &[(u32, u32)], channels: usize) -> Vec<u32> {
    let mut counts = vec![0; channels];
    for ((_, channel), sends) in routes.iter().zip(&rank.route_sends) {
        counts[*channel as usize] += sends;
    }
    counts
}

/// Error for a channel on which a rank receives and no rank sends.
fn never_sent(parts: &ProgramParts, rank: Rank, number: u32) -> TraceError {
    let channel = parts.ranks[rank.index()].channels.key(number);
    if channel.peer.index() >= parts.ranks.len() {
        return peer_out_of_range(parts, rank, channel);
    }
    let posted = parts.ranks[rank.index()]
        .posts
        .iter()
        .filter(|post| **post == number)
        .count();
    unmatched(parts, rank, channel, 0, posted)
}

fn record_place(parts: &ProgramParts, rank: Rank, record: u32) -> String {
    let line = parts
        .source
        .as_ref()
        .and_then(|source| source.line(rank, record));
    line.unwrap_or_else(|| format!("rank {rank}, record {record}"))
}

/// Record of the n-th send of a rank on a channel.
fn nth_send(builder: &RankBuilder, channel: Channel, n: usize) -> u32 {
    let sends = opcodes::iterate(&builder.words).filter(|(_, op)| match op {
        Op::Send { class: route, .. } => builder.routes.key(*route).channel() == channel,
        _ => false,
    });
    sends.map(|(record, _)| record).nth(n).unwrap_or(0)
}

/// Record of the n-th receive that a rank posts on a channel.
fn nth_post(builder: &RankBuilder, channel: Channel, n: usize) -> u32 {
    let number = builder.channels.get(&channel);
    let posts =
        opcodes::iterate(&builder.words).filter(|(_, op)| matches!(op, Op::Recv | Op::Irecv));
    let on_channel = posts
        .zip(&builder.posts)
        .filter(|(_, post)| Some(**post) == number);
    on_channel
        .map(|((record, _), _)| record)
        .nth(n)
        .unwrap_or(0)
}

/// Error for a channel of a rank whose numbers of sends and receives differ: a send, or a receive, of the rank is unmatched.
fn unmatched(
    parts: &ProgramParts,
    rank: Rank,
    channel: Channel,
    sends: usize,
    recvs: usize,
) -> TraceError {
    let Channel {
        peer,
        tag,
        communicator,
    } = channel;
    let builder = &parts.ranks[rank.index()];
    let on = format!("rank {peer} (tag {tag}, communicator {communicator})");
    let counted = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    let (sent, received) = (counted(sends, "send"), counted(recvs, "receive"));
    let (record, found, expected) = if sends > recvs {
        (
            nth_send(builder, channel, recvs),
            format!("{sent} from rank {rank} to {on} and {received}"),
            "a receive for each send".to_owned(),
        )
    } else {
        (
            nth_post(builder, channel, sends),
            format!("{received} of rank {rank} from {on} and {sent}"),
            "a send for each receive".to_owned(),
        )
    };
    TraceError::At {
        place: record_place(parts, rank, record),
        found,
        expected,
    }
}

fn peer_out_of_range(parts: &ProgramParts, rank: Rank, channel: Channel) -> TraceError {
    let builder = &parts.ranks[rank.index()];
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

/// Pairs each element with its rank.
fn numbered<T>(of_ranks: &[T]) -> impl Iterator<Item = (Rank, &T)> {
    (0..).map(Rank).zip(of_ranks)
}

fn too_many_messages() -> TraceError {
    TraceError::Limit(
        "more messages, message kinds or events than a compiled trace can number (2^32, 2^27, 2^27)",
    )
}

fn ignored_records(ranks: &[RankBuilder], kind: fn(u32) -> String) -> Vec<IgnoredRecords> {
    let mut counts = BTreeMap::new();
    for (number, count) in ranks
        .iter()
        .flat_map(|rank| &rank.beyond_messages().ignored)
    {
        *counts.entry(*number).or_insert(0) += count;
    }
    counts
        .into_iter()
        .map(|(number, count)| IgnoredRecords {
            kind: kind(number),
            count,
        })
        .collect()
}
