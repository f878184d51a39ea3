//! Functions that a program called, where a replay carries them out by other functions.
//!
//! An event of the trace names the calls from its place to the next event. Without events, the records decide. A record is
//! an `MPI_Sendrecv` in two cases: the rank sends in it and waits until the message has left, or it receives in it after a
//! send. Either partner may be missing (`MPI_PROC_NULL`). If tasks have several threads, a blocking call is replayed as a
//! non-blocking call and a wait, both in one record.

use std::collections::BTreeMap;

use super::Function;
use flowcast_program::{
    expand::operation_of,
    opcodes::Op,
    paraver_events::{CALLED, FunctionNumber, MPI_EVENTS, function},
    program::{CollectiveCall, CollectiveMode, MessageClass, Program},
    slot::Slot,
};
use flowcast_units::Rank;

/// The calls of a program.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnCalls {
    sent_by_sendrecv: SlotSet,
    received_by_sendrecv: SlotSet,
    /// Messages of threads' blocking sends, which are replayed as non-blocking sends and waits; `received_by_recv` has the
    /// messages of blocking receives.
    sent_by_send: SlotSet,
    received_by_recv: SlotSet,
    /// Function of each execution of a collective, indexed by execution; `None` if threads of a rank wait for each other,
    /// which is not a call.
    collectives: Vec<Option<Function>>,
    /// Call that an event marks, or `None` at the end of a call, keyed by event number. Events that do not mark calls have
    /// no entry.
    marks: BTreeMap<u32, Option<MarkedCall>>,
    /// Call that the last event of each stream marks, indexed by stream.
    marked: Vec<Option<MarkedCall>>,
    /// Function that sends each message, indexed by slot, if an event names it.
    senders: Vec<Option<FunctionNumber>>,
}

/// A call, identified by the event that marks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MarkedCall {
    /// Type and value of the event.
    pub event: (i64, i64),
    /// The function, if it can occur in recordings.
    pub function: Option<FunctionNumber>,
}

/// A set of slots.
#[derive(Debug, Clone, Default)]
struct SlotSet(Vec<u64>);

