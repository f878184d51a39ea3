//! Messages between a driver and its ranks, as lines of JSON.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clocks::{BurstReading, ClockPlan, LearnedClock, LineAsNumbers};
use flowcast_units::ClockLine;

/// Order to a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostOrder {
    /// Send the time of the clock.
    Clock,
    /// Connect the flows of these ends.
    Open(Vec<Leg>),
    /// Carry the flows with these numbers, starting at this time of the rank's own clock.
    Carry(Duration, Vec<u32>),
    /// Guide the next rank that connects: answer with the first rank's time, which this line gives in terms of the rank's
    /// own clock.
    Guide(#[serde(with = "LineAsNumbers")] ClockLine),
    /// Learn the time from the rank at this address.
    Learn(String, ClockPlan),
    /// Read the clock of the rank at this address, with this number of exchanges.
    Look(String, u32),
}

/// End of a flow at a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// Number of the flow.
    pub flow: u32,
    /// Address of the receiver; `None` if the flow enters the rank.
    pub to: Option<String>,
    /// Size of the message, in bytes.
    pub size: u64,
    /// Start, relative to the common start.
    pub start: Duration,
}

/// Answer of a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostReply {
    /// Introduction of a rank.
    Hello {
        /// Number of the rank.
        rank: u32,
        /// Total number of ranks.
        size: u32,
        /// Name of the host.
        host: String,
        /// Address for messages to the rank.
        address: String,
    },
    /// Time of the rank's clock, since the rank's start.
    Clock(Duration),
    /// All flows are connected.
    Opened,
    /// Starts of sent flows and ends of received flows, relative to the common start.
    FlowTimes {
        /// Number and start of each flow that leaves the rank.
        sent: Vec<(u32, Duration)>,
        /// Number and end of each flow that enters the rank.
        taken: Vec<(u32, Duration)>,
    },
    /// The learner is finished.
    Guided,
    /// Estimate of the other rank's clock.
    LearnedClock(LearnedClock),
    /// Single reading of the other rank's clock.
    Looked(BurstReading),
    /// Reason why the order could not be carried out.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::line_of;
    use flowcast_units::Time;

    fn read<T: Serialize + serde::de::DeserializeOwned>(message: &T) -> T {
        let line = line_of(message);
        assert_eq!(line.lines().count(), 1, "{line}");
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn invalid_orders_are_rejected() {
        for line in [
            "",
            "clock",
            "\"stop\"",
            "{\"carry\":[1]}",
            "{\"guide\":{\"at\":null,\"offset\":0,\"drift\":0}}",
        ] {
            assert!(serde_json::from_str::<HostOrder>(line).is_err(), "{line}");
        }
    }

    #[test]
    fn orders_and_replies_read_back_equal() {
        let nanos = Duration::from_nanos;
        let send = Leg {
            flow: 0,
            to: Some("node9:40777".into()),
            size: 4_000_000,
            start: nanos(0),
        };
        let take = Leg {
            flow: 1,
            to: None,
            size: 5,
            start: nanos(50_000),
        };
        let line = ClockLine {
            at: Time::from_nanos(7.25),
            offset: Time::from_nanos(-1.5e10),
            drift: -1e-4,
        };
        let learn = HostOrder::Learn("node0:40321".into(), ClockPlan::default());
        let carry = HostOrder::Carry(nanos(71_340_123), vec![0, 1]);
        let look = HostOrder::Look("node0:1".into(), 200);
        for order in [
            HostOrder::Clock,
            HostOrder::Open(vec![send, take]),
            carry,
            HostOrder::Guide(line),
            learn,
            look,
        ] {
            assert_eq!(read::<HostOrder>(&order), order);
        }
        let hello = HostReply::Hello {
            rank: 1,
            size: 4,
            host: "node7".into(),
            address: "node7:40123".into(),
        };
        let carried = HostReply::FlowTimes {
            sent: vec![(0, nanos(1200))],
            taken: vec![(1, nanos(340_012_345))],
        };
        let learned = HostReply::LearnedClock(LearnedClock {
            line,
            drift_deviation: 1e-9,
            ..LearnedClock::itself()
        });
        let time = Time::from_nanos(1.0);
        let looked = HostReply::Looked(BurstReading {
            own: time,
            ahead: time * -3.0,
            round_trip: time,
        });
        let failed = HostReply::Failed("no\nway".into());
        for reply in [
            hello,
            carried,
            HostReply::Clock(nanos(7)),
            HostReply::Opened,
            HostReply::Guided,
            learned,
            looked,
            failed,
        ] {
            assert_eq!(read::<HostReply>(&reply), reply);
        }
    }
}
