//! What all models share: latency and rate of a flow alone, and the backbone.
//!
//! Latency and rate are the line through the times of single flows over their sizes, by the sum of relative errors, so that short
//! flows say what the latency is. The backbone is saturated from the
//! number of flows on that take longer than alone; its rate is what they carry together.

use super::{ConflictFitError, Observed};
use flowcast_model::cluster::conflicts::Kind;
use flowcast_model::network::Duplex;
use flowcast_model::stats::relative_line::relative_line_at_least_zero;
use flowcast_units::{Bytes, Rate, Time};

/// Flows between racks that take longer than alone by more than this share saturate the backbone. Acknowledgements and
/// noise stay below.
pub const SATURATED: f64 = 0.03;

/// What flows have to themselves, and what those between racks share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Links {
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
}

/// A backbone that was saturated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackboneLimit {
    /// What all flows over it get together.
    pub rate: Rate,
    /// The number of flows from which it is the limit.
    pub from: u32,
}

impl Links {
    /// From the medians of all conflicts.
    ///
    /// # Errors
    /// No flow was measured alone.
    pub fn of(observed: &[Observed<'_>], duplex: Duplex) -> Result<Links, ConflictFitError> {
        let alone = || observed.iter().filter(|observed| observed.conflict.kind == Kind::Alone);
        let flows = alone().flat_map(|one| one.conflict.flows.iter().map(|flow| flow.size).zip(one.medians.iter().copied()));
        let smallest = flows.min().ok_or(ConflictFitError::NotAlone)?;
        let (latency, rate) = line(alone());
        let links = Links { latency, rate, smallest, backbone: None, duplex };
        Ok(Links { backbone: links.backbone(observed), ..links })
    }

    /// What a flow alone takes.
    pub fn alone(&self, size: Bytes) -> Time {
        self.latency + self.rate.time_for(size)
    }

    fn backbone(&self, observed: &[Observed<'_>]) -> Option<BackboneLimit> {
        let mut between: Vec<&Observed<'_>> =
            observed.iter().filter(|observed| observed.conflict.kind == Kind::InterRack).collect();
        between.sort_by_key(|observed| std::cmp::Reverse(observed.conflict.flows.len()));
        let saturated: Vec<&Observed<'_>> =
            between.into_iter().take_while(|observed| self.slowdown(observed) > 1.0 + SATURATED).collect();
        let from = saturated.last()?.conflict.flows.len() as u32;
        let rates: f64 = saturated.iter().map(|observed| self.together(observed)).sum();
        Some(BackboneLimit { rate: Rate::from_bytes_per_second(rates / saturated.len() as f64), from })
    }

    fn slowdown(&self, observed: &Observed<'_>) -> f64 {
        let alone: Time = observed.conflict.flows.iter().map(|flow| self.alone(flow.size)).sum();
        observed.medians.iter().copied().sum::<Time>().as_seconds() / alone.as_seconds()
    }

    /// Bytes per second of all flows, as if they had ended at their mean time.
    fn together(&self, observed: &Observed<'_>) -> f64 {
        let bytes: f64 = observed.conflict.flows.iter().map(|flow| flow.size.0 as f64).sum();
        let mean = observed.medians.iter().copied().sum::<Time>() * (1.0 / observed.medians.len() as f64);
        bytes / (mean - self.latency).as_seconds()
    }
}

fn line<'o, 'c: 'o>(alone: impl Iterator<Item = &'o Observed<'c>>) -> (Time, Rate) {
    let points = alone.flat_map(|observed| {
        let sizes = observed.conflict.flows.iter().map(|flow| flow.size.0 as f64);
        sizes.zip(observed.medians.iter().map(|median| median.as_seconds()))
    });
    let (sizes, times): (Vec<f64>, Vec<f64>) = points.unzip();
    // One size gives a rate and no latency.
    match relative_line_at_least_zero(&sizes, &times) {
        Ok(line) if line.slope > 0.0 => {
            (Time::from_seconds(line.intercept), Rate::from_bytes_per_second(1.0 / line.slope))
        }
        _ => (Time::ZERO, Rate::from_bytes_per_second(sizes[0] / times[0])),
    }
}
