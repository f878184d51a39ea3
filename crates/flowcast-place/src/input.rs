//! Input of the placement: a program, a communication in steps, or a matrix of bytes between ranks.

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
    /// A matrix of bytes between ranks, and the same messages as one step.
    Matrix(MatrixFile, Steps),
}

/// Error for a text that cannot be placed.
#[derive(Debug, Error)]
pub enum PlaceInputError {
    /// An invalid line of a pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// An invalid line of a matrix.
    #[error(transparent)]
    Matrix(#[from] MatrixFileError),
    /// Steps with `node .. rack` lines. The search needs steps between ranks, because it chooses their nodes.
    #[error(
        "{0}: found `node .. rack` lines, expected only steps between ranks, because the search chooses their nodes"
    )]
    Racks(String),
}

impl PlaceInput {
    /// Returns a fingerprint of this input, a network and all other settings that the times of mappings depend on.
    pub fn fingerprint(&self, network: &Network, other: &dyn Debug) -> String {
        let input = match self {
            PlaceInput::Steps(steps) => format!("{steps:?}"),
            PlaceInput::Matrix(matrix, _) => format!("{matrix:?}"),
            PlaceInput::Trace(trace) => trace_mark(trace),
        };
        fingerprint(format!("{input} {} {other:?}", network_mark(network)).as_bytes())
    }

    /// Reads a matrix or, if the text is not a matrix, steps. `file` is the name of the text in errors.
    ///
    /// # Errors
    /// The first invalid line.
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

    /// Returns the input for predictions. A matrix becomes messages that are all sent at the same time.
    pub fn input(&self) -> Input<'_> {
        match self {
            PlaceInput::Trace(trace) => Input::Trace(trace),
            PlaceInput::Steps(steps) | PlaceInput::Matrix(_, steps) => Input::Steps(steps),
        }
    }
}

/// Converts the messages of a matrix to one step with one flow for each pair of ranks and direction.
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
