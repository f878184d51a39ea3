//! The receiving end of a connection: what has come, and when to acknowledge.
//!
//! RFC 5681 section 4.2 and Linux: an ACK to every second full packet, to the last of a message, to whatever comes
//! beside a gap, else after 40 ms; a connection begins with 16 packets that are acknowledged one by one (quick
//! acknowledgements) unless its windows are fixed.
//!
//! The receiver of a connection whose other direction carries messages as well, as between ranks of a program, lets these
//! carry its ACKs (`Receiver::ride`): once it has sent a message soon after one that came, it holds back the ACK to a
//! message of one packet, until the next comes, until it has itself something to send, or for 40 ms, after which it ACKs at
//! once again (Linux: the ping-pong mode of a socket).
//!
//! An ACK says how many packets have come. As the connection remembers in which order they came, this tells the
//! sender as much as selective acknowledgements (RFC 2018) without a limit on their blocks, and a lost ACK is made
//! good by the next one.

use std::collections::VecDeque;

use super::{
    frame::Place,
    order::{SegmentArrival, SegmentOrder},
    picos::Picos,
    shift::Shift,
};

/// Packets that one ACK covers.
const PACKETS_PER_ACK: u32 = 2;
/// How long an ACK is held back at most (Linux' least delay).
pub(super) const LONGEST_DELAY: Picos = Picos::from_millis(40);
/// Packets acknowledged one by one at the beginning.
const QUICK_PACKETS: u32 = 16;

/// How ACKs begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// One for each of the first packets.
    Quick,
    /// One for every second from the start.
    Delayed,
}

/// Whether it matters in which order packets came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiverMemory {
    /// None gets lost: their number says it all.
    Count,
    /// Which came when: some may get lost or overtake.
    Whole,
}

/// What has come, and what was said about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Receiver {
    order: SegmentOrder,
    /// Transmissions in the order of their coming, as far as the sender has not heard of them.
    unheard: VecDeque<u32>,
    heard: u32,
    came: u32,
    unacknowledged: u32,
    quick: u32,
    ack_by: Picos,
    last_came: Picos,
    /// Whether ACKs wait for messages that go the other way.
    is_ping_pong: bool,
    memory: ReceiverMemory,
}

impl Receiver {
    pub(super) fn new(beginning: Beginning, memory: ReceiverMemory) -> Receiver {
        Receiver {
            order: SegmentOrder::default(),
            unheard: VecDeque::new(),
            heard: 0,
            came: 0,
            unacknowledged: 0,
            quick: if beginning == Beginning::Quick {
                QUICK_PACKETS
            } else {
                0
            },
            ack_by: Picos::NEVER,
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

    /// When a held-back ACK is due.
    #[inline]
    pub(super) fn ack_by(&self) -> Picos {
        self.ack_by
    }

    /// A packet comes in the given transmission; whether it is to be acknowledged now.
    #[inline]
    pub(super) fn take(
        &mut self,
        now: Picos,
        transmission: u32,
        packet: u32,
        place: Place,
    ) -> bool {
        let gap = self.order.ahead() > 0;
        let arrival = self.order.insert(packet);
        if self.memory == ReceiverMemory::Whole {
            self.unheard.push_back(transmission);
        }
        self.came += 1;
        self.unacknowledged += 1;
        self.last_came = now;
        let is_quick = self.quick > 0;
        self.quick -= u32::from(is_quick);
        let is_eager = !self.is_ping_pong && (is_quick || place == Place::Last);
        if gap
            || arrival != SegmentArrival::InOrder
            || is_eager
            || self.unacknowledged >= PACKETS_PER_ACK
        {
            return true;
        }
        self.ack_by = now + LONGEST_DELAY;
        false
    }

    /// A message leaves this end; the ACK that it carries.
    #[inline]
    pub(super) fn ride(&mut self, now: Picos) -> u32 {
        self.is_ping_pong |= self.came > 0 && now.since(self.last_came) < LONGEST_DELAY;
        self.ack()
    }

    /// An ACK was held back for as long as may be.
    pub(super) fn ack_late(&mut self) -> u32 {
        self.is_ping_pong = false;
        self.ack()
    }

    /// The ACK of everything that arrived.
    #[inline]
    pub(super) fn ack(&mut self) -> u32 {
        self.unacknowledged = 0;
        self.ack_by = Picos::NEVER;
        self.came
    }

    /// Packets that have come.
    pub(super) fn came(&self) -> u32 {
        self.came
    }

    /// Whether packets have come that the sender has not heard of.
    pub(super) fn is_live(&self) -> bool {
        self.heard < self.came
    }

    /// The same, so much later.
    pub(super) fn shift(&mut self, by: Shift) {
        self.order.shift(by.packets);
        self.unheard
            .iter_mut()
            .for_each(|transmission| *transmission += by.packets);
        self.heard += by.packets;
        self.came += by.packets;
        self.ack_by += by.time;
        self.last_came += by.time;
    }

    /// How many packets an ACK newly acknowledges, if all arrive in order: none if a later one took a faster way.
    #[inline]
    pub(super) fn hear_count(&mut self, ack: u32) -> u32 {
        let more = ack.saturating_sub(self.heard);
        self.heard += more;
        more
    }

    /// The next transmission that an ACK of this number newly acknowledges.
    #[inline]
    pub(super) fn hear(&mut self, ack: u32) -> Option<u32> {
        if self.heard >= ack {
            return None;
        }
        self.heard += 1;
        self.unheard.pop_front()
    }
}
