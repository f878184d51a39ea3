//! What a driver and its ranks say to each other, as lines of JSON.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clocks::{ClockPlan, Glance, Learned, LineAsNumbers};
use flowcast_units::ClockLine;

/// What a rank is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostOrder {
    /// Send the time of the clock.
    Clock,
    /// Connect the flows of these ends.
    Open(Vec<Leg>),
    /// Carry those with these numbers, counted from this moment of its own clock on.
    Carry(Duration, Vec<u32>),
    /// Tell the next who connects the first rank's time, which this line gives in terms of the own clock.
    Guide(#[serde(with = "LineAsNumbers")] ClockLine),
    /// Learn the time of the rank there.
    Learn(String, ClockPlan),
    /// Look at the clock of the rank there, by so many exchanges.
    Look(String, u32),
}

/// A flow's end at a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// Number of the flow.
    pub flow: u32,
    /// Where to send it; nothing if it comes in.
    pub to: Option<String>,
    /// Bytes of its message.
    pub size: u64,
    /// From the common start on.
    pub start: Duration,
}

/// What a rank answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostReply {
    /// Which of how many it is, where it runs and where it listens.
    Hello {
        /// Number of the rank.
        rank: u32,
        /// How many there are.
        size: u32,
        /// Where it runs.
        host: String,
        /// Where messages are to be sent.
        address: String,
    },
    /// The time of its clock, since it began.
    Clock(Duration),
    /// All flows are connected.
    Opened,
    /// Starts of flows sent and ends of flows taken, from the common start on.
    Carried {
        /// Number and start of each flow that leaves the rank.
        sent: Vec<(u32, Duration)>,
        /// Number and end of each flow that enters it.
        taken: Vec<(u32, Duration)>,
    },
    /// The one who learns is done.
    Guided,
    /// The other rank's clock.
    Learned(Learned),
    /// The same at one moment.
    Looked(Glance),
    /// The order could not be carried out, and why.
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
    fn what_is_no_order_is_none() {
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
        let carried = HostReply::Carried {
            sent: vec![(0, nanos(1200))],
            taken: vec![(1, nanos(340_012_345))],
        };
        let learned = HostReply::Learned(Learned {
            line,
            drift_deviation: 1e-9,
            ..Learned::itself()
        });
        let time = Time::from_nanos(1.0);
        let looked = HostReply::Looked(Glance {
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
