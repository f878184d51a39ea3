//! Messages between processes as lines of JSON. Times in them are numbers of nanoseconds, which read back equal.

use flowcast_units::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Returns a message as a line, including the end of the line.
pub(crate) fn line_of(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("messages contain only texts, numbers and lists") + "\n"
}

pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    time.as_nanos().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    f64::deserialize(deserializer).map(Time::from_nanos)
}
