//! Patterns over TCP between real hosts: a process on each host, and a driver for all of them.
//!
//! Each rank connects to the driver and sends the address at which it listens. The driver answers with orders, one per line:
//!
//! ```text
//! > {"hello":{"rank":1,"size":4,"host":"node7","address":"node7:40123"}}
//! < "clock"                                  > {"clock":...}      since the rank began
//! < {"open":[{"flow":0,"to":"node9:40777","size":4000000,...}]}    > "opened"
//! < {"carry":[...,[0,1]]}                    > {"carried":{"sent":[[0,...]],"taken":[[1,...]]}}
//! < {"guide":...}                            > "guided"           tells one rank the time
//! < {"learn":["node0:40321",...]}            > {"learned":...}    asks there, in bursts of exchanges
//! < {"look":["node0:40321",200]}             > {"looked":...}
//! ```
//!
//! `open` names the flows of the pattern that leave or enter the rank: number, peer, bytes, and start in nanoseconds. Each
//! flow has a connection of its own, which stays until the next `open`. `carry` names the common start on the rank's own
//! clock and the flows of the step. The answer has the start of each flow that leaves and the end of each flow that enters.
//! The lead of each clock over the driver's clock is measured before each repetition: of twelve exchanges, only the one with
//! the shortest round trip is used, and its middle is taken as the moment at which the other clock was read.

mod clocks;
mod driver;
pub mod orders;
mod rank;

pub use driver::{Hosts, NodeOf};
pub use rank::{Introduction, serve};
