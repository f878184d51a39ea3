//! A message of a schedule.

use flowcast_units::{Bytes, Rank};

/// Destination, size and tag of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleMessage {
    /// Rank of the receiver.
    pub to: Rank,
    /// Size of the message's data.
    pub size: Bytes,
    /// Tag of the message; -1 if it has none.
    pub tag: i32,
}
