//! Assignment of a program's messages to rails, in predictions and in MPI itself.
//!
//! All processes of a node share one account ([`NodeAccount`]), because they share its interfaces.

mod ob1;

use std::{fmt, str::FromStr};

use self::ob1::Ob1;
use super::{
    RailId, RailScheduler, RailSet, RailsError,
    clock::{ClockArithmetic, Ticks},
    discipline::{BoxedScheduler, Discipline, SchedulerName},
    rail::check_count,
    split::{SplitRule, Splitter},
    turns::Shares,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time};

/// Largest message that Open MPI sends over TCP without waiting for the receiver, in bytes.
pub const EAGER_LIMIT: Bytes = Bytes(65_536);

const STOCK: &str = "stock";
const WHOLE: &str = "whole-messages";

/// Policy for the assignment of a program's messages to rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagePolicy {
    /// A scheduler; earliest delivery divides long messages by [`SplitRule::inside_mpi`].
    By(SchedulerName),
    /// Earliest delivery without division of messages.
    WholeMessages,
    /// Open MPI's own policy.
    Stock,
}

impl Default for MessagePolicy {
    fn default() -> MessagePolicy {
        MessagePolicy::By(SchedulerName::new(Discipline::EarliestDelivery))
    }
}

impl fmt::Display for MessagePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessagePolicy::By(name) => name.fmt(f),
            MessagePolicy::WholeMessages => f.pad(WHOLE),
            MessagePolicy::Stock => f.pad(STOCK),
        }
    }
}

impl FromStr for MessagePolicy {
    type Err = RailsError;

    fn from_str(text: &str) -> Result<MessagePolicy, RailsError> {
        match text {
            STOCK => Ok(MessagePolicy::Stock),
            WHOLE => Ok(MessagePolicy::WholeMessages),
            name => match name.parse() {
                Err(RailsError::Unknown(found, known)) => Err(RailsError::Unknown(
                    found,
                    format!("{STOCK}, {WHOLE}, {known}"),
                )),
                name => name.map(MessagePolicy::By),
            },
        }
    }
}

/// A message that is ready to leave its node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadyMessage {
    /// Time at which it is ready.
    pub now: Time,
    /// Bytes of its data.
    pub size: Bytes,
    /// Identifies the pair of processes that exchange the message.
    pub pair: u64,
}

/// Part of a message on one rail; a rail takes at most one part of each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailPiece {
    /// The rail.
    pub rail: RailId,
    /// Size of the part.
    pub size: Bytes,
}

/// Load of a node's rails, and the scheduler that chooses among them.
pub struct NodeAccount(Chooser);

enum Chooser {
    Dividing(Box<Splitter>),
    Whole(BoxedScheduler<Ticks>),
    Stock(Ob1),
}

impl NodeAccount {
    /// Creates an account for idle rails. Messages above the eager limit are long for [`MessagePolicy::Stock`].
    ///
    /// # Errors
    /// No rail, or too many.
    pub fn new(
        policy: MessagePolicy,
        rails: &[LogGp],
        eager_limit: Bytes,
    ) -> Result<NodeAccount, RailsError> {
        check_count(rails.len())?;
        let whole = |name: SchedulerName| name.scheduler(rails, Shares::by_bandwidth(rails)?, ());
        Ok(NodeAccount(match policy {
            MessagePolicy::Stock => Chooser::Stock(Ob1::new(rails, eager_limit)),
            _ if policy == MessagePolicy::default() => {
                Chooser::Dividing(Box::new(Splitter::new(rails, SplitRule::inside_mpi())?))
            }
            MessagePolicy::By(name) => Chooser::Whole(whole(name)?),
            MessagePolicy::WholeMessages => {
                Chooser::Whole(whole(SchedulerName::new(Discipline::EarliestDelivery))?)
            }
        }))
    }

    /// Chooses the rail of a short message that cannot be divided, such as a request to send.
    pub fn pick(&mut self, message: ReadyMessage) -> RailId {
        let (now, size) = (Ticks::from_time(message.now, ()), message.size);
        let picked = match &mut self.0 {
            Chooser::Dividing(splitter) => splitter.pick(now, size, RailSet::ALL),
            Chooser::Whole(scheduler) => scheduler.pick(now, size, RailSet::ALL),
            Chooser::Stock(ob1) => Some(ob1.first(message.pair)),
        };
        picked.expect("all rails are usable")
    }

    /// Assigns a message to rails and replaces the content of `pieces` by its parts.
    pub fn give(&mut self, message: ReadyMessage, pieces: &mut Vec<RailPiece>) {
        pieces.clear();
        let (now, size) = (Ticks::from_time(message.now, ()), message.size);
        match &mut self.0 {
            Chooser::Dividing(splitter) if size >= SplitRule::inside_mpi().from => {
                let split = splitter.split(now, size, RailSet::ALL);
                let split = split.expect("all rails are usable");
                pieces.extend(split.pieces().map(|(rail, size)| RailPiece { rail, size }));
            }
            Chooser::Stock(ob1) => ob1.give(message.pair, size, pieces),
            _ => {
                let rail = self.pick(message);
                pieces.push(RailPiece { rail, size });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::TimePerByte;

    #[test]
    fn every_name_is_read_back() {
        let named = SchedulerName::every().map(MessagePolicy::By);
        for policy in named.chain([MessagePolicy::Stock, MessagePolicy::WholeMessages]) {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let message = "fastest".parse::<MessagePolicy>().unwrap_err().to_string();
        assert!(message.contains("stock, whole-messages, round-robin"));
    }

    #[test]
    fn earliest_delivery_divides_from_eight_kibibytes_on() {
        let rail = LogGp {
            gap: Time::ZERO,
            overhead: Time::ZERO,
            latency: Time::from_micros(20.0),
            gap_per_byte: TimePerByte::from_nanos(200.0),
        };
        let mut account =
            NodeAccount::new(MessagePolicy::default(), &[rail, rail], EAGER_LIMIT).unwrap();
        let mut pieces = Vec::new();
        let mut sizes = |size: u64, now: f64| {
            let message = ReadyMessage {
                now: Time::from_seconds(now),
                size: Bytes(size),
                pair: 0,
            };
            account.give(message, &mut pieces);
            pieces.iter().map(|piece| piece.size.0).collect::<Vec<_>>()
        };
        assert_eq!(sizes(8191, 0.0), [8191]);
        assert_eq!(sizes(9000, 1.0), [4499, 4501]);
        assert_eq!(sizes(0, 2.0), [0]);
    }
}
