//! Buses: a message takes one, a collective takes all of them, first come, first served.
//!
//! A collective that comes while messages are in flight keeps every bus that becomes free until it has them all.

use super::messages::{MessageStore, Purpose, Queue};

/// A number of buses and those that wait for them. Whoever waits does so because all are taken.
#[derive(Debug, Clone)]
pub(super) struct BusPool {
    count: u32,
    taken: u32,
    waiting: Queue,
}

impl BusPool {
    /// All free.
    pub(super) fn new(count: u32) -> BusPool {
        BusPool {
            count,
            taken: 0,
            waiting: Queue::EMPTY,
        }
    }

    /// Whether there is a limit.
    pub(super) fn is_limited(&self) -> bool {
        self.count > 0
    }

    /// Takes one for a message, or makes it wait.
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

    /// Takes all for a collective, or takes those that are free and makes it wait for the others.
    pub(super) fn take_all(&mut self, messages: &mut MessageStore, number: u32) -> bool {
        let free = self.taken == 0;
        if !free {
            messages[number].class = self.count - self.taken;
            self.waiting.push_back(messages, number);
        }
        self.taken = self.count;
        free
    }

    /// Gives back the one of a message.
    #[inline]
    pub(super) fn release(&mut self, messages: &mut MessageStore, granted: &mut Vec<u32>) {
        self.taken -= 1;
        self.serve(messages, granted);
    }

    /// Gives back all.
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
