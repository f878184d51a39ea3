//! How many packets a sender may have in flight: fixed windows, reno, cubic with HyStart, bbr.
//!
//! Windows are counted in packets, as Linux counts them. Reno, cubic and fixed windows begin with slow start: a packet
//! more for each packet acknowledged (RFC 5681 section 3.1).

mod bbr;
mod cubic;
mod filter;
mod hystart;

use super::{picos::Picos, shift::Shift, transmission::Transmission};
use bbr::Bbr;
pub(super) use bbr::burst;
use cubic::Cubic;
use flowcast_network::sharing::protocol::Congestion;

/// Bytes of the largest burst that leaves a sender in one piece.
pub(super) const LARGEST_BURST: u32 = 65_536;

/// The congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CongestionWindow {
    /// Most packets in flight.
    pub packets: u32,
    /// Where slow start ends.
    pub threshold: u32,
    /// Packets acknowledged since the window last grew outside slow start.
    pub credit: u32,
}

impl CongestionWindow {
    pub(super) fn is_in_slow_start(&self) -> bool {
        self.packets < self.threshold
    }

    /// A packet more for each acknowledged up to the threshold; what is left of them.
    fn start_slowly(&mut self, acknowledged: u32) -> u32 {
        let grown = (self.packets + acknowledged)
            .min(self.threshold)
            .max(self.packets);
        let left = acknowledged - (grown - self.packets);
        self.packets = grown;
        left
    }

    /// A packet more for every `each` packets acknowledged.
    fn grow(&mut self, each: u32, acknowledged: u32) {
        if self.credit >= each {
            self.credit = 0;
            self.packets += 1;
        }
        self.credit += acknowledged;
        self.packets += self.credit / each;
        self.credit %= each;
    }
}

/// What an ACK told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledgement {
    /// Instant at which the ACK arrived.
    pub now: Picos,
    /// Packets that it said have come, and that were not known to have.
    pub packets: u32,
    /// Packets that it showed to be lost.
    pub lost: u32,
    /// Round trip of the newest of them.
    pub round_trip: Option<Picos>,
    /// The transmission that came last.
    pub newest: Option<Transmission>,
    /// Transmissions neither there nor lost.
    pub in_flight: u32,
    /// The same before the ACK.
    pub was_in_flight: u32,
    /// Packets that came since the beginning.
    pub delivered: u32,
    /// First packet missing, and first not sent.
    pub reach: (u32, u32),
    /// Whether losses are being repaired.
    pub repair: Repair,
}

/// Whether losses are being repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// No packet is known to be lost.
    None,
    /// Fast retransmission (RFC 5681), until all that was sent before is acknowledged.
    Recovery,
    /// After a time-out, from one packet on.
    Timeout,
}

/// The congestion control of one connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Control {
    Fixed,
    Reno,
    Cubic(Box<Cubic>),
    Bbr(Box<Bbr>),
}

impl Control {
    /// For packets of so many bytes; `seed` chooses where bbr's cycle begins.
    pub(super) fn new(congestion: Congestion, segment: u32, seed: u32) -> Control {
        match congestion {
            Congestion::Fixed => Control::Fixed,
            Congestion::Reno => Control::Reno,
            Congestion::Cubic => Control::Cubic(Box::new(Cubic::new(segment))),
            Congestion::Bbr => Control::Bbr(Box::new(Bbr::new(segment, seed))),
        }
    }

    /// What the window becomes while no loss is repaired by fast retransmission.
    pub(super) fn grow(&mut self, window: &mut CongestionWindow, heard: &Acknowledgement) {
        let left = if window.is_in_slow_start() {
            window.start_slowly(heard.packets)
        } else {
            heard.packets
        };
        if left == 0 {
            return;
        }
        match self {
            Control::Fixed | Control::Bbr(_) => {}
            Control::Reno => window.grow(window.packets, left),
            Control::Cubic(cubic) => {
                let each = cubic.packets_for_one_more(window.packets, left, heard.now);
                window.grow(each, left);
            }
        }
    }

    /// Every ACK, whether the window may grow or not.
    pub(super) fn observe(&mut self, window: &mut CongestionWindow, heard: &Acknowledgement) {
        if let Control::Cubic(cubic) = self {
            cubic.observe(window, heard);
        }
    }

    /// The slow start threshold that a loss leaves.
    pub(super) fn threshold_after_loss(&mut self, window: &CongestionWindow) -> u32 {
        match self {
            Control::Fixed | Control::Bbr(_) => window.threshold,
            Control::Reno => (window.packets / 2).max(2),
            Control::Cubic(cubic) => cubic.threshold_after_loss(window.packets),
        }
    }

    /// A time-out has happened.
    pub(super) fn reset(&mut self, window: &CongestionWindow) {
        match self {
            Control::Fixed | Control::Reno => {}
            Control::Cubic(cubic) => cubic.reset(),
            Control::Bbr(bbr) => bbr.time_out(window),
        }
    }

    /// A connection sends again after so long.
    pub(super) fn idle(&mut self, pause: Picos) {
        if let Control::Cubic(cubic) = self {
            cubic.idle(pause);
        }
    }

    /// Whether it may be in a steady state.
    pub(super) fn is_steady(&self) -> bool {
        !matches!(self, Control::Bbr(_))
    }

    /// The same, so much later.
    pub(super) fn shift(&mut self, window: &CongestionWindow, by: Shift) {
        if let Control::Cubic(cubic) = self {
            cubic.shift(window, by);
        }
    }

    /// Packets a second at which to send, if the control says so.
    pub(super) fn pace(&self) -> Option<f64> {
        match self {
            Control::Bbr(bbr) => Some(bbr.pace()),
            _ => None,
        }
    }
}
