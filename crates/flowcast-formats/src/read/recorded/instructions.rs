//! Conversion of a rank's actions to the instructions of its stream.

use super::actions::{Action, ActionStep, CalledFunction, RankActions};
use crate::read::fault::Fault;
use flowcast_program::{
    TraceError,
    build::{RankBuilder, RecordFault},
    opcodes::Record,
    paraver_events::{CALLED, FunctionNumber},
    program::MessageClass,
};
use flowcast_recording::operation;
use flowcast_units::{Rank, Time};

/// Builds the stream of a rank, or of one of its threads, from these steps.
pub(super) fn instructions(
    rank: Rank,
    actions: &RankActions,
    steps: &[ActionStep],
) -> Result<RankBuilder, TraceError> {
    let mut instructions = InstructionBuilder {
        slots: vec![None; actions.posts.len()],
        numbers: vec![None; actions.sends.len()],
        immediates: vec![None; actions.collectives.len()],
        builder: RankBuilder::default(),
        is_behind_access: false,
        marked: None,
        actions,
    };
    let mut item = None;
    for step in steps {
        let record = if item == Some(step.item) {
            Record::Continues
        } else {
            Record::Begins
        };
        item = Some(step.item);
        instructions.step(step, record).map_err(|fault| {
            Fault::from(fault).at(format!("rank {rank}, call {}", step.item + 1), String::new)
        })?;
    }
    Ok(instructions.builder)
}

struct InstructionBuilder<'a> {
    actions: &'a RankActions,
    builder: RankBuilder,
    slots: Vec<Option<u32>>,
    numbers: Vec<Option<u32>>,
    immediates: Vec<Option<u32>>,
    /// `true` after an access: a fence is an access and a collective in one record.
    is_behind_access: bool,
    /// Item of the call that the last [`CALLED`] event marks, and the number of its function.
    marked: Option<(u32, FunctionNumber)>,
}

impl InstructionBuilder<'_> {
    fn step(&mut self, step: &ActionStep, record: Record) -> Result<(), RecordFault> {
        use Action::*;
        self.mark_call(step)?;
        match step.action {
            Compute(nanos) => self.builder.compute(Time::from_nanos(nanos as f64)),
            Send(send) => self.send(send, record)?,
            Recv(post) => self.recv(post, record)?,
            Irecv(post) => {
                if let Some(channel) = self.actions.posts[post as usize].channel {
                    let channel = self.builder.channel(channel);
                    self.slots[post as usize] = Some(self.builder.irecv_waited_by_slot(channel)?);
                }
            }
            Collective(number) if self.is_behind_access => self.collective(number, record)?,
            Collective(number) => self.collective(number, Record::Begins)?,
            Access(number) => self
                .builder
                .access(self.actions.accesses[number as usize], record)?,
            WaitSend(send) => {
                if let Some(number) = self.numbers[send as usize] {
                    self.builder.wait_send(number, record)?;
                }
            }
            WaitRecv(post) => {
                if let Some(slot) = self.slots[post as usize] {
                    self.builder.wait_slot(slot, record);
                }
            }
            WaitCollective(number) => {
                if let Some(non_blocking) = self.immediates[number as usize] {
                    self.builder.wait_immediate(non_blocking);
                }
            }
            Event(kind, value) => self.builder.event(kind, value)?,
            Nothing => self.builder.nothing(),
            // If threads have streams of their own, these actions have become collectives of two streams.
            Signal(_) | Await(_) => {}
        }
        self.is_behind_access = matches!(step.action, Access(_));
        Ok(())
    }

    /// Marks the call of a step that takes time, if the replay would label it with another name.
    fn mark_call(&mut self, step: &ActionStep) -> Result<(), RecordFault> {
        let Some(Some(function)) = self.actions.called.get(step.item as usize) else {
            return Ok(());
        };
        let Some(has_name) = self.is_named(step.action, *function) else {
            return Ok(());
        };
        let marked = (!has_name).then_some((step.item, function.number));
        if marked != self.marked {
            let number = marked.map_or(0, |(_, function)| i64::from(function.get()));
            self.builder.event(CALLED, number)?;
            self.marked = marked;
        }
        Ok(())
    }

    /// Returns `true` if the replay labels an action with the name of this function, and `None` for actions that take no
    /// time.
    fn is_named(&self, action: Action, function: CalledFunction) -> Option<bool> {
        use Action::*;
        Some(match action {
            Send(send) if function.starts => self.actions.sends[send as usize].mode.persistent,
            Send(_) => function.sends,
            Recv(_) | WaitRecv(_) | WaitSend(_) => function.waits,
            Collective(_) if self.is_behind_access => false,
            Collective(number) => {
                let (op, name) = (
                    self.actions.collectives[number as usize].record.op,
                    function.number.name(),
                );
                // Threads that wait for each other meet in a barrier beside their calls.
                operation(name) != Some(op) || [op.name(), op.non_blocking_name()].contains(&name)
            }
            WaitCollective(_) => false,
            Access(number) => {
                self.actions.accesses[number as usize].name() == function.number.name()
            }
            _ => return None,
        })
    }

    fn send(&mut self, send: u32, record: Record) -> Result<(), RecordFault> {
        let message = self.actions.sends[send as usize];
        if message.dropped {
            return Ok(());
        }
        let channel = message.channel;
        let class = MessageClass {
            size: message.size,
            tag: channel.tag,
            communicator: channel.communicator,
            mode: message.mode,
        };
        self.numbers[send as usize] = Some(self.builder.sends());
        self.builder.send(channel.peer, class, record)?;
        Ok(())
    }

    fn recv(&mut self, post: u32, record: Record) -> Result<(), RecordFault> {
        let Some(channel) = self.actions.posts[post as usize].channel else {
            return Ok(());
        };
        let channel = self.builder.channel(channel);
        self.builder.recv(channel, record)
    }

    fn collective(&mut self, number: u32, record: Record) -> Result<(), RecordFault> {
        let call = self.actions.collectives[number as usize];
        if call.dropped {
            return Ok(());
        }
        self.builder.further_collective(call.record, record)?;
        if call.record.is_non_blocking() {
            self.immediates[number as usize] = Some(self.builder.immediates() - 1);
        }
        Ok(())
    }
}
