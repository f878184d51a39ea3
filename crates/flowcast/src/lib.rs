//! The pure part of Flowcast: what messages cost, what a program sends, when it all happens.
//!
//! No clock, socket, path, environment variable or global is touched here; callers hand in bytes and get values.
//! The stages stand in the order in which they may import each other, leftward only:
//!
//! `units` < `stats` < `cluster` < `model` < `fit` < `trace` < `simulate` < `place`, `rails` < `report`

pub mod cluster;
pub mod fit;
pub mod model;
pub mod place;
pub mod rails;
pub mod report;
pub mod simulate;
pub mod stats;
pub mod trace;
pub mod units;
