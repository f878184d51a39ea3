//! Conversion of records to an instruction stream, one rank at a time and independent of the other ranks.

use super::{
    access::Access,
    key_map::KeyMap,
    program::{CollectiveCall, CollectiveMode, MessageClass, SendMode},
    slot::Slot,
};
use std::{
    collections::VecDeque,
    hash::{Hash, Hasher},
};

use super::opcodes::{self, MAX_PAYLOAD, Op, Record};
use flowcast_units::{Bytes, CollectiveOp, Rank, Time};

/// A sequence of messages that MPI keeps in order: same peer, tag and communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    /// The rank at the other end.
    pub peer: Rank,
    /// Tag by which MPI matches messages.
    pub tag: i32,
    /// Communicator, by its number in the trace.
    pub communicator: i32,
}

// Two words to hash instead of one for each field: each record of a trace needs a look-up.
impl Hash for Channel {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.peer.0) | u64::from(self.tag as u32) << 32);
        state.write_u32(self.communicator as u32);
    }
}

/// Channel and class of a send in one key, so that one look-up finds both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatchRoute {
    pub peer: Rank,
    pub class: MessageClass,
}

impl Hash for MatchRoute {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let MessageClass {
            size,
            tag,
            communicator,
            mode,
        } = self.class;
        let mode = u64::from(mode.synchronous)
            | u64::from(mode.non_blocking) << 1
            | u64::from(mode.persistent) << 2;
        state.write_u64(u64::from(self.peer.0) | u64::from(tag as u32) << 32);
        state.write_u64(size.0 ^ (u64::from(communicator as u32) << 30) ^ (mode << 61));
    }
}

impl MatchRoute {
    pub(crate) fn channel(&self) -> Channel {
        Channel {
            peer: self.peer,
            tag: self.class.tag,
            communicator: self.class.communicator,
        }
    }
}

/// A collective call that names its communicator by the number in the trace.
pub type CallRecord = CollectiveCall<i32>;

impl CallRecord {
    /// A call that moves no data and has no root.
    pub const fn barrier(communicator: i32, mode: CollectiveMode) -> CallRecord {
        CallRecord {
            op: CollectiveOp::Barrier,
            communicator,
            mode,
            is_root: false,
            root: None,
            send: Bytes(0),
            recv: Bytes(0),
        }
    }
}

/// Reason why a record is invalid at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// A wait for a receive that was not posted.
    WaitWithoutReceive,
    /// A wait for a send that was not started.
    WaitWithoutSend,
    /// A wait for a collective that was not started.
    WaitWithoutCollective,
    /// More distinct records than the compiled form can number.
    TooMany,
}

impl RecordFault {
    /// Returns the found content and the expected content, for error messages.
    pub const fn found_and_expected(self) -> (&'static str, &'static str) {
        let before = match self {
            RecordFault::WaitWithoutReceive => {
                "an earlier non-blocking receive with the same source, tag and communicator"
            }
            RecordFault::WaitWithoutSend => {
                "an earlier non-blocking send with the same destination and tag"
            }
            RecordFault::WaitWithoutCollective => "an earlier non-blocking collective",
            RecordFault::TooMany => {
                return (
                    "more distinct records than a compiled trace can number (134,217,727)",
                    "fewer",
                );
            }
        };
        ("a wait", before)
    }
}

/// Builds one rank's stream. A trace can have a million ranks, so a builder needs little memory beyond its instructions.
///
/// ```
/// use flowcast_program::ReadOptions;
/// use flowcast_program::build::{Channel, EAGER, RankBuilder};
/// use flowcast_program::link::{ProgramParts, link};
/// use flowcast_program::opcodes::Record;
/// use flowcast_program::program::MessageClass;
/// use flowcast_units::{Bytes, Rank, Time};
///
/// let class = MessageClass { size: Bytes(8), tag: 0, communicator: 1, mode: EAGER };
/// let mut sender = RankBuilder::default();
/// sender.compute(Time::from_micros(1.0));
/// sender.send(Rank(1), class, Record::Begins).unwrap();
/// let mut receiver = RankBuilder::default();
/// let channel = receiver.channel(Channel { peer: Rank(0), tag: 0, communicator: 1 });
/// receiver.recv(channel, Record::Begins).unwrap();
/// let parts = ProgramParts {
///     name: "pair".into(),
///     ranks: vec![sender, receiver],
///     communicators: Vec::new(),
///     ignored_kind: |_| String::new(),
///     source: None,
///     threads: Vec::new(),
/// };
/// let program = link(parts, ReadOptions::default())?;
/// assert_eq!((program.ranks(), program.messages()), (2, 1));
/// # Ok::<(), flowcast_program::TraceError>(())
/// ```
#[derive(Debug, Default)]
pub struct RankBuilder {
    pub(super) words: Vec<u32>,
    pub(super) routes: KeyMap<MatchRoute>,
    /// Number of sends on each route.
    pub(super) route_sends: Vec<u32>,
    pub(super) sends: u32,
    /// Number of its last sends that the rank may still wait for.
    pub(super) awaited_sends: u32,
    pub(super) channels: KeyMap<Channel>,
    /// Channel of each posted receive.
    pub(super) posts: Vec<u32>,
    /// Non-blocking receives that have not been waited for, indexed by channel.
    pending: Vec<PendingReceives>,
    /// Largest receive of each channel, if the trace contains it.
    pub(super) largest_receives: Vec<Option<Bytes>>,
    beyond_messages: Option<Box<BeyondMessages>>,
}

