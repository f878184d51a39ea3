//! A message transport over several networks at the same time: one TCP connection for each rail.
//!
//! Messages are delivered in the order in which they were sent, independent of the rails that carry them. A rail may fail or
//! be withdrawn at any time: the sender repeats unacknowledged messages on the other rails. The end that opened a rail
//! reconnects it after a failure, for as long as the conversation lasts.
//!
//! - [`link::RailLink`] connects two processes and sends and receives messages. Everything runs in the caller's thread: the
//!   call that sends a short message writes it to its socket.
//! - [`session::Session`] is the protocol behind it, without sockets and clock: frames, credits, sequence numbers,
//!   retransmission.
//! - [`policy`] chooses the rail of each message with a scheduler of `flowcast-scheduler`.
//! - [`token::Token`] is the secret by which the ends recognise each other.
//! - [`exchange`] is the many-messages benchmark of section 5.8.1 of Lichei's thesis.

pub mod exchange;
pub mod frame;
mod inbound;
mod lane;
pub mod link;
pub mod path;
mod peer_clock;
pub mod policy;
pub mod session;
mod silence;
pub mod token;
