//! The sending end of a connection: packets that are in flight, that are lost, and that may be sent.
//!
//! Every sending of a packet is a transmission with its own number. The path of a connection is a sequence of first-in,
//! first-out queues, so that transmissions arrive in the order of their sending: when one has arrived, earlier ones that
//! have not are lost. The rules are those of Linux:
//!
//! - Loss: RACK (RFC 8985). Packets that a later transmission overtook are lost immediately if three packets have arrived
//!   beyond the first gap, or if losses are being repaired; otherwise after a quarter of the least round trip.
//! - Recovery: the missing packets are sent again first (RFC 6675), and proportional rate reduction sets the window, as in
//!   RFC 6937. Recovery ends when all packets that were sent before it have arrived.
//! - Tail: after two round trips without an ACK, the last packet is sent once more (RFC 8985 section 7).
//! - Time-out: `srtt + max(4 rttvar, 200 ms)`, doubled each time (RFC 6298). Everything in flight counts as lost, and the
//!   window falls to one packet. If a transmission from before arrives after all, the window is restored (RFC 4015).
//! - Idle: a window that was not used is halved for each time-out of the pause, down to the first window (RFC 2861).
//! - A window grows only while it limits the sender (RFC 7661, as in Linux).

mod repair;
mod steady;
mod timers;

use std::collections::VecDeque;

use super::{
    control::{Acknowledgement, CongestionWindow, Control, Repair},
    order::{SegmentArrival, SegmentOrder},
    pace::PacketPace,
    picos::Picos,
    round_trip::RoundTrip,
    transmission::Transmission,
};

/// Limits of a sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SenderLimits {
    /// Payload of a packet.
    pub segment: u32,
    /// Window at the start and after a pause, in packets.
    pub first_window: u32,
    /// Window of the receiver, in packets from the first missing one on.
    pub receive_window: u32,
    /// Duration of the opening of the connection, the first sample of the round trip; zero if nothing can get lost.
    pub opening: Picos,
    pub shortest_timeout: Picos,
    /// `true` if nothing can get lost, so that no timer is needed.
    pub is_lossless: bool,
    pub idle_restart: bool,
}

/// The sending end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sender {
    limits: SenderLimits,
    control: Control,
    window: CongestionWindow,
    /// Packets that have arrived, as far as the sender knows.
    came: SegmentOrder,
    /// Number of packets that were sent at least once.
    next: u32,
    /// Transmissions from the number `first` on.
    transmissions: VecDeque<Transmission>,
    first: u32,
    in_flight: u32,
    /// Packets that were overtaken but do not count as lost yet.
    suspects: Vec<u32>,
    /// Packets to be sent again.
    lost: VecDeque<u32>,
    repair: Repair,
    /// Number of packets that must have arrived, without a gap, before the repair ends.
    repaired_at: u32,
    reduction: Reduction,
    /// State before the time-out: the window, and the first transmission after it.
    before_timeout: Option<(CongestionWindow, u32)>,
    round_trip: RoundTrip,
    pace: PacketPace,
    delivered: u32,
    delivered_at: Picos,
    first_sent: Picos,
    last_sent: Picos,
    starved_until: u32,
    usage: Usage,
    timeout_at: Picos,
    probe_at: Picos,
    suspicion_at: Picos,
    has_probed: bool,
    heard: AckEffects,
}

/// Proportional rate reduction (RFC 6937).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Reduction {
    before: u32,
    delivered: u32,
    sent: u32,
}

/// Recent use of the window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Usage {
    is_limited: bool,
    most: u32,
    /// First packet of the next period.
    end: u32,
}

/// Effects so far of the ACK that is being processed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct AckEffects {
    packets: u32,
    newest: Option<Transmission>,
    was_in_flight: u32,
    missing: u32,
    came_late: bool,
}

