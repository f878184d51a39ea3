//! High Performance Linpack as it communicates: which messages each of its processes sends and when, from the settings of HPL.dat
//! and the pivots.
//!
//! HPL (Petitet, Whaley, Dongarra, Cleary) factors a matrix of order N in blocks on a grid of P by Q processes. A [`Process`]
//! gives its actions one after the other; whoever carries them out answers its probes. Sizes and partners are those of HPL 2.x
//! with `HPL_NO_MPI_DATATYPE`, L1 and U transposed, equilibration on, and a row-major map of processes.

mod broadcast;
mod column;
mod kernels;
mod pivots;
mod processors;
mod program;
mod script;
mod settings;
mod trace;

pub use broadcast::{Forwarding, RowStep, forwarding};
pub use column::{ColumnStep, PivotRows, PivotStep, Rows, Swapped, pivot_search};
pub use kernels::{ColumnWork, KernelRates, PanelProduct, Processor, panel_columns};
pub use pivots::Pivots;
pub use processors::NodeProcessors;
pub use program::{Action, Exchange, Kernel, PanelSwaps, Process, Purpose, Swaps, Update};
pub use script::{Script, ScriptStep, ScriptSteps};
pub use settings::{Broadcast, Settings, Swap};
