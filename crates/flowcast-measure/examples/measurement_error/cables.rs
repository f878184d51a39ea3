//! Cables with known parameters: a packet of s bytes occupies the wire for the time of s + 90 bytes, so `g` is 91 bytes.

use flowcast_measure::virtual_network::MessageNoise;
use flowcast_network::loggp::LogGp;
use flowcast_units::{Time, TimePerByte};

pub(crate) struct Cable {
    pub(crate) name: &'static str,
    megabits: f64,
    delay_us: f64,
    overhead_us: f64,
    jitter_us: f64,
    exponential: bool,
    loss: f64,
}

const fn cable(
    name: &'static str,
    megabits: f64,
    delay_us: f64,
    jitter_us: f64,
    exponential: bool,
    loss: f64,
) -> Cable {
    Cable {
        name,
        megabits,
        delay_us,
        overhead_us: 5.0,
        jitter_us,
        exponential,
        loss,
    }
}

pub(crate) const CABLES: [Cable; 12] = [
    cable("10 Mbit/s, 50 us", 10.0, 50.0, 0.0, false, 0.0),
    cable(
        "10 Mbit/s, 500 us, jitter 20 us",
        10.0,
        500.0,
        20.0,
        false,
        0.0,
    ),
    cable("100 Mbit/s, 20 us", 100.0, 20.0, 0.0, false, 0.0),
    cable(
        "100 Mbit/s, 20 us, jitter 2 us",
        100.0,
        20.0,
        2.0,
        false,
        0.0,
    ),
    cable(
        "100 Mbit/s, 200 us, jitter 5 us exp",
        100.0,
        200.0,
        5.0,
        true,
        0.0,
    ),
    cable(
        "100 Mbit/s, 200 us, loss 0.1 %",
        100.0,
        200.0,
        2.0,
        false,
        1e-3,
    ),
    cable(
        "100 Mbit/s, 200 us, loss 1 %",
        100.0,
        200.0,
        2.0,
        false,
        1e-2,
    ),
    cable(
        "100 Mbit/s, 2 ms, jitter 20 us exp",
        100.0,
        2000.0,
        20.0,
        true,
        0.0,
    ),
    cable("1 Gbit/s, 20 us", 1000.0, 20.0, 0.0, false, 0.0),
    cable(
        "1 Gbit/s, 20 us, jitter 1 us",
        1000.0,
        20.0,
        1.0,
        false,
        0.0,
    ),
    cable(
        "1 Gbit/s, 200 us, jitter 1 us exp",
        1000.0,
        200.0,
        1.0,
        true,
        0.0,
    ),
    cable(
        "10 Gbit/s, 5 us, jitter 0.1 us",
        10_000.0,
        5.0,
        0.1,
        false,
        0.0,
    ),
];

impl Cable {
    pub(crate) fn network(&self) -> LogGp {
        let per_byte = 8e3 / self.megabits;
        LogGp {
            latency: Time::from_micros(self.delay_us),
            overhead: Time::from_micros(self.overhead_us),
            gap: Time::from_nanos(91.0 * per_byte),
            gap_per_byte: TimePerByte::from_nanos(per_byte),
        }
    }

    /// Returns the disturbances of a host: overheads vary by a tenth, and one message in 5000 is interrupted for 100 us.
    pub(crate) fn noise(&self) -> MessageNoise {
        MessageNoise {
            jitter: Time::from_micros(self.jitter_us),
            exponential: self.exponential,
            loss: self.loss,
            overhead: Time::from_micros(self.overhead_us * 0.1),
            interrupted: 2e-4,
            interruption: Time::from_micros(100.0),
        }
    }

    pub(crate) fn truth(&self) -> [f64; 4] {
        let LogGp {
            latency,
            overhead,
            gap,
            gap_per_byte,
        } = self.noise().truth(self.network());
        [
            latency.as_nanos(),
            overhead.as_nanos(),
            gap.as_nanos(),
            gap_per_byte.as_nanos(),
        ]
    }
}
