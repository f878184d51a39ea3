//! The links of one node or rank.

use super::messages::{Messages, Queue};

/// The links of a node, or of a rank for messages inside its node.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    pub half_duplex: bool,
    pub free_in: u32,
    pub free_out: u32,
    pub waiting_in: Queue,
    pub waiting_out: Queue,
    /// Messages that have an out link, in the order of acquisition; as many as links at most.
    pub holding: Vec<u32>,
}

impl Pool {
    /// Exactly one count of 0 makes the links half duplex.
    pub fn new(links_in: u32, links_out: u32) -> Pool {
        let half_duplex = links_in == 0 || links_out == 0;
        let most = links_in.max(links_out);
        let (free_in, free_out) = if half_duplex { (most, most) } else { (links_in, links_out) };
        let (waiting_in, waiting_out) = (Queue::EMPTY, Queue::EMPTY);
        Pool { half_duplex, free_in, free_out, waiting_in, waiting_out, holding: Vec::new() }
    }

    /// The first message that has an out link and waits for its in link.
    #[inline]
    pub fn victim(&self, messages: &Messages) -> Option<u32> {
        self.holding.iter().copied().find(|number| !messages[*number].has_in)
    }

    #[inline]
    pub fn take_out(&mut self) -> bool {
        let free = self.free_out > 0;
        if free {
            self.free_out -= 1;
            self.free_in -= u32::from(self.half_duplex);
        }
        free
    }

    #[inline]
    pub fn take_in(&mut self) -> bool {
        let free = self.free_in > 0;
        if free {
            self.free_in -= 1;
            self.free_out -= u32::from(self.half_duplex);
        }
        free
    }
}
