//! Limits on the packets in flight of a sender: fixed windows, reno, cubic with HyStart, bbr.
//!
//! Windows are counted in packets, as in Linux. Reno, cubic and fixed windows begin with slow start: one more packet for
//! each packet that is acknowledged (RFC 5681 section 3.1).

mod bbr;
mod cubic;
mod filter;
mod hystart;

use super::{picos::Picos, shift::Shift, transmission::Transmission};
use bbr::Bbr;
pub(super) use bbr::burst;
use cubic::Cubic;
use flowcast_network::sharing::protocol::Congestion;

/// Size of the largest burst that leaves a sender in one piece, in bytes.
pub(super) const LARGEST_BURST: u32 = 65_536;

/// The congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CongestionWindow {
    /// Largest number of packets in flight.
    pub packets: u32,
    /// Window at which slow start ends.
    pub threshold: u32,
    /// Number of packets acknowledged since the window last grew outside slow start.
    pub credit: u32,
}

impl CongestionWindow {
    pub(super) fn is_in_slow_start(&self) -> bool {
        self.packets < self.threshold
    }

    /// Grows the window by one packet for each acknowledged packet, up to the threshold. Returns the number of acknowledged
    /// packets that were not used for this.
    fn start_slowly(&mut self, acknowledged: u32) -> u32 {
        let grown = (self.packets + acknowledged)
            .min(self.threshold)
            .max(self.packets);
        let left = acknowledged - (grown - self.packets);
        self.packets = grown;
        left
    }

    /// Grows the window by a packet for every `each` packets acknowledged.
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

/// Information from an ACK.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledgement {
    /// Time at which the ACK arrived.
    pub now: Picos,
    /// Number of packets that are newly known to have arrived.
    pub packets: u32,
    /// Number of packets that the ACK showed to be lost.
    pub lost: u32,
    /// Round trip of the transmission that arrived last, if it is known.
    pub round_trip: Option<Picos>,
    /// Transmission that arrived last.
    pub newest: Option<Transmission>,
    /// Number of transmissions that have neither arrived nor been lost.
    pub in_flight: u32,
    /// Number of these transmissions before the ACK.
    pub was_in_flight: u32,
    /// Number of packets that have arrived since the beginning.
    pub delivered: u32,
    /// First packet that is missing, and first packet that was not sent.
    pub reach: (u32, u32),
    /// State of the repair of losses.
    pub repair: Repair,
}

/// State of the repair of losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// No packet is known to be lost.
    None,
    /// Fast retransmission (RFC 5681), until all packets sent before are acknowledged.
    Recovery,
    /// After a time-out: the window grows from one packet.
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
    /// Creates the control for packets of `segment` bytes; `seed` chooses the beginning of bbr's cycle.
    pub(super) fn new(congestion: Congestion, segment: u32, seed: u32) -> Control {
        match congestion {
            Congestion::Fixed => Control::Fixed,
            Congestion::Reno => Control::Reno,
            Congestion::Cubic => Control::Cubic(Box::new(Cubic::new(segment))),
            Congestion::Bbr => Control::Bbr(Box::new(Bbr::new(segment, seed))),
        }
    }

    /// Grows the window while no loss is repaired by fast retransmission.
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

    /// Observes an ACK, even if the window may not grow.
    pub(super) fn observe(&mut self, window: &mut CongestionWindow, heard: &Acknowledgement) {
        if let Control::Cubic(cubic) = self {
            cubic.observe(window, heard);
        }
    }

    /// Returns the slow start threshold after a loss.
    pub(super) fn threshold_after_loss(&mut self, window: &CongestionWindow) -> u32 {
        match self {
            Control::Fixed | Control::Bbr(_) => window.threshold,
            Control::Reno => (window.packets / 2).max(2),
            Control::Cubic(cubic) => cubic.threshold_after_loss(window.packets),
        }
    }

    /// Resets the state after a time-out.
    pub(super) fn reset(&mut self, window: &CongestionWindow) {
        match self {
            Control::Fixed | Control::Reno => {}
            Control::Cubic(cubic) => cubic.reset(),
            Control::Bbr(bbr) => bbr.time_out(window),
        }
    }

    /// Accounts for a pause before a connection sends again.
    pub(super) fn idle(&mut self, pause: Picos) {
        if let Control::Cubic(cubic) = self {
            cubic.idle(pause);
        }
    }

    /// `true` if the control may be in a steady state.
    pub(super) fn is_steady(&self) -> bool {
        !matches!(self, Control::Bbr(_))
    }

    /// Advances all times and numbers.
    pub(super) fn shift(&mut self, window: &CongestionWindow, by: Shift) {
        if let Control::Cubic(cubic) = self {
            cubic.shift(window, by);
        }
    }

    /// Packets per second at which to send, if the control sets a pace.
    pub(super) fn pace(&self) -> Option<f64> {
        match self {
            Control::Bbr(bbr) => Some(bbr.pace()),
            _ => None,
        }
    }
}
