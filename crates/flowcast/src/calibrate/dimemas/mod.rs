//! Fit of Dimemas' parameters to measured regions: latency, bandwidth, links, buses, and for each collective operation its
//! row of the table (Girona, Labarta, Badia: the parameters are found by search over dedicated runs).
//!
//! The rules alone give the predicted time of a region. A message costs its sender `L`. Its bytes occupy an out link, an in
//! link and a bus for `b = S/BW`. Its receiver also spends `L`, which overlaps with the wait for the message. A
//! collective costs its row. The search minimises the mean of `|ln(predicted / measured)|`: a region predicted as twice its
//! time counts as much as one predicted as half of it, and a few outliers do not decide.
//!
//! Latency and bandwidth start at the line through the round trips. They move by a factor as long as this reduces the error.
//! Then the factor becomes smaller ([`search`](self)). At each point, all links, all buses and all rows of each operation
//! are tried.

mod network;
mod regions;
mod search;

use std::collections::BTreeMap;

use thiserror::Error;

use flowcast_network::collective::Row;
use flowcast_statistics::{StatsError, observation::Observations};
use flowcast_units::{Bytes, CollectiveOp, Rate, Time};

pub use search::fit;

/// Exercise that the ranks repeat in a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exercise {
    /// A message from the first rank to the second, and one back.
    PingPong,
    /// Concurrent messages in both directions between the first two ranks.
    Exchange,
    /// The first rank sends to all others at the same time. Each answers with no bytes.
    FanOut,
    /// All other ranks send to the first at the same time. It answers each with no bytes.
    FanIn,
    /// Each rank of the lower half sends to one of the upper half, which answers with no bytes.
    Pairs,
    /// A collective operation, with the bytes that the root, or any rank, sends and receives.
    Collective(CollectiveOp, Bytes, Bytes),
}

/// A region, and its measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRegion {
    /// Name of the region in the program.
    pub name: String,
    /// Exercise in the region.
    pub exercise: Exercise,
    /// Size of a message; for collectives, the exercise has the sizes.
    pub size: Bytes,
    /// Number of ranks that take part.
    pub ranks: u32,
    /// Time of one repetition.
    pub once: Time,
}

/// The links of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLinks {
    /// Links into the node; 0 means no limit if `outgoing` is 0, too.
    pub incoming: u32,
    /// Links out of the node; 0 means that the incoming links serve both directions.
    pub outgoing: u32,
}

/// Parameters of Dimemas' model of a network, and how well they explain the regions.
#[derive(Debug, Clone, PartialEq)]
pub struct DimemasFit {
    /// `L`: start-up of a message.
    pub latency: Time,
    /// `BW`: rate of a message that has the links to itself.
    pub bandwidth: Rate,
    /// Links of each node, which bound its concurrent messages.
    pub links: NodeLinks,
    /// Number of messages that may be in flight at the same time; 0 means no limit.
    pub buses: u32,
    /// Fan-in and fan-out of each measured collective, by operation.
    pub rows: BTreeMap<CollectiveOp, Row>,
    /// Predicted and measured times of the regions, in seconds.
    pub regions: Observations<MeasuredRegion>,
    /// Intervals of latency and bandwidth.
    pub intervals: DimemasIntervals,
}

/// Bootstrap intervals. Regions are drawn again with replacement, and latency and bandwidth are searched again with the
/// links, buses and rows of the fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DimemasIntervals {
    /// Interval of `L`, lower end first.
    pub latency: (Time, Time),
    /// Interval of `BW`, lower end first.
    pub bandwidth: (Rate, Rate),
    /// Correlation of latency and bandwidth; `None` if one of them does not vary.
    pub correlation: Option<f64>,
    /// Confidence level of both intervals, above 0 and below 1.
    pub level: f64,
}

/// Reason why nothing can be fitted.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DimemasFitError {
    /// Fewer than two sizes: no line through the round trips.
    #[error("found `pingpong` regions of {0} sizes, expected at least 2 sizes")]
    TooFewRoundTrips(usize),
    /// A region that took no time.
    #[error("region `{0}`: found a time of 0, expected a time above 0")]
    NoTime(String),
    /// Predictions that are not numbers.
    #[error(transparent)]
    Stats(#[from] StatsError),
}
