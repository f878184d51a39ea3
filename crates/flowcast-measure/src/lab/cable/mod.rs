//! Link emulator in user space, with delay, jitter, loss and a rate that is exact even for single frames. Token buckets
//! cannot provide such a rate.
//!
//! A token bucket lets the first frames of a message pass without cost, so a small message is not limited by the rate. The
//! link emulator serialises every frame, in virtual time:
//!
//! ```text
//! departure = max(arrival, departure of the frame before) + bytes / rate
//! delivery  = departure + delay + jitter, never before the delivery of the frame before
//! ```
//!
//! The arrival is the time at which the system received the frame, not the time at which this process read it. A late
//! wake-up therefore has no effect as long as the delivery is still ahead. A process of the lab carries the frames
//! ([`serve_cables`]). A queue without a clock ([`VirtualQueue`]) decides their fate, and [`CableChecker`] compares the two.

mod check;
mod queue;
mod serve;
#[expect(unsafe_code, reason = "packet sockets and recvmmsg")]
mod socket;
mod spec;

pub use check::{CableCheck, CableChecker, Lateness};
pub use queue::{Fate, VirtualQueue};
pub use serve::serve_cables;
pub use spec::{CableSpec, DirectionSpec, Distribution, PerDirection};
