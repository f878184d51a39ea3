//! How a trace is predicted, as Python says it.

use anyhow::{Context, Result, ensure};
use flowcast::{
    Collectives, Contention, RailsOptions,
    model::machine::Mapping,
    replay::loggops::Loggops,
    scheduler::policy::MessagePolicy,
    units::{Bytes, Time, TimePerByte},
};
use flowcast_io::{Whole, read_collectives, read_mapping, threads};
use pyo3::{prelude::*, types::PyTuple};

use crate::{errors::raised, networks::Network, table::rebuilder};

/// How a trace is predicted.
#[pyclass(frozen, module = "flowcast._native", from_py_object)]
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub options: flowcast::Options,
    /// The mapping, as it was given.
    pub mapping: Option<String>,
    given: Given,
}

/// The arguments that options were made of, in their order.
type Given = (
    Option<String>,
    Option<Where>,
    Option<String>,
    Option<String>,
    Option<[f64; 5]>,
    Option<String>,
    Vec<Network>,
    Option<String>,
);

/// Where ranks run: a name, or the node of each rank.
#[derive(Debug, Clone, FromPyObject, IntoPyObject)]
enum Where {
    Name(String),
    Nodes(Vec<u32>),
}

#[pymethods]
impl Options {
    #[new]
    #[pyo3(signature = (
        model=None, mapping=None, rendezvous_from=None, collectives=None, goal_params=None, mapping_name=None, rails=vec![],
        scheduler=None
    ))]
    #[allow(
        clippy::too_many_arguments,
        reason = "Python hands them over one by one"
    )]
    fn new(
        py: Python<'_>,
        model: Option<String>,
        mapping: Option<Where>,
        rendezvous_from: Option<String>,
        collectives: Option<String>,
        goal_params: Option<[f64; 5]>,
        mapping_name: Option<String>,
        rails: Vec<Network>,
        scheduler: Option<String>,
    ) -> PyResult<Options> {
        let given = (
            model.clone(),
            mapping.clone(),
            rendezvous_from.clone(),
            collectives.clone(),
            goal_params,
            mapping_name.clone(),
            rails.clone(),
            scheduler.clone(),
        );
        let read = || {
            let contention = match model {
                None => Contention::Automatic,
                Some(name) => {
                    Contention::named(&name).with_context(|| format!("--model {name}"))?
                }
            };
            let rendezvous_from = rendezvous_from
                .map(|text| {
                    Bytes::parse(&text).with_context(|| format!("--rendezvous-from {text}"))
                })
                .transpose()?;
            let collectives = collectives.map_or(Ok(Collectives::Automatic), |name| {
                read_collectives(&name, &mut Whole)
            })?;
            let (mapping, name) = named(mapping)?;
            let loggops = goal_params.map(loggops).transpose()?;
            let options = flowcast::Options {
                contention,
                mapping,
                rendezvous_from,
                collectives,
                loggops,
                rails: RailsOptions {
                    further: rails.iter().map(|rail| (*rail.network).clone()).collect(),
                    policy: scheduler.map_or(Ok(MessagePolicy::default()), |name| {
                        name.parse().with_context(|| format!("--scheduler {name}"))
                    })?,
                },
                threads: threads(),
                ..flowcast::Options::default()
            };
            Ok(Options {
                options,
                mapping: mapping_name.or(name),
                given,
            })
        };
        read().map_err(|error| raised(py, &error))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let given = slf.get().given.clone().into_pyobject(slf.py())?;
        Ok((rebuilder(slf.py(), "options")?, given))
    }
}

fn named(mapping: Option<Where>) -> Result<(Option<Mapping>, Option<String>)> {
    Ok(match mapping {
        None => (None, None),
        Some(Where::Name(name)) => (Some(read_mapping(&name, &mut Whole)?), Some(name)),
        Some(Where::Nodes(nodes)) => (Some(Mapping::List(nodes)), Some("nodes".to_owned())),
    })
}

/// LogGOPSim's parameters: L, o, g, G in nanoseconds, S in bytes.
fn loggops([latency, overhead, gap, per_byte, eager]: [f64; 5]) -> Result<Loggops> {
    let all = [latency, overhead, gap, per_byte, eager];
    ensure!(
        all.iter().all(|value| *value >= 0.0 && value.is_finite()),
        "--goal-params: found {all:?}, expected five numbers of at least 0: L,o,g,G,S"
    );
    Ok(Loggops {
        latency: Time::from_nanos(latency),
        overhead: Time::from_nanos(overhead),
        gap: Time::from_nanos(gap),
        gap_per_byte: TimePerByte::from_nanos(per_byte),
        eager_up_to: Some(Bytes(eager as u64)),
    })
}
