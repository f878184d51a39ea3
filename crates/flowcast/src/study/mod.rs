//! A study: one program on all combinations of networks, mappings and the values of some fields.
//!
//! The results are lines. They do not depend on the number of threads, parts and machines that compute them. The header
//! identifies the study, so that parts of different studies are not mixed.

pub mod grid;
pub mod rows;
mod work;

use std::{borrow::Cow, collections::BTreeMap};

use flowcast_network::{
    algorithm::AlgorithmTable,
    network::{Network, NetworkError},
};
use flowcast_program::{Program, Trace, compiled};
use serde_json::{Value, json};
use thiserror::Error;

use self::{
    grid::{GridError, ParameterGrid},
    rows::{Form, header},
};
use crate::{
    Error, ModelChoice, Options, PreparedProgram,
    options::CollectivesWay,
    statements::{missing_margin_reason, once},
};

pub use work::Lines;

/// Reason why a study has no result.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The fields and their values do not make a grid.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A combination of values does not make a network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// There is no prediction.
    #[error(transparent)]
    Prediction(#[from] Error),
    /// The networks carry out collectives differently, but one program with its messages has to serve all of them.
    #[error(
        "found networks with different collectives, {0} and {1}, expected the same for all (--collectives)"
    )]
    Algorithms(String, String),
    /// A schedule does not support what-ifs.
    #[error(
        "{0}: found a GOAL schedule, expected a trace of a program (predict accepts schedules)"
    )]
    Schedule(String),
}

/// One program on all networks of a grid.
#[derive(Debug, Clone)]
pub struct Study {
    program: Program,
    networks: Vec<Network>,
    grid: ParameterGrid,
    /// Options of the replays, one for each mapping.
    options: Vec<Options>,
    level: Option<f64>,
    choices: Vec<ModelChoice>,
    collectives: CollectivesWay,
    notes: Vec<String>,
    description: Value,
}

/// Names of a study's trace and mappings in its results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// File name of the trace, without folders.
    pub trace: Option<&'a str>,
    /// The mappings, as given.
    pub mappings: &'a [String],
}

impl Study {
    /// Carries out the collectives and checks the values. The trace keeps its own form for the description. `options` has
    /// one entry for each mapping, or a single entry; entries differ only in the mapping.
    ///
    /// # Errors
    /// [`StudyError::Schedule`], [`StudyError::Algorithms`]; errors of the preparation of a program.
    pub fn new(
        trace: &Trace,
        networks: Vec<Network>,
        grid: ParameterGrid,
        options: Vec<Options>,
        names: Names<'_>,
    ) -> Result<Study, StudyError> {
        let trace = &*trace.unfolded().map_err(Error::from)?;
        let Trace::Program(program) = trace else {
            return Err(StudyError::Schedule(trace.name().to_owned()));
        };
        let mut description = describe(trace, &networks, &grid, names);
        let (network, first) = (&networks[0], &options[0]);
        if let Some(table) = same_algorithms(program, &networks, first)? {
            description["collectives_fingerprint"] =
                fingerprint(json!(table).to_string().as_bytes()).into();
        }
        let carried_out = first
            .collectives
            .carry_out(program, Some(network), first.threads)
            .map_err(Error::from)?;
        let collectives = carried_out.way;
        let program = carried_out
            .expanded
            .map_or_else(|| program.clone(), |expanded| expanded.program);
        description["ranks"] = program.ranks().into();
        description["messages"] = program.messages().into();
        if !names.mappings.is_empty() {
            description["mapping"] = one_or_all(names.mappings.iter().map(String::as_str));
            description["mapping_fingerprint"] =
                one_or_all(options.iter().map(|options: &Options| {
                    fingerprint(json!(options.mapping).to_string().as_bytes())
                }));
        }
        if let Some(from) = first.rendezvous_from {
            description["rendezvous_from"] = from.to_string().into();
        }
        let mut study = Study {
            program,
            networks,
            grid,
            options,
            level: None,
            choices: Vec::new(),
            collectives,
            notes: Vec::new(),
            description,
        };
        study.choices = study
            .networks
            .iter()
            .map(|network| study.choice(network))
            .collect::<Result<_, Error>>()?;
        let mut notes = Vec::new();
        for network in &study.networks {
            notes.extend(study.prepared(network, &study.options[0])?.notes());
        }
        study.note(notes);
        study.description["model"] = one_or_all(study.choices.iter().map(ModelChoice::name));
        Ok(study)
    }

    /// Adds to each set the interval that contains the measured time with this probability, above 0 and below 1.
    #[must_use]
    pub fn with_intervals(mut self, level: f64) -> Study {
        self.description["interval_level"] = level.into();
        let lacking = self
            .networks
            .iter()
            .filter(|network| !network.has_margins());
        let lacking =
            lacking.map(|network| format!("{}: {}", network.name, missing_margin_reason(network)));
        self.note(lacking.collect());
        Study {
            level: Some(level),
            ..self
        }
    }

