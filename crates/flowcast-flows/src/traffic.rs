//! What moves the messages of a replay: rates that hold from event to event, or the closed loop followed through time.

use super::moving::{Moving, Pace};
use super::under_way::UnderWay;
use flowcast_model::network::Network;
use flowcast_model::sharing::closed_loop::Feedback;
use flowcast_model::sharing::fabric::Fabric;
use flowcast_model::sharing::model::{Model, following_feedback, following_model};
use flowcast_model::sharing::{RateModel, SharingError};
use flowcast_units::Time;

/// How messages share the network.
pub enum Rule {
    /// By rates that change with each event only.
    /// Rates from event to event.
    Rates(Box<dyn RateModel>),
    /// By queues that follow.
    Following(Feedback, Pace),
}

impl Rule {
    /// That of a model; none for the packet level.
    ///
    /// # Errors
    /// A parameter that is missing or out of range.
    pub fn of(model: Model, network: &Network) -> Result<Option<Rule>, SharingError> {
        Ok(match following_feedback(model, network)? {
            Some(feedback) => Some(Rule::Following(feedback, Pace::of(network))),
            None => following_model(model, network)?.map(Rule::Rates),
        })
    }
}

/// The messages under way.
pub enum Traffic {
    /// Rates from event to event.
    Rates(Box<dyn RateModel>, Box<UnderWay>),
    /// Queues that follow.
    Following(Box<Moving>),
}

impl Traffic {
    /// Nobody, on the links of a fabric.
    pub fn new(fabric: &Fabric, rule: Rule) -> Traffic {
        match rule {
            Rule::Rates(model) => Traffic::Rates(model, Box::new(UnderWay::new(fabric))),
            Rule::Following(feedback, pace) => Traffic::Following(Box::new(Moving::new(fabric, feedback, pace))),
        }
    }

    /// What has come and gone changes what the others get.
    pub fn share_out(&mut self, fabric: &Fabric, now: Time) -> Result<(), SharingError> {
        match self {
            Traffic::Rates(model, under_way) => under_way.share_out(fabric, model.as_mut(), now, |_| {}),
            Traffic::Following(moving) => {
                moving.adapt(fabric, now);
                Ok(())
            }
        }
    }

    /// The next end as far as is known.
    pub fn next_end(&self) -> Option<Time> {
        match self {
            Traffic::Rates(_, under_way) => under_way.next_end(),
            Traffic::Following(moving) => moving.next_end(),
        }
    }

    /// When rates change although nobody comes or goes.
    pub fn next_step(&self) -> Option<Time> {
        match self {
            Traffic::Rates(..) => None,
            Traffic::Following(moving) => moving.next_step(),
        }
    }

    /// They do, now.
    pub fn step(&mut self, fabric: &Fabric) {
        if let Traffic::Following(moving) = self {
            moving.go_on(fabric);
        }
    }

    /// A message starts on its path in the fabric, with this much time at the share 1 to go.
    pub fn start(&mut self, fabric: &Fabric, place: u32, now: Time, work: Time) {
        match self {
            Traffic::Rates(_, under_way) => under_way.start(fabric, place, now, work),
            Traffic::Following(moving) => moving.start(fabric, place, work),
        }
    }

    /// Ends the next message if its end is not after `limit`.
    pub fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<u32> {
        match self {
            Traffic::Rates(_, under_way) => under_way.end_next(fabric, limit).map(|(place, _)| place),
            Traffic::Following(moving) => moving.end_next(fabric, limit),
        }
    }
}
