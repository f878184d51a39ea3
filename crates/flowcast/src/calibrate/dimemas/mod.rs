//! Dimemas' parameters from measured regions: latency, bandwidth, links, buses, and for each collective operation its
//! row of the table (Girona, Labarta, Badia: the parameters are found by search over dedicated runs).
//!
//! What a region should take follows from the rules alone: a message costs its sender `L`, its bytes `b = S/BW` on an
//! out link, an in link and a bus, and its receiver `L` unless that was spent before it came; a collective costs its
//! row. The search looks for the parameters with the smallest mean of `|ln(predicted / measured)|`: a region predicted
//! as twice its time counts as much as one predicted as half of it, and a few wild ones do not decide.
//!
//! Latency and bandwidth start as the line through the round trips and move in steps of a factor, ever smaller, as
//! long as that helps ([`search`](self)); at each point the best links and buses, and the best of all rows for each
//! operation, are found by trying all of them.

mod network;
mod regions;
mod search;

use std::collections::BTreeMap;

use thiserror::Error;

use flowcast_network::collective::Row;
use flowcast_statistics::{StatsError, observation::Observations};
use flowcast_units::{Bytes, CollectiveOp, Rate, Time};

pub use search::fit;

/// What the ranks do in a region, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exercise {
    /// A message from the first to the second and one back.
    PingPong,
    /// A message each way between the first two at once.
    Exchange,
    /// The first sends to all others at once; each answers with no bytes.
    FanOut,
    /// All others send to the first at once; it answers each with no bytes.
    FanIn,
    /// Each rank of the lower half sends to one of the upper half, which answers with no bytes.
    Pairs,
    /// A collective operation, with the bytes that the root, or any rank, sends and receives.
    Collective(CollectiveOp, Bytes, Bytes),
}

/// A region, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRegion {
    /// Name of the region in the program.
    pub name: String,
    /// What happens in it.
    pub exercise: Exercise,
    /// The size of a message; for collectives it stands in the exercise.
    pub size: Bytes,
    /// Number of ranks that take part.
    pub ranks: u32,
    /// How long it takes once.
    pub once: Time,
}

/// The links of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeLinks {
    /// Into it; 0 with `outgoing` 0 is no limit.
    pub incoming: u32,
    /// Out of it; 0 means that the incoming ones serve both directions.
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
    /// Messages that may be in flight together; 0 is no limit.
    pub buses: u32,
    /// Fan-in and fan-out of each measured collective, by operation.
    pub rows: BTreeMap<CollectiveOp, Row>,
    /// The regions beside what the parameters say, in seconds.
    pub regions: Observations<MeasuredRegion>,
    /// How well latency and bandwidth are known.
    pub intervals: DimemasIntervals,
}

/// Bootstrap intervals: regions are drawn again with replacement, and latency and bandwidth are searched again with the
/// links, buses and rows that were found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DimemasIntervals {
    /// Interval of `L`, lower end first.
    pub latency: (Time, Time),
    /// Interval of `BW`, lower end first.
    pub bandwidth: (Rate, Rate),
    /// How the two vary together; none where one of them does not vary.
    pub correlation: Option<f64>,
    /// Confidence level of both intervals, above 0 and below 1.
    pub level: f64,
}

/// Why nothing can be fitted.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DimemasFitError {
    /// No line without two points.
    #[error("found `pingpong` regions of {0} sizes, expected at least 2")]
    TooFewRoundTrips(usize),
    /// A region that took no time.
    #[error("region `{0}`: found a time of 0, expected one above")]
    NoTime(String),
    /// Predictions that are no numbers.
    #[error(transparent)]
    Stats(#[from] StatsError),
}