    /// Adds sentences on all sets, each once.
    fn note(&mut self, notes: Vec<String>) {
        self.notes = once(self.notes.drain(..).chain(notes));
        if !self.notes.is_empty() {
            self.description["notes"] = self.notes.clone().into();
        }
    }

    /// The program on a network, with its collectives carried out as in all sets.
    fn prepared<'a>(
        &'a self,
        network: &'a Network,
        options: &Options,
    ) -> Result<PreparedProgram<'a>, Error> {
        PreparedProgram::placed(
            Cow::Borrowed(&self.program),
            network,
            options,
            self.collectives,
        )
    }

    /// The model on a network, with the source of the costs inside nodes in any of the mappings.
    fn choice(&self, network: &Network) -> Result<ModelChoice, Error> {
        let mut choice = self.prepared(network, &self.options[0])?.described();
        for options in &self.options {
            let inside = self.prepared(network, options)?.inside();
            choice.inside = choice.inside.or(inside.map(|traffic| traffic.source));
        }
        Ok(choice)
    }

    /// Sentences on ignored records, on the reliability of the networks' values, and on assumptions, for all sets.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Grid of the fields and their values.
    pub fn grid(&self) -> &ParameterGrid {
        &self.grid
    }

    /// The replayed program, with its collectives carried out.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The networks, without values of the grid.
    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// Options of the replays, one for each mapping.
    pub fn options(&self) -> &[Options] {
        &self.options
    }

    /// The model on each of the networks.
    pub fn models(&self) -> &[ModelChoice] {
        &self.choices
    }

    /// Number of collectives that keep their formula although messages were requested: their communicator names a rank
    /// twice.
    pub fn collectives_by_formula(&self) -> u64 {
        self.collectives.kept
    }

    /// Lines before the rows, which are the same for all parts of this study and for no other study.
    pub fn header(&self, form: Form) -> String {
        header(form, &self.description, &self.grid, self.level.is_some())
    }
}

/// Algorithms that carry out the collectives, the same for all networks; `None` if the formula applies.
fn same_algorithms(
    program: &Program,
    networks: &[Network],
    options: &Options,
) -> Result<Option<AlgorithmTable>, StudyError> {
    let mut tables = networks
        .iter()
        .map(|network| options.collectives.table(program, Some(network)));
    let first = tables.clone().next().flatten();
    match tables.position(|table| table != first) {
        None => Ok(first),
        Some(at) => Err(StudyError::Algorithms(
            networks[0].name.clone(),
            networks[at].name.clone(),
        )),
    }
}

/// A single value as itself, several values as a list.
fn one_or_all<T: Into<Value> + PartialEq>(values: impl IntoIterator<Item = T>) -> Value {
    let mut values: Vec<T> = values.into_iter().collect();
    values.dedup();
    if values.len() == 1 {
        values.swap_remove(0).into()
    } else {
        values.into()
    }
}

/// Description of the sweep. It contains nothing that depends on the place, the time or the part, so that equal sweeps give
/// equal files.
fn describe(trace: &Trace, networks: &[Network], grid: &ParameterGrid, names: Names<'_>) -> Value {
    json!({
        "schema": "flowcast/sweep/1",
        "flowcast": env!("CARGO_PKG_VERSION"),
        "trace": names.trace,
        "trace_fingerprint": trace_mark(trace),
        "network": one_or_all(networks.iter().map(|network| network.name.as_str())),
        "network_fingerprint": one_or_all(networks.iter().map(network_mark)),
        "grid": grid.axes().iter().map(|axis| axis.text.as_str()).collect::<Vec<_>>(),
        "sets": grid.len(),
    })
}

/// Fingerprint of a trace: the first part of its compiled form has the checksum of all parts.
pub fn trace_mark(trace: &Trace) -> String {
    fingerprint(&compiled::parts(trace)[0])
}

/// Fingerprint of a network's values. Their origins are left out, because they change no result.
pub fn network_mark(network: &Network) -> String {
    let figures = Network {
        origins: BTreeMap::new(),
        ..network.clone()
    };
    fingerprint(figures.to_toml().as_bytes())
}

/// FNV-1a of 64 bits, in hexadecimal digits. It detects differences between runs that should be the same, and names files by
/// their content.
pub fn fingerprint(bytes: &[u8]) -> String {
    format!(
        "{:016x}",
        bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte: &u8| (hash
                ^ u64::from(*byte))
            .wrapping_mul(0x0000_0100_0000_01b3))
    )
}
