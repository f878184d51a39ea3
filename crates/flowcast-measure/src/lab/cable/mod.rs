//! A link emulator in user space: delay, jitter, loss and a rate that is exact for single frames, which token buckets
//! cannot give.
//!
//! A token bucket lets the first frames of a message through free of charge, so that a small message sees no rate at
//! all. Here every frame is serialised, in virtual time:
//!
//! ```text
//! departure = max(arrival, departure of the frame before) + bytes / rate
//! delivery  = departure + delay + jitter, never before the delivery of the frame before
//! ```
//!
//! Arrival is when the system saw the frame, not when this process came to read it, so a late wake-up is made good as
//! long as the delivery is still to come. A process of the lab carries the frames ([`serve_cables`]); what it does with
//! each is decided by a queue without a clock ([`VirtualQueue`]), and [`CableChecker`] compares the two.

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
