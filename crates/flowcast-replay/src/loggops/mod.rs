//! Schedules under LogGOPS, event by event, with the rules of LogGOPSim (Hoefler, Schneider, Lumsdaine).
//!
//! Each rank has processors, and interfaces for sending and for receiving. An operation starts when its processor (and
//! interface) is free:
//! - `calc d` occupies the processor for `d`.
//! - `send s` occupies the processor for `o` and the sending interface for `g + (s-1)G`; the first byte reaches the receiver
//!   `o + L` after the start.
//! - A message that has arrived occupies the receiver's processor for `o + (s-1)G` and its receiving interface for
//!   `g + (s-1)G`, whether or not a receive has been posted.
//! - A send ends at its start, or, if its size is above `S`, when message and receive have met (rendezvous).
//!
//! Operations that may start are executed in the order of their time, then of their creation; a blocked operation keeps its
//! place among those of equal time. A receive that is smaller than its message is an error, as in MPI, unless every message
//! has enough room in another order of arrival (module `room`). Sizes of 0 cost the same as sizes of 1; in LogGOPSim they
//! wrap around.
//!
//! [`queues`] executes these rules efficiently where possible; [`plain`] executes them as written here. [`costs`] describes
//! the changes if ranks share nodes, or messages share the network.

pub mod costs;
mod host;
mod layout;
pub mod message;
pub mod plain;
mod prepared;
pub mod queues;
mod room;
pub mod sends;

use super::{
    SimulateError,
    observer::{Observer, Unobserved},
    outcome::Outcome,
};
use flowcast_network::network::Network;
use flowcast_program::schedule::Schedule;
use flowcast_units::{Bytes, Time, TimePerByte};

use costs::LogGopsCosts;
pub use layout::Layout;
pub use prepared::PreparedOperations;

/// The parameters of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loggops {
    /// `L`: time in the network, independent of the size.
    pub latency: Time,
    /// `o`: processor time of a message, on each side.
    pub overhead: Time,
    /// `g`: shortest time between two messages at an interface.
    pub gap: Time,
    /// `G`: time that each byte after the first adds to the gap.
    pub gap_per_byte: TimePerByte,
    /// `S`: larger messages wait for their receiver.
    pub eager_up_to: Option<Bytes>,
}

impl Loggops {
    /// Takes the parameters from a network, whatever the network's own rule.
    pub fn from_network(network: &Network) -> Loggops {
        Loggops {
            latency: network.nic.latency,
            overhead: network.nic.overhead,
            gap: network.nic.gap,
            gap_per_byte: network.nic.per_byte(),
            eager_up_to: network
                .point_to_point
                .rendezvous_from
                .map(|from| Bytes(from.0.saturating_sub(1))),
        }
    }

    pub(super) fn bytes_time(&self, size: Bytes) -> Time {
        self.gap_per_byte.time_for(Bytes(size.0.saturating_sub(1)))
    }

    pub(super) fn is_rendezvous(&self, size: Bytes) -> bool {
        self.eager_up_to.is_some_and(|limit| size > limit)
    }
}

/// Replays a schedule and reports its events to an observer. Messages are numbered by their send among all operations, rank
/// by rank. A message is received when its receiver's processor takes it from the network, whether or not a receive has been
/// posted; `posted` reports receives that are posted after that.
///
/// # Errors
/// [`SimulateError`]: messages or receives without counterpart, operations that wait for each other; errors of a sharing
/// model.
pub fn placed<O: Observer>(
    schedule: &Schedule,
    costs: LogGopsCosts<'_>,
    observer: &mut O,
) -> Result<Outcome, SimulateError> {
    let prepared = costs
        .are_plain()
        .then(|| PreparedOperations::new(schedule))
        .flatten();
    match prepared.map(|prepared| queues::attempt(&prepared, costs.parameters, observer)) {
        Some(Some(outcome)) => Ok(outcome),
        Some(None) => plain::run(schedule, costs, &mut Unobserved),
        None => plain::run(schedule, costs, observer),
    }
}
