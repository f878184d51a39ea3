//! Parameters that all models share: latency and rate of a flow alone, and the backbone.
//!
//! The rate is the slope of the line through the times of long single flows over their sizes. The latency is the remaining
//! time of the smallest flow, or the intercept of the line if all flows are long. Flows between racks saturate the backbone
//! if they take longer than alone. The rate of the backbone is the mean total rate of such flows.

use super::{ConflictFitError, Observed};
use flowcast_network::{cluster::conflicts::ConflictKind, network::Duplex};
use flowcast_statistics::regression::least_squares_at_least_zero;
use flowcast_units::{Bytes, Rate, Time};

/// Flows between racks that take longer than alone by more than this fraction saturate the backbone. Acknowledgements and
/// noise stay below it.
pub const SATURATED: f64 = 0.03;

/// Flows of at least the largest size divided by this number are long.
const LONG: u64 = 4;

/// Smallest and largest slowdown of flows in both directions over a shared medium. A smaller slowdown is due to
/// acknowledgements, a larger one to half duplex.
const CROSSING: (f64, f64) = (1.08, 1.9);

/// Assumed sharing between the two directions of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ports {
    /// They share nothing: full duplex.
    Full,
    /// They share the rate of the port.
    Half,
    /// They share a medium whose rate is above the rate of the port.
    Bus,
}

/// Parameters of a flow alone, and of the links that flows between racks share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrivateAndSharedLinks {
    /// Start-up of a message.
    pub latency: Time,
    /// Rate of a flow alone.
    pub rate: Rate,
    /// Size and time of the smallest flow that was alone.
    pub smallest: (Bytes, Time),
    /// Limit of the backbone, if it was saturated.
    pub backbone: Option<BackboneLimit>,
    /// Assumed sharing between the two directions of a port.
    pub duplex: Duplex,
    /// Goodput of a medium that both directions of a port cross, if one is assumed.
    pub bus: Option<Rate>,
}

/// Limit of a saturated backbone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackboneLimit {
    /// Total rate of all flows over it.
    pub rate: Rate,
    /// Smallest number of flows that saturate it.
    pub from: u32,
}

impl PrivateAndSharedLinks {
    /// Determines the parameters from the medians of all conflicts.
    ///
    /// # Errors
    /// No flow was measured alone.
    pub(super) fn new(
        observed: &[Observed<'_>],
        ports: Ports,
    ) -> Result<PrivateAndSharedLinks, ConflictFitError> {
        let alone = observed
            .iter()
            .filter(|observed| observed.conflict.kind == ConflictKind::Alone);
        let flows = alone.flat_map(|one| {
            one.conflict
                .flows
                .iter()
                .map(|flow| flow.size)
                .zip(one.medians.iter().copied())
        });
        let flows: Vec<(Bytes, Time)> = flows.collect();
        let smallest = *flows.iter().min().ok_or(ConflictFitError::NotAlone)?;
        let (latency, rate) = latency_and_rate(&flows, smallest);
        let duplex = if ports == Ports::Half {
            Duplex::Half
        } else {
            Duplex::Full
        };
        let links = PrivateAndSharedLinks {
            latency,
            rate,
            smallest,
            backbone: None,
            duplex,
            bus: None,
        };
        let bus = if ports == Ports::Bus {
            links.bus(observed)
        } else {
            None
        };
        Ok(PrivateAndSharedLinks {
            backbone: links.backbone(observed),
            bus,
            ..links
        })
    }

    /// Total rate of one flow into a node and one flow out of it. `None` if no such pair was measured, or if its flows do
    /// not slow each other down, or are as slow as one after the other.
    fn bus(&self, observed: &[Observed<'_>]) -> Option<Rate> {
        let crossing = observed.iter().find(|one| {
            one.conflict.kind == ConflictKind::InOut && one.conflict.flows.len() == 2
        })?;
        let slowdown = self.slowdown(crossing);
        (CROSSING.0..CROSSING.1)
            .contains(&slowdown)
            .then(|| Rate::from_bytes_per_second(self.together(crossing)))
    }

    /// Time of a flow alone.
    pub fn alone(&self, size: Bytes) -> Time {
        self.latency + self.rate.time_for(size)
    }

    fn backbone(&self, observed: &[Observed<'_>]) -> Option<BackboneLimit> {
        let mut between: Vec<&Observed<'_>> = observed
            .iter()
            .filter(|observed| observed.conflict.kind == ConflictKind::InterRack)
            .collect();
        between.sort_by_key(|observed| std::cmp::Reverse(observed.conflict.flows.len()));
        let saturated: Vec<&Observed<'_>> = between
            .into_iter()
            .take_while(|observed| self.slowdown(observed) > 1.0 + SATURATED)
            .collect();
        let from = saturated.last()?.conflict.flows.len() as u32;
        let rates: f64 = saturated
            .iter()
            .map(|observed| self.together(observed))
            .sum();
        Some(BackboneLimit {
            rate: Rate::from_bytes_per_second(rates / saturated.len() as f64),
            from,
        })
    }

    fn slowdown(&self, observed: &Observed<'_>) -> f64 {
        let alone: Time = observed
            .conflict
            .flows
            .iter()
            .map(|flow| self.alone(flow.size))
            .sum();
        observed.medians.iter().copied().sum::<Time>().as_seconds() / alone.as_seconds()
    }

    /// Total rate of all flows in bytes per second, as if they had ended at their mean time.
    fn together(&self, observed: &Observed<'_>) -> f64 {
        let bytes: f64 = observed
            .conflict
            .flows
            .iter()
            .map(|flow| flow.size.0 as f64)
            .sum();
        let mean =
            observed.medians.iter().copied().sum::<Time>() * (1.0 / observed.medians.len() as f64);
        bytes / (mean - self.latency).as_seconds()
    }
}

/// Latency and rate from sizes and times. `smallest` is one of `flows`.
fn latency_and_rate(flows: &[(Bytes, Time)], smallest: (Bytes, Time)) -> (Time, Rate) {
    let largest = flows
        .iter()
        .map(|(size, _)| *size)
        .max()
        .unwrap_or_default();
    let is_long = |size: Bytes| size.0.saturating_mul(LONG) >= largest.0;
    let long = flows.iter().filter(|(size, _)| is_long(*size));
    let (sizes, times): (Vec<f64>, Vec<f64>) = long
        .map(|(size, time)| (size.0 as f64, time.as_seconds()))
        .unzip();
    // A single size gives a rate, but no latency.
    let (latency, rate) = match least_squares_at_least_zero(&sizes, &times) {
        Ok(line) if line.slope > 0.0 => (
            Time::from_seconds(line.intercept),
            Rate::from_bytes_per_second(1.0 / line.slope),
        ),
        _ => (Time::ZERO, Rate::from_bytes_per_second(sizes[0] / times[0])),
    };
    let (size, time) = smallest;
    if is_long(size) {
        (latency, rate)
    } else {
        ((time - rate.time_for(size)).max(Time::ZERO), rate)
    }
}
