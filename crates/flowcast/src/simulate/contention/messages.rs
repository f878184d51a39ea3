//! The messages that are under way or wait for something, and the queues in which they wait.

/// No message, pool, rank or bus.
pub const NONE: u32 = u32::MAX;

/// What a message does to the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// An ordinary message; it fills a slot.
    Deliver,
    /// A rank's part of a root-synchronous collective; the slot is the execution's number.
    Part,
    /// Not a message: a collective that takes all buses; the slot is the execution's number.
    Collective,
}

/// A message between its send and its arrival.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// The receiver's slot, or what the purpose says.
    pub slot: u32,
    /// Sender.
    pub from: u32,
    /// Receiver.
    pub to: u32,
    /// Message class; for a collective: the buses that it holds so far.
    pub class: u32,
    /// What for.
    pub purpose: Purpose,
    /// Whether the blocked sender goes on when the message moves.
    pub holds_sender: bool,
    /// Whether both ranks are on one node.
    pub inside: bool,
    /// Whether it has an out link.
    pub has_out: bool,
    /// Whether it has an in link.
    pub has_in: bool,
    /// The pool of links that it leaves through.
    pub source: u32,
    /// The pool of links that it comes in through.
    pub destination: u32,
    /// The set of buses that it needs one of.
    pub bus: u32,
    /// When it was handed to the network.
    pub asked: f64,
    /// How long the transfer of a part takes.
    pub part_nanos: f64,
    previous: u32,
    next: u32,
}

impl Message {
    /// A message that has nothing yet.
    pub fn new(slot: u32, (from, to): (u32, u32), class: u32, purpose: Purpose) -> Message {
        Message {
            slot,
            from,
            to,
            class,
            purpose,
            holds_sender: false,
            inside: false,
            has_out: false,
            has_in: false,
            source: NONE,
            destination: NONE,
            bus: NONE,
            asked: 0.0,
            part_nanos: 0.0,
            previous: NONE,
            next: NONE,
        }
    }
}

/// The messages, by number; numbers are used again.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    all: Vec<Message>,
    free: Vec<u32>,
}

impl Messages {
    /// Keeps a message.
    #[inline(always)]
    pub fn add(&mut self, message: Message) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = message;
                number
            }
            None => {
                self.all.push(message);
                self.all.len() as u32 - 1
            }
        }
    }

    /// Forgets a message.
    #[inline(always)]
    pub fn remove(&mut self, number: u32) {
        self.free.push(number);
    }
}

impl std::ops::Index<u32> for Messages {
    type Output = Message;

    #[inline(always)]
    fn index(&self, number: u32) -> &Message {
        &self.all[number as usize]
    }
}

impl std::ops::IndexMut<u32> for Messages {
    #[inline(always)]
    fn index_mut(&mut self, number: u32) -> &mut Message {
        &mut self.all[number as usize]
    }
}

/// A queue of messages, linked through them; a message stands in one queue at most.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    /// An empty queue.
    pub const EMPTY: Queue = Queue { first: NONE, last: NONE };

    /// The head.
    #[inline(always)]
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Appends.
    pub fn push_back(&mut self, messages: &mut Messages, number: u32) {
        messages[number].previous = self.last;
        messages[number].next = NONE;
        match self.last {
            NONE => self.first = number,
            last => messages[last].next = number,
        }
        self.last = number;
    }

    /// Puts in front of all.
    pub fn push_front(&mut self, messages: &mut Messages, number: u32) {
        messages[number].previous = NONE;
        messages[number].next = self.first;
        match self.first {
            NONE => self.last = number,
            first => messages[first].previous = number,
        }
        self.first = number;
    }

    /// Takes the head.
    #[inline]
    pub fn pop_front(&mut self, messages: &mut Messages) -> Option<u32> {
        let number = self.first()?;
        self.remove(messages, number);
        Some(number)
    }

    /// Takes a message out that stands in this queue.
    pub fn remove(&mut self, messages: &mut Messages, number: u32) {
        let Message { previous, next, .. } = messages[number];
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
        fn a_queue_gives_out_as_a_list_does(steps in proptest::collection::vec((0u8..4, any::<u8>()), 1..100)) {
            let mut messages = Messages::default();
            let mut queue = Queue::EMPTY;
            let mut list: Vec<u32> = Vec::new();
            for (action, choice) in steps {
                match action {
                    0 | 1 => {
                        let number = messages.add(Message::new(0, (0, 0), 0, Purpose::Deliver));
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
