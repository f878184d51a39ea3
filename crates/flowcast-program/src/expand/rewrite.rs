//! Instructions of one rank, with its collectives replaced by sends and receives in its own stream or on progress streams.

use std::collections::HashMap;

use super::{
    Executions,
    group::ExecutionGroup,
    moves::{BlockLayout, Effect, ExpandedMove, MessagePart},
    progress::ProgressStreams,
};
use crate::{
    TraceError,
    build::{Channel, EAGER, NON_BLOCKING, RankBuilder, RecordFault},
    opcodes::{self, Op, Record},
    parallel::for_each_mut,
    program::{CollectiveMode, MessageClass, Program, SendMode},
};
use flowcast_units::{Bytes, CollectiveOp, Rank, Time};

/// Builds the streams of all ranks, followed by their progress streams.
///
/// # Errors
/// [`TraceError::Limit`] if there are more messages than can be numbered.
pub(super) fn rewritten(
    of: (&Program, &Executions, &ProgressStreams),
    threads: usize,
) -> Result<Vec<RankBuilder>, TraceError> {
    let (program, _, progress) = of;
    let sources = program.sources();
    let mut ranks: Vec<(Rank, RewrittenStreams, Result<(), TraceError>)> = (0..program.ranks()
        as u32)
        .map(|rank| (Rank(rank), RewrittenStreams::default(), Ok(())))
        .collect();
    for_each_mut(&mut ranks, threads, |(rank, streams, done)| {
        let mut rewrite = Rewrite::new(of, &sources, *rank);
        *done = rewrite.run();
        *streams = (rewrite.builder, rewrite.beside);
    });
    let mut builders = Vec::with_capacity(program.ranks() + progress.owners.len());
    let mut beside = Vec::new();
    for (_, (own, progress), done) in ranks {
        done?;
        builders.push(own);
        beside.extend(progress);
    }
    builders.extend(beside);
    Ok(builders)
}

/// A rank's own stream, and its progress streams.
type RewrittenStreams = (RankBuilder, Vec<RankBuilder>);

/// State while a rank is rewritten.
struct Rewrite<'a> {
    program: &'a Program,
    found: &'a Executions,
    progress: &'a ProgressStreams,
    sources: &'a [(Rank, u32)],
    rank: Rank,
    /// New stream of the rank. The next field has its new progress streams.
    builder: RankBuilder,
    beside: Vec<RankBuilder>,
    /// New number of each receive. The next field has the new number of each send.
    slots: Vec<u32>,
    sends: Vec<u32>,
    /// New number of each non-blocking collective.
    immediates: HashMap<u32, u32>,
    /// Non-blocking receives of the current operation that no wait has completed. The next field has its sends.
    posted: Vec<PostedReceive>,
    started: Vec<u32>,
}

impl<'a> Rewrite<'a> {
    /// Creates the state before the first instruction.
    fn new(
        of: (&'a Program, &'a Executions, &'a ProgressStreams),
        sources: &'a [(Rank, u32)],
        rank: Rank,
    ) -> Rewrite<'a> {
        let (program, found, progress) = of;
        let mut beside = Vec::new();
        beside.resize_with(progress.count(rank), RankBuilder::default);
        Rewrite {
            program,
            found,
            progress,
            sources,
            rank,
            builder: RankBuilder::default(),
            beside,
            slots: Vec::new(),
            sends: Vec::new(),
            immediates: HashMap::new(),
            posted: Vec::new(),
            started: Vec::new(),
        }
    }

    /// Rewrites all instructions.
    ///
    /// # Errors
    /// [`TraceError::Limit`] if there are more messages than can be numbered.
    fn run(&mut self) -> Result<(), TraceError> {
        let words = self.program.words(self.rank);
        let mut at = 0;
        while let Some((op, next)) = opcodes::decode(words, at) {
            let record = if opcodes::continues(words, at) {
                Record::Continues
            } else {
                Record::Begins
            };
            self.copy(op, record)
                .map_err(|_: RecordFault| TraceError::Limit(TOO_LARGE))?;
            at = next;
        }
        Ok(())
    }

