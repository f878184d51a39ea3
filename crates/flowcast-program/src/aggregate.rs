//! Aggregation of messages that a program could send as one.

use std::collections::HashMap;

use crate::{
    key_map::KeyMap,
    opcodes::{self, Op},
    program::{MessageClass, Program, RankStream},
    slot::Slot,
};
use flowcast_units::{Bytes, Rank};

const NONE: u32 = u32::MAX;
const NO_SLOT: Slot = Slot(u32::MAX);

/// Returns the program with aggregated messages. Messages that a rank sends to the same receiver, without computing or
/// waiting in between, become one message if their total size is at most `up_to`.
///
/// The aggregated message replaces the last of these messages and has its tag. The first receive posted for any of them
/// receives it, and the receiver's first wait for any of them waits for it. Synchronous messages, which wait for their
/// receiver, are not aggregated. Blocking messages are not aggregated with non-blocking ones, or messages of one
/// communicator with those of another.
pub fn aggregated(program: &Program, up_to: Bytes) -> Program {
    let mut groups = AggregateGroups {
        all: Vec::new(),
        of_slot: vec![NONE; program.slots as usize],
    };
    let streams = Rank::all(program.streams());
    let of_sends: Vec<Vec<u32>> = streams
        .clone()
        .map(|stream| groups.find(program, stream, up_to))
        .collect();
    let posts = groups.number_slots();
    let mut changed = program.clone();
    let mut classes = KeyMap::new();
    for (stream, of_sends) in streams.zip(of_sends) {
        let first = program.first_slot(stream);
        let mut rank = AggregateRankState {
            of_sends,
            next_slot: first,
            first,
            ..AggregateRankState::default()
        };
        let mut words = Vec::with_capacity(program.words(stream).len());
        opcodes::rewrite(program.words(stream), &mut words, |op| {
            groups.change(op, &mut rank, &posts, &mut classes)
        });
        changed.streams[stream.index()] = RankStream::new(words, posts[first.index()]);
    }
    changed.slots = posts[program.slots as usize].0;
    changed.classes = classes.keys().collect();
    changed
}

/// Messages that are aggregated into one.
struct AggregateGroup {
    /// Number of the group's last send, counted over the sends of its rank.
    last: u32,
    /// Class of the aggregated message.
    class: MessageClass,
    /// Slot that receives the aggregated message.
    slot: Slot,
    /// Number of the aggregated send, counted over the new sends of its rank.
    number: u32,
    is_sent: bool,
    is_received: bool,
}

struct AggregateGroups {
    all: Vec<AggregateGroup>,
    /// Group of the message in each slot, indexed by slot.
    of_slot: Vec<u32>,
}

/// State of the rewriting of a rank.
#[derive(Default)]
struct AggregateRankState {
    /// Group of each send, indexed by send.
    of_sends: Vec<u32>,
    sends: u32,
    new_sends: u32,
    first: Slot,
    next_slot: Slot,
}

impl AggregateGroups {
    /// Groups the sends of a rank. Returns the group of each send.
    fn find(&mut self, program: &Program, stream: Rank, up_to: Bytes) -> Vec<u32> {
        let mut of_sends = Vec::new();
        let mut open = HashMap::new();
        for (_, op) in program.ops(stream) {
            match op {
                Op::Send { class, slot } => {
                    let class = program.classes[class as usize];
                    let is_small = class.size <= up_to && !class.mode.synchronous;
                    if !is_small && !class.mode.non_blocking {
                        open.clear();
                    }
                    let key = (
                        program.receiver(slot),
                        class.communicator,
                        class.mode.non_blocking,
                    );
                    let last = of_sends.len() as u32;
                    let group = match open.get(&key).filter(|_| is_small) {
                        Some(group) if self.join(*group, last, class, up_to) => *group,
                        _ => self.begin(last, class),
                    };
                    if is_small {
                        open.insert(key, group);
                    }
                    of_sends.push(group);
                    self.of_slot[slot.index()] = group;
                }
                Op::Nothing | Op::Irecv | Op::Event(_) | Op::Ignored(_) => {}
                _ => open.clear(),
            }
        }
        of_sends
    }

    fn begin(&mut self, last: u32, class: MessageClass) -> u32 {
        self.all.push(AggregateGroup {
            last,
            class,
            slot: NO_SLOT,
            number: NONE,
            is_sent: false,
            is_received: false,
        });
        self.all.len() as u32 - 1
    }

    /// Adds the message to the group if it fits. Returns `true` if it does.
    fn join(&mut self, group: u32, last: u32, class: MessageClass, up_to: Bytes) -> bool {
        let group = &mut self.all[group as usize];
        let size = Bytes(group.class.size.0 + class.size.0);
        let fits = size <= up_to;
        if fits {
            (group.last, group.class) = (last, MessageClass { size, ..class });
        }
        fits
    }

    /// Numbers the remaining slots. Returns the number of them before each slot, and their total.
    fn number_slots(&mut self) -> Vec<Slot> {
        let mut left = Slot(0);
        let mut before = Vec::with_capacity(self.of_slot.len() + 1);
        for group in &self.of_slot {
            before.push(left);
            let slot = &mut self.all[*group as usize].slot;
            if *slot == NO_SLOT {
                *slot = left;
                left += 1;
            }
        }
        before.push(left);
        before
    }

    fn change(
        &mut self,
        op: Op,
        rank: &mut AggregateRankState,
        posts: &[Slot],
        classes: &mut KeyMap<MessageClass>,
    ) -> Op {
        match op {
            Op::Send { .. } => self.send(rank, classes),
            Op::Recv | Op::Irecv => self.receive(op, rank, posts),
            Op::WaitRecv(slot) => self.wait(rank.first + slot, posts[rank.first.index()]),
            Op::WaitSend(ago) => {
                let group = &mut self.all[rank.of_sends[(rank.sends - 1 - ago) as usize] as usize];
                let is_waited = std::mem::replace(&mut group.is_sent, true);
                if is_waited {
                    Op::Nothing
                } else {
                    Op::WaitSend(rank.new_sends - 1 - group.number)
                }
            }
            other => other,
        }
    }

    fn send(&mut self, rank: &mut AggregateRankState, classes: &mut KeyMap<MessageClass>) -> Op {
        let group = &mut self.all[rank.of_sends[rank.sends as usize] as usize];
        rank.sends += 1;
        if group.last + 1 != rank.sends {
            return Op::Nothing;
        }
        group.number = rank.new_sends;
        rank.new_sends += 1;
        Op::Send {
            class: classes.number(group.class),
            slot: group.slot,
        }
    }

    fn receive(&mut self, op: Op, rank: &mut AggregateRankState, posts: &[Slot]) -> Op {
        let slot = rank.next_slot;
        rank.next_slot += 1;
        let group = &mut self.all[self.of_slot[slot.index()] as usize];
        if group.slot == posts[slot.index()] {
            group.is_received = op == Op::Recv;
            return op;
        }
        if op == Op::Irecv {
            Op::Nothing
        } else {
            self.wait(slot, posts[rank.first.index()])
        }
    }

    /// Waits for the message of an old slot, unless an earlier instruction has waited for it.
    fn wait(&mut self, slot: Slot, first: Slot) -> Op {
        let group = &mut self.all[self.of_slot[slot.index()] as usize];
        let is_waited = std::mem::replace(&mut group.is_received, true);
        if is_waited {
            Op::Nothing
        } else {
            Op::WaitRecv(group.slot - first)
        }
    }
}
