//! Mappings of ranks to nodes.
//!
//! [`question::PlaceQuestion`] searches for the mapping of an [`input`] with the shortest predicted time, or with the
//! fewest links crossed ([`mapper`]), and reports its gain ([`placed::Placed`]). For few ranks on equal nodes, it tries all
//! mappings ([`exhaustive`]). A [`job::Job`] contains the nodes and ranks. [`mapping_file`] reads and writes mappings in
//! the formats of Open MPI, MPICH and Slurm. [`launch`] returns the options of these launchers that produce a mapping.
//! [`reordered`] writes functions that renumber the ranks of a running job.
//!
//! ```
//! use flowcast::{Options, model::builtin, units::Node};
//! use flowcast_place::{input::PlaceInput, job::Job, options::PlaceOptions, predictor::MappingPredictor, question::PlaceQuestion};
//!
//! // A message from rank 0 to 2, then one from rank 1 to 3; two nodes with room for two ranks each.
//! let input = PlaceInput::read("exchange.steps", b"0 -> 2 4MB\nstep\n1 -> 3 4MB\n")?;
//! let network = builtin::network("gige-lam")?;
//! let predictor = MappingPredictor::new(&input, &network, Options::default())?;
//! let job = Job { slots: vec![2; 2], ..Job::default() };
//! let options = PlaceOptions { seed: 1, moves: None, has_time_limit: false, level: 0.9, threads: 1 };
//! let question = PlaceQuestion::new(predictor, &job, options)?;
//! let mut search = question.time_search(&mut |_| true)?;
//! while !search.batch().is_empty() {
//!     let times = question.times(search.batch(), 1)?;
//!     question.learn(&mut search, &times)?;
//! }
//! // Of three mappings, the one that keeps both messages inside nodes is the fastest.
//! let placed = question.found(&search)?;
//! assert_eq!(placed.best.node_of_rank, [0, 1, 0, 1].map(Node));
//! assert_eq!(placed.ranking.map(|ranking| ranking.mappings), Some(3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cartesian;
pub mod exhaustive;
pub mod gain;
pub mod host_list;
pub mod input;
pub mod job;
pub mod launch;
mod links;
mod lists;
pub mod mapper;
pub mod mapping_file;
pub mod matrix;
pub mod matrix_file;
pub mod options;
pub mod picture;
pub mod placed;
pub mod positions;
pub mod predictor;
pub mod question;
pub mod rank_place;
pub mod reordered;
pub mod search;
pub mod target;
pub mod traffic;

use flowcast_network::{machine::Mapping, sharing::SharingError};
use thiserror::Error;

use self::{matrix::MatrixError, target::TargetError};
use flowcast::Error;

/// Error of a search for a mapping.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// A search that has not learnt any times.
    #[error("found a search without times, expected the times of its first batch")]
    NothingTried,
    /// More bytes than a matrix can count.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    /// A topology that cannot be built.
    #[error(transparent)]
    Topology(#[from] SharingError),
    /// A topology without room for the nodes, or nodes without room for the ranks.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A mapping without a prediction.
    #[error(transparent)]
    Predict(#[from] Error),
}

/// Returns the rule with this name: `fill`, `round-robin` or, with a number from 1 on, `2-per-node`.
pub fn rule(text: &str) -> Option<Mapping> {
    match text {
        "fill" => Some(Mapping::Fill),
        "round-robin" => Some(Mapping::RoundRobin),
        _ => text
            .strip_suffix("-per-node")?
            .parse()
            .ok()
            .filter(|ranks| *ranks > 0)
            .map(Mapping::PerNode),
    }
}
