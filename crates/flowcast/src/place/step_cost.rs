//! What a communication in steps, such as a binomial broadcast, takes under a mapping of ranks to nodes.
//!
//! RR-5910 section 6.3: a step's messages start together, those between nodes in the conflicts that the mapping makes,
//! those inside a node at the node's own cost; the next step starts when the last message has ended.

use std::error::Error;

pub use flowcast_model::machine::inside::InsideNode;
use flowcast_model::{
    cluster::{flow::Flow, pattern::Steps, racks::Racks},
    network::Network,
};
use flowcast_network::flows::concurrent::{Method, PredictError, predict_flows};
use flowcast_units::{Node, Rank, Rate, Time};

use crate::PatternOptions;

/// The node of each rank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapping(pub Vec<Node>);

impl Mapping {
    /// The ranks of each node that has any, in node order.
    pub fn groups(&self) -> Vec<Vec<Rank>> {
        let nodes = self
            .0
            .iter()
            .map(|node| node.index() + 1)
            .max()
            .unwrap_or(0);
        let mut groups = vec![Vec::new(); nodes];
        for (node, rank) in self.0.iter().zip(0..) {
            groups[node.index()].push(Rank(rank));
        }
        groups.retain(|group| !group.is_empty());
        groups
    }
}

/// What is placed: a communication in steps, or a whole program.
pub trait MappingCost {
    /// Number of ranks.
    fn ranks(&self) -> usize;

    /// What it takes under a mapping, which holds every rank.
    ///
    /// # Errors
    /// Those of the prediction.
    fn time(&self, mapping: &Mapping) -> Result<Time, Box<dyn Error + Send + Sync>>;
}

/// Messages in steps: each step begins when the one before has ended.
#[derive(Debug, Clone)]
pub struct StepCost {
    /// The messages, between ranks.
    pub steps: Steps,
    /// The network between nodes.
    pub network: Network,
    /// How messages between nodes meet.
    pub method: Method,
    /// What a message inside a node takes.
    pub inside: InsideNode,
}

impl StepCost {
    /// Messages inside a node take a fixed time, or what the network says.
    pub fn new(
        steps: Steps,
        network: &Network,
        options: &PatternOptions,
        inside: Option<Time>,
    ) -> StepCost {
        StepCost {
            steps,
            method: options.method(network),
            inside: match inside {
                Some(latency) => InsideNode {
                    latency,
                    rate: Rate::default(),
                },
                None => InsideNode::of(network),
            },
            network: network.clone(),
        }
    }
}

impl MappingCost for StepCost {
    /// One more than the highest rank.
    fn ranks(&self) -> usize {
        let flows = self.steps.steps.iter().flatten();
        flows
            .map(|flow| flow.src.max(flow.dst).index() + 1)
            .max()
            .unwrap_or(0)
    }

    fn time(&self, mapping: &Mapping) -> Result<Time, Box<dyn Error + Send + Sync>> {
        self.steps.steps.iter().try_fold(Time::ZERO, |sum, step| {
            Ok(sum + self.step_time(step, mapping)?)
        })
    }
}

impl StepCost {
    fn step_time(&self, step: &[Flow], mapping: &Mapping) -> Result<Time, PredictError> {
        let mut longest = Time::ZERO;
        let mut between = Vec::with_capacity(step.len());
        for flow in step {
            let (src, dst) = (mapping.0[flow.src.index()], mapping.0[flow.dst.index()]);
            if src == dst {
                longest = longest.max(flow.start + self.inside.time_for(flow.size));
            } else {
                between.push(Flow { src, dst, ..*flow });
            }
        }
        if between.is_empty() {
            return Ok(longest);
        }
        let prediction = predict_flows(&between, &Racks::default(), &self.network, self.method)?;
        Ok(longest.max(prediction.makespan()))
    }
}
