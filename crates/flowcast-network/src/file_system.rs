//! Time of file reads and writes: `T = latency + size/bandwidth`, for a limited number of concurrent requests.
//!
//! The fields are those of Dimemas' `file system parameters`. Requests beyond the limit wait, first come, first served.

use flowcast_units::{Bytes, Rate, Time};

section! {
    /// The `[file_system]` section of a network file.
    pub struct FileSystem: Default + Copy {
        /// Start-up time of each request, and the time of opening or closing a file.
        /// Default: 0. Example: `"2ms"`.
        latency: Time,
        /// Bandwidth of a request; 0 is infinite.
        /// Default: infinite. Example: `"200MB/s"`.
        bandwidth: Rate,
        /// Maximum number of concurrent requests of all ranks; 0 is no limit.
        /// Default: 0. Example: `4`.
        requests: u32,
    }
}

impl FileSystem {
    /// Time of a request that does not have to wait.
    pub fn time_for(&self, size: Bytes) -> Time {
        self.latency + self.bandwidth.time_for(size)
    }
}
