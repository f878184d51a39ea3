//! What a message costs when no other is in flight (RR-5910 section 3).

use flowcast_units::{Bytes, Rate, Time, TimePerByte};

/// A cost by size.
pub trait SingleMessage {
    /// From the send call to the last byte's arrival.
    fn time(&self, size: Bytes) -> Time;
}

/// `T(m) = L + m/bandwidth` (Hockney).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// `L`: time of a message of no bytes.
    pub latency: Time,
    /// Bytes per second; 0 is infinite.
    pub rate: Rate,
}

/// `T(m) = L + a*m` below the rendezvous threshold and `L + b*m` from it on; it may jump there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoPiece {
    /// `L`: time of a message of no bytes.
    pub latency: Time,
    /// `a`: time of each byte of a message below the threshold.
    pub below: TimePerByte,
    /// `b`: time of each byte of a message from the threshold on.
    pub from: TimePerByte,
    /// First size of the second piece.
    pub threshold: Bytes,
}

impl SingleMessage for Linear {
    fn time(&self, size: Bytes) -> Time {
        self.latency + self.rate.time_for(size)
    }
}

impl SingleMessage for TwoPiece {
    fn time(&self, size: Bytes) -> Time {
        let per_byte = if size < self.threshold {
            self.below
        } else {
            self.from
        };
        self.latency + per_byte.time_for(size)
    }
}
