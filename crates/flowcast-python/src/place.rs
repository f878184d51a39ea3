//! Placement.

use anyhow::{Result, ensure};
use flowcast::{
    Contention, Options, PatternOptions, TraceCost,
    model::{
        cluster::pattern::{Pattern, Steps},
        network::Network as Cluster,
        sharing::model::Model,
    },
    place::{
        exhaustive::{self, Slots},
        step_cost::{MappingCost, StepCost},
    },
    units::Time,
};
use pyo3::prelude::*;

use crate::{networks::Network, work::beside};

/// How many mappings there are, the best ones, and the times with how many mappings take each.
type Placed = (u64, Vec<Vec<u32>>, Vec<(f64, u64)>);

/// All mappings of the ranks of a communication to equal nodes, and what each costs.
#[pyclass(frozen, module = "flowcast")]
pub(crate) struct Placing {
    cost: Box<dyn MappingCost + Send + Sync>,
    slots: Slots,
    /// How many mappings there are.
    #[pyo3(get)]
    mappings: u64,
}

fn cost_of(
    name: &str,
    content: Vec<u8>,
    network: &Cluster,
    model: Option<&str>,
    inside: Option<&str>,
) -> Result<Box<dyn MappingCost + Send + Sync>> {
    if Pattern::is_pattern(&content) {
        let options = PatternOptions {
            model: model.map(Model::named).transpose()?,
            ..PatternOptions::default()
        };
        let inside = inside.map(Time::parse).transpose()?;
        let steps = Steps::read(name, &content)?;
        return Ok(Box::new(StepCost::new(steps, network, &options, inside)));
    }
    ensure!(
        inside.is_none(),
        "inside: found a trace, expected steps between ranks"
    );
    Ok(Box::new(TraceCost {
        trace: flowcast::read_text(name, content)?,
        network: network.clone(),
        options: Options {
            contention: model
                .map(Contention::named)
                .transpose()?
                .unwrap_or_default(),
            ..Options::default()
        },
    }))
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
            let cost = cost_of(
                &name,
                content,
                &network.network,
                model.as_deref(),
                inside.as_deref(),
            )?;
            let slots = Slots {
                nodes,
                per_node: slots,
            };
            Ok(Placing {
                mappings: exhaustive::count(cost.ranks(), slots)?,
                cost,
                slots,
            })
        })
    }

    /// The times in nanoseconds of the mappings from `start` to before `end`.
    fn times(slf: &Bound<'_, Self>, start: u64, end: u64) -> PyResult<Vec<f64>> {
        let placing = slf.clone().unbind();
        beside(slf.py(), move || {
            let placing = placing.get();
            let times = exhaustive::times(&*placing.cost, placing.slots, start..end, &mut || {})?;
            Ok(times.into_iter().map(Time::as_nanos).collect())
        })
    }

    /// What the times of all mappings say: the best of them, and the times in seconds with how many mappings take each.
    fn ranking(&self, times: Vec<f64>) -> Placed {
        let times: Vec<Time> = times.into_iter().map(Time::from_nanos).collect();
        let ranking = exhaustive::rank(self.cost.ranks(), self.slots, &times);
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
