//! A study: one program on all combinations of the values of some fields of a network.
//!
//! The results are lines, equal for every number of threads, of parts and of machines that compute them; the header says
//! which study it is, so that parts of two are not taken for one.

pub mod grid;
pub mod rows;
mod work;

use std::collections::BTreeMap;

use flowcast_model::network::{Network, NetworkError};
use flowcast_trace::{Program, Trace, compiled};
use serde_json::{Value, json};
use thiserror::Error;

use self::grid::{Grid, GridError};
use self::rows::{Form, header};
use crate::{Collectives, Error, ModelChoice, Options, PreparedProgram};

pub use work::Lines;

/// Why a study has no result.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The fields and their values make no grid.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A combination of values makes no network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// There is no prediction.
    #[error(transparent)]
    Prediction(#[from] Error),
    /// A schedule has no what-ifs.
    #[error("{0}: found a GOAL schedule, expected a trace (of a schedule: predict)")]
    Schedule(String),
}

/// One program on all networks of a grid.
#[derive(Debug, Clone)]
pub struct Study {
    program: Program,
    network: Network,
    grid: Grid,
    options: Options,
    model: ModelChoice,
    collectives_by_formula: u64,
    description: Value,
}

/// What a study is called where its results say what they are of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// The trace's file, without folders.
    pub trace: Option<&'a str>,
    /// The mapping, as it was given.
    pub mapping: Option<&'a str>,
}

impl Study {
    /// Carries out the collectives, and looks at the values. The trace keeps its own form for the description.
    ///
    /// # Errors
    /// [`StudyError::Schedule`]; those of the preparation of a program.
    pub fn new(
        trace: &Trace,
        network: Network,
        grid: Grid,
        options: Options,
        names: Names<'_>,
    ) -> Result<Study, StudyError> {
        let Trace::Program(program) = trace else { return Err(StudyError::Schedule(trace.name().to_owned())) };
        let mut description = describe(trace, &network, &grid, names);
        if let Some(table) = options.collectives.table(program, Some(&network)) {
            description["collectives_fingerprint"] = fingerprint(format!("{table:?}").as_bytes()).into();
        }
        let expanded = options.collectives.expand(program, Some(&network), options.threads).map_err(Error::from)?;
        let collectives_by_formula = expanded.as_ref().map_or(0, |expanded| expanded.kept);
        let program = expanded.map_or_else(|| program.clone(), |expanded| expanded.program);
        description["ranks"] = program.ranks().into();
        description["messages"] = program.messages().into();
        let options = Options { collectives: Collectives::Automatic, ..options };
        let model = PreparedProgram::new(&program, &network, &options)?.model().clone();
        description["model"] = model.name().into();
        if let Some(mapping) = names.mapping {
            description["mapping"] = mapping.into();
            description["mapping_fingerprint"] = fingerprint(format!("{:?}", options.mapping).as_bytes()).into();
        }
        if let Some(from) = options.rendezvous_from {
            description["rendezvous_from"] = from.to_string().into();
        }
        Ok(Study { program, network, grid, options, model, collectives_by_formula, description })
    }

    /// The fields and their values.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// What is replayed.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The model on the network as it is, without a value of the grid.
    pub fn model(&self) -> &ModelChoice {
        &self.model
    }

    /// Collectives that keep their formula although messages were asked for: their communicator names a rank twice.
    pub fn collectives_by_formula(&self) -> u64 {
        self.collectives_by_formula
    }

    /// The lines before the rows: equal for all parts of this study and for no other study.
    pub fn header(&self, form: Form) -> String {
        header(form, &self.description, &self.grid)
    }
}

/// What is swept. Nothing that depends on the place, the time or the part, so that equal sweeps are equal files.
fn describe(trace: &Trace, network: &Network, grid: &Grid, names: Names<'_>) -> Value {
    // The first part of the compiled form has the checksum of all.
    let trace_mark = fingerprint(&compiled::parts(trace)[0]);
    // Where a value comes from changes no result.
    let figures = Network { origins: BTreeMap::new(), ..network.clone() };
    json!({
        "schema": "flowcast/sweep/1",
        "flowcast": env!("CARGO_PKG_VERSION"),
        "trace": names.trace,
        "trace_fingerprint": trace_mark,
        "network": network.name,
        "network_fingerprint": fingerprint(figures.to_toml().as_bytes()),
        "grid": grid.axes().iter().map(|axis| axis.text.as_str()).collect::<Vec<_>>(),
        "sets": grid.len(),
    })
}

/// FNV-1a, 64 bits: tells sweeps apart that were meant to be one.
fn fingerprint(bytes: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}
