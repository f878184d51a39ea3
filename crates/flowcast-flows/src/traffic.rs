//! What moves the messages of a replay: rates that hold from event to event, or the closed loop followed through time.

use super::in_flight::FlowsInFlight;
use super::quasi_dynamic::{Pace, QuasiDynamicFlows};
use flowcast_model::network::Network;
use flowcast_model::sharing::closed_loop::Feedback;
use flowcast_model::sharing::fabric::Fabric;
use flowcast_model::sharing::model::{Model, program_model, quasi_dynamic_feedback};
use flowcast_model::sharing::{RateModel, SharingError};
use flowcast_units::Time;

/// How messages share the network.
pub enum Rule {
    /// By rates that change with each event only.
    /// Rates from event to event.
    Rates(Box<dyn RateModel>),
    /// By queues that follow.
    QuasiDynamic(Feedback, Pace),
}

impl Rule {
    /// That of a model; none for the packet level.
    ///
    /// # Errors
    /// A parameter that is missing or out of range.
    pub fn of(model: Model, network: &Network) -> Result<Option<Rule>, SharingError> {
        Ok(match quasi_dynamic_feedback(model, network)? {
            Some(feedback) => Some(Rule::QuasiDynamic(feedback, Pace::of(network))),
            None => program_model(model, network)?.map(Rule::Rates),
        })
    }
}

/// The messages under way.
pub enum Traffic {
    /// Rates from event to event.
    Rates(Box<dyn RateModel>, Box<FlowsInFlight>),
    /// Queues that follow.
    QuasiDynamic(Box<QuasiDynamicFlows>),
}

impl Traffic {
    /// Nobody, on the links of a fabric.
    pub fn new(fabric: &Fabric, rule: Rule) -> Traffic {
        match rule {
            Rule::Rates(model) => Traffic::Rates(model, Box::new(FlowsInFlight::new(fabric))),
            Rule::QuasiDynamic(feedback, pace) => {
                Traffic::QuasiDynamic(Box::new(QuasiDynamicFlows::new(fabric, feedback, pace)))
            }
        }
    }

    /// What has come and gone changes what the others get.
    pub fn update_rates(&mut self, fabric: &Fabric, now: Time) -> Result<(), SharingError> {
        match self {
            Traffic::Rates(model, in_flight) => in_flight.update_rates(fabric, model.as_mut(), now, |_| {}),
            Traffic::QuasiDynamic(flows_in_flight) => {
                flows_in_flight.adapt(fabric, now);
                Ok(())
            }
        }
    }

    /// The next end as far as is known.
    pub fn next_end(&self) -> Option<Time> {
        match self {
            Traffic::Rates(_, in_flight) => in_flight.next_end(),
            Traffic::QuasiDynamic(flows_in_flight) => flows_in_flight.next_end(),
        }
    }

    /// When rates change although nobody comes or goes.
    pub fn next_step(&self) -> Option<Time> {
        match self {
            Traffic::Rates(..) => None,
            Traffic::QuasiDynamic(flows_in_flight) => flows_in_flight.next_step(),
        }
    }

    /// They do, now.
    pub fn step(&mut self, fabric: &Fabric) {
        if let Traffic::QuasiDynamic(flows_in_flight) = self {
            flows_in_flight.go_on(fabric);
        }
    }

    /// A message starts on its path in the fabric, with this much time at the share 1 to go.
    pub fn start(&mut self, fabric: &Fabric, place: u32, now: Time, work: Time) {
        match self {
            Traffic::Rates(_, in_flight) => in_flight.start(fabric, place, now, work),
            Traffic::QuasiDynamic(flows_in_flight) => flows_in_flight.start(fabric, place, work),
        }
    }

    /// Ends the next message if its end is not after `limit`.
    pub fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<u32> {
        match self {
            Traffic::Rates(_, in_flight) => in_flight.end_next(fabric, limit).map(|(place, _)| place),
            Traffic::QuasiDynamic(flows_in_flight) => flows_in_flight.end_next(fabric, limit),
        }
    }
}
