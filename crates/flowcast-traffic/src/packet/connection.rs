//! Both ends of a connection, without clock and network: frames and times go in, frames come out.

use super::PacketMessage;
use std::collections::VecDeque;

use super::{
    control::Control,
    frame::{Frame, Place},
    picos::Picos,
    receiver::{Beginning, Receiver, ReceiverMemory},
    sender::{Sender, SenderLimits},
    shift::Shift,
    stream::PacketStream,
};
use flowcast_network::sharing::protocol::{Congestion, Protocol};
use flowcast_units::{Bytes, Rate};

/// One connection.
#[derive(Debug, Clone)]
pub(super) struct PacketConnection {
    number: u32,
    wire: Rate,
    pub(super) stream: PacketStream,
    pub(super) ends: ConnectionEnds,
    /// ACKs of the other direction that data frames in flight carry, each with the number of the frame's transmission.
    riding: VecDeque<(u32, u32)>,
}

/// State of both ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConnectionEnds {
    sender: Sender,
    receiver: Receiver,
    host: HostQueue,
}

impl ConnectionEnds {
    /// Number of packets that have arrived since the state `then`.
    pub(super) fn moved(&self, then: &ConnectionEnds) -> u32 {
        self.receiver.came() - then.receiver.came()
    }

    /// `true` if the ends are in the state `then` again, with times and numbers advanced by `by`.
    pub(super) fn repeats(&self, then: &ConnectionEnds, by: Shift) -> bool {
        if by.packets == 0 {
            return self == then;
        }
        let mut later = then.clone();
        later.shift(by);
        self.sender.is_steady() && *self == later
    }

    fn is_live(&self) -> bool {
        self.sender.is_live() || self.receiver.is_live()
    }

    fn shift(&mut self, by: Shift) {
        self.sender.shift(by);
        self.receiver.shift(by);
    }
}

/// Queue of the sender's own interface.
#[derive(Debug, Clone, Copy, PartialEq)]
struct HostQueue {
    waiting: u32,
    most: u32,
    is_bounded: bool,
}

impl PacketConnection {
    /// Creates a connection for these messages, which are ordered by start and not empty. `wire` is the rate that
    /// corresponds to the share 1, `opening` the round trip of frames without payload.
    pub(super) fn new(
        number: u32,
        messages: &[(usize, PacketMessage)],
        protocol: &Protocol,
        wire: Rate,
        opening: Picos,
    ) -> PacketConnection {
        PacketConnection::carrying(
            number,
            PacketStream::new(messages, protocol.segment),
            protocol,
            wire,
            opening,
        )
    }

    /// Creates a connection without messages; [`PacketConnection::write`] adds them.
    pub(super) fn open(
        number: u32,
        protocol: &Protocol,
        wire: Rate,
        opening: Picos,
    ) -> PacketConnection {
        PacketConnection::carrying(
            number,
            PacketStream::one_by_one(protocol.segment, protocol.send_buffer),
            protocol,
            wire,
            opening,
        )
    }

    fn carrying(
        number: u32,
        stream: PacketStream,
        protocol: &Protocol,
        wire: Rate,
        opening: Picos,
    ) -> PacketConnection {
        let is_fixed = protocol.congestion == Congestion::Fixed;
        let segment = protocol.segment.0;
        let [first_window, receive_window] =
            [protocol.first_window, protocol.window].map(|window| (window.0 / segment) as u32);
        let is_lossless = is_fixed && protocol.queue.is_none();
        let limits = SenderLimits {
            segment: segment as u32,
            first_window,
            receive_window,
            opening: if is_lossless { Picos::ZERO } else { opening },
            shortest_timeout: Picos::from_time(protocol.shortest_timeout),
            is_lossless,
            idle_restart: protocol.idle_restart,
        };
        let beginning = if is_fixed {
            Beginning::Delayed
        } else {
            Beginning::Quick
        };
        PacketConnection {
            number,
            wire,
            stream,
            ends: ConnectionEnds {
                sender: Sender::new(
                    limits,
                    Control::new(protocol.congestion, segment as u32, number),
                ),
                receiver: Receiver::new(
                    beginning,
                    if limits.is_lossless {
                        ReceiverMemory::Count
                    } else {
                        ReceiverMemory::Whole
                    },
                ),
                host: HostQueue {
                    waiting: 0,
                    most: limits.first_window.max(4),
                    is_bounded: protocol.small_queues,
                },
            },
            riding: VecDeque::new(),
        }
    }

    /// Writes a message now. Returns `false` if no packet numbers are left.
    pub(super) fn write(&mut self, now: Picos, message: usize, size: Bytes) -> bool {
        self.stream
            .append(now, self.ends.sender.acknowledged(), message, size)
    }

    /// Returns the next message whose unacknowledged rest is in the send buffer.
    #[inline]
    pub(super) fn hold(&mut self) -> Option<usize> {
        self.stream.hold(self.ends.sender.acknowledged())
    }

    /// Returns the next packet that may be sent now.
    #[inline]
    pub(super) fn send(&mut self, now: Picos) -> Option<Frame> {
        if self.ends.host.is_bounded && self.ends.host.waiting > self.ends.host.most {
            return None;
        }
        let (transmission, packet) = self.ends.sender.send(now, self.stream.available())?;
        Some(self.frame(transmission, packet))
    }

