//! Estimates of the round trip, and times to wait for an ACK (RFC 6298 with Linux' bounds; probes by RFC 8985).

use super::picos::Picos;

const LONGEST_TIMEOUT: Picos = Picos::from_millis(120_000);
const LEAST_WAIT: Picos = Picos::from_millis(2);

/// Estimate of one connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RoundTrip {
    smooth: Picos,
    variation: Picos,
    least: Picos,
    /// Least variation in a timeout, and additional wait for a lone packet, whose ACK may be delayed.
    shortest: Picos,
    /// Number of consecutive time-outs.
    doublings: u32,
}

impl RoundTrip {
    /// Creates the estimate of a connection whose opening took this time, which the system uses as its first sample.
    pub(super) fn opened(opening: Picos, shortest: Picos) -> RoundTrip {
        RoundTrip {
            smooth: opening,
            variation: Picos(opening.0 / 2),
            least: opening,
            shortest,
            doublings: 0,
        }
    }

    /// Adds a sample, with weights 1/8 and 1/4.
    pub(super) fn add(&mut self, sample: Picos) {
        self.least = self.least.min(sample);
        let error = sample.0.abs_diff(self.smooth.0);
        self.variation = Picos(self.variation.0 - self.variation.0 / 4 + error / 4);
        self.smooth = Picos(self.smooth.0 - self.smooth.0 / 8 + sample.0 / 8);
    }

    /// Least sample so far.
    pub(super) fn least(&self) -> Picos {
        self.least
    }

    /// Time without an ACK after which everything counts as lost.
    pub(super) fn timeout(&self) -> Picos {
        let once = self.smooth + (self.variation * 4).max(self.shortest);
        (once * (1 << self.doublings.min(16))).min(LONGEST_TIMEOUT)
    }

    /// Time without an ACK after which the last packet is sent once more.
    pub(super) fn probe_after(&self, in_flight: u32) -> Picos {
        self.smooth * 2
            + if in_flight <= 1 {
                self.shortest
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

    /// Smoothed estimate.
    pub(super) fn smooth(&self) -> Picos {
        self.smooth
    }
}