/// Instructions of a rank other than computation and messages.
#[derive(Debug, Default)]
pub(super) struct BeyondMessages {
    pub(super) calls: KeyMap<CallRecord>,
    started_collectives: VecDeque<(i32, u32)>,
    /// All non-blocking collectives in the order of their start.
    immediates: Vec<(i32, u32)>,
    collectives_on: KeyMap<i32>,
    collective_counts: Vec<u32>,
    pub(super) events: KeyMap<(i64, i64)>,
    pub(super) accesses: KeyMap<Access>,
    pub(super) ignored: Vec<(u32, u64)>,
}

static NOTHING_BEYOND: BeyondMessages = BeyondMessages {
    calls: KeyMap::new(),
    started_collectives: VecDeque::new(),
    immediates: Vec::new(),
    collectives_on: KeyMap::new(),
    collective_counts: Vec::new(),
    events: KeyMap::new(),
    accesses: KeyMap::new(),
    ignored: Vec::new(),
};

/// A queue that usually holds one slot, which needs no allocated memory.
#[derive(Debug, Default, Clone)]
struct PendingReceives {
    first: Option<u32>,
    rest: VecDeque<u32>,
}

impl PendingReceives {
    #[inline]
    fn push(&mut self, slot: u32) {
        match self.first {
            None => self.first = Some(slot),
            Some(_) => self.rest.push_back(slot),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        let next = self.rest.pop_front();
        std::mem::replace(&mut self.first, next)
    }
}

impl RankBuilder {
    /// Instructions of the rank other than computation and messages.
    pub(super) fn beyond_messages(&self) -> &BeyondMessages {
        self.beyond_messages.as_deref().unwrap_or(&NOTHING_BEYOND)
    }

    fn further(&mut self) -> &mut BeyondMessages {
        self.beyond_messages.get_or_insert_default()
    }

    /// Ends the stream and frees the memory reserved for further instructions.
    pub fn finish(&mut self) {
        self.words.shrink_to_fit();
        self.posts.shrink_to_fit();
        self.routes.shrink_to_fit();
        self.channels.shrink_to_fit();
        self.pending = Vec::new();
    }

    /// Appends a computation of this time as a record of its own.
    #[inline]
    pub fn compute(&mut self, time: Time) {
        self.push(Op::Compute(time), Record::Begins);
    }

    /// Appends a computation that belongs to the record before it.
    pub fn compute_further(&mut self, time: Time) {
        self.push(Op::Compute(time), Record::Continues);
    }

    /// Appends a computation on an accelerator.
    pub fn accelerator(&mut self, time: Time) {
        self.push(Op::Accelerator(time), Record::Begins);
    }

    /// Appends a record without effect on time.
    #[inline]
    pub fn nothing(&mut self) {
        self.push(Op::Nothing, Record::Begins);
    }

    /// Appends a send. Returns its route, with which [`RankBuilder::send_again`] repeats it.
    ///
    /// # Errors
    /// [`RecordFault::TooMany`] if there are more routes than can be numbered.
    #[inline]
    pub fn send(
        &mut self,
        to: Rank,
        class: MessageClass,
        record: Record,
    ) -> Result<u32, RecordFault> {
        let route = self.routes.number(MatchRoute { peer: to, class });
        if route > MAX_PAYLOAD {
            return Err(RecordFault::TooMany);
        }
        if route as usize == self.route_sends.len() {
            self.route_sends.push(0);
        }
        self.send_again(route, record);
        Ok(route)
    }

