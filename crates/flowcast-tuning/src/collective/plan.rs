//! Messages of a collective operation, each receive matched with its send.

use std::collections::HashMap;

use flowcast_program::expand::{
    group::Stage,
    moves::{Effect, ExpandedMove, MessagePart, MovedBlocks},
};

/// Kind of a rank's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    /// Sends a message and waits until its buffer is free.
    Send,
    /// Receives a message and waits for it.
    Recv,
    /// Starts a send, which a later wait completes.
    Start,
    /// Posts a receive, which a later wait completes.
    Post,
    /// Waits for a posted receive.
    WaitRecv,
    /// Waits for a started send.
    WaitSend,
}

use StepKind::*;

const KINDS: [StepKind; 6] = [Send, Recv, Start, Post, WaitRecv, WaitSend];
const KIND_BITS: u32 = 3;

/// A step and its message, packed in one word because large operations have tens of millions of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlannedStep(u32);

impl PlannedStep {
    fn new(kind: StepKind, message: u32) -> PlannedStep {
        PlannedStep(message << KIND_BITS | kind as u32)
    }

    pub(super) fn kind(self) -> StepKind {
        KINDS[(self.0 & ((1 << KIND_BITS) - 1)) as usize]
    }

    pub(super) fn message(self) -> u32 {
        self.0 >> KIND_BITS
    }
}

/// A message of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlannedMessage {
    pub from: u32,
    pub to: u32,
    /// Index into the sizes of the plan.
    pub size: u32,
    /// Number of waits of the sender before this message.
    pub turn: u32,
}

/// Description of the messages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PlannedSize {
    stage: u32,
    blocks: MovedBlocks,
    is_combined: bool,
}

/// Steps of all ranks of an operation, for data of any size that its algorithm divides into the same number of blocks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CollectivePlan {
    steps: Vec<PlannedStep>,
    /// Index of the first step of each rank, and the number of steps at the end.
    starts: Vec<usize>,
    pub(super) messages: Vec<PlannedMessage>,
    sizes: Vec<PlannedSize>,
}

/// Size of a message, and its treatment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageSize {
    /// Number of bytes, exact to one byte where blocks differ by one byte.
    pub bytes: u64,
    /// `true` if the receiver combines the message with its own data.
    pub is_combined: bool,
    /// `true` if the blocks are not contiguous in memory and are packed.
    pub is_packed: bool,
}

impl CollectivePlan {
    /// Maximum number of messages of an operation. Each of them occupies about 50 bytes.
    pub(crate) const MOST_MESSAGES: usize = 1 << 25;

    /// `true` if stages with this number of ranks have at most [`CollectivePlan::MOST_MESSAGES`] messages.
    pub(crate) fn is_possible(stages: &[Stage], ranks: u32) -> bool {
        if ranks as usize
            * stages
                .iter()
                .map(|stage| 4 * stage.layout.parts().max(ranks) as usize)
                .sum::<usize>()
            <= Self::MOST_MESSAGES
        {
            return true;
        }
        let mut messages = 0;
        (0..ranks).all(|rank| {
            for Stage { task, layout, .. } in stages {
                task.moves(rank, layout, &mut |step| {
                    messages += usize::from(matches!(
                        step,
                        ExpandedMove::Send { .. } | ExpandedMove::Start { .. }
                    ));
                });
            }
            messages <= Self::MOST_MESSAGES
        })
    }

    /// Plans stages that follow one another. They must have at most [`CollectivePlan::MOST_MESSAGES`] messages.
    pub(crate) fn new(stages: &[Stage], ranks: u32) -> CollectivePlan {
        let mut builder = PlanBuilder::default();
        for rank in 0..ranks {
            builder.starts.push(builder.steps.len());
            builder.turn = 0;
            for (number, Stage { task, layout, .. }) in (0..).zip(stages) {
                task.moves(rank, layout, &mut |step| builder.put(rank, number, step));
            }
            builder.wait_all();
        }
        builder.starts.push(builder.steps.len());
        builder.match_receives(ranks);
        CollectivePlan {
            steps: builder.steps,
            starts: builder.starts,
            messages: builder.messages,
            sizes: builder.sizes,
        }
    }

