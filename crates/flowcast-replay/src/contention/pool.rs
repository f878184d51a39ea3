//! The links of one node, rank, site or connection.

use std::collections::VecDeque;

use super::messages::{MessageMark, MessageStore, NONE, Queue};

/// Index of the links for incoming messages.
pub(super) const IN: usize = 0;

/// Index of the links for outgoing messages.
pub(super) const OUT: usize = 1;

/// The links of a node, of a rank for messages inside its node, of a site or of a dedicated connection.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct ResourcePool {
    pub half_duplex: bool,
    /// Number of free links in each direction.
    pub free: [u32; 2],
    pub waiting: [Queue; 2],
    /// Messages that may be preempted on their out link, in the order of acquisition. The first is stored here, because most
    /// pools have one link and data behind a pointer are not in the cache.
    first_holder: u32,
    other_holders: VecDeque<u32>,
}

impl ResourcePool {
    /// Creates the links. If exactly one count is 0, they are half duplex.
    pub(super) fn new(links_in: u32, links_out: u32) -> ResourcePool {
        let half_duplex = links_in == 0 || links_out == 0;
        let most = links_in.max(links_out);
        ResourcePool {
            half_duplex,
            free: if half_duplex {
                [most; 2]
            } else {
                [links_in, links_out]
            },
            waiting: [Queue::EMPTY; 2],
            first_holder: NONE,
            other_holders: VecDeque::new(),
        }
    }

    /// The message that has held an out link for the longest time; [`NONE`] if there is none.
    #[inline(always)]
    pub(super) fn first_holder(&self) -> u32 {
        self.first_holder
    }

    /// The first message that has an out link and waits for its in link.
    #[inline]
    pub(super) fn victim(&self, messages: &MessageStore) -> Option<u32> {
        let waits = |number: &u32| !messages[*number].is(MessageMark::HasIn);
        let first = (self.first_holder != NONE).then_some(self.first_holder);
        first
            .filter(waits)
            .or_else(|| self.other_holders.iter().copied().find(waits))
    }

    /// Records that a message has got an out link.
    #[inline]
    pub(super) fn hold(&mut self, number: u32) {
        match self.first_holder {
            NONE => self.first_holder = number,
            _ => self.other_holders.push_back(number),
        }
    }

    /// Records that a message no longer has an out link.
    #[inline]
    pub(super) fn let_go(&mut self, number: u32) {
        if self.first_holder == number {
            self.first_holder = self.other_holders.pop_front().unwrap_or(NONE);
        } else {
            let place = self
                .other_holders
                .iter()
                .position(|held| *held == number)
                .expect("a message with a link is listed");
            self.other_holders.remove(place);
        }
    }

    /// Records that one message has taken the out link of another.
    pub(super) fn hand_on(&mut self, from: u32, to: u32) {
        if self.first_holder == from {
            self.first_holder = to;
            return;
        }
        let place = self
            .other_holders
            .iter()
            .position(|held| *held == from)
            .expect("a message with a link is listed");
        self.other_holders[place] = to;
    }

    /// Takes a link in this direction and returns `true`, if one is free.
    #[inline(always)]
    pub(super) fn take(&mut self, way: usize) -> bool {
        let free = self.free[way] > 0;
        if free {
            self.free[way] -= 1;
            self.free[1 - way] -= u32::from(self.half_duplex);
        }
        free
    }
}
