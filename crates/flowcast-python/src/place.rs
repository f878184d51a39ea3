//! Placement.

use std::sync::{Arc, Mutex};

use anyhow::ensure;
use flowcast::{
    Options,
    model::{cluster::pattern::Pattern, network::Network as Cluster},
    units::{Node, Time},
};
use flowcast_io::PlacementRequest;
use flowcast_place::{
    input::PlaceInput, job::Job, matrix_file::is_matrix, options::PlaceOptions, placed::Placed,
    predictor::MappingPredictor, question::PlaceQuestion, search::MappingSearch,
};
use pyo3::prelude::*;

use crate::{networks::Network, work::run_in_background};

/// Document in JSON. If all mappings were tried, also the best mappings, and the times with their numbers of mappings.
type FoundPlacement = (String, Option<(Vec<Vec<u32>>, Vec<(f64, u64)>)>);

/// Communication whose ranks can run on the nodes of a cluster.
#[pyclass(frozen, module = "flowcast_hpc")]
pub(crate) struct Placing {
    input: PlaceInput,
    network: Arc<Cluster>,
    options: Options,
    job: Job,
    place_options: PlaceOptions,
}

/// Search for the fastest mapping.
#[pyclass(frozen, module = "flowcast_hpc")]
pub(crate) struct TimeSearch {
    placing: Py<Placing>,
    search: Mutex<MappingSearch>,
    /// Maximum number of mappings to try.
    #[pyo3(get)]
    most_moves: u64,
}

impl Placing {
    fn question(&self) -> anyhow::Result<PlaceQuestion<'_>> {
        let predictor = MappingPredictor::new(&self.input, &self.network, self.options.clone())?;
        Ok(PlaceQuestion::new(
            predictor,
            &self.job,
            self.place_options,
        )?)
    }
}

fn found(placed: &Placed, network: &str) -> anyhow::Result<FoundPlacement> {
    let document = placed.document().field("network", network);
    let all = placed.ranking.as_ref().map(|ranking| {
        let best = ranking.best.iter();
        let best = best.map(|mapping| mapping.iter().map(|node| node.0).collect());
        let times = ranking.histogram.iter();
        (
            best.collect(),
            times
                .map(|(time, count)| (time.as_seconds(), *count))
                .collect(),
        )
    });
    Ok((document.json()?.to_string(), all))
}

#[pymethods]
impl Placing {
    /// Creates a placement from a JSON request.
    #[new]
    fn new(
        py: Python<'_>,
        name: String,
        content: Vec<u8>,
        network: Network,
        slots: Vec<u32>,
        request: String,
    ) -> PyResult<Placing> {
        run_in_background(py, move || {
            let request: PlacementRequest = serde_json::from_str(&request)?;
            let input = if is_matrix(&content) || Pattern::is_pattern(&content) {
                PlaceInput::read(&name, &content)?
            } else {
                PlaceInput::Trace(Box::new(flowcast::read_text(&name, content)?))
            };
            let mut network = network.network;
            let placing = Placing {
                options: request.options(&input, Arc::make_mut(&mut network))?,
                input,
                network,
                job: Job {
                    slots,
                    ..Job::default()
                },
                place_options: request.search(1, false),
            };
            placing.question()?;
            Ok(placing)
        })
    }

    /// Returns the times of mappings, in nanoseconds.
    fn times(slf: &Bound<'_, Self>, mappings: Vec<Vec<u32>>) -> PyResult<Vec<f64>> {
        let placing = slf.clone().unbind();
        run_in_background(slf.py(), move || {
            let mappings: Vec<Vec<Node>> = mappings
                .into_iter()
                .map(|mapping| mapping.into_iter().map(Node).collect())
                .collect();
            let times = placing.get().question()?.times(&mappings, 1)?;
            Ok(times.into_iter().map(Time::as_nanos).collect())
        })
    }

    /// Starts a search for the fastest mapping.
    fn search(slf: &Bound<'_, Self>) -> PyResult<TimeSearch> {
        let placing = slf.clone().unbind();
        run_in_background(slf.py(), move || {
            let question = placing.get().question()?;
            let search = Mutex::new(question.time_search(&mut |_| true)?);
            let most_moves = question.moves();
            Ok(TimeSearch {
                placing,
                search,
                most_moves,
            })
        })
    }

    /// Returns a mapping with few bytes times links.
    fn least_hops(slf: &Bound<'_, Self>) -> PyResult<FoundPlacement> {
        let placing = slf.clone().unbind();
        run_in_background(slf.py(), move || {
            let placing = placing.get();
            found(
                &placing.question()?.least_hops(&mut |_| true)?,
                &placing.network.name,
            )
        })
    }
}

#[pymethods]
impl TimeSearch {
    /// Returns the mappings whose times the search needs next.
    fn batch(&self) -> Vec<Vec<u32>> {
        let search = self
            .search
            .lock()
            .expect("no thread panics while it holds the lock");
        let batch = search.batch().iter();
        batch
            .map(|mapping| mapping.iter().map(|node| node.0).collect())
            .collect()
    }

    /// Returns the number of mappings whose times are known.
    fn moves(&self) -> u64 {
        self.search
            .lock()
            .expect("no thread panics while it holds the lock")
            .moves()
    }

    /// Passes the times of the batch to the search, in nanoseconds.
    fn learn(slf: &Bound<'_, Self>, times: Vec<f64>) -> PyResult<()> {
        let this = slf.clone().unbind();
        run_in_background(slf.py(), move || {
            let this = this.get();
            ensure!(
                times
                    .iter()
                    .all(|time: &f64| time.is_finite() && *time >= 0.0),
                "times: found an invalid time, expected nanoseconds of at least 0"
            );
            let times: Vec<Time> = times.into_iter().map(Time::from_nanos).collect();
            let mut search = this
                .search
                .lock()
                .expect("no thread panics while it holds the lock");
            let (found, expected) = (times.len(), search.batch().len());
            ensure!(
                found == expected,
                "times: found {found}, expected {expected}, one for each mapping of the batch"
            );
            Ok(this.placing.get().question()?.learn(&mut search, &times)?)
        })
    }

    /// Returns the placement found so far.
    fn found(slf: &Bound<'_, Self>) -> PyResult<FoundPlacement> {
        let this = slf.clone().unbind();
        run_in_background(slf.py(), move || {
            let this = this.get();
            let placing = this.placing.get();
            let search = this
                .search
                .lock()
                .expect("no thread panics while it holds the lock");
            found(&placing.question()?.found(&search)?, &placing.network.name)
        })
    }
}
