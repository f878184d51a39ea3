//! Reaction of a sender to losses.

use std::collections::BTreeSet;

use super::{
    super::{
        control::{Acknowledgement, Control, Repair},
        picos::Picos,
    },
    Reduction, Sender,
};

impl Sender {
    /// Sets the window by proportional rate reduction.
    pub(super) fn reduce(&mut self, heard: &Acknowledgement, missing_before: u32) {
        if matches!(self.control, Control::Fixed) {
            return;
        }
        let Reduction {
            before,
            delivered,
            sent,
        } = &mut self.reduction;
        *delivered += heard.packets;
        let threshold = self.window.threshold;
        let more = if heard.in_flight > threshold {
            let due = u64::from(threshold) * u64::from(*delivered);
            (due.div_ceil(u64::from((*before).max(1))) as u32).saturating_sub(*sent)
        } else {
            let progress = u32::from(heard.reach.0 > missing_before && heard.lost == 0);
            (delivered.saturating_sub(*sent).max(heard.packets) + progress)
                .min(threshold - heard.in_flight)
        };
        let least = u32::from(*sent == 0);
        self.window.packets = heard.in_flight + more.max(least);
    }

    /// Declares overtaken packets lost if at least three packets have arrived beyond the first gap, if losses are being
    /// repaired, or if the waiting time is over. Returns the number of packets declared lost.
    pub(super) fn judge_suspects(&mut self, now: Picos) -> u32 {
        if self.suspects.is_empty() {
            return 0;
        }
        let is_sure =
            self.repair != Repair::None || self.came.ahead() >= 3 || self.suspicion_at <= now;
        if is_sure {
            return self.declare_lost();
        }
        if self.suspicion_at == Picos::NEVER {
            self.suspicion_at = now + self.round_trip.least().scaled(0.25);
        }
        0
    }

    pub(super) fn declare_lost(&mut self) -> u32 {
        self.suspicion_at = Picos::NEVER;
        let count = self.suspects.len() as u32;
        self.in_flight -= count;
        let came = &self.came;
        self.lost
            .extend(self.suspects.drain(..).filter(|packet| !came.has(*packet)));
        if self.repair == Repair::None {
            self.begin_recovery();
        }
        count
    }

    pub(super) fn begin_recovery(&mut self) {
        self.repair = Repair::Recovery;
        self.repaired_at = self.next;
        self.reduction = Reduction {
            before: self.window.packets,
            delivered: 0,
            sent: 0,
        };
        self.window.threshold = self.control.threshold_after_loss(&self.window);
        self.window.credit = 0;
    }

    pub(super) fn take_back_timeout(&mut self) {
        let Some((window, first_after)) = self.before_timeout.take() else {
            return;
        };
        if self.first > first_after || self.repair != Repair::Timeout {
            return;
        }
        self.window = window;
        self.repair = Repair::None;
        for transmission in self
            .transmissions
            .iter_mut()
            .filter(|transmission| transmission.is_lost)
        {
            transmission.is_lost = false;
            self.in_flight += 1;
        }
        let in_flight: BTreeSet<u32> = self
            .transmissions
            .iter()
            .map(|transmission| transmission.packet)
            .collect();
        self.lost.retain(|packet| !in_flight.contains(packet));
        if !self.lost.is_empty() {
            self.begin_recovery();
        }
    }

    pub(super) fn time_out(&mut self, now: Picos) {
        self.round_trip.timed_out();
        if self.repair != Repair::Timeout || self.came.next() >= self.repaired_at {
            self.before_timeout = Some((self.window, self.first + self.transmissions.len() as u32));
            let threshold = self.control.threshold_after_loss(&self.window);
            self.control.reset(&self.window);
            self.window.threshold = threshold;
        }
        self.repair = Repair::Timeout;
        self.repaired_at = self.next;
        self.window.packets = 1;
        self.window.credit = 0;
        for transmission in &mut self.transmissions {
            transmission.is_lost = true;
        }
        self.in_flight = 0;
        self.suspects.clear();
        self.suspicion_at = Picos::NEVER;
        let came = &self.came;
        self.lost = (came.next()..self.next)
            .filter(|packet| !came.has(*packet))
            .collect();
        self.set_timers(now);
    }
}
