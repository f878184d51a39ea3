//! What each rank did when, and which message was where: the form in which a replay is drawn and explained.

use flowcast_units::{Bytes, Rank, Time};

/// What a rank is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// The program's own computation.
    Compute,
    /// Processor time spent on sending or receiving (`o` of LogGP, the start-up latency of Dimemas).
    Overhead,
    /// Waiting for a message that has not been sent yet.
    LateSender,
    /// Waiting for a message that is under way.
    Transfer,
    /// Waiting for a receiver that has not asked for the message yet (rendezvous).
    LateReceiver,
    /// Waiting for the other ranks of a collective operation.
    CollectiveWait,
    /// In a collective operation that all have reached.
    Collective,
}

impl Activity {
    /// All of them, in the order in which legends show them.
    pub const ALL: [Activity; 7] = [
        Activity::Compute,
        Activity::Overhead,
        Activity::LateSender,
        Activity::Transfer,
        Activity::LateReceiver,
        Activity::CollectiveWait,
        Activity::Collective,
    ];

    /// Name in tables and legends.
    pub const fn name(self) -> &'static str {
        match self {
            Activity::Compute => "compute",
            Activity::Overhead => "overhead",
            Activity::LateSender => "late sender",
            Activity::Transfer => "transfer",
            Activity::LateReceiver => "late receiver",
            Activity::CollectiveWait => "collective wait",
            Activity::Collective => "collective",
        }
    }
}

/// A stretch of time in which a rank does one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Its beginning.
    pub start: Time,
    /// Its end; never before the beginning.
    pub end: Time,
    /// What the rank does.
    pub activity: Activity,
}

/// One message from send to receive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageSpan {
    /// Sender.
    pub src: Rank,
    /// Receiver.
    pub dst: Rank,
    /// Size.
    pub size: Bytes,
    /// MPI tag.
    pub tag: i32,
    /// When the sender called.
    pub sent: Time,
    /// When the last byte was there.
    pub arrived: Time,
    /// When the receiver's call returned.
    pub received: Time,
}

/// A whole replay: for each rank its segments in time order (gaps are idle), and the messages in no given order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// Segments by rank.
    pub ranks: Vec<Vec<Segment>>,
    /// Messages.
    pub messages: Vec<MessageSpan>,
}
