//! Estimates of the round trip, and times to wait for an ACK (RFC 6298 with Linux' bounds; probes by RFC 8985).

use super::picos::Picos;

const FIRST_TIMEOUT: Picos = Picos::from_millis(1000);
const LEAST_VARIATION: Picos = Picos::from_millis(200);
const LONGEST_TIMEOUT: Picos = Picos::from_millis(120_000);
/// Additional wait for a lone packet, whose ACK may be delayed.
const HELD_BACK: Picos = Picos::from_millis(200);
const LEAST_WAIT: Picos = Picos::from_millis(2);

/// Estimate of one connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoundTrip {
    smooth: Option<Picos>,
    variation: Picos,
    least: Picos,
    /// Number of consecutive time-outs.
    doublings: u32,
}

impl Default for RoundTrip {
    fn default() -> RoundTrip {
        RoundTrip {
            smooth: None,
            variation: Picos::ZERO,
            least: Picos::NEVER,
            doublings: 0,
        }
    }
}

impl RoundTrip {
    /// Creates the estimate of a connection that measures no round trips: the least possible time-out.
    pub(super) fn unmeasured() -> RoundTrip {
        RoundTrip {
            smooth: Some(Picos::ZERO),
            ..RoundTrip::default()
        }
    }

    /// Creates the estimate of a connection whose opening took this time, which the system uses as its first sample.
    pub(super) fn opened(opening: Picos) -> RoundTrip {
        let mut opened = RoundTrip::default();
        opened.add(opening);
        opened
    }

    /// Adds a sample, with weights 1/8 and 1/4.
    pub(super) fn add(&mut self, sample: Picos) {
        self.least = self.least.min(sample);
        let Some(smooth) = self.smooth else {
            (self.smooth, self.variation) = (Some(sample), Picos(sample.0 / 2));
            return;
        };
        let error = sample.0.abs_diff(smooth.0);
        self.variation = Picos(self.variation.0 - self.variation.0 / 4 + error / 4);
        self.smooth = Some(Picos(smooth.0 - smooth.0 / 8 + sample.0 / 8));
    }

    /// Least sample so far; zero before the first one.
    pub(super) fn least(&self) -> Picos {
        if self.least == Picos::NEVER {
            Picos::ZERO
        } else {
            self.least
        }
    }

    /// Time without an ACK after which everything counts as lost.
    pub(super) fn timeout(&self) -> Picos {
        let once = self.smooth.map_or(FIRST_TIMEOUT, |smooth| {
            smooth + (self.variation * 4).max(LEAST_VARIATION)
        });
        (once * (1 << self.doublings.min(16))).min(LONGEST_TIMEOUT)
    }

    /// Time without an ACK after which the last packet is sent once more.
    pub(super) fn probe_after(&self, in_flight: u32) -> Picos {
        let Some(smooth) = self.smooth else {
            return FIRST_TIMEOUT;
        };
        smooth * 2
            + if in_flight <= 1 {
                HELD_BACK
            } else {
                LEAST_WAIT
            }
    }

    /// Doubles the time-out, up to 120 s, until `forget_timeouts` ends the doubling.
    pub(super) fn timed_out(&mut self) {
        self.doublings += 1;
    }

    /// Ends the doubling of time-outs, after new packets have arrived.
    pub(super) fn forget_timeouts(&mut self) {
        self.doublings = 0;
    }

    /// Smoothed estimate, if there is one.
    pub(super) fn smooth(&self) -> Option<Picos> {
        self.smooth
    }
}
