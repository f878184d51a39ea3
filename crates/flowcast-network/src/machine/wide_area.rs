//! Several sites and the network between them (Dimemas' "machine" is a site here).
//!
//! A message to another site spends the wide-area latency of its node on both processors. Then it occupies one link out of
//! its site and one link into the other site for `S/BW`, and arrives after `S/(BW · ratio) + flight time`. The ratio falls
//! with the traffic `T` that the program itself has caused, `T_n = α T_(n-1) + (1 - α) · bytes / 10 s`, weighted by `β`:
//! `e^(-5 βT/max)`, `log10(10 - 10 βT/max)`, `1 - βT/max`, or 1. A dedicated connection takes messages between two sites if
//! they meet its conditions.

use serde::{Deserialize, Serialize};

use crate::collective::Collectives;
use flowcast_units::{Bytes, Rate, Time};

section! {
    /// Network within a further site. For the first site, `nic` and `machine.buses` describe it.
    pub struct Site: Default + Copy {
        /// Bandwidth of a message between nodes of the site; 0 is infinite.
        /// Default: bandwidth of `nic`. Example: `"100MB/s"`.
        bandwidth: Option<Rate>,
        /// Maximum number of concurrent messages between nodes of the site; 0 is no limit.
        /// Default: 0. Example: `2`.
        buses: u32,
    }

    /// The network between sites.
    #[serde(default)]
    pub struct WideArea {
        /// Bandwidth of a message; 0 is infinite.
        /// Default: 0. Example: `"10MB/s"`.
        bandwidth: Rate,
        /// Number of links into each site; 0 is no limit.
        /// Default: 1. Example: `2`.
        in_links: u32,
        /// Number of links out of each site; 0 is no limit.
        /// Default: 1. Example: `2`.
        out_links: u32,
        /// Decrease of the bandwidth with the traffic: `exponential`, `logarithmic`, `linear` or `constant`.
        /// Default: `constant`. Example: `"linear"`.
        traffic: Traffic,
        /// Traffic at which no bandwidth remains; at 0, traffic has no effect.
        /// Default: 0. Example: `"10MB/s"`.
        max_traffic: Rate,
        /// β: weight of the program's own traffic.
        /// Default: 0. Example: `1.0`.
        traffic_weight: f64,
        /// α: fraction of the old traffic average that remains after each period, from 0 to 1.
        /// Default: 0.1. Example: `0.5`.
        traffic_memory: f64,
        /// Flight times from each site to each site.
        flight_times: Vec<Vec<Time>> | default,
        /// Costs of collective operations between sites.
        collectives: Collectives | default,
        /// Dedicated connections. A message uses the first one that admits it.
        connections: Vec<Connection> | default,
    }
}

/// Decrease of the bandwidth between sites with traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// `e^(-5x)` of the bandwidth remains at the share `x` of the maximum traffic.
    Exponential,
    /// `log10(10 - 10x)` of the bandwidth remains at the share `x` of the maximum traffic.
    Logarithmic,
    /// `1 - x` of the bandwidth remains at the share `x` of the maximum traffic.
    Linear,
    /// Traffic does not reduce the bandwidth.
    #[default]
    Constant,
}

impl Traffic {
    /// Remaining share of the bandwidth at this share of the maximum traffic.
    pub fn ratio(self, share: f64) -> f64 {
        match self {
            Traffic::Exponential => (-5.0 * share).exp(),
            Traffic::Logarithmic => (10.0 - 10.0 * share).log10(),
            Traffic::Linear => 1.0 - share,
            Traffic::Constant => 1.0,
        }
    }
}

impl Default for WideArea {
    fn default() -> WideArea {
        WideArea {
            bandwidth: Rate::from_bytes_per_second(0.0),
            in_links: 1,
            out_links: 1,
            traffic: Traffic::Constant,
            max_traffic: Rate::from_bytes_per_second(0.0),
            traffic_weight: 0.0,
            traffic_memory: 0.1,
            flight_times: Vec::new(),
            collectives: Collectives::default(),
            connections: Vec::new(),
        }
    }
}

impl WideArea {
    /// Flight time from one site to another; 0 if none is given.
    pub fn flight_time(&self, from: u32, to: u32) -> Time {
        let row = self.flight_times.get(from as usize);
        row.and_then(|row| row.get(to as usize))
            .copied()
            .unwrap_or(Time::ZERO)
    }

    /// Index of the dedicated connection that takes a message.
    pub fn connection(&self, from: u32, to: u32, tag: i32, size: Bytes) -> Option<usize> {
        self.connections.iter().position(|connection| {
            (connection.sites == [from, to] || connection.sites == [to, from])
                && connection.admits(tag, size)
        })
    }
}

section! {
    /// A connection between two sites, for both directions, with one link out and one link in.
    pub struct Connection {
        /// Sites at the two ends, counted from 0, in any order.
        sites: [u32; 2],
        /// Bandwidth; 0 is infinite.
        bandwidth: Rate,
        /// Start-up time on both sides.
        latency: Time,
        /// Time between sending and receiving the last byte. It has no effect if the bandwidth is infinite, as in Dimemas.
        flight_time: Time,
        /// Tags of the messages that may use the connection.
        tags: Vec<i32>,
        /// Condition on the size of a message.
        first: SizeCondition,
        /// Combination of the two conditions: both or at least one of them.
        joined: Joined,
        /// Condition on the size of a message.
        second: SizeCondition,
    }

    /// A condition on a size.
    pub struct SizeCondition + Copy {
        /// Comparison of a message's size with `size`.
        is: Comparison,
        /// Limit for the size of a message.
        size: Bytes,
    }
}

/// Comparison of a size with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Strictly below the limit.
    Below,
    /// Equal to the limit.
    Equal,
    /// Strictly above the limit.
    Above,
}

/// Combination of two conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Joined {
    /// Both conditions must hold.
    And,
    /// At least one must hold.
    Or,
}

impl SizeCondition {
    fn holds(self, size: Bytes) -> bool {
        match self.is {
            Comparison::Below => size < self.size,
            Comparison::Equal => size == self.size,
            Comparison::Above => size > self.size,
        }
    }
}

impl Connection {
    /// `true` if a message may use the connection.
    pub(crate) fn admits(&self, tag: i32, size: Bytes) -> bool {
        let (first, second) = (self.first.holds(size), self.second.holds(size));
        let sized = match self.joined {
            Joined::And => first && second,
            Joined::Or => first || second,
        };
        sized && self.tags.contains(&tag)
    }
}