    /// Appends a send on a known route.
    #[inline]
    pub fn send_again(&mut self, route: u32, record: Record) {
        self.route_sends[route as usize] += 1;
        self.sends += 1;
        self.push(
            Op::Send {
                class: route,
                slot: Slot(0),
            },
            record,
        );
    }

    /// Returns the number of a channel, new or known.
    #[inline]
    pub fn channel(&mut self, channel: Channel) -> u32 {
        self.channels.number(channel)
    }

    /// Records the size of a receive on the channel. The largest size is kept.
    pub fn has_room(&mut self, channel: u32, size: Bytes) {
        let at = channel as usize;
        if self.largest_receives.len() <= at {
            self.largest_receives.resize(at + 1, None);
        }
        self.largest_receives[at] = self.largest_receives[at].max(Some(size));
    }

    /// Appends a blocking receive on a channel.
    #[inline]
    pub fn recv(&mut self, channel: u32, record: Record) -> Result<(), RecordFault> {
        self.post(channel)?;
        self.push(Op::Recv, record);
        Ok(())
    }

    /// Appends a non-blocking receive, for which `wait_recv` on the same channel waits.
    #[inline]
    pub fn irecv(&mut self, channel: u32) -> Result<(), RecordFault> {
        let slot = self.irecv_waited_by_slot(channel)?;
        if self.pending.len() <= channel as usize {
            self.pending
                .resize_with(channel as usize + 1, PendingReceives::default);
        }
        self.pending[channel as usize].push(slot);
        Ok(())
    }

    /// Appends a non-blocking receive that the caller waits for by its slot. Returns the slot.
    #[inline]
    pub fn irecv_waited_by_slot(&mut self, channel: u32) -> Result<u32, RecordFault> {
        self.irecv_again(channel, Record::Begins)
    }

    /// Appends a receive like [`RankBuilder::irecv_waited_by_slot`], as a record or as a further part of the record before
    /// it.
    #[inline]
    pub(crate) fn irecv_again(&mut self, channel: u32, record: Record) -> Result<u32, RecordFault> {
        let slot = self.post(channel)?;
        self.push(Op::Irecv, record);
        Ok(slot)
    }

    /// Number of receives so far, which is the slot of the next one.
    pub fn received(&self) -> u32 {
        self.posts.len() as u32
    }

    /// Appends an instruction.
    #[inline(always)]
    pub(super) fn push(&mut self, op: Op, record: Record) {
        opcodes::push(&mut self.words, op, record);
    }

    #[inline]
    fn post(&mut self, channel: u32) -> Result<u32, RecordFault> {
        let slot = self.posts.len() as u32;
        if slot > MAX_PAYLOAD {
            return Err(RecordFault::TooMany);
        }
        self.posts.push(channel);
        Ok(slot)
    }

    /// Appends a wait for the oldest non-blocking receive of a channel that has not been waited for.
    ///
    /// # Errors
    /// [`RecordFault::WaitWithoutReceive`] if there is no such receive.
    #[inline]
    pub fn wait_recv(&mut self, channel: u32) -> Result<(), RecordFault> {
        let slot = self
            .pending
            .get_mut(channel as usize)
            .and_then(PendingReceives::pop)
            .ok_or(RecordFault::WaitWithoutReceive)?;
        self.push(Op::WaitRecv(slot), Record::Begins);
        Ok(())
    }

    /// Appends a wait for the receive in a slot of this rank.
    pub fn wait_slot(&mut self, slot: u32, record: Record) {
        self.push(Op::WaitRecv(slot), record);
    }

    /// Number of sends so far, which is the number of the next one.
    pub fn sends(&self) -> u32 {
        self.sends
    }

    /// Appends a wait for a send, by its number.
    pub fn wait_send(&mut self, number: u32, record: Record) -> Result<(), RecordFault> {
        let ago = self.sends - 1 - number;
        if ago > MAX_PAYLOAD {
            return Err(RecordFault::TooMany);
        }
        self.awaited_sends = self.awaited_sends.max(ago + 1);
        self.push(Op::WaitSend(ago), record);
        Ok(())
    }

    /// Appends a collective call. Its `instance` is the number of the execution on its communicator. Linking replaces it by
    /// the number among the executions of all communicators.
    pub fn collective(&mut self, call: CallRecord) -> Result<(), RecordFault> {
        self.further_collective(call, Record::Begins)
    }

