//! What is placed: a program, a communication in steps, or bytes between ranks.

use std::{collections::BTreeMap, fmt::Debug};

use flowcast_network::{
    cluster::{
        flow::Flow,
        pattern::{PatternError, Steps},
        racks::Racks,
    },
    network::Network,
};
use flowcast_program::Trace;
use flowcast_units::{Bytes, Node, Time};
use thiserror::Error;

use super::matrix_file::{MatrixFile, MatrixFileError, is_matrix};
use flowcast::{
    Input,
    study::{fingerprint, network_mark, trace_mark},
};

/// A communication between ranks.
pub enum PlaceInput {
    /// Flows between ranks, in steps that follow one another.
    Steps(Steps),
    /// A program or a schedule, without loops.
    Trace(Box<Trace>),
    /// Bytes between ranks, and the same as one step.
    Matrix(MatrixFile, Steps),
}

/// Why a text cannot be placed.
#[derive(Debug, Error)]
pub enum PlaceInputError {
    /// A line of a pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A line of a matrix.
    #[error(transparent)]
    Matrix(#[from] MatrixFileError),
    /// Steps between nodes, which have racks.
    #[error(
        "{0}: found `node .. rack` lines, expected steps between ranks, whose nodes are what is searched for"
    )]
    Racks(String),
}

impl PlaceInput {
    /// Fingerprint of this input, a network and whatever else the times of mappings depend on.
    pub fn fingerprint(&self, network: &Network, other: &dyn Debug) -> String {
        let input = match self {
            PlaceInput::Steps(steps) => format!("{steps:?}"),
            PlaceInput::Matrix(matrix, _) => format!("{matrix:?}"),
            PlaceInput::Trace(trace) => trace_mark(trace),
        };
        fingerprint(format!("{input} {} {other:?}", network_mark(network)).as_bytes())
    }

    /// From a matrix, or else steps; `file` is what errors call it.
    ///
    /// # Errors
    /// The first line that does not fit.
    pub fn read(file: &str, text: &[u8]) -> Result<PlaceInput, PlaceInputError> {
        if is_matrix(text) {
            let matrix = MatrixFile::read(file, text)?;
            let steps = at_once(&matrix);
            return Ok(PlaceInput::Matrix(matrix, steps));
        }
        let steps = Steps::read(file, text)?;
        if steps.racks.is_empty() {
            Ok(PlaceInput::Steps(steps))
        } else {
            Err(PlaceInputError::Racks(file.to_owned()))
        }
    }

    /// What is predicted: of a matrix all messages sent at once.
    pub fn input(&self) -> Input<'_> {
        match self {
            PlaceInput::Trace(trace) => Input::Trace(trace),
            PlaceInput::Steps(steps) | PlaceInput::Matrix(_, steps) => Input::Steps(steps),
        }
    }
}

/// The messages of a matrix as one step; those of a pair are one.
fn at_once(matrix: &MatrixFile) -> Steps {
    let mut pairs: BTreeMap<[Node; 2], u64> = BTreeMap::new();
    for message in &matrix.messages {
        let ends = [message.from, message.to].map(|rank| Node(rank.0));
        if ends[0] != ends[1] {
            let bytes = pairs.entry(ends).or_default();
            *bytes = bytes.saturating_add(message.bytes.0);
        }
    }
    let flows = pairs.into_iter().zip(1..).map(|((ends, bytes), id)| Flow {
        id,
        src: ends[0],
        dst: ends[1],
        size: Bytes(bytes),
        start: Time::ZERO,
    });
    Steps {
        steps: vec![flows.collect()],
        racks: Racks::default(),
    }
}
