//! Parts of time: one vocabulary for critical paths, explanations and the costs of an event graph.

use super::named::named;

named! {
    /// The parts of time. The first nine can limit a program.
    pub enum TimePart {
        /// The program's own computation.
        Compute = "compute",
        /// Processor time for messages (`o` of LogGP, start-up of Dimemas).
        Overhead = "overhead",
        /// Rest time of an interface between two messages (`g` of LogGP).
        Gap = "gap",
        /// The part of a message's time in flight that does not depend on the bandwidth.
        Latency = "latency",
        /// The part of a message's time in flight that grows with its size.
        Bandwidth = "bandwidth",
        /// Time that messages wait for other messages: for links, buses or a part of the bandwidth.
        Contention = "contention",
        /// A collective operation whose cost a formula gives, after all ranks have reached it.
        Collective = "collective",
        /// Time that a rank waits for a processor occupied by other ranks.
        Processor = "processor",
        /// Anything else; zero for a complete record.
        Other = "other",
        /// Waiting for a message that has not been sent yet.
        LateSender = "late sender",
        /// Waiting for a receiver that has not posted its receive yet.
        LateReceiver = "late receiver",
        /// Waiting for other ranks that have not reached a collective yet.
        CollectiveWait = "collective wait",
    }
}

impl TimePart {
    /// The parts that can limit a program: those of a critical path, in the order of their codes.
    pub const LIMITS: [TimePart; 9] = *TimePart::ALL.first_chunk().expect("there are twelve parts");

    /// The parts of communication time, in the order of tables.
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

    /// Name in tables of communication costs: there, contention of a message is a conflict with other messages.
    pub const fn cost_name(self) -> &'static str {
        match self {
            TimePart::Contention => "conflict",
            other => other.name(),
        }
    }
}
