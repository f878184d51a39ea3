//! Buses: a message takes one bus, a collective takes all of them. The order is first come, first served.
//!
//! A collective that arrives while messages are in flight keeps every bus that becomes free until it has all of them.

use super::messages::{MessageStore, Purpose, Queue};

/// A number of buses and the queue that waits for them. Messages wait only while all buses are taken.
#[derive(Debug, Clone)]
pub(super) struct BusPool {
    count: u32,
    taken: u32,
    waiting: Queue,
}

impl BusPool {
    /// A pool of `count` free buses; 0 is no limit.
    pub(super) fn new(count: u32) -> BusPool {
        BusPool {
            count,
            taken: 0,
            waiting: Queue::EMPTY,
        }
    }

    /// `true` if the number of buses is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.count > 0
    }

    /// Takes a bus for a message and returns `true`, or appends the message to the queue.
    #[inline]
    pub(super) fn take(&mut self, messages: &mut MessageStore, number: u32) -> bool {
        let free = self.taken < self.count;
        if free {
            self.taken += 1;
        } else {
            self.waiting.push_back(messages, number);
        }
        free
    }

    /// Takes all buses for a collective and returns `true`, or takes the free ones and appends the collective to the queue
    /// for the remaining ones.
    pub(super) fn take_all(&mut self, messages: &mut MessageStore, number: u32) -> bool {
        let free = self.taken == 0;
        if !free {
            messages[number].class = self.count - self.taken;
            self.waiting.push_back(messages, number);
        }
        self.taken = self.count;
        free
    }

    /// Releases the bus of a message.
    #[inline]
    pub(super) fn release(&mut self, messages: &mut MessageStore, granted: &mut Vec<u32>) {
        self.taken -= 1;
        self.serve(messages, granted);
    }

    /// Releases all buses at the end of a collective. Waiting messages that get their buses are appended to `granted`.
    pub(super) fn release_all(&mut self, messages: &mut MessageStore, granted: &mut Vec<u32>) {
        self.taken = 0;
        self.serve(messages, granted);
    }

    fn serve(&mut self, messages: &mut MessageStore, granted: &mut Vec<u32>) {
        while self.taken < self.count
            && let Some(first) = self.waiting.first()
        {
            if messages[first].purpose == Purpose::Collective {
                messages[first].class += self.count - self.taken;
                self.taken = self.count;
                if messages[first].class < self.count {
                    return;
                }
            } else {
                self.taken += 1;
            }
            self.waiting.remove(messages, first);
            granted.push(first);
        }
    }
}
