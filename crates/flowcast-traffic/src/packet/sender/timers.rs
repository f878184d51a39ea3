//! Timers of a sender, and the limit on its packets in its own interface.

use super::{
    super::{
        control::{LARGEST_BURST, Repair},
        picos::Picos,
    },
    Sender,
};

/// Bursts halve with each multiple of this time in the least round trip (Linux' `tcp_tso_rtt_log`, 2^9 us).
const NEAR: Picos = Picos::from_micros(512);

impl Sender {
    pub(super) fn set_timers(&mut self, now: Picos) {
        (self.timeout_at, self.probe_at) = (Picos::NEVER, Picos::NEVER);
        if self.next == self.came.next() {
            return;
        }
        self.timeout_at = now + self.round_trip.timeout();
        if self.repair == Repair::None && self.suspects.is_empty() && !self.has_probed {
            let wait = self.round_trip.probe_after(self.in_flight);
            self.probe_at = if wait < self.round_trip.timeout() {
                now + wait
            } else {
                Picos::NEVER
            };
        }
    }

    /// Number of packets that the connection may have in its own interface's queue before it waits (TCP small queues): two
    /// bursts, or the packets of a millisecond.
    pub(in super::super) fn small_queue(&self) -> u32 {
        let smooth = self.round_trip.smooth();
        if smooth == Picos::ZERO {
            return self.window.packets.max(4);
        }
        let ratio = if self.window.packets < self.window.threshold / 2 {
            2.0
        } else {
            1.2
        };
        let pace = ratio * f64::from(self.window.packets) / smooth.as_seconds();
        let in_a_millisecond = (self.control.pace().unwrap_or(pace) / 1024.0) as u32;
        let halvings = self.round_trip.least().0 / NEAR.0;
        let largest = LARGEST_BURST / self.limits.segment;
        let burst = (in_a_millisecond + (largest >> halvings.min(31))).min(largest);
        (2 * burst.min(self.window.packets / 2).max(2)).max(in_a_millisecond)
    }

    /// Earliest time at which a timer expires or pacing releases a packet.
    #[inline]
    pub(in super::super) fn deadline(&self) -> Picos {
        if self.limits.is_lossless {
            return Picos::NEVER;
        }
        self.timeout_at
            .min(self.probe_at)
            .min(self.suspicion_at)
            .min(self.pace.deadline())
    }

    /// Handles expired timers. Returns a transmission, and its packet, that is sent regardless of windows.
    pub(in super::super) fn expire(&mut self, now: Picos, available: u32) -> Option<(u32, u32)> {
        if self.limits.is_lossless {
            return None;
        }
        self.pace.release(now);
        if self.suspicion_at <= now {
            self.suspicion_at = Picos::NEVER;
            if !self.suspects.is_empty() {
                self.declare_lost();
                self.set_timers(now);
            }
        }
        if self.timeout_at <= now {
            self.time_out(now);
        } else if self.probe_at <= now {
            self.probe_at = Picos::NEVER;
            self.has_probed = true;
            self.timeout_at = now + self.round_trip.timeout();
            let fits =
                self.next < available && self.next - self.came.next() < self.limits.receive_window;
            let packet = if fits { self.next } else { self.next - 1 };
            return Some((self.transmit(now, packet), packet));
        }
        None
    }
}
