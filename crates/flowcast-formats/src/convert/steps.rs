//! Steps of a stream for formats without communicators, RMA and I/O: peers, sizes and tags.
//!
//! The steps come from a program in memory ([`StepFile`]) or from a workload that is being generated. Operations that such
//! formats omit are counted here, so the writers only produce text.

use super::{ACCELERATOR, EVENTS, Losses, RMA_AND_IO, SYNCHRONOUS, THREADS, WriterTables};
use flowcast_program::{
    opcodes::{self, Op},
    paraver_events::CALLED,
    program::{CollectiveMode, MessageClass, SendMode},
    slot::Slot,
};
use flowcast_units::{Bytes, Rank, Time};

/// Step of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StreamStep {
    /// Computation of this duration.
    Compute(Time),
    /// Send, blocking or not according to its mode.
    Send(StepMessage),
    /// Blocking receive, which waits for the message.
    Receive(StepMessage),
    /// Non-blocking receive, which a later step awaits.
    Post(StepMessage),
    /// Wait for a non-blocking receive.
    AwaitReceive(StepMessage),
    /// Wait for a send.
    AwaitSend(StepMessage),
    /// Wait for all non-blocking operations. They began after the last blocking operation.
    AwaitAll,
    /// Collective, with the numbers of its call and of its execution.
    Collective(u32, u32),
    /// Synchronisation of a rank with its progress stream. It is non-blocking at the start of an operation.
    Meeting(Rank, CollectiveMode),
}

/// Message as seen from one of its ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepMessage {
    /// Number among the receives or among the sends of the stream.
    pub number: u32,
    /// Rank at the other end.
    pub peer: Rank,
    /// Size of the message's data.
    pub size: Bytes,
    /// Tag in the written file; see [`WriterTables::tag`].
    pub tag: u32,
    /// Mode of the send, also at the receiving end.
    pub mode: SendMode,
}

/// Iterator over the steps of a stream.
pub(super) struct StepFile<'a> {
    tables: &'a WriterTables<'a>,
    stream: Rank,
    words: &'a [u32],
    at: usize,
    received: u32,
    sent: Vec<StepMessage>,
}

impl<'a> StepFile<'a> {
    /// Starts at the first instruction.
    pub(super) fn new(tables: &'a WriterTables<'a>, stream: Rank) -> StepFile<'a> {
        StepFile {
            tables,
            stream,
            words: tables.program.words(stream),
            at: 0,
            received: 0,
            sent: Vec::new(),
        }
    }

    /// Returns the next step, and counts the operations that it skips.
    pub(super) fn next(&mut self, losses: &mut Losses) -> Option<StreamStep> {
        use Op::*;
        while let Some((op, next)) = opcodes::decode(self.words, self.at) {
            self.at = next;
            match op {
                Compute(time) => return Some(StreamStep::Compute(time)),
                Accelerator(time) => {
                    losses.count(ACCELERATOR);
                    return Some(StreamStep::Compute(time));
                }
                Send { class, slot } => {
                    return Some(StreamStep::Send(self.send(class, slot, losses)));
                }
                Recv => return Some(StreamStep::Receive(self.post())),
                Irecv => return Some(StreamStep::Post(self.post())),
                WaitRecv(slot) => return Some(StreamStep::AwaitReceive(self.incoming(slot))),
                WaitSend(ago) => {
                    return Some(StreamStep::AwaitSend(
                        self.sent[self.sent.len() - 1 - ago as usize],
                    ));
                }
                Collective { call, .. } if self.tables.is_of_threads(call) => losses.count(THREADS),
                Collective { call, instance } => return Some(self.collective(call, instance)),
                Event(event) if self.tables.program.events()[event as usize].0 != CALLED => {
                    losses.count(EVENTS)
                }
                Access(_) => losses.count(RMA_AND_IO),
                // The reader has already reported what it left out.
                WaitCollective(_) | Event(_) | Nothing | Ignored(_) => {}
            }
        }
        None
    }

    fn send(&mut self, class: u32, slot: Slot, losses: &mut Losses) -> StepMessage {
        let message = self.message(
            self.sent.len() as u32,
            self.tables.program.receiver(slot),
            self.tables.class(class),
        );
        if message.mode.synchronous {
            losses.count(SYNCHRONOUS);
        }
        self.sent.push(message);
        message
    }

    fn post(&mut self) -> StepMessage {
        self.received += 1;
        self.incoming(self.received - 1)
    }

    fn incoming(&self, number: u32) -> StepMessage {
        let (peer, class) = self
            .tables
            .message(self.tables.program.first_slot(self.stream) + number);
        self.message(number, peer, class)
    }

    fn message(&self, number: u32, peer: Rank, class: &MessageClass) -> StepMessage {
        let peer = self.tables.program.owner(peer);
        StepMessage {
            number,
            peer,
            size: class.size,
            tag: self.tables.tag(class),
            mode: class.mode,
        }
    }

    fn collective(&self, call: u32, instance: u32) -> StreamStep {
        let made = self.tables.call(call);
        let members = &self.tables.program.communicators()[made.communicator as usize].members;
        match members
            .iter()
            .find(|member| member.index() >= self.tables.program.ranks())
        {
            Some(stream) => StreamStep::Meeting(*stream, made.mode),
            None => StreamStep::Collective(call, instance),
        }
    }
}
