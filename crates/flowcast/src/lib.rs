//! The pure part of Flowcast: what messages cost, what a program sends, when it all happens.
//!
//! No clock, socket, path, environment variable or global is touched here; callers hand in bytes and get values.

pub use flowcast_calibrate as calibrate;
pub use flowcast_fit as fit;
pub use flowcast_flows as flows;
pub use flowcast_model as model;
pub use flowcast_model::{cluster, stats};
pub use flowcast_packet as packet;
pub use flowcast_place as place;
pub use flowcast_recording as recording;
pub use flowcast_replay as replay;
pub use flowcast_report as report;
pub use flowcast_scheduler as scheduler;
pub use flowcast_trace as trace;
pub use flowcast_units as units;
