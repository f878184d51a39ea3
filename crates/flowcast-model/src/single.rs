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
    /// `L`.
    pub latency: Time,
    /// Bytes per second; 0 is infinite.
    pub rate: Rate,
}

/// `T(m) = L + a*m` below the rendezvous threshold and `L + b*m` from it on; it may jump there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoPiece {
    /// `L`.
    pub latency: Time,
    /// `a`.
    pub below: TimePerByte,
    /// `b`.
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
        let per_byte = if size < self.threshold { self.below } else { self.from };
        self.latency + per_byte.time_for(size)
    }
}
