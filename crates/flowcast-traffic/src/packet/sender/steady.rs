//! A sender in a steady state, in which a period changes only times and numbers.

use super::{
    super::{control::Repair, shift::Shift},
    Sender,
};

impl Sender {
    /// `true` if it repairs nothing and never lacks data.
    pub(in super::super) fn is_steady(&self) -> bool {
        self.repair == Repair::None
            && self.suspects.is_empty()
            && self.lost.is_empty()
            && self.starved_until <= self.delivered
            && self.control.is_steady()
    }

    /// `true` if not everything that it sent is acknowledged.
    pub(in super::super) fn is_live(&self) -> bool {
        self.acknowledged() < self.next || !self.transmissions.is_empty()
    }

    /// Number of packets that were sent at least once.
    pub(in super::super) fn sent(&self) -> u32 {
        self.next
    }

    /// Advances times and numbers; values that a steady sender does not use stay as they are.
    pub(in super::super) fn shift(&mut self, by: Shift) {
        self.next += by.packets;
        self.last_sent += by.time;
        if self.limits.is_lossless {
            return;
        }
        self.came.shift(by.packets);
        self.first += by.packets;
        for transmission in &mut self.transmissions {
            transmission.packet += by.packets;
            transmission.delivered += by.packets;
            transmission.sent += by.time;
            transmission.first_sent += by.time;
            transmission.delivered_at += by.time;
        }
        self.reduction.sent += by.packets;
        self.delivered += by.packets;
        self.delivered_at += by.time;
        self.first_sent += by.time;
        self.usage.end += by.packets;
        self.timeout_at += by.time;
        self.probe_at += by.time;
        self.suspicion_at += by.time;
        self.pace.shift(by.time);
        self.control.shift(&self.window, by);
    }
}
