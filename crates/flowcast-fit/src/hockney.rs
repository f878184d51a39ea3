//! Latency and bandwidth from plain round trips, which show neither overhead nor gap: the line `α + β·s` through half of
//! their medians with the smallest sum of relative errors (Hockney; [`flowcast_statistics::relative_line`]).

use std::collections::BTreeMap;

use flowcast_network::network::{MessageRule, Network, Nic, SingleFlowRate};
use flowcast_statistics::{
    StatsError,
    observation::{Observation, Observations},
    relative_line::relative_line_at_least_zero,
    sample::median,
};
use flowcast_units::{Time, TimePerByte};

use crate::{
    network::{tidy_per_byte, tidy_time},
    samples::{PrttSamples, nanos},
};

/// A line through half of plain round trips.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HockneyFit {
    /// Latency `α`, 0 or more.
    pub latency: Time,
    /// Time per byte `β`, 0 or more.
    pub per_byte: TimePerByte,
    /// Number of sizes that the line is compared with.
    pub sizes: usize,
    /// `true` if messages of 0 bytes are compared with the line but not fitted. This requires at least two other sizes.
    pub left_out: bool,
    /// Median of the absolute relative errors.
    pub error_median: f64,
    /// Largest absolute relative error.
    pub error_worst: f64,
}

/// Fits the plain round trips among the samples. A message of 0 bytes often takes another path through the library, such as
/// no copy or no kernel call. It therefore does not influence the latency if there are other sizes.
///
/// # Errors
/// No plain round trip, or one that took no time.
pub fn fit_hockney(samples: &PrttSamples) -> Result<HockneyFit, StatsError> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (point, times) in samples.points().filter(|(point, _)| point.messages == 1) {
        x.push(point.size.0 as f64);
        y.push(median(&nanos(times))? / 2.0);
    }
    // Points are in the order of their sizes.
    let first = match x[..] {
        [0.0, _, _, ..] => 1,
        _ => 0,
    };
    let line = relative_line_at_least_zero(&x[first..], &y[first..])?;
    let observed = Observations::new(x.iter().zip(&y).map(|(x, y)| Observation {
        of: (),
        predicted: line.at(*x),
        measured: *y,
    }))?;
    Ok(HockneyFit {
        latency: Time::from_nanos(line.intercept),
        per_byte: TimePerByte::from_nanos(line.slope),
        sizes: x.len(),
        left_out: first > 0,
        error_median: observed.median_absolute(),
        error_worst: observed.worst().error().abs(),
    })
}

impl HockneyFit {
    /// Returns the network of the line, with its `provenance`.
    pub fn to_network(&self, name: &str, provenance: BTreeMap<String, String>) -> Network {
        let nic = Nic::new(
            tidy_time(self.latency),
            SingleFlowRate::GapPerByte(tidy_per_byte(self.per_byte)),
        );
        Network {
            title: "Measured by round trips".to_owned(),
            source: format!("flowcast fit, {} sizes", self.sizes),
            provenance,
            ..Network::new(name, MessageRule::Hockney, nic)
        }
    }
}
