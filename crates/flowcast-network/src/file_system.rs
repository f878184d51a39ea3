//! What reading and writing files costs: `T = latency + size/bandwidth`, for a limited number of requests at once.
//!
//! The fields are those of Dimemas' `file system parameters`. Requests that find no place wait, first come, first served.

use flowcast_units::{Bytes, Rate, Time};

section! {
    /// The `[file_system]` section of a network file.
    pub struct FileSystem: Default + Copy {
        /// Start-up of each request; all that opening and closing takes.
        /// Default: 0. Example: `"2ms"`.
        latency: Time,
        /// Bytes per second of one request; 0 is infinite.
        /// Default: infinite. Example: `"200MB/s"`.
        bandwidth: Rate,
        /// Requests that are served at once, of all ranks together; 0 is no limit.
        /// Default: 0. Example: `4`.
        requests: u32,
    }
}

impl FileSystem {
    /// How long a request takes that does not have to wait.
    pub fn time_for(&self, size: Bytes) -> Time {
        self.latency + self.bandwidth.time_for(size)
    }
}
