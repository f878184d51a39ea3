//! A stream's instructions as forms without communicators and accesses see them: who, how much, which tag.
//!
//! What such a form leaves out is counted here, so that its writer has only words to find.

use super::{ACCELERATOR, ACCESSES, EVENTS, Losses, SYNCHRONOUS, Tables};
use crate::program::{CollectiveMode, MessageClass};
use crate::words::{self, Op};
use flowcast_units::{Rank, Time};

/// What a stream does next.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// Computation.
    Compute(Time),
    /// A send.
    Send(Message<'a>),
    /// A blocking receive.
    Receive(Message<'a>),
    /// An immediate receive.
    Post(Message<'a>),
    /// The wait for an immediate receive.
    AwaitReceive(Message<'a>),
    /// The wait for a send.
    AwaitSend(Message<'a>),
    /// A collective: call and execution.
    Collective(u32, u32),
    /// A rank and its strand meet; the rank does so immediately where an operation begins.
    Meeting(Rank, CollectiveMode),
}

/// A message as one of its ends sees it.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Counted among the receives, or among the sends, of the stream.
    pub number: u32,
    /// The rank at the other end.
    pub peer: Rank,
    /// Size, tag and mode.
    pub class: &'a MessageClass,
}

/// A stream on the way through its instructions.
pub struct Steps<'a> {
    tables: &'a Tables<'a>,
    stream: Rank,
    words: &'a [u32],
    at: usize,
    received: u32,
    sent: Vec<Message<'a>>,
}

impl<'a> Steps<'a> {
    /// At the beginning.
    pub fn new(tables: &'a Tables<'a>, stream: Rank) -> Steps<'a> {
        Steps { tables, stream, words: tables.program.words(stream), at: 0, received: 0, sent: Vec::new() }
    }

    /// The next step; what is passed over on the way to it is counted.
    pub fn next(&mut self, losses: &mut Losses) -> Option<Step<'a>> {
        while let Some((op, next)) = words::decode(self.words, self.at) {
            self.at = next;
            match op {
                Op::Compute(time) => return Some(Step::Compute(time)),
                Op::Accelerator(time) => {
                    losses.count(ACCELERATOR);
                    return Some(Step::Compute(time));
                }
                Op::Send { class, slot } => return Some(Step::Send(self.send(class, slot, losses))),
                Op::Recv => return Some(Step::Receive(self.post())),
                Op::Irecv => return Some(Step::Post(self.post())),
                Op::WaitRecv(slot) => return Some(Step::AwaitReceive(self.incoming(slot))),
                Op::WaitSend(ago) => return Some(Step::AwaitSend(self.sent[self.sent.len() - 1 - ago as usize])),
                Op::Collective { call, instance } => return Some(self.collective(call, instance)),
                Op::Event(_) => losses.count(EVENTS),
                Op::Access(_) => losses.count(ACCESSES),
                // What the reader left out it has told.
                Op::WaitCollective(_) | Op::Nothing | Op::Ignored(_) => {}
            }
        }
        None
    }

    fn send(&mut self, class: u32, slot: u32, losses: &mut Losses) -> Message<'a> {
        let program = self.tables.program;
        let (peer, class) = (program.owner(program.receiver(slot)), self.tables.class(class));
        if class.mode.synchronous {
            losses.count(SYNCHRONOUS);
        }
        let message = Message { number: self.sent.len() as u32, peer, class };
        self.sent.push(message);
        message
    }

    fn post(&mut self) -> Message<'a> {
        self.received += 1;
        self.incoming(self.received - 1)
    }

    fn incoming(&self, number: u32) -> Message<'a> {
        let (peer, class) = self.tables.message(self.tables.program.first_slot(self.stream) + number);
        Message { number, peer: self.tables.program.owner(peer), class }
    }

    fn collective(&self, call: u32, instance: u32) -> Step<'a> {
        let made = self.tables.call(call);
        let members = &self.tables.program.communicators()[made.communicator as usize].members;
        match members.iter().find(|member| member.index() >= self.tables.program.ranks()) {
            Some(strand) => Step::Meeting(*strand, made.mode),
            None => Step::Collective(call, instance),
        }
    }
}
