//! One end of a connection, with its clock.

use std::io;

use flowcast_units::Time;
use thiserror::Error;

/// Error of a message.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The other end is gone.
    #[error("the other end closed the connection")]
    Closed,
    /// No message arrived within the transport's time limit.
    #[error("the other end was silent for {0}")]
    Silent(Time),
    /// A message does not have the size that both ends agreed on.
    #[error("found a message of {found} bytes, expected {expected}")]
    Size {
        /// Number of bytes that arrived.
        found: usize,
        /// Number of bytes that both ends agreed on.
        expected: usize,
    },
    /// The operating system refused a call.
    #[error("cannot {doing}: {source}")]
    Io {
        /// Operation that failed, in words that follow `cannot` in the message.
        doing: String,
        /// Reason given by the system.
        source: io::Error,
    },
}

/// Connection for messages whose size both ends know in advance, with a clock.
pub trait Transport {
    /// Returns the time since a fixed moment, on the clock of this end.
    fn now(&self) -> Time;

    /// Hands a message to the network and returns when its buffer can be reused.
    ///
    /// # Errors
    /// The connection is closed or broken.
    fn send(&mut self, message: &[u8]) -> Result<(), TransportError>;

    /// Waits for a message of exactly this size.
    ///
    /// # Errors
    /// The connection is closed, broken or silent, or the message has another size.
    fn receive(&mut self, message: &mut [u8]) -> Result<(), TransportError>;

    /// Keeps the processor busy, without touching the network.
    fn compute(&mut self, duration: Time) {
        let until = self.now() + duration;
        while self.now() < until {
            std::hint::spin_loop();
        }
    }

    /// Yields the processor for a time.
    fn rest(&mut self, duration: Time) {
        std::thread::sleep(std::time::Duration::from_nanos(
            duration.as_nanos().max(0.0) as u64,
        ));
    }
}
