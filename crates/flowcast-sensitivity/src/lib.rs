//! How the makespan depends on one parameter: exact, piecewise linear, from a few walks.
//!
//! Without contention a replay only adds costs and takes the later of two times. Where every cost is a linear function of
//! a parameter `x`, the makespan is therefore the maximum of linear functions of `x`: convex and piecewise linear. A walk
//! at one `x` gives the makespan and, from the costs along the chain of events that ends last, its slope
//! ([`Family::tangent`]). Two tangents meet at one point; if the makespan there lies on them, that is a breakpoint,
//! otherwise the walk has found another piece (Eisner and Severance, J. ACM 23, 1976). So a curve of `k` pieces takes about
//! `2k` walks ([`trace_curve`]). The parameter has its own unit: nanoseconds, nanoseconds per byte, or none.

mod curve;
mod family;
pub mod influence;
mod linear_costs;
mod obstacle;
mod slopes;

pub use curve::{Curve, Piece, Tangent, trace_curve};
pub use family::Family;
pub use obstacle::Obstacle;
