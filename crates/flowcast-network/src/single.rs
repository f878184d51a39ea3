//! Cost of a message without other messages in flight (RR-5910 section 3).

use flowcast_units::{Bytes, Rate, Time, TimePerByte};

/// Cost of a message as a function of its size.
pub trait SingleMessage {
    /// Time from the send call to the arrival of the last byte.
    fn time(&self, size: Bytes) -> Time;
}

/// `T(m) = L + m/bandwidth` (Hockney).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// `L`: time of an empty message.
    pub latency: Time,
    /// Bytes per second; 0 is infinite.
    pub rate: Rate,
}

/// `T(m) = L + a*m` below the rendezvous threshold and `L + b*m` from the threshold; there may be a jump between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoPiece {
    /// `L`: time of an empty message.
    pub latency: Time,
    /// `a`: time per byte of a message below the threshold.
    pub below: TimePerByte,
    /// `b`: time per byte of a message from the threshold.
    pub from: TimePerByte,
    /// Smallest size of the second piece.
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
