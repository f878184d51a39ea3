//! What all models share: latency and rate of a flow alone, and the backbone.
//!
//! The rate is the slope of the line through the times of long single flows over their sizes. The latency is what the smallest
//! flow takes beside that, or the intercept of the line where all flows are long. The backbone is saturated from the
//! number of flows on that take longer than alone; its rate is what they carry together.

use super::{ConflictFitError, Observed};
use flowcast_network::{cluster::conflicts::ConflictKind, network::Duplex};
use flowcast_statistics::regression::least_squares_at_least_zero;
use flowcast_units::{Bytes, Rate, Time};

/// Flows between racks that take longer than alone by more than this share saturate the backbone. Acknowledgements and
/// noise stay below.
pub const SATURATED: f64 = 0.03;

/// Flows of at least this part of the largest size are long.
const LONG: u64 = 4;

/// What flows of both directions take by a medium that they share, in times of one alone: less is acknowledgements, more half
/// duplex.
const CROSSING: (f64, f64) = (1.08, 1.9);

/// What the two directions of a port share, as it is assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ports {
    /// Nothing.
    Full,
    /// Their rate.
    Half,
    /// A medium whose rate is above that of the port.
    Bus,
}

/// What flows have to themselves, and what those between racks share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrivateAndSharedLinks {
    /// Start-up of a message.
    pub latency: Time,
    /// Of a flow alone.
    pub rate: Rate,
    /// The size of the smallest flow that was alone, and its time.
    pub smallest: (Bytes, Time),
    /// Where it was saturated.
    pub backbone: Option<BackboneLimit>,
    /// What the two directions of a port share, as far as it is assumed.
    pub duplex: Duplex,
    /// Goodput of a medium that both directions of a port cross, if there is assumed to be one.
    pub bus: Option<Rate>,
}

/// A backbone that was saturated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackboneLimit {
    /// What all flows over it get together.
    pub rate: Rate,
    /// The number of flows from which it is the limit.
    pub from: u32,
}

impl PrivateAndSharedLinks {
    /// From the medians of all conflicts.
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

    /// What one flow into a node and one out of it carry together, where they slow each other down and yet are faster than one
    /// after the other.
    fn bus(&self, observed: &[Observed<'_>]) -> Option<Rate> {
        let crossing = observed.iter().find(|one| {
            one.conflict.kind == ConflictKind::InOut && one.conflict.flows.len() == 2
        })?;
        let slowdown = self.slowdown(crossing);
        (CROSSING.0..CROSSING.1)
            .contains(&slowdown)
            .then(|| Rate::from_bytes_per_second(self.together(crossing)))
    }

    /// What a flow alone takes.
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

    /// Bytes per second of all flows, as if they had ended at their mean time.
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

/// `flows` are sizes and times, `smallest` one of them.
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
    // One size gives a rate and no latency.
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
