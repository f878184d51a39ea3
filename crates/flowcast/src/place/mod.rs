//! Which rank should run on which node.
//!
//! [`exhaustive::search`] predicts a communication in steps under every mapping of ranks to equal nodes and ranks the
//! mappings by time; [`mapping_file`] reads and writes mappings in the formats of Open MPI, MPICH and Slurm.
//!
//! ```
//! use flowcast::place::exhaustive::{Slots, ranks_of_nodes, search};
//! use flowcast::{Case, Input, Options, model::{builtin, cluster::pattern::Steps}};
//!
//! // A message from rank 0 to 2, then one from rank 1 to 3; two nodes with room for two ranks each.
//! let steps = Steps::read("exchange.steps", b"0 -> 2 4MB\nstep\n1 -> 3 4MB\n")?;
//! let network = builtin::network("gige-lam")?;
//! let case = Case::new(Input::Steps(&steps), Some(&network), Options::default());
//! let ranking = search(&case, Slots { nodes: 2, per_node: 2 }, 1, &mut |_done, _all| {})?;
//! // Of three mappings, the one that keeps both messages inside nodes is the fastest.
//! assert_eq!((ranking.mappings, ranking.best.len()), (3, 1));
//! assert_eq!(ranks_of_nodes(&ranking.best[0]).len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod exhaustive;
mod links;
pub mod mapper;
pub mod mapping_file;
pub mod matrix;
pub mod target;
