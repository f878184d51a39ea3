//! Reconstruction of the program's calls from the recorded events.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::ignored,
    body::{Body, ParaverMessage, ParaverTask},
    header::ParaverHeader,
};
use flowcast_program::{
    ReadOptions, TraceError,
    build::{CallRecord, Channel, NON_BLOCKING, RankBuilder, RecordFault},
    link::{ProgramParts, link},
    opcodes::Record,
    program::{MessageClass, Program},
};
use flowcast_units::{Bytes, CollectiveOp, Rank, Time};

/// Builds the program of a trace from its header and body. The last part of the path `name` is the program's name.
pub(super) fn build(
    name: &str,
    header: ParaverHeader,
    mut body: Body,
    options: ReadOptions,
) -> Result<Program, TraceError> {
    drop_partial_calls(&mut body);
    note_missing_states(&mut body);
    assign_lanes(&mut body.messages);
    let events: Vec<(i64, i64)> = body.events.keys().collect();
    let mut orders = Orders::new(&body.messages, header.ranks() as usize);
    let mut slots = vec![0; body.messages.len()];
    let mut ranks = Vec::with_capacity(body.tasks.len());
    for (rank, task) in body.tasks.iter_mut().enumerate() {
        let actions = orders.actions(rank, task, &body.messages);
        let walk = ParaverWalk {
            messages: &body.messages,
            events: &events,
            slots: &mut slots,
        };
        let task = std::mem::take(task);
        ranks.push(walk.rank(&task, &actions).map_err(|_| TOO_MANY)?);
    }
    // The next step needs as much memory as these occupy.
    drop((body.messages, body.tasks, slots, orders));
    let parts = ProgramParts {
        name: name.rsplit('/').next().unwrap_or(name).to_owned(),
        ranks,
        communicators: body.communicators,
        ignored_kind: |kind| format!("records of type {kind}"),
        source: None,
        threads: Vec::new(),
    };
    let mut program = link(parts, options)?;
    program.ignored.extend(ignored(body.ignored));
    Ok(program)
}

const TOO_MANY: TraceError =
    TraceError::Limit("more messages or events than a compiled trace can number (2^27)");

/// Removes the collective calls of communicators whose members do not all make the same calls, for example because tracing
/// began late.
fn drop_partial_calls(body: &mut Body) {
    let made: Vec<CallsOn> = body.tasks.iter().map(calls_on).collect();
    let mut callers: BTreeMap<i32, usize> = BTreeMap::new();
    made.iter()
        .flat_map(BTreeMap::keys)
        .for_each(|communicator| *callers.entry(*communicator).or_default() += 1);
    let whole: BTreeSet<i32> = body
        .communicators
        .iter()
        .filter(|communicator| {
            let mut calls = communicator
                .members
                .iter()
                .map(|member| made[member.index()].get(&communicator.id));
            let first = calls.next().flatten();
            first.is_some()
                && calls.all(|other| other == first)
                && callers.get(&communicator.id) == Some(&communicator.members.len())
        })
        .map(|communicator| communicator.id)
        .collect();
    let mut dropped = 0;
    for task in &mut body.tasks {
        let before = task.calls.len();
        task.calls
            .retain(|(_, call)| whole.contains(&call.communicator));
        dropped += (before - task.calls.len()) as u64;
    }
    if dropped > 0 {
        body.ignored.insert(
            "collective calls that only some tasks of their communicator make".to_owned(),
            dropped,
        );
    }
}

/// Notes that running states are missing. Dimemas writes traces without them, which lack the program's computation.
fn note_missing_states(body: &mut Body) {
    if body.tasks.iter().all(|task| task.bursts.end() == 0) {
        body.ignored.insert(
            "tasks without running states; they are replayed without computation".to_owned(),
            body.tasks.len() as u64,
        );
    }
}

/// Operations that a task calls on each communicator.
type CallsOn = BTreeMap<i32, Vec<CollectiveOp>>;

fn calls_on(task: &ParaverTask) -> CallsOn {
    let mut calls = CallsOn::new();
    task.calls
        .iter()
        .for_each(|(_, call)| calls.entry(call.communicator).or_default().push(call.op));
    calls
}

/// Assigns different lanes to messages with the same sender, receiver and tag if an earlier receive gets a later message.
/// Records pair sends with receives, and matching in order must not change these pairs.
fn assign_lanes(messages: &mut [ParaverMessage]) {
    let mut order: Vec<u32> = (0..messages.len() as u32).collect();
    order.sort_unstable_by_key(|index| {
        let message = &messages[*index as usize];
        (message.from, message.to, message.tag, message.send, *index)
    });
    let mut lanes: Vec<(i64, u32)> = Vec::new();
    let mut current = None;
    for index in order {
        let message = &mut messages[index as usize];
        let channel = Some((message.from, message.to, message.tag));
        if current != channel {
            current = channel;
            lanes.clear();
        }
        let posted = (message.receive, index);
        // The last receives of the lanes are in descending order.
        let lane = lanes.partition_point(|last| *last > posted);
        message.lane = lane as u32;
        match lanes.get_mut(lane) {
            Some(last) => *last = posted,
            None => lanes.push(posted),
        }
    }
}

