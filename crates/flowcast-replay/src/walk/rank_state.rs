//! Progress of a rank, and its times on each of the networks.

use super::lanes::{Times, later};
use crate::{outcome::RankOutcome, transit::ReceivePosted};
use flowcast_program::{program::Program, slot::Slot};
use flowcast_units::{Rank, Time};

/// State of a rank. The order in which ranks run does not depend on times, so only the times differ between networks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankState<'a, const W: usize> {
    pub(super) words: &'a [u32],
    /// Position of the next instruction.
    pub(super) at: usize,
    pub(super) first_slot: Slot,
    /// Slot of the next receive to post.
    pub(super) next_slot: Slot,
    /// `true` if the instruction has been started and waits for other ranks.
    pub(super) entered: bool,
    pub(super) done: bool,
    pub time: Times<W>,
    pub compute: Times<W>,
    /// Earliest time at which the sending interface may start the next message.
    pub(super) interface_free: Times<W>,
    /// Time at which it last left a call in which it polled for messages, on the first network.
    pub(super) polled: Time,
    /// Overhead on the first network.
    pub overhead: Time,
}

/// The processor's part of a send on the first network: the times of its call, start and end.
#[derive(Clone, Copy)]
pub(super) struct StartedSend {
    pub call: Time,
    pub start: Time,
    pub end: Time,
}

impl<'a, const W: usize> RankState<'a, W> {
    pub(super) fn new(program: &'a Program, rank: Rank) -> RankState<'a, W> {
        let first_slot = program.first_slot(rank);
        let none = [Time::ZERO; W];
        RankState {
            words: program.words(rank),
            at: 0,
            first_slot,
            next_slot: first_slot,
            entered: false,
            done: false,
            time: none,
            compute: none,
            interface_free: none,
            polled: ReceivePosted::NEVER,
            overhead: Time::ZERO,
        }
    }

    /// Moves the start of the rank to `time`, with its interface free from `free` on.
    pub(super) fn from(self, time: Time, free: Time) -> RankState<'a, W> {
        RankState {
            time: [time; W],
            interface_free: [free; W],
            ..self
        }
    }

    /// Executes the processor's part of a send, once the interface is free; the message departs at the end of this part.
    #[inline(always)]
    pub(super) fn begin_send(
        &mut self,
        overhead: &Times<W>,
        busy: Option<&Times<W>>,
    ) -> StartedSend {
        let call = self.time[0];
        let start = if busy.is_some() {
            later(self.interface_free[0], call)
        } else {
            call
        };
        for lane in 0..W {
            let mut start = self.time[lane];
            if let Some(busy) = busy {
                start = later(self.interface_free[lane], start);
                self.interface_free[lane] = start + busy[lane];
            }
            self.time[lane] = start + overhead[lane];
        }
        self.overhead += overhead[0];
        StartedSend {
            call,
            start,
            end: self.time[0],
        }
    }

    /// Executes the processor's part of a send that leaves its message to the interface. Also returns the time of departure.
    #[inline(always)]
    pub(super) fn begin_queued_send(
        &mut self,
        overhead: &Times<W>,
        busy: &Times<W>,
    ) -> (StartedSend, Times<W>) {
        let call = self.time[0];
        let mut departs = [Time::ZERO; W];
        for lane in 0..W {
            let start = later(self.interface_free[lane], self.time[lane]);
            self.interface_free[lane] = start + busy[lane];
            departs[lane] = start + overhead[lane];
            self.time[lane] += overhead[lane];
        }
        self.overhead += overhead[0];
        (
            StartedSend {
                call,
                start: call,
                end: self.time[0],
            },
            departs,
        )
    }
}

impl RankState<'_, 1> {
    pub(super) fn outcome(&self) -> RankOutcome {
        RankOutcome::new(self.time[0], self.compute[0], self.overhead)
    }
}
