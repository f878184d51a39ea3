//! Messages in flight of a replay, with rates that are constant from event to event or follow quasi-dynamic queues.

pub use super::progress::RateChange;
use super::{
    in_flight::FlowsInFlight,
    progress::FlowProgress,
    quasi_dynamic::{Pace, QuasiDynamicFlows},
};
use flowcast_network::{
    network::Network,
    sharing::{
        RateModel, SharingError,
        active_flows::Reach,
        closed_loop::Feedback,
        fabric::{Fabric, LinkId},
        model::Model,
        rates::{program_model, quasi_dynamic_feedback},
    },
};
use flowcast_units::Time;

/// Rule by which messages share the network.
pub enum Rule {
    /// Rates that a model allocates at each event.
    Rates(Box<dyn RateModel>),
    /// Closed loop with quasi-dynamic queues.
    QuasiDynamic(Feedback, Pace),
}

impl Rule {
    /// Returns the rule of a model; `None` for the packet level.
    ///
    /// # Errors
    /// A parameter that is missing or out of range.
    pub fn new(model: Model, network: &Network) -> Result<Option<Rule>, SharingError> {
        Ok(match quasi_dynamic_feedback(model, network)? {
            Some(feedback) => Some(Rule::QuasiDynamic(feedback, Pace::from_network(network))),
            None => program_model(model, network)?.map(Rule::Rates),
        })
    }

    /// Flows whose times can change, even in the last bit, when a flow starts or ends; `None` if these may be all flows.
    pub fn local_reach(&self) -> Option<Reach> {
        match self {
            Rule::Rates(model) => model.is_local().then(|| model.reach()),
            Rule::QuasiDynamic(..) => None,
        }
    }
}

/// Messages in flight of a replay, with the model or the queues that determine their rates.
pub enum NetworkTraffic {
    /// Rates from event to event.
    Rates(Box<dyn RateModel>, Box<FlowsInFlight>),
    /// Queues whose delays approach their balance over time.
    QuasiDynamic(Box<QuasiDynamicFlows>),
}

impl NetworkTraffic {
    /// Creates traffic without messages, on the links of a fabric.
    pub fn new(fabric: &Fabric, rule: Rule) -> NetworkTraffic {
        match rule {
            Rule::Rates(model) => {
                let in_flight = FlowsInFlight::new(fabric, model.as_ref());
                NetworkTraffic::Rates(model, Box::new(in_flight))
            }
            Rule::QuasiDynamic(feedback, pace) => NetworkTraffic::QuasiDynamic(Box::new(
                QuasiDynamicFlows::new(fabric, feedback, pace),
            )),
        }
    }

    /// Updates the rates after messages have started or ended. `notify` is called for each changed rate, unless the messages
    /// follow queues.
    ///
    /// # Errors
    /// Errors of the model.
    pub fn update_rates(
        &mut self,
        fabric: &Fabric,
        now: Time,
        notify: impl FnMut(RateChange),
    ) -> Result<(), SharingError> {
        match self {
            NetworkTraffic::Rates(model, in_flight) => {
                in_flight.update_rates(fabric, model.as_mut(), now, notify)
            }
            NetworkTraffic::QuasiDynamic(flows) => {
                flows.adapt(fabric, now);
                Ok(())
            }
        }
    }

    /// Number of messages over a link.
    pub fn flows_over(&self, link: LinkId) -> u64 {
        match self {
            NetworkTraffic::Rates(_, in_flight) => in_flight.flows_over(link),
            NetworkTraffic::QuasiDynamic(flows) => flows.flows_over(link),
        }
    }

    /// Time of the next end at the current rates.
    pub fn next_end(&self) -> Option<Time> {
        match self {
            NetworkTraffic::Rates(_, in_flight) => in_flight.next_end(),
            NetworkTraffic::QuasiDynamic(flows) => flows.next_end(),
        }
    }

    /// Time at which rates change although no message starts or ends.
    pub fn next_step(&self) -> Option<Time> {
        match self {
            NetworkTraffic::Rates(..) => None,
            NetworkTraffic::QuasiDynamic(flows) => flows.next_step(),
        }
    }

    /// Changes the rates at the time that [`NetworkTraffic::next_step`] returns.
    pub fn step(&mut self, fabric: &Fabric) {
        if let NetworkTraffic::QuasiDynamic(flows) = self {
            flows.step_on(fabric);
        }
    }

    /// Starts a message on its path in the fabric. Its work is the time that it needs at the share 1. If several messages
    /// end at the same time, the message with the lowest turn ends first.
    pub fn start(&mut self, fabric: &Fabric, index: u32, now: Time, work: Time, turn: u32) {
        match self {
            NetworkTraffic::Rates(_, in_flight) => {
                in_flight.start_in_turn(fabric, index, now, work, turn)
            }
            NetworkTraffic::QuasiDynamic(flows) => flows.start(fabric, index, work),
        }
    }

    /// Ends the next message if its end is not after `limit`.
    pub fn end_next(&mut self, fabric: &Fabric, limit: Time) -> Option<u32> {
        match self {
            NetworkTraffic::Rates(_, in_flight) => {
                in_flight.end_next(fabric, limit).map(|(index, _)| index)
            }
            NetworkTraffic::QuasiDynamic(flows) => flows.end_next(fabric, limit),
        }
    }
}
