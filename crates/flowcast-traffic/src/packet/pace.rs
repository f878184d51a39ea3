//! Pacing: bursts with pauses between them, as required by bbr.

use super::{
    control::{Control, burst},
    picos::Picos,
};

/// Times at which the next packets may be sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PacketPace {
    /// Payload of a packet.
    segment: u32,
    /// Packets per second, if paced, and the time of one packet.
    rate: Option<f64>,
    each: Picos,
    left: u32,
    next: Picos,
    is_held: bool,
}

impl PacketPace {
    pub(super) fn new(control: &Control, segment: u32) -> PacketPace {
        let rate = control.pace();
        PacketPace {
            segment,
            rate,
            each: rate.map_or(Picos::ZERO, |rate| Picos::from_seconds(1.0 / rate)),
            left: rate.map_or(u32::MAX, |rate| burst(rate, segment)),
            next: Picos::ZERO,
            is_held: false,
        }
    }

    /// Adopts the pace of the control.
    pub(super) fn set(&mut self, control: &Control) {
        if self.rate != control.pace() {
            self.rate = control.pace();
            self.each = self
                .rate
                .map_or(Picos::ZERO, |rate| Picos::from_seconds(1.0 / rate));
        }
    }

    /// Returns `true` if a packet must wait until [`PacketPace::deadline`].
    #[inline]
    pub(super) fn holds(&mut self, now: Picos) -> bool {
        if self.left > 0 {
            return false;
        }
        let Some(rate) = self.rate else { return false };
        if now >= self.next {
            self.left = burst(rate, self.segment);
            return false;
        }
        self.is_held = true;
        true
    }

    /// Notes that a packet was sent.
    #[inline]
    pub(super) fn sent(&mut self, now: Picos) {
        if self.rate.is_none() {
            return;
        }
        self.left = self.left.saturating_sub(1);
        self.next = self.next.max(now) + self.each;
    }

    /// Advances the time of the next packet.
    pub(super) fn shift(&mut self, time: Picos) {
        if self.rate.is_some() {
            self.next += time;
        }
    }

    /// Time at which a held packet may be sent.
    #[inline]
    pub(super) fn deadline(&self) -> Picos {
        if self.is_held {
            self.next
        } else {
            Picos::NEVER
        }
    }

    /// Releases a held packet if it may be sent.
    pub(super) fn release(&mut self, now: Picos) {
        if self.next <= now {
            self.is_held = false;
        }
    }
}