    #[inline]
    fn frame(&mut self, transmission: u32, packet: u32) -> Frame {
        self.ends.host.waiting += u32::from(self.ends.host.is_bounded);
        Frame::data(self.number, transmission, self.stream.place(packet))
    }

    /// Packet in a data frame that is in flight.
    #[inline]
    pub(super) fn packet(&self, frame: Frame) -> u32 {
        self.ends.sender.packet_of(frame.number())
    }

    /// `true` if [`PacketConnection::leave_host`] must be called.
    pub(super) fn has_small_queue(&self) -> bool {
        self.ends.host.is_bounded
    }

    /// Removes a packet that has left the sender's interface. Returns `true` if other packets were waiting for it to leave.
    #[inline]
    pub(super) fn leave_host(&mut self) -> bool {
        let waited = self.ends.host.waiting > self.ends.host.most;
        self.ends.host.waiting -= 1;
        waited
    }

    /// Passes a packet to the receiver. Returns `true` if it must be acknowledged now.
    #[inline]
    pub(super) fn receive(&mut self, now: Picos, frame: Frame) -> bool {
        let packet = self.ends.sender.packet_of(frame.number());
        let place = if frame.is_last() {
            Place::Last
        } else {
            Place::Inside
        };
        let is_due = self.ends.receiver.take(now, frame.number(), packet, place);
        self.stream.came(now, self.ends.receiver.next(), self.wire);
        is_due
    }

    /// Returns the receiver's ACK, in a separate frame.
    #[inline]
    pub(super) fn ack(&mut self) -> Frame {
        Frame::ack(self.number, self.ends.receiver.ack())
    }

    /// Returns the receiver's ACK, to be carried by data in the other direction of this connection.
    #[inline]
    pub(super) fn ride(&mut self, now: Picos) -> u32 {
        self.ends.receiver.ride(now)
    }

    /// Attaches an ACK of the other direction to a data frame.
    #[inline]
    pub(super) fn carry(&mut self, frame: Frame, ack: u32) {
        self.riding.push_back((frame.number(), ack));
    }

    /// Returns the ACK that came with a data frame, as an ACK frame of the connection `other`.
    #[inline]
    pub(super) fn carried(&mut self, frame: Frame, other: u32) -> Option<Frame> {
        // Frames arrive in the order of their sending: earlier ones are lost.
        while let Some((transmission, ack)) = self
            .riding
            .front()
            .copied()
            .filter(|(of, _)| *of <= frame.number())
        {
            self.riding.pop_front();
            if transmission == frame.number() {
                return Some(Frame::ack(other, ack));
            }
        }
        None
    }

    /// Passes an ACK to the sender.
    #[inline]
    pub(super) fn hear(&mut self, now: Picos, ack: Frame) {
        if self.ends.sender.is_lossless() {
            let packets = self.ends.receiver.hear_count(ack.number());
            self.ends.sender.advance(packets);
            return self.forget();
        }
        while let Some(transmission) = self.ends.receiver.hear(ack.number()) {
            self.ends.sender.hear(now, transmission);
        }
        self.ends.sender.conclude(now);
        if self.ends.host.is_bounded {
            self.ends.host.most = self.ends.sender.small_queue();
        }
        self.forget();
    }

    #[inline]
    fn forget(&mut self) {
        if self.stream.is_long() {
            self.stream.forget(self.ends.sender.oldest());
        }
    }

    /// Number of unsent packets of the arriving message, not counting its last packet.
    pub(super) fn room(&self) -> u32 {
        self.stream
            .room(self.ends.receiver.next(), self.ends.sender.sent())
    }

    /// `true` if a frame is in flight, or if a frame will be sent before the next message is written.
    pub(super) fn is_live(&self) -> bool {
        !self.stream.is_at_rest()
            || self.ends.is_live()
            || self.deadline() < self.stream.next_write()
    }

    /// Time at which the next message is written.
    pub(super) fn next_write(&self) -> Picos {
        self.stream.next_write()
    }

    /// Skips `periods` periods. Packets arrive in each of them as in the previous period, in which they arrived at `times`.
    pub(super) fn skip(&mut self, times: &[Picos], period: Shift, periods: u32) {
        self.stream
            .skip(self.ends.receiver.next(), times, period, periods, self.wire);
        self.ends.shift(period.times(periods));
    }

    /// Time at which [`PacketConnection::expire`] must be called next.
    #[inline]
    pub(super) fn deadline(&self) -> Picos {
        self.ends
            .sender
            .deadline()
            .min(self.ends.receiver.ack_by())
            .min(self.stream.next_write())
    }

    /// Handles everything that is due: a message to be written, a delayed ACK, a timer of the sender. Returns a packet and
    /// an ACK to be sent.
    pub(super) fn expire(&mut self, now: Picos) -> (Option<Frame>, Option<Frame>) {
        self.stream.write(now);
        let sent = self.ends.sender.expire(now, self.stream.available());
        let is_due = self.ends.receiver.ack_by() <= now;
        let ack = is_due.then(|| Frame::ack(self.number, self.ends.receiver.ack_late()));
        (
            sent.map(|(transmission, packet)| self.frame(transmission, packet)),
            ack,
        )
    }
}
