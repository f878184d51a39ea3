//! The receiving end of a connection: what has come, and when to answer.
//!
//! RFC 5681 section 4.2 and Linux: an answer to every second full packet, to the last of a message, to whatever comes
//! beside a gap, else after 40 ms; a connection begins with 16 packets that are answered one by one (quick
//! acknowledgements) unless its windows are fixed.
//!
//! The receiver of a connection whose other direction carries messages as well, as between ranks of a program, lets these
//! carry its answers (`Receiver::ride`): once it has sent a message soon after one that came, it holds back the answer to a
//! message of one packet, until the next comes, until it has itself something to send, or for 40 ms, after which it answers at
//! once again (Linux: the ping-pong mode of a socket).
//!
//! An answer says how many packets have come. As the connection remembers in which order they came, this tells the
//! sender as much as selective acknowledgements (RFC 2018) without a limit on their blocks, and a lost answer is made
//! good by the next one.

use std::collections::VecDeque;

use super::frame::Place;
use super::order::{Arrival, Order};
use super::picos::Picos;

/// Packets that one answer covers.
const PACKETS_PER_ANSWER: u32 = 2;
/// How long an answer is held back at most (Linux' least delay).
pub(super) const LONGEST_DELAY: Picos = Picos::from_millis(40);
/// Packets answered one by one at the beginning.
const QUICK_PACKETS: u32 = 16;

/// How answers begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// One for each of the first packets.
    Quick,
    /// One for every second from the start.
    Delayed,
}

/// Whether it matters in which order packets came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// None gets lost: their number says it all.
    Count,
    /// Which and when.
    Whole,
}

/// What has come, and what was said about it.
#[derive(Debug, Clone)]
pub(super) struct Receiver {
    order: Order,
    /// Transmissions in the order of their coming, as far as the sender has not heard of them.
    unheard: VecDeque<u32>,
    heard: u32,
    came: u32,
    unanswered: u32,
    quick: u32,
    answer_by: Picos,
    last_came: Picos,
    /// Whether answers wait for messages that go the other way.
    is_ping_pong: bool,
    memory: Memory,
}

impl Receiver {
    pub(super) fn new(beginning: Beginning, memory: Memory) -> Receiver {
        Receiver {
            order: Order::default(),
            unheard: VecDeque::new(),
            heard: 0,
            came: 0,
            unanswered: 0,
            quick: if beginning == Beginning::Quick { QUICK_PACKETS } else { 0 },
            answer_by: Picos::NEVER,
            last_came: Picos::ZERO,
            is_ping_pong: false,
            memory,
        }
    }

    /// The first packet that is missing.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.order.next()
    }

    /// When a held-back answer is due.
    #[inline]
    pub(super) fn answer_by(&self) -> Picos {
        self.answer_by
    }

    /// A packet comes in the given transmission; whether it is to be answered now.
    #[inline]
    pub(super) fn take(&mut self, now: Picos, transmission: u32, packet: u32, place: Place) -> bool {
        let gap = self.order.ahead() > 0;
        let arrival = self.order.insert(packet);
        if self.memory == Memory::Whole {
            self.unheard.push_back(transmission);
        }
        self.came += 1;
        self.unanswered += 1;
        self.last_came = now;
        let is_quick = self.quick > 0;
        self.quick -= u32::from(is_quick);
        let is_eager = !self.is_ping_pong && (is_quick || place == Place::Last);
        if gap || arrival != Arrival::InOrder || is_eager || self.unanswered >= PACKETS_PER_ANSWER {
            return true;
        }
        self.answer_by = now + LONGEST_DELAY;
        false
    }

    /// A message leaves this end; the answer that it carries.
    #[inline]
    pub(super) fn ride(&mut self, now: Picos) -> u32 {
        self.is_ping_pong |= self.came > 0 && now.since(self.last_came) < LONGEST_DELAY;
        self.answer()
    }

    /// An answer was held back for as long as may be.
    pub(super) fn answer_late(&mut self) -> u32 {
        self.is_ping_pong = false;
        self.answer()
    }

    /// The answer that tells of all that came.
    #[inline]
    pub(super) fn answer(&mut self) -> u32 {
        self.unanswered = 0;
        self.answer_by = Picos::NEVER;
        self.came
    }

    /// How many packets an answer tells of that none before did, if all come in order.
    #[inline]
    pub(super) fn hear_count(&mut self, answer: u32) -> u32 {
        let more = answer - self.heard;
        self.heard = answer;
        more
    }

    /// The next transmission that an answer of this number tells of and none before did.
    #[inline]
    pub(super) fn hear(&mut self, answer: u32) -> Option<u32> {
        if self.heard >= answer {
            return None;
        }
        self.heard += 1;
        self.unheard.pop_front()
    }
}
