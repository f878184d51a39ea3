//! Mapping of tasks and threads to ranks, and the threads that handle the messages of a channel.
//!
//! A record names the task of the peer, but the thread only for messages between threads. If tasks have several threads, a
//! first pass over the message records finds the thread that handles each channel (sender, receiver, tag, communicator). It
//! must be the same thread for all messages of the channel, because the order of two threads is unknown before the replay.

use std::collections::HashMap;

use super::{Cursor, DimMessage, DimSection};
use crate::read::{fault::Fault, known_lines::Tail, scan::ScanInput};
use flowcast_program::{
    TraceError,
    build::{Channel, RankBuilder},
    program::Communicator,
};
use flowcast_units::Rank;

/// Sending task, receiving task, tag and communicator.
type TaskChannel = (u32, u32, i32, i32);

/// Ranks of all tasks and threads.
#[derive(Debug, Clone, Default)]
pub(super) struct Peers {
    /// First rank of each task, and the total number of ranks at the end.
    first: Vec<u32>,
    /// Task of each rank; empty if each task has one thread.
    task_of: Vec<u32>,
    /// Sending and receiving thread of each channel.
    handlers: HashMap<TaskChannel, [Option<u32>; 2]>,
}

const SENDING: usize = 0;
const RECEIVING: usize = 1;

impl Peers {
    pub(super) fn new(
        input: ScanInput<'_>,
        threads: &[u32],
        sections: &[DimSection],
    ) -> Result<Peers, TraceError> {
        let mut peers = Peers {
            first: vec![0],
            ..Peers::default()
        };
        for threads in threads {
            let end = peers.first[peers.first.len() - 1] + threads;
            peers.first.push(end);
        }
        if threads.iter().any(|threads| *threads > 1) {
            let tasks = threads.iter().enumerate();
            peers.task_of = tasks
                .flat_map(|(task, threads)| std::iter::repeat_n(task as u32, *threads as usize))
                .collect();
            for section in sections {
                peers.find_handlers(input, section)?;
            }
        }
        Ok(peers)
    }

    /// Finds the threads that handle the messages of a section. It skips invalid lines, because the second pass reports
    /// their errors.
    fn find_handlers(
        &mut self,
        input: ScanInput<'_>,
        section: &DimSection,
    ) -> Result<(), TraceError> {
        let mut cursor = Cursor {
            text: &input.text[..section.end],
            at: section.start,
        };
        let mut tail = Tail::default();
        while !cursor.finished() {
            let start = cursor.at;
            let kind = cursor.integer();
            let (side, form) = if kind == Some(2) {
                (SENDING, "send")
            } else {
                (RECEIVING, "receive")
            };
            let read = match kind {
                Some(2 | 3)
                    if cursor.eat(b':')
                        && cursor.integer().is_some()
                        && cursor.eat(b':')
                        && cursor.integer().is_some()
                        && cursor.eat(b':') =>
                {
                    DimMessage::read(&mut cursor, form, self, &mut tail).ok()
                }
                _ => None,
            };
            if let Some(message) = read.filter(|message| message.thread < 0) {
                self.note_handler(side, section, &message).map_err(|other| {
                    let DimMessage { peer, tag, communicator, .. } = message;
                    let found = format!(
                        "a {form} of thread {}, after one of thread {other} (task {}, peer {peer}, tag {tag}, \
                         communicator {communicator})",
                        section.thread, section.task
                    );
                    input.fault(start, found, "one thread for all messages with the same task, peer, tag and communicator")
                })?;
            }
            cursor.until(b'\n');
            cursor.eat_line_end();
        }
        Ok(())
    }

    fn note_handler(
        &mut self,
        side: usize,
        section: &DimSection,
        message: &DimMessage,
    ) -> Result<(), u32> {
        let (from, to) = if side == SENDING {
            (section.task, message.peer)
        } else {
            (message.peer, section.task)
        };
        let channel = (from, to, message.tag, message.communicator);
        let handler = &mut self.handlers.entry(channel).or_default()[side];
        match handler.replace(section.thread) {
            Some(other) if other != section.thread => Err(other),
            _ => Ok(()),
        }
    }

    pub(super) fn tasks(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    pub(super) fn threads_of(&self, task: u32) -> u32 {
        self.first[task as usize + 1] - self.first[task as usize]
    }

    pub(super) fn rank(&self, task: u32, thread: u32) -> Rank {
        Rank(self.first[task as usize] + thread)
    }

    pub(super) fn task(&self, rank: Rank) -> u32 {
        self.task_of.get(rank.index()).copied().unwrap_or(rank.0)
    }

    /// Returns task and thread of each rank; empty if each task has one thread.
    pub(super) fn threads(&self) -> Vec<(u32, u32)> {
        self.task_of
            .iter()
            .enumerate()
            .map(|(rank, task)| (*task, rank as u32 - self.first[*task as usize]))
            .collect()
    }

    /// Returns the channel of a send, with the receiving rank.
    #[inline(always)]
    pub(super) fn receiver(&self, task: u32, message: &DimMessage) -> Channel {
        self.channel(message, RECEIVING, task, message.peer)
    }

    /// Returns the channel of a receive, with the sending rank.
    #[inline(always)]
    pub(super) fn sender(&self, task: u32, message: &DimMessage) -> Channel {
        self.channel(message, SENDING, message.peer, task)
    }

    #[inline(always)]
    fn channel(&self, message: &DimMessage, side: usize, from: u32, to: u32) -> Channel {
        let DimMessage {
            peer,
            tag,
            communicator,
            ..
        } = *message;
        if self.task_of.is_empty() {
            return Channel {
                peer: Rank(peer),
                tag,
                communicator,
            };
        }
        let thread = u32::try_from(message.thread).unwrap_or_else(|_| {
            let handlers = self.handlers.get(&(from, to, tag, communicator));
            handlers.and_then(|handlers| handlers[side]).unwrap_or(0)
        });
        Channel {
            peer: self.rank(peer, thread),
            tag,
            communicator,
        }
    }

    /// Returns the communicators, with the rank of each task that calls their collectives.
    pub(super) fn resolve_members(
        &self,
        communicators: Vec<Communicator>,
        ranks: &[RankBuilder],
    ) -> Result<Vec<Communicator>, Fault> {
        if self.task_of.is_empty() {
            return Ok(communicators);
        }
        communicators
            .into_iter()
            .map(|communicator| {
                let members = communicator
                    .members
                    .iter()
                    .map(|task| self.caller(communicator.id, task.0, ranks))
                    .collect::<Result<_, _>>()?;
                Ok(Communicator {
                    id: communicator.id,
                    members,
                })
            })
            .collect()
    }

    fn caller(&self, communicator: i32, task: u32, ranks: &[RankBuilder]) -> Result<Rank, Fault> {
        let own = self.first[task as usize]..self.first[task as usize + 1];
        let callers: Vec<u32> = own
            .filter(|rank| {
                let calls = ranks[*rank as usize].collectives_on(communicator);
                calls.is_some()
            })
            .collect();
        match callers[..] {
            [] => Ok(self.rank(task, 0)),
            [rank] => Ok(Rank(rank)),
            [one, other, ..] => Err(Fault::value(
                format!(
                    "collectives on communicator {communicator} by threads {} and {} of task {task}",
                    one - self.first[task as usize],
                    other - self.first[task as usize]
                ),
                "one thread for all collectives of a task on a communicator",
            )),
        }
    }
}
