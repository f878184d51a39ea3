//! Messages that are in flight or waiting, and their queues.

use crate::slab::Slab;
use flowcast_program::slot::Slot;
use flowcast_units::{Rank, Time};

/// Number that stands for no message, pool, rank or bus.
pub(super) const NONE: u32 = u32::MAX;

/// Effect of a message on the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Purpose {
    /// An ordinary message; it fills a slot.
    Deliver,
    /// A rank's part of a root-synchronous collective; the slot is the execution's number.
    Part,
    /// A one-sided transfer, whose number is stored as the class; the slot is the number of the access.
    Transfer,
    /// Not a message: a collective that takes all buses; the slot is the execution's number.
    Collective,
}

/// Properties of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum MessageMark {
    /// Both ranks are on the same node.
    Inside = 2,
    /// It goes to another node of the site: it may be preempted on its out link, and it shares the network if messages do.
    Steals = 4,
    /// It has an out link.
    HasOut = 8,
    /// It has an in link.
    HasIn = 16,
    /// It requests its in link first.
    InFirst = 32,
    /// It uses a dedicated connection.
    Connected = 64,
}

/// The bus that a message needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BusState(pub u16);

impl BusState {
    /// The message needs no bus.
    pub(super) const NONE: BusState = BusState(0);
    /// A bus of its node.
    pub(super) const INSIDE: BusState = BusState(1);
}

/// A message between its send and its arrival. It has half the size of a cache line, since many are in flight at the same
/// time.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
pub(super) struct ContendedMessage {
    /// Slot at the receiver, or another number that the purpose determines.
    pub slot: Slot,
    /// Rank of the sender.
    pub from: Rank,
    /// Message class; for a collective, the number of buses that it holds so far.
    pub class: u32,
    /// Pool of links through which it leaves; for a collective, the number of its sites whose buses it has requested.
    pub source: u32,
    /// Pool of links through which it arrives.
    pub destination: u32,
    previous: u32,
    next: u32,
    /// Buses of which it needs one.
    pub bus: BusState,
    /// Purpose of the message, which determines the meaning of `slot`.
    pub purpose: Purpose,
    marks: u8,
}

impl ContendedMessage {
    /// A message without links or a bus.
    pub(super) fn new(slot: Slot, from: Rank, class: u32, purpose: Purpose) -> ContendedMessage {
        ContendedMessage {
            slot,
            from,
            class,
            source: NONE,
            destination: NONE,
            previous: NONE,
            next: NONE,
            bus: BusState::NONE,
            purpose,
            marks: 0,
        }
    }

    /// `true` if the message has this property.
    #[inline(always)]
    pub(super) fn is(&self, mark: MessageMark) -> bool {
        self.marks & mark as u8 != 0
    }

    /// Sets a property.
    #[inline(always)]
    pub(super) fn mark(&mut self, mark: MessageMark) {
        self.marks |= mark as u8;
    }

    /// Clears a property.
    #[inline(always)]
    pub(super) fn unmark(&mut self, mark: MessageMark) {
        self.marks &= !(mark as u8);
    }
}

/// Messages, indexed by number; numbers are reused.
#[derive(Debug, Clone, Default)]
pub(super) struct MessageStore {
    all: Slab<ContendedMessage>,
    /// Times of the messages, for the numbers that need them.
    times: Vec<MessageTimes>,
}

/// Times of a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MessageTimes {
    /// Time at which it was handed to the network.
    pub asked: Time,
    /// Time on the links and time in flight of messages that are not ordinary: parts of root-synchronous collectives,
    /// one-sided transfers.
    pub part: (Time, Time),
}

impl MessageStore {
    /// An empty store with room for this number of messages at the same time.
    pub(super) fn with_capacity(count: usize) -> MessageStore {
        MessageStore {
            all: Slab::with_capacity(count),
            ..MessageStore::default()
        }
    }

