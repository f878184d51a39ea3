//! How far a rank has come, and its times on each of the networks.

use super::lanes::Times;
use crate::{outcome::RankOutcome, transit::ReceivePosted};
use flowcast_program::{program::Program, slot::Slot};
use flowcast_units::{Rank, Time};

/// Where a rank is. The order in which ranks run does not depend on times, so only these differ between networks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankState<'a, const W: usize> {
    pub(super) words: &'a [u32],
    /// The next instruction.
    pub(super) at: usize,
    pub(super) first_slot: Slot,
    /// The slot of the next receive to post.
    pub(super) next_slot: Slot,
    /// Whether the instruction was begun and waits for others.
    pub(super) entered: bool,
    pub(super) done: bool,
    pub time: Times<W>,
    pub compute: Times<W>,
    /// When the sending interface may start the next message.
    pub(super) interface_free: Times<W>,
    /// On the first network, when it last left a call in which it polled for messages.
    pub(super) polled: Time,
    /// On the first network.
    pub overhead: Time,
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

    /// The same where the rank begins at `time` and its interface is free at `free`.
    pub(super) fn from(self, time: Time, free: Time) -> RankState<'a, W> {
        RankState {
            time: [time; W],
            interface_free: [free; W],
            ..self
        }
    }
}

impl RankState<'_, 1> {
    pub(super) fn outcome(&self) -> RankOutcome {
        RankOutcome::new(self.time[0], self.compute[0], self.overhead)
    }
}
