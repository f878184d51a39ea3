//! Dependence of the makespan on one parameter: exact, piecewise linear, from a few walks.
//!
//! Without contention, a replay only adds costs and takes the later of two times. If every cost is a linear function of a
//! parameter `x`, the makespan is therefore the maximum of linear functions of `x`: convex and piecewise linear. A pass over
//! the events at one `x` gives the makespan and its slope. The slope follows from the costs along the chain of events that
//! ends last. Two tangents meet at one point. If the makespan there lies on them, the point is a breakpoint; otherwise the
//! pass has found another piece (Eisner and Severance, J. ACM 23, 1976). A curve of `k` pieces takes about `2k` passes
//! ([`trace_curve`]). The unit of the parameter is nanoseconds, nanoseconds per byte, or none.

mod curve;
pub mod influence;

pub use curve::{Curve, Piece, Tangent, trace_curve};