    fn copy(&mut self, op: Op, record: Record) -> Result<(), RecordFault> {
        match op {
            Op::Send { class, slot } => {
                self.sends.push(self.builder.sends());
                let to = self.program.receiver(slot);
                self.builder
                    .send(to, self.program.classes()[class as usize], record)?;
            }
            Op::Recv => {
                let channel = self.next_channel();
                self.slots.push(self.builder.received());
                self.builder.recv(channel, record)?;
            }
            Op::Irecv => {
                let channel = self.next_channel();
                let slot = self.builder.irecv_again(channel, record)?;
                self.slots.push(slot);
            }
            Op::WaitRecv(slot) => self.builder.wait_slot(self.slots[slot as usize], record),
            Op::WaitSend(ago) => {
                let number = self.sends[self.sends.len() - 1 - ago as usize];
                self.builder.wait_send(number, record)?;
            }
            Op::Collective { call, instance } => self.collective(call, instance, record)?,
            Op::WaitCollective(instance) => self.wait_collective(instance, record)?,
            Op::Event(event) => {
                let (kind, value) = self.program.events()[event as usize];
                self.builder.event(kind, value)?;
            }
            Op::Access(access) => self
                .builder
                .access(self.program.accesses()[access as usize], record)?,
            other => self.builder.push(other, record),
        }
        Ok(())
    }

    /// Channel of the next receive.
    fn next_channel(&mut self) -> u32 {
        let slot = self.program.first_slot(self.rank) + self.slots.len() as u32;
        let (sender, class) = self.sources[slot.index()];
        let MessageClass {
            tag, communicator, ..
        } = self.program.classes()[class as usize];
        self.builder.channel(Channel {
            peer: sender,
            tag,
            communicator,
        })
    }

    fn collective(&mut self, call: u32, instance: u32, record: Record) -> Result<(), RecordFault> {
        let made = self.program.calls()[call as usize];
        let communicator = &self.program.communicators()[made.communicator as usize];
        let Some(group) = self.found.groups_of[instance as usize] else {
            if made.is_non_blocking() {
                self.immediates.insert(instance, self.builder.immediates());
            }
            let call = made.over(communicator.id);
            return self.builder.further_collective(call, record);
        };
        // The call itself remains as a record without effect, so that records keep their numbers.
        self.builder.push(Op::Nothing, record);
        let group = &self.found.groups[group as usize];
        if made.is_non_blocking() {
            return self.start(group, instance);
        }
        let place = self
            .found
            .place(made.communicator, self.rank)
            .expect("a member made the call");
        let members = self
            .progress
            .members(instance)
            .unwrap_or(&communicator.members);
        self.stages(group, place, members, communicator.id)
    }

    /// Starts a non-blocking operation on a progress stream.
    fn start(&mut self, group: &ExecutionGroup, instance: u32) -> Result<(), RecordFault> {
        let (communicator, place) = self.own_place(instance);
        let members = self
            .progress
            .members(instance)
            .expect("a non-blocking execution has progress streams");
        let stream = self.progress.stream(members[place as usize]);
        self.builder.further_collective(
            stream.meets(group.op, CollectiveMode::NonBlocking),
            Record::Continues,
        )?;
        std::mem::swap(&mut self.builder, &mut self.beside[stream.number]);
        self.builder
            .collective(stream.meets(group.op, CollectiveMode::Blocking))?;
        self.stages(group, place, members, communicator)?;
        std::mem::swap(&mut self.builder, &mut self.beside[stream.number]);
        Ok(())
    }

    /// Waits for a non-blocking operation: the rank and its progress stream synchronise again.
    fn wait_collective(&mut self, instance: u32, record: Record) -> Result<(), RecordFault> {
        let Some(group) = self.found.groups_of[instance as usize] else {
            self.builder.wait_immediate(self.immediates[&instance]);
            return Ok(());
        };
        let (_, place) = self.own_place(instance);
        let members = self
            .progress
            .members(instance)
            .expect("a non-blocking execution has progress streams");
        let stream = self.progress.stream(members[place as usize]);
        let ends = stream.meets(
            self.found.groups[group as usize].op,
            CollectiveMode::Blocking,
        );
        self.builder.further_collective(ends, record)?;
        self.beside[stream.number].collective(ends)
    }

    /// Communicator of an execution, and the rank's place in it.
    fn own_place(&self, instance: u32) -> (i32, u32) {
        let index = self.program.instances()[instance as usize];
        let place = self
            .found
            .place(index, self.rank)
            .expect("a member made the call");
        (self.program.communicators()[index as usize].id, place)
    }

    fn stages(
        &mut self,
        group: &ExecutionGroup,
        place: u32,
        members: &[Rank],
        id: i32,
    ) -> Result<(), RecordFault> {
        let channel = ExpandedChannel {
            members,
            id,
            op: group.op,
        };
        for stage in &group.stages {
            let mut result = Ok(());
            stage.task.moves(place, &stage.layout, &mut |step| {
                if result.is_ok() {
                    result = self.make(step, &stage.layout, channel);
                }
            });
            result?;
            self.combine(stage.combined);
        }
        Ok(())
    }

