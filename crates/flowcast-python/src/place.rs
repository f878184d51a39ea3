//! Placement.

use std::sync::Arc;

use anyhow::ensure;
use flowcast::{
    Case, Contention, Input, Options,
    model::{
        cluster::pattern::{Pattern, Steps},
        machine::inside::InsideNode,
        network::Network as Cluster,
    },
    place::exhaustive::{self, Slots},
    trace::Trace,
    units::{Rate, Time},
};
use pyo3::prelude::*;

use crate::{networks::Network, work::beside};

/// How many mappings there are, the best ones, and the times with how many mappings take each.
type Placed = (u64, Vec<Vec<u32>>, Vec<(f64, u64)>);

/// All mappings of the ranks of a communication to equal nodes, and what each costs.
#[pyclass(frozen, module = "flowcast")]
pub(crate) struct Placing {
    input: PlacedInput,
    network: Arc<Cluster>,
    options: Options,
    slots: Slots,
    /// How many mappings there are.
    #[pyo3(get)]
    mappings: u64,
}

enum PlacedInput {
    Trace(Box<Trace>),
    Steps(Steps),
}

impl Placing {
    fn case(&self) -> Case<'_> {
        let input = match &self.input {
            PlacedInput::Trace(trace) => Input::Trace(trace),
            PlacedInput::Steps(steps) => Input::Steps(steps),
        };
        Case::new(input, Some(&self.network), self.options.clone())
    }
}

/// With a time of its own for messages inside nodes.
fn with_inside(network: &Cluster, latency: Time) -> Cluster {
    let inside = InsideNode {
        latency,
        rate: Rate::default(),
    };
    Cluster {
        machine: network.machine.clone().with_inside(inside),
        ..network.clone()
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
            let contention = model.as_deref().map(Contention::named).transpose()?;
            let mut network = network.network.clone();
            let input = if Pattern::is_pattern(&content) {
                if let Some(inside) = inside {
                    network = Arc::new(with_inside(&network, Time::parse(&inside)?));
                }
                PlacedInput::Steps(Steps::read(&name, &content)?)
            } else {
                ensure!(
                    inside.is_none(),
                    "inside: found a trace, expected steps between ranks"
                );
                PlacedInput::Trace(Box::new(flowcast::read_text(&name, content)?))
            };
            let mut placing = Placing {
                input,
                network,
                options: Options {
                    contention: contention.unwrap_or_default(),
                    ..Options::default()
                },
                slots: Slots {
                    nodes,
                    per_node: slots,
                },
                mappings: 0,
            };
            placing.mappings = exhaustive::count(placing.case().ranks(), placing.slots)?;
            Ok(placing)
        })
    }

    /// The times in nanoseconds of the mappings from `start` to before `end`.
    fn times(slf: &Bound<'_, Self>, start: u64, end: u64) -> PyResult<Vec<f64>> {
        let placing = slf.clone().unbind();
        beside(slf.py(), move || {
            let placing = placing.get();
            let times =
                exhaustive::times(&placing.case(), placing.slots, start..end, 1, &mut || {})?;
            Ok(times.into_iter().map(Time::as_nanos).collect())
        })
    }

    /// What the times of all mappings say: the best of them, and the times in seconds with how many mappings take each.
    fn ranking(&self, times: Vec<f64>) -> Placed {
        let times: Vec<Time> = times.into_iter().map(Time::from_nanos).collect();
        let ranking = exhaustive::rank(self.case().ranks(), self.slots, &times);
        let best = ranking
            .best
            .iter()
            .map(|mapping| mapping.iter().map(|node| node.0).collect())
            .collect();
        let histogram = ranking
            .histogram
            .iter()
            .map(|(time, count)| (time.as_seconds(), *count))
            .collect();
        (ranking.mappings, best, histogram)
    }
}
