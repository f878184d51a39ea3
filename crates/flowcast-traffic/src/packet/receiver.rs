//! The receiving end of a connection: packets that have arrived, and times of acknowledgements.
//!
//! RFC 5681 section 4.2 and Linux: an ACK is sent for every second full packet, for the last packet of a message, and for
//! any packet that opens, follows or fills a gap; otherwise after 40 ms. The first 16 packets of a connection are
//! acknowledged one by one (quick acknowledgements) unless its windows are fixed.
//!
//! If the other direction of the connection carries messages as well, as between ranks of a program, these carry the
//! receiver's ACKs (`Receiver::ride`). Once the receiver has sent a message soon after one that arrived, it delays the ACK
//! of a message of one packet until the next one arrives, until it has data to send, or for 40 ms. After such a full delay
//! it acknowledges immediately again (Linux: the ping-pong mode of a socket).
//!
//! An ACK contains the number of packets that have arrived. The connection remembers the order of their arrival, so an ACK
//! gives the sender as much information as selective acknowledgements (RFC 2018) without a limit on their blocks, and the
//! next ACK makes up for a lost one.

use std::collections::VecDeque;

use super::{
    frame::Place,
    order::{SegmentArrival, SegmentOrder},
    picos::Picos,
    shift::Shift,
};

/// Number of packets that one ACK covers.
const PACKETS_PER_ACK: u32 = 2;
/// Longest delay of an ACK (Linux' least delay).
pub(super) const LONGEST_DELAY: Picos = Picos::from_millis(40);
/// Number of packets that are acknowledged one by one at the beginning.
const QUICK_PACKETS: u32 = 16;

/// Acknowledgement of the first packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// One ACK for each of the first packets.
    Quick,
    /// One ACK for every second packet from the start.
    Delayed,
}

/// Memory of the arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiverMemory {
    /// Number of packets: this is sufficient if none gets lost.
    Count,
    /// Order of arrival: packets may get lost or overtake each other.
    Whole,
}

/// Packets that have arrived, and their acknowledgement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Receiver {
    order: SegmentOrder,
    /// Transmissions that have arrived without the sender's knowledge, in the order of arrival.
    unheard: VecDeque<u32>,
    heard: u32,
    came: u32,
    unacknowledged: u32,
    quick: u32,
    ack_by: Picos,
    last_came: Picos,
    /// `true` if ACKs wait for messages in the other direction.
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

    /// First packet that is missing.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.order.next()
    }

    /// Time at which a delayed ACK is due.
    #[inline]
    pub(super) fn ack_by(&self) -> Picos {
        self.ack_by
    }

    /// Accepts a packet that arrives in the given transmission. Returns `true` if it must be acknowledged now.
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

    /// Returns the ACK that a message leaving this end carries.
    #[inline]
    pub(super) fn ride(&mut self, now: Picos) -> u32 {
        self.is_ping_pong |= self.came > 0 && now.since(self.last_came) < LONGEST_DELAY;
        self.ack()
    }

    /// Returns an ACK that was delayed as long as allowed.
    pub(super) fn ack_late(&mut self) -> u32 {
        self.is_ping_pong = false;
        self.ack()
    }

    /// Returns the ACK of everything that has arrived.
    #[inline]
    pub(super) fn ack(&mut self) -> u32 {
        self.unacknowledged = 0;
        self.ack_by = Picos::NEVER;
        self.came
    }

    /// Number of packets that have arrived.
    pub(super) fn came(&self) -> u32 {
        self.came
    }

    /// `true` if packets have arrived that the sender does not know of yet.
    pub(super) fn is_live(&self) -> bool {
        self.heard < self.came
    }

    /// Advances all times and numbers.
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

    /// Returns the number of packets that an ACK newly acknowledges, if all arrive in order; 0 if a later ACK has overtaken
    /// it.
    #[inline]
    pub(super) fn hear_count(&mut self, ack: u32) -> u32 {
        let more = ack.saturating_sub(self.heard);
        self.heard += more;
        more
    }

    /// Returns the next transmission that an ACK with this number newly acknowledges.
    #[inline]
    pub(super) fn hear(&mut self, ack: u32) -> Option<u32> {
        if self.heard >= ack {
            return None;
        }
        self.heard += 1;
        self.unheard.pop_front()
    }
}