    /// Appends a call like [`RankBuilder::collective`], as a record or as a further part of the record before it.
    pub fn further_collective(
        &mut self,
        call: CallRecord,
        record: Record,
    ) -> Result<(), RecordFault> {
        let further = self.further();
        let number = further.calls.number(call);
        if number > MAX_PAYLOAD {
            return Err(RecordFault::TooMany);
        }
        let on = further.collectives_on.number(call.communicator) as usize;
        if on == further.collective_counts.len() {
            further.collective_counts.push(0);
        }
        let instance = further.collective_counts[on];
        further.collective_counts[on] += 1;
        if call.is_non_blocking() {
            further
                .started_collectives
                .push_back((call.communicator, instance));
            further.immediates.push((call.communicator, instance));
        }
        self.push(
            Op::Collective {
                call: number,
                instance,
            },
            record,
        );
        Ok(())
    }

    /// Appends a wait for the oldest non-blocking collective that has not been waited for.
    ///
    /// # Errors
    /// [`RecordFault::WaitWithoutCollective`] if there is no such collective.
    pub fn wait_collective(&mut self) -> Result<(), RecordFault> {
        let oldest = self
            .further()
            .started_collectives
            .pop_front()
            .ok_or(RecordFault::WaitWithoutCollective)?;
        self.wait_instance(oldest);
        Ok(())
    }

    /// Number of non-blocking collectives that have been started.
    pub fn immediates(&self) -> u32 {
        self.beyond_messages().immediates.len() as u32
    }

    /// Appends a wait for a non-blocking collective by its number, in the order of their starts. A stream contains either
    /// such waits or waits by [`RankBuilder::wait_collective`], not both.
    pub fn wait_immediate(&mut self, number: u32) {
        self.wait_instance(self.beyond_messages().immediates[number as usize]);
    }

    fn wait_instance(&mut self, (communicator, instance): (i32, u32)) {
        // The payload names for linking the communicator on which the instance is counted.
        let on = self.further().collectives_on.number(communicator);
        let at = self.words.len();
        self.push(Op::WaitCollective(instance), Record::Begins);
        opcodes::patch(&mut self.words, at, on, None);
    }

    /// Appends an event of the trace.
    #[inline]
    pub fn event(&mut self, kind: i64, value: i64) -> Result<(), RecordFault> {
        let number = self.further().events.number((kind, value));
        if number > MAX_PAYLOAD {
            return Err(RecordFault::TooMany);
        }
        self.push(Op::Event(number), Record::Begins);
        Ok(())
    }

    /// Appends a one-sided or file operation.
    pub fn access(&mut self, access: Access, record: Record) -> Result<(), RecordFault> {
        let number = self.further().accesses.number(access);
        if number > MAX_PAYLOAD {
            return Err(RecordFault::TooMany);
        }
        self.push(Op::Access(number), record);
        Ok(())
    }

    /// Appends a record that is counted and left out, by the number of its kind.
    pub fn ignored(&mut self, kind: u32) {
        self.push(Op::Ignored(kind & MAX_PAYLOAD), Record::Begins);
        self.count(kind);
    }

    /// Counts a record that is not modelled in full, by the number of its kind.
    pub fn count(&mut self, kind: u32) {
        let ignored = &mut self.further().ignored;
        match ignored.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => ignored.push((kind, 1)),
        }
    }

    /// Total size of all sends, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.routes
            .keys()
            .zip(&self.route_sends)
            .map(|(route, sends)| route.class.size.0.saturating_mul(u64::from(*sends)))
            .fold(0, u64::saturating_add)
    }

    /// Index of the counter of collectives on a communicator, and the number of executions there.
    pub fn collectives_on(&self, communicator: i32) -> Option<(u32, u32)> {
        let further = self.beyond_messages();
        let counter = further.collectives_on.get(&communicator)?;
        Some((counter, further.collective_counts[counter as usize]))
    }

    /// Number of executions of collectives on each communicator.
    pub(crate) fn collective_counts(&self) -> impl Iterator<Item = (i32, u32)> + '_ {
        let BeyondMessages {
            collectives_on,
            collective_counts,
            ..
        } = self.beyond_messages();
        collectives_on.keys().zip(collective_counts.iter().copied())
    }
}

/// Mode of a blocking, eager send.
pub const EAGER: SendMode = SendMode {
    synchronous: false,
    non_blocking: false,
    persistent: false,
};

/// Mode of a send during which the rank continues.
pub const NON_BLOCKING: SendMode = SendMode {
    non_blocking: true,
    ..EAGER
};