    /// Stores a message and returns its number.
    #[inline(always)]
    pub(super) fn add(&mut self, message: ContendedMessage) -> u32 {
        self.all.insert(message)
    }

    /// Removes a message; its number can then be reused.
    #[inline(always)]
    pub(super) fn remove(&mut self, number: u32) {
        self.all.give_back(number);
    }

    /// Prefetches a message, if there is one with that number.
    #[inline(always)]
    pub(super) fn prefetch(&self, number: u32) {
        self.all.prefetch(number);
    }

    /// Times of a message.
    pub(super) fn times(&mut self, number: u32) -> &mut MessageTimes {
        let index = number as usize;
        if self.times.len() <= index {
            self.times.resize(index + 1, MessageTimes::default());
        }
        &mut self.times[index]
    }
}

impl std::ops::Index<u32> for MessageStore {
    type Output = ContendedMessage;

    #[inline(always)]
    fn index(&self, number: u32) -> &ContendedMessage {
        &self.all[number]
    }
}

impl std::ops::IndexMut<u32> for MessageStore {
    #[inline(always)]
    fn index_mut(&mut self, number: u32) -> &mut ContendedMessage {
        &mut self.all[number]
    }
}

/// A queue of messages, linked through the messages themselves. A message is in at most one queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    /// An empty queue.
    pub(super) const EMPTY: Queue = Queue {
        first: NONE,
        last: NONE,
    };

    /// First message; `None` if the queue is empty.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// First message; [`NONE`] if the queue is empty.
    #[inline(always)]
    pub(super) fn first_or_none(&self) -> u32 {
        self.first
    }

    /// Appends the message with this number, which must not be in any queue.
    pub(super) fn push_back(&mut self, messages: &mut MessageStore, number: u32) {
        messages[number].previous = self.last;
        messages[number].next = NONE;
        match self.last {
            NONE => self.first = number,
            last => messages[last].next = number,
        }
        self.last = number;
    }

    /// Inserts a message at the front.
    pub(super) fn push_front(&mut self, messages: &mut MessageStore, number: u32) {
        messages[number].previous = NONE;
        messages[number].next = self.first;
        match self.first {
            NONE => self.last = number,
            first => messages[first].previous = number,
        }
        self.first = number;
    }

    /// Removes and returns the first message.
    #[inline]
    pub(super) fn pop_front(&mut self, messages: &mut MessageStore) -> Option<u32> {
        let number = self.first()?;
        self.remove(messages, number);
        Some(number)
    }

    /// Removes a message that is in this queue.
    pub(super) fn remove(&mut self, messages: &mut MessageStore, number: u32) {
        let ContendedMessage { previous, next, .. } = messages[number];
        match previous {
            NONE => self.first = next,
            previous => messages[previous].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => messages[next].previous = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_queue_gives_the_order_of_a_list(steps in proptest::collection::vec((0u8..4, any::<u8>()), 1..100)) {
            let mut messages = MessageStore::default();
            let mut queue = Queue::EMPTY;
            let mut list: Vec<u32> = Vec::new();
            for (action, choice) in steps {
                match action {
                    0 | 1 => {
                        let number = messages.add(ContendedMessage::new(Slot(0), Rank(0), 0, Purpose::Deliver));
                        prop_assert!(!list.contains(&number));
                        if action == 0 {
                            queue.push_back(&mut messages, number);
                            list.push(number);
                        } else {
                            queue.push_front(&mut messages, number);
                            list.insert(0, number);
                        }
                    }
                    2 if !list.is_empty() => {
                        let number = list.remove(usize::from(choice) % list.len());
                        queue.remove(&mut messages, number);
                        messages.remove(number);
                    }
                    _ => {
                        let first = if list.is_empty() { None } else { Some(list.remove(0)) };
                        prop_assert_eq!(queue.pop_front(&mut messages), first);
                    }
                }
                prop_assert_eq!(queue.first(), list.first().copied());
            }
        }
    }
}
