//! The parametrised round trip time (Lichei, section 3.2).
//!
//! `PRTT_{n,d}(s)`: send a message of s bytes, then n - 1 times compute for d and send another, and wait for one answer of
//! s bytes. Under LogGP
//!
//! `PRTT_{n,d}(s) = 2·(2o + L + (s-1)·G) + (n-1)·max(o + d, g + (s-1)·G)`.
//!
//! The second term shows the gap (d = 0) or the overhead (d above the gap), and the first term the latency. A small n (16)
//! is enough for both and does not flood the network.

use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time, TimePerByte};

/// Parameters of one round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrttPoint {
    /// Number of messages `n` before the answer, at least 1.
    pub messages: u32,
    /// Computation `d` between two sends. It is 0 for a single message, which has nothing to delay.
    pub delay: Time,
    /// Size `s` of each message and of the answer.
    pub size: Bytes,
}

impl PrttPoint {
    /// Creates `PRTT_{n,d}(s)`. A single message has no delay, whatever is given.
    pub fn new(messages: u32, delay: Time, size: Bytes) -> PrttPoint {
        PrttPoint {
            messages,
            delay: if messages > 1 { delay } else { Time::ZERO },
            size,
        }
    }

    /// Creates `PRTT_{1,0}(s)`, the plain round trip.
    pub fn round_trip(size: Bytes) -> PrttPoint {
        PrttPoint::new(1, Time::ZERO, size)
    }

    /// Size minus one byte, as in the equations.
    pub(crate) fn beyond_first_byte(&self) -> f64 {
        self.size.0.saturating_sub(1) as f64
    }
}

/// Returns the round trip that LogGP predicts (equation 3.2.2.3).
///
/// ```
/// use flowcast_fit::prtt::{PrttPoint, prtt};
/// use flowcast_network::loggp::LogGp;
/// use flowcast_units::{Bytes, Time};
///
/// let network = LogGp::from_nanos([10_000.0, 1000.0, 500.0, 1.0]);
/// assert_eq!(prtt(&network, PrttPoint::round_trip(Bytes(1))), Time::from_micros(24.0));
/// ```
pub fn prtt(network: &LogGp, point: PrttPoint) -> Time {
    let busiest = (network.overhead + point.delay).max(network.spacing(point.size));
    network.one_way(point.size) * 2.0 + busiest * f64::from(point.messages.saturating_sub(1))
}

/// Returns the delay that shows the overhead: the gap of a message half as large as the largest (section 3.4.3). It is well
/// above the gap of the small message for which it is used.
pub fn delay_for_overhead(gap: Time, gap_per_byte: TimePerByte, largest: Bytes) -> Time {
    let beyond = (largest.0 as f64 / 2.0 - 1.0).max(0.0);
    gap + Time::from_nanos(gap_per_byte.as_nanos() * beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infiniband() -> LogGp {
        LogGp {
            latency: Time::from_micros(2.82),
            overhead: Time::from_micros(1.4),
            gap: Time::from_micros(1.4),
            gap_per_byte: TimePerByte::from_micros(0.00103),
        }
    }

    #[test]
    fn the_fit_reproduces_the_round_trips_of_the_thesis_on_infiniband() {
        // Equation 3.2.2.3 with Table 3.5.3.1, by hand.
        for (messages, delay, size, micros) in [
            (1, 0.0, 1, 11.24),
            (1, 0.0, 1024, 13.347_38),
            (16, 0.0, 1, 32.24),
            (16, 100.0, 1, 1532.24),
        ] {
            let point = PrttPoint::new(messages, Time::from_micros(delay), Bytes(size));
            let time = prtt(&infiniband(), point).as_micros();
            assert!((time / micros - 1.0).abs() < 1e-12, "{point:?}: {time}");
        }
    }

    #[test]
    fn a_single_message_has_no_delay() {
        assert_eq!(
            PrttPoint::new(1, Time::from_micros(9.0), Bytes(8)),
            PrttPoint::round_trip(Bytes(8))
        );
    }

    #[test]
    fn the_delay_is_the_gap_of_half_the_largest_size() {
        let network = infiniband();
        let delay = delay_for_overhead(network.gap, network.gap_per_byte, Bytes(63_489));
        assert!((delay.as_micros() - 34.095_805).abs() < 1e-9, "{delay}");
    }
}