impl Sender {
    pub(super) fn new(limits: SenderLimits, control: Control) -> Sender {
        let window = CongestionWindow {
            packets: limits.first_window.min(limits.receive_window),
            threshold: u32::MAX / 2,
            credit: 0,
        };
        Sender {
            limits,
            pace: PacketPace::new(&control, limits.segment),
            control,
            window,
            came: SegmentOrder::default(),
            next: 0,
            transmissions: VecDeque::with_capacity(if limits.is_lossless { 0 } else { 32 }),
            first: 0,
            in_flight: 0,
            suspects: Vec::new(),
            lost: VecDeque::new(),
            repair: Repair::None,
            repaired_at: 0,
            reduction: Reduction::default(),
            before_timeout: None,
            round_trip: RoundTrip::opened(limits.opening, limits.shortest_timeout),
            delivered: 0,
            delivered_at: Picos::ZERO,
            first_sent: Picos::ZERO,
            last_sent: Picos::ZERO,
            starved_until: 0,
            usage: Usage::default(),
            timeout_at: Picos::NEVER,
            probe_at: Picos::NEVER,
            suspicion_at: Picos::NEVER,
            has_probed: false,
            heard: AckEffects::default(),
        }
    }

    /// Packet of a transmission that has not been acknowledged.
    #[inline]
    pub(super) fn packet_of(&self, transmission: u32) -> u32 {
        if self.limits.is_lossless {
            return transmission;
        }
        self.transmissions[(transmission - self.first) as usize].packet
    }

    /// First packet that the sender does not know to have arrived.
    #[inline]
    pub(super) fn acknowledged(&self) -> u32 {
        if self.limits.is_lossless {
            self.next - self.in_flight
        } else {
            self.came.next()
        }
    }

    /// First packet that is in flight or may be sent again.
    pub(super) fn oldest(&self) -> u32 {
        if self.limits.is_lossless {
            return self.acknowledged();
        }
        let sent = self
            .transmissions
            .iter()
            .map(|transmission| transmission.packet);
        let doubtful = self.suspects.iter().chain(&self.lost).copied();
        sent.chain(doubtful).fold(self.came.next(), u32::min)
    }

    /// Sends the next packet before `available`, if there is one and it may be sent now. Returns the number of the
    /// transmission, and the packet.
    #[inline]
    pub(super) fn send(&mut self, now: Picos, available: u32) -> Option<(u32, u32)> {
        if self.limits.is_lossless {
            return self.send_once(now, available);
        }
        let packet = self.next_packet(now, available)?;
        if self.in_flight >= self.window.packets {
            self.usage = Usage {
                is_limited: true,
                most: self.in_flight,
                end: self.next,
            };
            return None;
        }
        if self.pace.holds(now) {
            return None;
        }
        if self.lost.front() == Some(&packet) {
            self.lost.pop_front();
        }
        Some((self.transmit(now, packet), packet))
    }

    /// Sends a packet on a connection without losses. Each packet is sent once, and its transmission has the same number.
    #[inline]
    fn send_once(&mut self, now: Picos, available: u32) -> Option<(u32, u32)> {
        if self.next >= available {
            return None;
        }
        if self.in_flight == 0 {
            self.begin_again(now);
        }
        if self.in_flight >= self.window.packets {
            return None;
        }
        self.in_flight += 1;
        self.last_sent = now;
        self.next += 1;
        Some((self.next - 1, self.next - 1))
    }

    #[inline]
    fn next_packet(&mut self, now: Picos, available: u32) -> Option<u32> {
        while let Some(packet) = self.lost.front().copied() {
            if !self.came.has(packet) {
                return Some(packet);
            }
            self.lost.pop_front();
        }
        if self.next >= available {
            if self.in_flight < self.window.packets {
                self.starved_until = self.delivered + self.in_flight;
            }
            return None;
        }
        if self.next == self.came.next() {
            self.begin_again(now);
        }
        (self.next - self.came.next() < self.limits.receive_window).then_some(self.next)
    }

    /// Reduces a window that was not used for long, when nothing is in flight.
    fn begin_again(&mut self, now: Picos) {
        if self.next == 0 {
            return;
        }
        let pause = now.since(self.last_sent);
        let timeout = self.round_trip.timeout();
        self.control.idle(pause);
        if !self.limits.idle_restart || pause <= timeout {
            return;
        }
        if matches!(self.control, Control::Bbr(_)) {
            return;
        }
        let first = self.limits.first_window.min(self.window.packets);
        let periods = (pause.0 / timeout.0).min(31) as u32;
        self.window.threshold = self.window.threshold.max(self.window.packets / 4 * 3);
        self.window.packets = (self.window.packets >> periods).max(first);
        self.window.credit = 0;
        self.last_sent = now;
    }