    fn make(
        &mut self,
        step: ExpandedMove,
        layout: &BlockLayout,
        channel: ExpandedChannel<'_>,
    ) -> Result<(), RecordFault> {
        match step {
            ExpandedMove::Send { to, part } => {
                let class = channel.class(layout.bytes(part.blocks), EAGER);
                self.builder
                    .send(channel.members[to as usize], class, Record::Continues)?;
            }
            ExpandedMove::Start { to, part } => {
                self.started.push(self.builder.sends());
                let class = channel.class(layout.bytes(part.blocks), NON_BLOCKING);
                self.builder
                    .send(channel.members[to as usize], class, Record::Continues)?;
            }
            ExpandedMove::Recv { from, part } => {
                let number = self.builder.channel(channel.from(from));
                self.builder.recv(number, Record::Continues)?;
                self.combine(combined_bytes(part, layout));
            }
            ExpandedMove::Post { from, part } => {
                let number = self.builder.channel(channel.from(from));
                let slot = self.builder.irecv_again(number, Record::Continues)?;
                self.posted.push(PostedReceive {
                    slot,
                    combined: combined_bytes(part, layout),
                });
            }
            ExpandedMove::WaitRecv { ago } => {
                let posted = self.posted.remove(self.posted.len() - 1 - ago as usize);
                self.builder.wait_slot(posted.slot, Record::Continues);
                self.combine(posted.combined);
            }
            ExpandedMove::WaitSend { ago } => {
                let number = self.started.remove(self.started.len() - 1 - ago as usize);
                self.builder.wait_send(number, Record::Continues)?;
            }
            ExpandedMove::WaitSends => self.wait_sends()?,
            ExpandedMove::WaitAll => {
                let mut combined = 0u64;
                for posted in self.posted.drain(..) {
                    self.builder.wait_slot(posted.slot, Record::Continues);
                    combined = combined.saturating_add(posted.combined);
                }
                self.wait_sends()?;
                self.combine(combined);
            }
        }
        Ok(())
    }

    /// Appends the computation that combines received data with the rank's own.
    fn combine(&mut self, bytes: u64) {
        let time = self.found.reduction.time_for(Bytes(bytes));
        if time > Time::ZERO {
            self.builder.compute_further(time);
        }
    }

    fn wait_sends(&mut self) -> Result<(), RecordFault> {
        for number in self.started.drain(..) {
            self.builder.wait_send(number, Record::Continues)?;
        }
        Ok(())
    }
}

/// A non-blocking receive of the operation that is being expanded.
struct PostedReceive {
    slot: u32,
    /// Bytes that are combined after the message has arrived.
    combined: u64,
}

fn combined_bytes(part: MessagePart, layout: &BlockLayout) -> u64 {
    match part.effect {
        Effect::Place => 0,
        Effect::Combine => layout.bytes(part.blocks),
    }
}

const TOO_LARGE: &str = "more messages in the expanded collectives than a compiled trace can number (134,217,727 a rank)";

/// Highest tag of expanded operations. The tags of the operations descend from it, in the order of `CollectiveOp::ALL`.
const FIRST_TAG: i32 = -1000;

/// Operation that a message belongs to, if it comes from an expanded collective.
pub fn operation_of(class: &MessageClass) -> Option<CollectiveOp> {
    let number = FIRST_TAG
        .checked_sub(class.tag)
        .and_then(|number| usize::try_from(number).ok());
    number
        .filter(|_| class.communicator < 0)
        .and_then(|number| CollectiveOp::ALL.get(number).copied())
}

/// Members, communicator and operation of the messages of an expanded collective.
#[derive(Clone, Copy)]
struct ExpandedChannel<'a> {
    members: &'a [Rank],
    id: i32,
    op: CollectiveOp,
}

impl ExpandedChannel<'_> {
    /// Tag of the messages. It is negative, so it differs from the tags of MPI, which are at least 0.
    fn tag(self) -> i32 {
        FIRST_TAG - self.op as i32
    }

    fn class(self, bytes: u64, mode: SendMode) -> MessageClass {
        MessageClass {
            size: Bytes(bytes),
            tag: self.tag(),
            communicator: !self.id,
            mode,
        }
    }

    fn from(self, place: u32) -> Channel {
        Channel {
            peer: self.members[place as usize],
            tag: self.tag(),
            communicator: !self.id,
        }
    }
}
