//! A message of a schedule.

use flowcast_units::{Bytes, Rank};

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleMessage {
    /// The rank that receives it.
    pub to: Rank,
    /// Size of the message's data.
    pub size: Bytes,
    /// Tag; -1 if it has none.
    pub tag: i32,
}
