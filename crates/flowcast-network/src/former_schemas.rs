//! Names of documents in files of former versions, which stay readable.

/// Durations of concurrent messages, now samples.
pub const CONFLICT_SAMPLES: &str = "flowcast/conflict-samples/1";
/// A network file whose sections were named otherwise.
pub const NETWORK: &str = "flowcast/network/1";
