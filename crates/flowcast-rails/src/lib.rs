//! A message transport over several networks at once: one TCP connection for each rail.
//!
//! [`session::Session`] is the protocol without sockets and clock: frames, credits, sequence numbers, what is sent again
//! when a rail fails. [`link::Link`] gives it sockets and time. Everything runs in the caller's thread: a message of one
//! byte is written to its socket by the call that sends it, and no thread has to be woken on either side.
//!
//! [`exchange`] is the many-messages test of section 5.8.1 of Lichei's thesis over a link.

pub mod exchange;
pub mod frame;
mod inbound;
mod lane;
pub mod link;
pub mod path;
mod peer_clock;
pub mod policy;
pub mod session;
