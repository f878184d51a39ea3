//! Patterns over TCP between real hosts: a process on each, and one that drives them all.
//!
//! Each rank connects to the driver and sends the address at which it listens. The driver answers with orders, a line each:
//!
//! ```text
//! > hello 1 4 node7 node7:40123             rank, how many, host, where its messages are to be sent
//! < clock                                   > clock 52340123          nanoseconds since the rank began
//! < open send 0 node9:40777 4000000 0 take 1 2000000 0                > opened
//! < carry 71340123 0 1                      > carried send 0 1200 take 1 340012345
//! < guide 0 0 0                             > guided                  tells one rank the time
//! < learn node0:40321 20 50 1000000000      > learned ...             asks there, in 20 bursts of 50 within a second
//! < look node0:40321 200                    > looked ...
//! ```
//!
//! `open` names the flows of the pattern that leave or enter the rank: number, peer, bytes, start in nanoseconds. Each
//! has a connection of its own, which stays until the next `open`. `carry` names the common start by the rank's own
//! clock and the flows of the step; the answer has the start of each that leaves and the end of each that enters. By how
//! much a clock is ahead of the driver's is found before each repetition: of twelve exchanges that with the shortest
//! round trip counts, and its middle is the moment at which the other clock was read.

mod clocks;
mod driver;
mod orders;
mod rank;

pub use driver::{Hosts, NodeOf};
pub use rank::{Introduction, serve};
