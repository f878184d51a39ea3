//! Traffic between nodes: flows, the racks of the nodes, and pattern files that list them.

pub mod conflicts;
pub mod flow;
pub mod pattern;
pub mod racks;
pub mod staggered;
pub mod streaming;
pub mod tournament;
pub mod two_racks;