/// Messages that each rank sends and receives.
struct Orders {
    sends: Vec<Vec<u32>>,
    receives: Vec<Vec<u32>>,
}

impl Orders {
    fn new(messages: &[ParaverMessage], ranks: usize) -> Orders {
        let mut orders = Orders {
            sends: vec![Vec::new(); ranks],
            receives: vec![Vec::new(); ranks],
        };
        for (index, message) in messages.iter().enumerate() {
            orders.sends[message.from.index()].push(index as u32);
            orders.receives[message.to.index()].push(index as u32);
        }
        orders
    }

    /// Returns the actions of a rank in the order of their times. At equal times, no rank waits, for a message or in a
    /// collective call, before it has sent everything due at that time.
    fn actions(
        &mut self,
        rank: usize,
        task: &ParaverTask,
        messages: &[ParaverMessage],
    ) -> Vec<(i64, ParaverAction)> {
        use ParaverAction::*;
        let sends = std::mem::take(&mut self.sends[rank]);
        let receives = std::mem::take(&mut self.receives[rank]);
        let events = task.events.spans();
        let events = events.map(|(time, _, number)| (time as i64, Event(number as u32)));
        let mut actions: Vec<(i64, ParaverAction)> = events.collect();
        let posts = receives.iter();
        actions.extend(posts.map(|index| (messages[*index as usize].receive, Post(*index))));
        let sends = sends.iter();
        actions.extend(sends.map(|index| (messages[*index as usize].send, Send(*index))));
        let calls = task.calls.iter().zip(0..);
        actions.extend(calls.map(|((time, _), number)| (*time, Call(number))));
        let waits = receives.iter();
        actions.extend(waits.map(|index| (messages[*index as usize].done, Wait(*index))));
        // A stable sort keeps this order of the kinds, and of the records of one kind.
        actions.sort_by_key(|(time, _)| *time);
        actions
    }
}

/// Action of a rank, with the number of its event, message or call.
#[derive(Debug, Clone, Copy)]
enum ParaverAction {
    Event(u32),
    Post(u32),
    Send(u32),
    Call(u32),
    Wait(u32),
}

struct ParaverWalk<'a> {
    messages: &'a [ParaverMessage],
    events: &'a [(i64, i64)],
    /// Slot of each message at its receiver.
    slots: &'a mut [u32],
}

impl ParaverWalk<'_> {
    fn rank(
        self,
        task: &ParaverTask,
        actions: &[(i64, ParaverAction)],
    ) -> Result<RankBuilder, RecordFault> {
        let ParaverWalk {
            messages,
            events,
            slots,
        } = self;
        let mut builder = RankBuilder::default();
        let mut bursts = Bursts {
            rest: task.bursts.spans().map(|(begin, end, _)| (begin, end)),
            current: None,
        };
        for (time, action) in actions.iter().copied() {
            bursts.until(time as u64, &mut builder);
            match action {
                ParaverAction::Event(number) => {
                    let (kind, value) = events[number as usize];
                    builder.event(kind, value)?;
                }
                ParaverAction::Call(number) => {
                    let (_, call): (i64, CallRecord) = task.calls[number as usize];
                    builder.collective(call)?;
                }
                ParaverAction::Post(index) => {
                    let message = &messages[index as usize];
                    let channel = builder.channel(channel(message, message.from));
                    slots[index as usize] = builder.irecv_waited_by_slot(channel)?;
                }
                ParaverAction::Send(index) => {
                    let message = &messages[index as usize];
                    let Channel {
                        tag, communicator, ..
                    } = channel(message, message.to);
                    let class = MessageClass {
                        size: Bytes(message.size),
                        tag,
                        communicator,
                        mode: NON_BLOCKING,
                    };
                    builder.send(message.to, class, Record::Begins)?;
                }
                ParaverAction::Wait(index) => {
                    builder.wait_slot(slots[index as usize], Record::Begins)
                }
            }
        }
        bursts.until(u64::MAX, &mut builder);
        Ok(builder)
    }
}

/// Returns the channel of a message. Its lane takes the place of the communicator in other traces.
fn channel(message: &ParaverMessage, peer: Rank) -> Channel {
    Channel {
        peer,
        tag: message.tag,
        communicator: message.lane as i32 + 1,
    }
}

/// Running states that have not become computations yet.
struct Bursts<I> {
    rest: I,
    current: Option<(u64, u64)>,
}

impl<I: Iterator<Item = (u64, u64)>> Bursts<I> {
    /// Adds the computations before `time`, and splits a state that continues after it.
    fn until(&mut self, time: u64, builder: &mut RankBuilder) {
        while let Some((begin, end)) = self.current.take().or_else(|| self.rest.next()) {
            if begin >= time {
                self.current = Some((begin, end));
                return;
            }
            let stop = end.min(time);
            builder.compute(Time::from_nanos((stop - begin) as f64));
            if end > time {
                self.current = Some((time, end));
                return;
            }
        }
    }
}
