//! Schema names of earlier versions, which remain readable.

/// Durations of concurrent messages; samples replace this schema.
pub const CONFLICT_SAMPLES: &str = "flowcast/conflict-samples/1";
/// A network file with other section names.
pub const NETWORK: &str = "flowcast/network/1";
