//! OTF2 traces (Score-P, EZTrace), from their definitions and events as the OTF2 library reads them out.
//!
//! Nothing is read here: whoever reads an archive tells its definitions to [`Definitions`], then the events of one location
//! after the other to [`Events`], and takes the program from that. Computation is the time between the functions of MPI;
//! what they did is told by events inside them.
//!
//! Archives are met halfway where tracers differ. Definitions may come in any order and twice; locations have any ids, and
//! the group of all MPI locations says which is which rank; communicators may be named differently by each rank; the end
//! of non-blocking receives may be missing. Score-P counts the bytes of some collectives once for each rank.

mod definitions;
mod events;

pub use definitions::Definitions;
pub use events::Events;

/// An event of a location; ranks are those of the communicator, numbers those of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A region begins; the number is the region's.
    Enter(u32),
    /// A region ends; the number is the region's.
    Leave(u32),
    /// A blocking send begins.
    Send {
        /// Receiver, communicator and tag of the message.
        to: Peer,
        /// Size of the message in bytes.
        bytes: u64,
    },
    /// A non-blocking send begins.
    Isend {
        /// Receiver, communicator and tag of the message.
        to: Peer,
        /// Size of the message in bytes.
        bytes: u64,
        /// Number of the request that it makes.
        request: u64,
    },
    /// A non-blocking send is complete.
    IsendComplete(u64),
    /// A non-blocking receive is posted.
    IrecvPosted(u64),
    /// A blocking receive has its message.
    Recv(Peer),
    /// A non-blocking receive is complete.
    Irecv {
        /// Sender, communicator and tag of the message.
        from: Peer,
        /// Number of the request that it completes.
        request: u64,
    },
    /// A request was cancelled.
    Cancelled(u64),
    /// A blocking collective has ended.
    Collective(Collective),
    /// A non-blocking collective is started.
    CollectivePosted(u64),
    /// A non-blocking collective is complete.
    CollectiveComplete(Collective, u64),
    /// Measurement goes on, or stops.
    Measurement(bool),
    /// Anything else that marks a time.
    Other,
}

/// The other side of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its rank in the communicator.
    pub rank: u32,
    /// Number of the communicator among the definitions.
    pub communicator: u32,
    /// Tag by which MPI matches messages.
    pub tag: u32,
}

/// A collective operation as one rank completes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collective {
    /// The operation's number in OTF2.
    pub operation: u8,
    /// Number of the communicator among the definitions.
    pub communicator: u32,
    /// The root's rank in it; larger numbers than ranks for none.
    pub root: u32,
    /// Bytes that this rank sent.
    pub sent: u64,
    /// Bytes that this rank received.
    pub received: u64,
}

#[cfg(test)]
mod tests;