    #[inline]
    fn transmit(&mut self, now: Picos, packet: u32) -> u32 {
        if self.in_flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        self.transmissions.push_back(Transmission {
            packet,
            delivered: self.delivered,
            sent: now,
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            is_starved: self.starved_until > self.delivered,
            is_lost: false,
        });
        self.in_flight += 1;
        self.last_sent = now;
        self.reduction.sent += 1;
        self.next = self.next.max(packet + 1);
        self.pace.sent(now);
        if self.usage.end <= self.came.next()
            || (!self.usage.is_limited && self.in_flight > self.usage.most)
        {
            self.usage = Usage {
                is_limited: false,
                most: self.in_flight,
                end: self.next,
            };
        }
        if self.timeout_at == Picos::NEVER {
            self.set_timers(now);
        }
        self.first + self.transmissions.len() as u32 - 1
    }

    /// Processes a transmission that has arrived.
    #[inline]
    pub(super) fn hear(&mut self, now: Picos, number: u32) {
        if self.heard.packets == 0 && self.heard.newest.is_none() {
            self.heard.was_in_flight = self.in_flight;
            self.heard.missing = self.came.next();
        }
        while self.first < number {
            self.first += 1;
            let overtaken = self
                .transmissions
                .pop_front()
                .expect("a transmission that came was sent");
            if !overtaken.is_lost {
                self.suspects.push(overtaken.packet);
            }
        }
        self.first += 1;
        let newest = self
            .transmissions
            .pop_front()
            .expect("a transmission that came was sent");
        if newest.is_lost {
            self.heard.came_late = true;
        } else {
            self.in_flight -= 1;
        }
        if self.came.insert(newest.packet) != SegmentArrival::Again {
            self.heard.packets += 1;
            self.delivered += 1;
            (self.delivered_at, self.first_sent) = (now, newest.sent);
        }
        self.heard.newest = Some(newest);
    }

    /// Concludes the processing of an ACK.
    #[inline]
    pub(super) fn conclude(&mut self, now: Picos) {
        let hearing = std::mem::take(&mut self.heard);
        let Some(newest) = hearing.newest else { return };
        let round_trip = now.since(newest.sent);
        self.round_trip.add(round_trip);
        if hearing.came_late {
            self.take_back_timeout();
        }
        let lost = self.judge_suspects(now);
        let heard = Acknowledgement {
            now,
            packets: hearing.packets,
            lost,
            round_trip: Some(round_trip),
            newest: Some(newest),
            in_flight: self.in_flight,
            was_in_flight: hearing.was_in_flight,
            delivered: self.delivered,
            reach: (self.came.next(), self.next),
            repair: self.repair,
        };
        self.adapt(&heard, hearing.missing);
        self.has_probed = false;
        if self.came.next() > hearing.missing {
            self.round_trip.forget_timeouts();
        }
        self.set_timers(now);
    }

    /// Acknowledges this many packets, if nothing gets lost and windows are fixed.
    #[inline]
    pub(super) fn advance(&mut self, packets: u32) {
        self.in_flight -= packets;
        self.window.packets = (self.window.packets + packets).min(self.limits.receive_window);
    }

    fn adapt(&mut self, heard: &Acknowledgement, missing_before: u32) {
        if self.repair != Repair::None && heard.reach.0 >= self.repaired_at {
            if self.repair == Repair::Recovery
                && matches!(self.control, Control::Reno | Control::Cubic(_))
            {
                self.window.packets = self.window.threshold;
            }
            self.repair = Repair::None;
            self.before_timeout = None;
        }
        let heard = Acknowledgement {
            repair: self.repair,
            ..*heard
        };
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.ack(&mut self.window, &heard);
            self.pace.set(&self.control);
            return;
        }
        self.control.observe(&mut self.window, &heard);
        match self.repair {
            Repair::Recovery => self.reduce(&heard, missing_before),
            _ if self.is_window_used() => self.control.grow(&mut self.window, &heard),
            _ => {}
        }
    }

    fn is_window_used(&self) -> bool {
        self.usage.is_limited
            || (self.window.is_in_slow_start() && self.window.packets < 2 * self.usage.most)
    }

    /// `true` if nothing gets lost and windows are fixed.
    #[inline]
    pub(super) fn is_lossless(&self) -> bool {
        self.limits.is_lossless
    }
}
