//! OTF2 traces (Score-P, EZTrace), from definitions and events that the OTF2 library reads.
//!
//! This module does not read files. The reader of an archive passes the definitions to [`Definitions`] and then the events
//! of one location after the other to [`Events`], which returns the program. Computation is the time between the functions
//! of MPI; events inside these functions describe their effects.
//!
//! Tracers differ, and these differences are tolerated. Definitions may arrive in any order and twice. Locations may have
//! any numbers; the group of all MPI locations maps them to ranks. Ranks may have different names for a communicator. The
//! ends of non-blocking receives may be missing. Score-P counts the bytes of some collectives once for each rank.

mod definitions;
mod events;

pub use definitions::Definitions;
pub use events::Events;

/// Event of a location. Ranks are ranks of the communicator, and numbers are numbers of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Start of the region with this number.
    Enter(u32),
    /// End of the region with this number.
    Leave(u32),
    /// Start of a blocking send.
    Send {
        /// Receiver, communicator and tag of the message.
        to: Peer,
        /// Size of the message in bytes.
        bytes: u64,
    },
    /// Start of a non-blocking send.
    Isend {
        /// Receiver, communicator and tag of the message.
        to: Peer,
        /// Size of the message in bytes.
        bytes: u64,
        /// Number of the request.
        request: u64,
    },
    /// Completion of a non-blocking send.
    IsendComplete(u64),
    /// Post of a non-blocking receive.
    IrecvPosted(u64),
    /// Completion of a blocking receive.
    Recv(Peer),
    /// Completion of a non-blocking receive.
    Irecv {
        /// Sender, communicator and tag of the message.
        from: Peer,
        /// Number of the completed request.
        request: u64,
    },
    /// Cancellation of a request.
    Cancelled(u64),
    /// End of a blocking collective.
    Collective(Collective),
    /// Start of a non-blocking collective.
    CollectivePosted(u64),
    /// Completion of a non-blocking collective.
    CollectiveComplete(Collective, u64),
    /// Start (`true`) or stop (`false`) of the measurement.
    Measurement(bool),
    /// Any other event with a time.
    Other,
}

/// Other end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Rank in the communicator.
    pub rank: u32,
    /// Number of the communicator among the definitions.
    pub communicator: u32,
    /// Tag for MPI's matching.
    pub tag: u32,
}

/// Collective operation as one rank completes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collective {
    /// Number of the operation in OTF2.
    pub operation: u8,
    /// Number of the communicator among the definitions.
    pub communicator: u32,
    /// Rank of the root in the communicator. If there is no root, the number is larger than the number of ranks.
    pub root: u32,
    /// Bytes that this rank sent.
    pub sent: u64,
    /// Bytes that this rank received.
    pub received: u64,
}

#[cfg(test)]
mod tests;
