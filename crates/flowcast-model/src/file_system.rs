//! What reading and writing files costs: `T = latency + size/bandwidth`, for a limited number of requests at once.
//!
//! The fields are those of Dimemas' `file system parameters`. Requests that find no place wait, first come, first served.

use serde::{Deserialize, Serialize};

use flowcast_units::{Bytes, Rate, Time};

/// The `[file_system]` section of a network file.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Start-up of each request; all that opening and closing takes.
    #[serde(default)]
    pub latency: Time,
    /// Bytes per second of one request; 0 is infinite.
    #[serde(default)]
    pub bandwidth: Rate,
    /// Requests that are carried out at once, of all ranks together; 0 is no limit.
    #[serde(default)]
    pub requests: u32,
}

impl FileSystem {
    /// How long a request takes that does not have to wait.
    pub fn time_for(&self, size: Bytes) -> Time {
        self.latency + self.bandwidth.time_for(size)
    }
}
