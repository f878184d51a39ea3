//! Placement.

use std::sync::Arc;

use anyhow::{Result, ensure};
use flowcast::flows::concurrent::Method;
use flowcast::model::cluster::pattern::{Pattern, Steps};
use flowcast::model::network::Network as Cluster;
use flowcast::model::sharing::model::Model;
use flowcast::place::exhaustive::{self, Slots};
use flowcast::place::step_cost::{InsideNode, MappingCost, StepCost};
use flowcast::trace::Trace;
use flowcast::units::{Rate, Time};
use flowcast::{Contention, Options, PatternOptions, TraceCost};
use pyo3::prelude::*;

use crate::networks::Network;
use crate::work::beside;

/// How many mappings there are, the best ones, and the times with how many mappings take each.
type Placed = (u64, Vec<Vec<u32>>, Vec<(f64, u64)>);

/// All mappings of the ranks of a communication in steps, or of a program, to equal nodes, and what each costs.
#[pyclass(frozen, module = "flowcast")]
pub(crate) struct Placing {
    placed: Communication,
    network: Arc<Cluster>,
    slots: Slots,
    #[pyo3(get)]
    mappings: u64,
}

/// What is placed.
enum Communication {
    Steps {
        steps: Steps,
        method: Method,
        inside: InsideNode,
    },
    Trace {
        trace: Box<Trace>,
        options: Options,
    },
}

impl Communication {
    /// What the bytes hold: steps, or a trace that is one file.
    fn read(
        name: &str,
        content: Vec<u8>,
        network: &Cluster,
        model: Option<&str>,
        inside: Option<&str>,
    ) -> Result<Communication> {
        if !Pattern::is_pattern(&content) {
            ensure!(
                inside.is_none(),
                "inside: found a trace, expected steps between ranks"
            );
            let contention = model.map_or(Ok(Contention::Automatic), Contention::named)?;
            let options = Options {
                contention,
                ..Options::default()
            };
            let trace = Box::new(flowcast::read_text(name, content)?);
            return Ok(Communication::Trace { trace, options });
        }
        let model = model.map(Model::named).transpose()?;
        let inside = match inside {
            Some(text) => InsideNode {
                latency: Time::parse(text)?,
                rate: Rate::default(),
            },
            None => InsideNode::of(network),
        };
        let method = PatternOptions {
            model,
            ..PatternOptions::default()
        }
        .method(network);
        Ok(Communication::Steps {
            steps: Steps::read(name, &content)?,
            method,
            inside,
        })
    }
}

#[pymethods]
impl Placing {
    #[new]
    #[pyo3(signature = (name, content, network, nodes, slots, model=None, inside=None))]
    #[allow(
        clippy::too_many_arguments,
        reason = "Python hands them over one by one"
    )]
    fn new(
        py: Python<'_>,
        name: String,
        content: Vec<u8>,
        network: Network,
        nodes: u32,
        slots: u32,
        model: Option<String>,
        inside: Option<String>,
    ) -> PyResult<Placing> {
        beside(py, move || {
            let network = network.network;
            let placed = Communication::read(
                &name,
                content,
                &network,
                model.as_deref(),
                inside.as_deref(),
            )?;
            let slots = Slots {
                nodes,
                per_node: slots,
            };
            let mut placing = Placing {
                placed,
                network,
                slots,
                mappings: 0,
            };
            let ranks = placing.cost().ranks();
            placing.mappings = exhaustive::count(ranks, slots)?;
            Ok(placing)
        })
    }

    /// The times in nanoseconds of the mappings from `start` to before `end`.
    fn times(slf: &Bound<'_, Self>, start: u64, end: u64) -> PyResult<Vec<f64>> {
        let placing = slf.clone().unbind();
        beside(slf.py(), move || {
            let placing = placing.get();
            let times = exhaustive::times(&*placing.cost(), placing.slots, start..end, &mut || {})?;
            Ok(times.into_iter().map(Time::as_nanos).collect())
        })
    }

    /// What the times of all mappings say: the best of them, and the times in seconds with how many mappings take each.
    fn ranking(&self, times: Vec<f64>) -> Placed {
        let times: Vec<Time> = times.into_iter().map(Time::from_nanos).collect();
        let ranking = exhaustive::rank(self.cost().ranks(), self.slots, &times);
        let best = ranking
            .best
            .iter()
            .map(|mapping| mapping.0.iter().map(|node| node.0).collect())
            .collect();
        let histogram = ranking
            .histogram
            .iter()
            .map(|(time, count)| (time.as_seconds(), *count))
            .collect();
        (ranking.mappings, best, histogram)
    }
}

impl Placing {
    fn cost(&self) -> Box<dyn MappingCost + '_> {
        let network = &self.network;
        match &self.placed {
            Communication::Steps {
                steps,
                method,
                inside,
            } => Box::new(StepCost {
                steps,
                network,
                method: *method,
                inside: *inside,
            }),
            Communication::Trace { trace, options } => Box::new(TraceCost {
                trace,
                network,
                options,
            }),
        }
    }
}
