//! Cubic: `W(t) = C (t - K)^3 + W_max` in packets and seconds since the last loss, `K = cbrt((W_max - W)/C)`, `C = 0.4`,
//! after a loss `W * 0.7` (RFC 9438 sections 4.1-4.7), never slower than reno would be (section 4.3), with HyStart.
//!
//! In the first epoch, the window grows by at least one packet for every 20 acknowledged packets, as in Linux, because no
//! loss has shown `W_max` yet.

use super::{
    super::{picos::Picos, shift::Shift},
    Acknowledgement, CongestionWindow, Repair,
    hystart::Hystart,
};

/// `C`, packets per cubic second.
const SCALE: f64 = 0.4;
/// Fraction of the window that remains after a loss.
const BETA: f64 = 717.0 / 1024.0;
/// Slowest growth before the first loss: one packet for this number of acknowledged packets.
const FIRST_EPOCH: f64 = 20.0;
/// Least time between two computations for an unchanged window.
const RECOMPUTE: Picos = Picos::from_micros(31_250);

/// State of one connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cubic {
    /// `W_max`, 0 before the first loss.
    plateau: f64,
    epoch: Option<Epoch>,
    least_round_trip: Picos,
    hystart: Hystart,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Epoch {
    begun: Picos,
    /// `K`.
    to_plateau: f64,
    origin: f64,
    acknowledged: f64,
    /// Window that reno would have.
    reno: f64,
    computed: (Picos, u32, u32),
}

impl Cubic {
    pub(super) fn new(segment: u32) -> Cubic {
        Cubic {
            plateau: 0.0,
            epoch: None,
            least_round_trip: Picos::NEVER,
            hystart: Hystart::new(segment),
        }
    }

    /// Resets to the state of a new connection.
    pub(super) fn reset(&mut self) {
        *self = Cubic::new(self.hystart.segment());
    }

    /// Notes the round trip, and leaves slow start if HyStart requires it.
    pub(super) fn observe(&mut self, window: &mut CongestionWindow, heard: &Acknowledgement) {
        let Some(round_trip) = heard.round_trip else {
            return;
        };
        self.least_round_trip = self.least_round_trip.min(round_trip);
        if window.is_in_slow_start()
            && heard.repair == Repair::None
            && self
                .hystart
                .is_over(window, heard, self.least_round_trip, round_trip)
        {
            window.threshold = window.packets;
        }
    }

    /// Number of packets to be acknowledged for the window to grow by one.
    pub(super) fn packets_for_one_more(
        &mut self,
        window: u32,
        acknowledged: u32,
        now: Picos,
    ) -> u32 {
        let packets = f64::from(window);
        let plateau = self.plateau;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            begun: now,
            to_plateau: ((plateau - packets).max(0.0) / SCALE).cbrt(),
            origin: plateau.max(packets),
            acknowledged: 0.0,
            reno: packets,
            computed: (Picos::NEVER, 0, 0),
        });
        epoch.acknowledged += f64::from(acknowledged);
        let (when, of, each) = epoch.computed;
        if of == window && now.since(when) <= RECOMPUTE {
            return each;
        }
        let since =
            (now.since(epoch.begun) + self.least_round_trip).as_seconds() - epoch.to_plateau;
        let target = epoch.origin + SCALE * since * since * since;
        let mut each = if target > packets {
            packets / (target - packets)
        } else {
            100.0 * packets
        };
        if plateau == 0.0 {
            each = each.min(FIRST_EPOCH);
        }
        // Reno's window with the same decrease grows by 3 (1 - beta) / (1 + beta) packets in each round trip.
        epoch.reno += epoch.acknowledged * 3.0 * (1.0 - BETA) / (1.0 + BETA) / packets;
        epoch.acknowledged = 0.0;
        if epoch.reno > packets {
            each = each.min(packets / (epoch.reno - packets));
        }
        let each = each.clamp(2.0, f64::from(u32::MAX)) as u32;
        epoch.computed = (now, window, each);
        each
    }

    /// Returns the threshold after multiplicative decrease. A loss below the plateau of the previous loss lowers the plateau
    /// (fast convergence, section 4.7).
    pub(super) fn threshold_after_loss(&mut self, window: u32) -> u32 {
        let packets = f64::from(window);
        self.plateau = if packets < self.plateau {
            packets * (1.0 + BETA) / 2.0
        } else {
            packets
        };
        self.epoch = None;
        ((packets * BETA) as u32).max(2)
    }

    /// Advances times and numbers. Outside slow start, each use of a time changes the state, so there are no times to
    /// advance in a steady state.
    pub(super) fn shift(&mut self, window: &CongestionWindow, by: Shift) {
        if window.is_in_slow_start() {
            self.hystart.shift(by);
        }
    }

    /// Excludes a pause without data to send from the time since the last loss.
    pub(super) fn idle(&mut self, pause: Picos) {
        if let Some(epoch) = &mut self.epoch {
            epoch.begun += pause;
        }
    }
}
