//! One end of a connection, with its clock.

use std::io;

use flowcast_units::Time;
use thiserror::Error;

/// Why a message did not get through.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The other end is gone.
    #[error("the other end closed the connection")]
    Closed,
    /// Nothing came for as long as the transport waits.
    #[error("the other end was silent for {0}")]
    Silent(Time),
    /// A message of another size than both ends agreed on.
    #[error("found a message of {found} bytes, expected {expected}")]
    Size {
        /// Bytes that came.
        found: usize,
        /// Number of bytes that both ends agreed on.
        expected: usize,
    },
    /// The operating system refused a call.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried.
        doing: String,
        /// The system's reason.
        source: io::Error,
    },
}

/// Sends and receives messages whose size both ends know beforehand, and reads the clock.
pub trait Transport {
    /// Time since some fixed moment, on the clock of this end.
    fn now(&self) -> Time;

    /// Hands a message to the network and returns when its buffer may be used again.
    ///
    /// # Errors
    /// A connection that is closed or broken.
    fn send(&mut self, message: &[u8]) -> Result<(), TransportError>;

    /// Waits for a message of exactly this size.
    ///
    /// # Errors
    /// A connection that is closed, broken or silent, or a message of another size.
    fn receive(&mut self, message: &mut [u8]) -> Result<(), TransportError>;

    /// Keeps the processor busy, without touching the network.
    fn compute(&mut self, duration: Time) {
        let until = self.now() + duration;
        while self.now() < until {
            std::hint::spin_loop();
        }
    }

    /// Leaves the processor to others.
    fn rest(&mut self, duration: Time) {
        std::thread::sleep(std::time::Duration::from_nanos(
            duration.as_nanos().max(0.0) as u64,
        ));
    }
}
