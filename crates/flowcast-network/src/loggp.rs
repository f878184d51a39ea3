//! LogGP: the cost of a message at its sender, in the network and at its receiver.
//!
//! A message of `s` bytes occupies each processor for the overhead `o`. Its last byte follows its first by `(s-1)·G`, the
//! wire adds the latency `L`, and starts of messages at an interface are at least `g + (s-1)·G` apart (Lichei, section 2.3,
//! after Alexandrov et al.).

use flowcast_units::{Bytes, Time, TimePerByte};

use crate::network::Nic;

/// The four parameters of LogGP, each 0 or more; by default all 0.
///
/// ```
/// use flowcast_network::loggp::LogGp;
/// use flowcast_units::{Bytes, Time};
///
/// let gigabit = LogGp::from_nanos([65_400.0, 6100.0, 897.0, 8.49]);
/// assert_eq!(gigabit.one_way(Bytes(1)), Time::from_nanos(77_600.0));
/// assert_eq!(gigabit.spacing(Bytes(101)), Time::from_nanos(1746.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LogGp {
    /// `L`: time from the sender's last instruction to the receiver's first.
    pub latency: Time,
    /// `o`: processor time per message on each side.
    pub overhead: Time,
    /// `g`: minimum time between two messages of one byte.
    pub gap: Time,
    /// `G`: additional gap for each further byte.
    pub gap_per_byte: TimePerByte,
}

impl LogGp {
    /// Creates the parameters from `L`, `o` and `g` in nanoseconds, and `G` in nanoseconds per byte.
    pub const fn from_nanos([latency, overhead, gap, per_byte]: [f64; 4]) -> LogGp {
        LogGp {
            latency: Time::from_nanos(latency),
            overhead: Time::from_nanos(overhead),
            gap: Time::from_nanos(gap),
            gap_per_byte: TimePerByte::from_nanos(per_byte),
        }
    }

    /// The four values in the order and units of [`LogGp::from_nanos`].
    pub const fn as_nanos(&self) -> [f64; 4] {
        [
            self.latency.as_nanos(),
            self.overhead.as_nanos(),
            self.gap.as_nanos(),
            self.gap_per_byte.as_nanos(),
        ]
    }

    /// `(s-1)·G`: time from the first byte of a message to its last.
    pub fn transfer(&self, size: Bytes) -> Time {
        self.gap_per_byte.time_for(Bytes(size.0.saturating_sub(1)))
    }

    /// `g + (s-1)·G`: time from the start of a message to the earliest start of the next one.
    pub fn spacing(&self, size: Bytes) -> Time {
        self.gap + self.transfer(size)
    }

    /// `2o + L + (s-1)·G`: time from the send call to the end of the receive call, with idle interfaces.
    pub fn one_way(&self, size: Bytes) -> Time {
        self.overhead * 2.0 + self.latency + self.transfer(size)
    }
}

impl From<&Nic> for LogGp {
    /// The parameters of an interface, for a message without contention.
    fn from(nic: &Nic) -> LogGp {
        LogGp {
            latency: nic.latency,
            overhead: nic.overhead,
            gap: nic.gap,
            gap_per_byte: nic.per_byte(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_costs_two_overheads_the_latency_and_its_bytes() {
        let network = LogGp {
            latency: Time::from_nanos(1000.0),
            overhead: Time::from_nanos(300.0),
            gap: Time::from_nanos(50.0),
            gap_per_byte: TimePerByte::from_nanos(2.0),
        };
        assert_eq!(network.one_way(Bytes(11)), Time::from_nanos(1620.0));
        assert_eq!(network.spacing(Bytes(11)), Time::from_nanos(70.0));
        assert_eq!(network.spacing(Bytes(0)), Time::from_nanos(50.0));
    }
}