    /// Number of ranks of the operation.
    pub(crate) fn ranks(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Number of messages of the operation.
    pub(crate) fn messages(&self) -> usize {
        self.messages.len()
    }

    /// Distinct message sizes, for stages with the same numbers of blocks as the stages of the plan.
    pub(crate) fn sizes(&self, stages: &[Stage]) -> Vec<MessageSize> {
        self.sizes
            .iter()
            .map(|size| MessageSize {
                bytes: stages[size.stage as usize].layout.bytes(size.blocks),
                is_combined: size.is_combined,
                is_packed: matches!(size.blocks, MovedBlocks::DistanceBit(_)),
            })
            .collect()
    }

    pub(super) fn steps(&self, rank: u32) -> &[PlannedStep] {
        &self.steps[self.starts[rank as usize]..self.starts[rank as usize + 1]]
    }
}

#[derive(Default)]
struct PlanBuilder {
    steps: Vec<PlannedStep>,
    starts: Vec<usize>,
    messages: Vec<PlannedMessage>,
    receives: Vec<PlannedReceive>,
    sizes: Vec<PlannedSize>,
    numbers: HashMap<PlannedSize, u32>,
    /// State of the current rank: number of waits so far, and the steps of receives and the messages that no wait has
    /// completed.
    turn: u32,
    posted: Vec<u32>,
    started: Vec<u32>,
    /// Steps that wait for the receive of another step.
    waits: Vec<(u32, u32)>,
}

struct PlannedReceive {
    rank: u32,
    from: u32,
    step: u32,
}

impl PlanBuilder {
    fn put(&mut self, rank: u32, stage: u32, step: ExpandedMove) {
        match step {
            ExpandedMove::Send { to, part } => {
                self.send(
                    Send,
                    PlannedMessage {
                        from: rank,
                        to,
                        size: stage,
                        turn: 0,
                    },
                    part,
                );
                self.turn += 1;
            }
            ExpandedMove::Start { to, part } => {
                let message = PlannedMessage {
                    from: rank,
                    to,
                    size: stage,
                    turn: 0,
                };
                let number = self.send(Start, message, part);
                self.started.push(number);
            }
            ExpandedMove::Recv { from, .. } => {
                self.receive(Recv, rank, from);
                self.turn += 1;
            }
            ExpandedMove::Post { from, .. } => {
                self.posted.push(self.steps.len() as u32);
                self.receive(Post, rank, from);
            }
            ExpandedMove::WaitRecv { ago } => {
                let posted = self.posted.remove(self.posted.len() - 1 - ago as usize);
                self.wait_receive(posted);
                self.turn += 1;
            }
            ExpandedMove::WaitSend { ago } => {
                let message = self.started.remove(self.started.len() - 1 - ago as usize);
                self.steps.push(PlannedStep::new(WaitSend, message));
                self.turn += 1;
            }
            ExpandedMove::WaitSends => self.wait_sends(),
            ExpandedMove::WaitAll => self.wait_all(),
        }
    }

    fn wait_all(&mut self) {
        for posted in std::mem::take(&mut self.posted) {
            self.wait_receive(posted);
        }
        self.wait_sends();
    }

    fn wait_sends(&mut self) {
        for message in self.started.drain(..) {
            self.steps.push(PlannedStep::new(WaitSend, message));
        }
        self.turn += 1;
    }

    fn wait_receive(&mut self, posted: u32) {
        self.waits.push((self.steps.len() as u32, posted));
        self.steps.push(PlannedStep::new(WaitRecv, 0));
    }

    fn receive(&mut self, kind: StepKind, rank: u32, from: u32) {
        let step = self.steps.len() as u32;
        self.receives.push(PlannedReceive { rank, from, step });
        self.steps.push(PlannedStep::new(kind, 0));
    }

    /// Adds a send. `message.size` is the number of the stage.
    fn send(&mut self, kind: StepKind, message: PlannedMessage, part: MessagePart) -> u32 {
        let size = PlannedSize {
            stage: message.size,
            blocks: alike(part.blocks),
            is_combined: part.effect == Effect::Combine && part.blocks != MovedBlocks::Nothing,
        };
        let number = self.messages.len() as u32;
        let known = self.sizes.last() == Some(&size);
        let size = if known {
            self.sizes.len() as u32 - 1
        } else {
            self.number_of(size)
        };
        self.messages.push(PlannedMessage {
            size,
            turn: self.turn,
            ..message
        });
        self.steps.push(PlannedStep::new(kind, number));
        number
    }

    fn number_of(&mut self, size: PlannedSize) -> u32 {
        let sizes = &mut self.sizes;
        *self.numbers.entry(size).or_insert_with(|| {
            sizes.push(size);
            sizes.len() as u32 - 1
        })
    }

    /// Matches receives with sends: messages from one rank to another are received in the order in which they are sent.
    fn match_receives(&mut self, ranks: u32) {
        let mut ends = vec![0; ranks as usize + 1];
        for message in &self.messages {
            ends[message.to as usize + 1] += 1;
        }
        for rank in 0..ranks as usize {
            ends[rank + 1] += ends[rank];
        }
        let mut next = ends.clone();
        // Messages are ordered by sender, so the messages of each receiver are too.
        let mut by_receiver = vec![0; self.messages.len()];
        for (number, message) in (0..).zip(&self.messages) {
            let place = &mut next[message.to as usize];
            by_receiver[*place] = number;
            *place += 1;
        }
        for own in self
            .receives
            .chunk_by_mut(|one, other| one.rank == other.rank)
        {
            own.sort_by_key(|receive| receive.from);
            let rank = own[0].rank as usize;
            let sent: &[u32] = &by_receiver[ends[rank]..ends[rank + 1]];
            assert_eq!(
                own.len(),
                sent.len(),
                "rank {rank} receives what is sent to it"
            );
            for (receive, message) in own.iter().zip(sent) {
                debug_assert_eq!(self.messages[*message as usize].from, receive.from);
                let step = &mut self.steps[receive.step as usize];
                *step = PlannedStep::new(step.kind(), *message);
            }
        }
        for (wait, posted) in &self.waits {
            self.steps[*wait as usize] =
                PlannedStep::new(WaitRecv, self.steps[*posted as usize].message());
        }
    }
}

/// Representative of all blocks with the same size, up to a byte. All blocks are equal or come in pairs of a first piece and
/// the rest.
fn alike(blocks: MovedBlocks) -> MovedBlocks {
    match blocks {
        MovedBlocks::Range { first, count } => MovedBlocks::Range {
            first: first % 2,
            count,
        },
        MovedBlocks::Pair { .. } => MovedBlocks::Pair { from: 0, to: 1 },
        other => other,
    }
}
