//! High Performance Linpack as it communicates: which messages each of its processes sends and when, from the settings of HPL.dat
//! and the pivots.
//!
//! HPL (Petitet, Whaley, Dongarra, Cleary) factors a matrix of order N in blocks on a grid of P by Q processes. A [`Process`]
//! gives its actions one after the other; whoever carries them out answers its probes; a [`Script`] is what all do in one fixed
//! order. Sizes, partners and order of messages are those of HPL 2.0 to 2.3, with L1 and U transposed, equilibration on, a row-major
//! map of processes, and no more lookahead than there are panels; they were compared with recordings (`tests/data/hpl`).

mod broadcast;
mod column;
mod kernels;
mod pivots;
mod processors;
mod program;
mod script;
mod settings;
mod trace;

pub use broadcast::{Forwarding, broadcast_step, forwarding};
pub use column::{ColumnStep, MatrixRows, PivotRows, PivotStep, Swapped, pivot_search};
pub use kernels::{CallSpread, ColumnWork, KernelRates, PanelProduct, Processor, panel_columns};
pub use pivots::Pivots;
pub use processors::NodeProcessors;
pub use program::{ActionPurpose, Exchange, HplAction, Kernel, PanelSwaps, Process, Swaps, Update};
pub use script::{Script, ScriptStep, ScriptSteps};
pub use settings::{Broadcast, HplSettings, Swap};
