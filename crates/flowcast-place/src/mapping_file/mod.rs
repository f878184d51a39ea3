//! Mapping files, which contain the node of each rank: readers and writers.
//!
//! | format | a line | read by |
//! |---|---|---|
//! | nodes | `3`: the node of the next rank | Flowcast |
//! | rule | `fill`, `round-robin` or `2-per-node`, alone in the file | Flowcast |
//! | rankfile | `rank 0=host slot=0`, or `+n3` for the fourth node; `slot=1:3` is core 3 of socket 1 | Open MPI 4, `mpirun --rankfile`, and 5, `mpirun --map-by rankfile:file=` |
//! | hosts | any [list of hosts](super::host_list): `host` is the host of the next rank, `host:2` or `host slots=2` of the next two | MPICH, `mpiexec -f`; Slurm, `srun -m arbitrary` |
//!
//! The content decides the format. The place of a host in the caller's list, or without a list the order of first
//! appearance, determines its node. Blank lines and `#` comments are ignored.

mod read;
mod write;

pub use read::read;
pub(super) use write::check_hosts;
pub use write::{MappingFormat, write};

use flowcast_units::Node;
use thiserror::Error;

/// Error for a mapping that a format cannot express.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MappingError {
    /// A node without a name, in a format with host names.
    #[error("found no host name for node {0}, expected a name for each node (--hosts)")]
    Nameless(Node),
    /// A name that would be interpreted as something else.
    #[error("host `{0}`: expected letters, digits, `-`, `_` and `.`, and not only digits")]
    Name(String),
}
