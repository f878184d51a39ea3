//! What time is spent on: one vocabulary for critical paths, explanations and the costs of an event graph.

use super::named::named;

named! {
    /// What time is spent on. The first nine are what limits a program.
    pub enum TimePart {
        /// The program's own computation.
        Compute = "compute",
        /// Processor time for messages (`o` of LogGP, the start-up of Dimemas).
        Overhead = "overhead",
        /// The rest that an interface takes between two messages (`g` of LogGP).
        Gap = "gap",
        /// The part of a message's time in flight that no bandwidth would shorten.
        Latency = "latency",
        /// The part of a message's time in flight that grows with its size.
        Bandwidth = "bandwidth",
        /// Waiting of messages for others: for links, buses or a part of the bandwidth.
        Contention = "contention",
        /// A collective operation that costs what a formula says, after all have come.
        Collective = "collective",
        /// Waiting for a processor that others have.
        Processor = "processor",
        /// Anything else; a complete record leaves nothing here.
        Other = "other",
        /// Waiting for a message that has not been sent yet.
        LateSender = "late sender",
        /// Waiting for a receiver that has not asked yet.
        LateReceiver = "late receiver",
        /// Waiting for others that have not come to a collective yet.
        CollectiveWait = "collective wait",
    }
}

impl TimePart {
    /// What limits a program: the parts of a critical path, in the order of their codes.
    pub const LIMITS: [TimePart; 9] = *TimePart::ALL.first_chunk().expect("there are twelve");

    /// What communication costs, in the order of tables.
    pub const COMMUNICATION: [TimePart; 9] = [
        TimePart::Overhead,
        TimePart::Latency,
        TimePart::Bandwidth,
        TimePart::Contention,
        TimePart::LateSender,
        TimePart::LateReceiver,
        TimePart::CollectiveWait,
        TimePart::Collective,
        TimePart::Processor,
    ];

    /// Name where the costs of communication are told apart: to a message, contention is a conflict with others.
    pub const fn cost_name(self) -> &'static str {
        match self {
            TimePart::Contention => "conflict",
            other => other.name(),
        }
    }
}
