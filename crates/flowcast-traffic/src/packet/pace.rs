//! Pacing: bursts with pauses between them, as bbr asks for.

use super::{
    control::{Control, burst},
    picos::Picos,
};

/// When the next packets may go.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PacketPace {
    /// Payload of a packet.
    segment: u32,
    /// Packets a second, if paced, and the time of one.
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

    /// The control has changed its mind.
    pub(super) fn set(&mut self, control: &Control) {
        if self.rate != control.pace() {
            self.rate = control.pace();
            self.each = self
                .rate
                .map_or(Picos::ZERO, |rate| Picos::from_seconds(1.0 / rate));
        }
    }

    /// Whether a packet has to wait; [`PacketPace::deadline`] says how long.
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

    /// A packet goes.
    #[inline]
    pub(super) fn sent(&mut self, now: Picos) {
        if self.rate.is_none() {
            return;
        }
        self.left = self.left.saturating_sub(1);
        self.next = self.next.max(now) + self.each;
    }

    /// The same, so much later.
    pub(super) fn shift(&mut self, time: Picos) {
        if self.rate.is_some() {
            self.next += time;
        }
    }

    /// When what is held may go.
    #[inline]
    pub(super) fn deadline(&self) -> Picos {
        if self.is_held {
            self.next
        } else {
            Picos::NEVER
        }
    }

    /// It may.
    pub(super) fn release(&mut self, now: Picos) {
        if self.next <= now {
            self.is_held = false;
        }
    }
}