impl SlotSet {
    fn insert(&mut self, slot: Slot) {
        let (word, bit) = (slot.index() / 64, slot.index() % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    fn contains(&self, slot: Slot) -> bool {
        self.0
            .get(slot.index() / 64)
            .is_some_and(|word| word >> (slot.index() % 64) & 1 == 1)
    }
}

/// Parts of one of the program's own records.
#[derive(Debug, Clone, Copy, Default)]
struct RecordParts {
    number: u32,
    is_sending: bool,
    /// `true` if the record is an `MPI_Sendrecv` that sends to no rank.
    is_empty: bool,
    /// `true` if the rank waits in the record until its last sent message has left.
    is_sent: bool,
    posted: Option<Slot>,
    received: Option<ReceivedBy>,
}

#[derive(Debug, Clone, Copy)]
enum ReceivedBy {
    /// Blocking receive after a send, or after a send to no rank.
    Behind(Slot),
    /// Posted and waited for, the only receive that is waited for.
    Posted(Slot),
    Several,
}

impl OwnCalls {
    pub(crate) fn new(program: &Program) -> OwnCalls {
        let executions = program.instances().len();
        let mut own = OwnCalls {
            collectives: vec![None; executions],
            marks: marks(program.events()),
            marked: vec![None; program.streams()],
            ..OwnCalls::default()
        };
        for rank in Rank::all(program.ranks()) {
            own.read(program, rank);
        }
        own
    }

    fn read(&mut self, program: &Program, rank: Rank) {
        let (first, threads) = (program.first_slot(rank), program.has_threads());
        let (mut next, mut sent, mut record) = (first, None, RecordParts::default());
        for (number, op) in program.ops(rank) {
            if number != record.number {
                self.name(&record, sent, threads);
                record = RecordParts {
                    number,
                    ..RecordParts::default()
                };
            }
            match op {
                Op::Event(event) => self.mark(rank, event),
                Op::Send { class, slot } => {
                    let is_own = operation_of(program.class(class)).is_none();
                    if is_own {
                        self.name_sender(rank, slot);
                    }
                    sent = is_own.then_some(slot);
                    record.is_sending = is_own;
                }
                Op::Recv => {
                    record.received =
                        (record.is_sending || record.is_empty).then_some(ReceivedBy::Behind(next));
                    next += 1;
                }
                Op::Irecv => {
                    record.posted = Some(next);
                    next += 1;
                }
                Op::WaitRecv(slot) => {
                    let is_posted = record.posted == Some(first + slot);
                    record.received = match record.received {
                        None if is_posted => Some(ReceivedBy::Posted(first + slot)),
                        _ => Some(ReceivedBy::Several),
                    };
                }
                Op::Nothing => record.is_empty = true,
                Op::WaitSend(0) => record.is_sent = true,
                Op::Collective { call, instance } => {
                    self.collectives[instance as usize] = collective(program, program.call(call));
                }
                _ => {}
            }
        }
        self.name(&record, sent, threads);
        self.marked[rank] = None;
    }

    fn name_sender(&mut self, rank: Rank, slot: Slot) {
        let Some(function) = self.function(rank) else {
            return;
        };
        if self.senders.len() <= slot.index() {
            self.senders.resize(slot.index() + 1, None);
        }
        self.senders[slot] = Some(function);
    }

    /// Records that a stream passes an event.
    pub(crate) fn mark(&mut self, stream: Rank, event: u32) {
        if let Some(call) = self.marks.get(&event) {
            self.marked[stream] = *call;
        }
    }

    /// The call that a stream's last event marks.
    pub(crate) fn marked(&self, stream: Rank) -> Option<(i64, i64)> {
        Some((*self.marked.get(stream.index())?)?.event)
    }

    /// The function that a stream's last event names.
    pub(crate) fn function(&self, stream: Rank) -> Option<FunctionNumber> {
        (*self.marked.get(stream.index())?)?.function
    }

    fn name(&mut self, record: &RecordParts, sent: Option<Slot>, threads: bool) {
        match (record.received, sent) {
            (Some(ReceivedBy::Behind(slot)), sent) => {
                self.received_by_sendrecv.insert(slot);
                if let Some(sent) = sent.filter(|_| record.is_sending) {
                    self.sent_by_sendrecv.insert(sent);
                }
            }
            (Some(ReceivedBy::Posted(slot)), Some(sent)) if threads && record.is_sent => {
                self.received_by_sendrecv.insert(slot);
                self.sent_by_sendrecv.insert(sent);
            }
            (Some(ReceivedBy::Posted(slot)), _) if threads => self.received_by_recv.insert(slot),
            (None, Some(sent)) if record.is_sending && record.is_sent => match threads {
                true => self.sent_by_send.insert(sent),
                false => self.sent_by_sendrecv.insert(sent),
            },
            _ => {}
        }
    }

    /// The call that sends a message.
    #[inline]
    pub(crate) fn send(&self, slot: Slot, class: &MessageClass) -> Function {
        match self.senders.get(slot.index()) {
            Some(Some(function)) => Function::Named(*function),
            _ => self.unnamed_send(slot, class),
        }
    }

    fn unnamed_send(&self, slot: Slot, class: &MessageClass) -> Function {
        match class.mode.non_blocking {
            _ if self.sent_by_sendrecv.contains(slot) => Function::Sendrecv,
            _ if class.mode.persistent => Function::Start,
            true if self.sent_by_send.contains(slot) => Function::Send,
            true => Function::Isend,
            false => Function::Send,
        }
    }

    /// The call in which the sender waits until a message has left.
    pub(crate) fn release(&self, slot: Slot, class: &MessageClass) -> Function {
        match self.unnamed_send(slot, class) {
            Function::Isend | Function::Start => Function::Wait,
            send => send,
        }
    }

    /// The call that receives a message. `is_posted` is `true` if another call posted the receive before.
    #[inline]
    pub(crate) fn receive(&self, slot: Slot, is_posted: bool) -> Function {
        match is_posted {
            _ if self.received_by_sendrecv.contains(slot) => Function::Sendrecv,
            true if !self.received_by_recv.contains(slot) => Function::Wait,
            _ => Function::Recv,
        }
    }

    /// The call of an execution of a collective.
    pub(crate) fn collective(&self, instance: u32) -> Option<Function> {
        self.collectives[instance as usize]
    }
}

/// Calls marked by the events of a program, keyed by event number. Only events that mark calls have an entry.
fn marks(events: &[(i64, i64)]) -> BTreeMap<u32, Option<MarkedCall>> {
    let events = (0..).zip(events.iter().copied());
    let events = events.filter(|(_, (kind, _))| *kind == CALLED || MPI_EVENTS.contains(kind));
    let call = |event: (i64, i64)| MarkedCall {
        event,
        function: function(event.0, event.1),
    };
    events
        .map(|(number, event)| (number, (event.1 != 0).then(|| call(event))))
        .collect()
}

fn collective(program: &Program, call: &CollectiveCall) -> Option<Function> {
    let communicator = program.communicator(call.communicator);
    // For a non-blocking operation, a rank meets its progress stream.
    let has_progress = communicator
        .members
        .iter()
        .any(|member| member.index() >= program.ranks());
    match call.mode {
        _ if has_progress => Some(Function::NonBlocking(call.op)),
        _ if program.is_inside_a_task(communicator) => None,
        CollectiveMode::NonBlocking => Some(Function::NonBlocking(call.op)),
        _ => Some(Function::Collective(call.op)),
    }
}
