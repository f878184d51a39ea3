//! High Performance Linpack: which messages each of its processes sends and when, how long that takes on a cluster whose
//! processors and messages were measured, its constants from some runs, the time of others with intervals, the best grid.
//!
//! HPL (Petitet, Whaley, Dongarra, Cleary) factors a matrix of order N in blocks on a grid of P by Q processes. A [`Process`]
//! gives its actions one after the other; whoever carries them out answers its probes; a [`Script`] is what all do in one fixed
//! order. Sizes, partners and order of messages are those of HPL 2.0 to 2.3, with L1 and U transposed, equilibration on, a row-major
//! map of processes, and no more lookahead than there are panels; they were compared with recordings (`tests/data/hpl`).
//!
//! To predict a run, events carry its processes out on a [`Cluster`], whose probes find what has come; a script becomes a trace.

mod broadcast;
mod cases;
mod choose;
mod cluster;
mod column;
mod estimate;
mod factor;
mod fit;
mod kernels;
mod machine;
mod pivots;
mod predict;
mod processors;
mod program;
mod script;
mod settings;
mod simulation;
mod trace;

pub use broadcast::{Forwarding, broadcast_step, forwarding};
pub use cases::{HPL_COLUMNS, MeasuredRun, measured_runs, settings};
pub use choose::{ClusterChange, LinpackChoice, SettingsQuestion, choose, hpl_dat, operations};
pub use cluster::{Cluster, ClusterError};
pub use column::{ColumnStep, MatrixRows, PivotRows, PivotStep, Swapped, pivot_search};
pub use estimate::SimulatedExtent;
pub use fit::{LinpackFit, fit_linpack};
pub use kernels::{CallSpread, ColumnWork, KernelRates, PanelProduct, Processor, panel_columns};
pub use pivots::Pivots;
pub use predict::{RunPrediction, predict_runs};
pub use processors::NodeProcessors;
pub use program::{ActionPurpose, Exchange, HplAction, Kernel, PanelSwaps, Process, Swaps, Update};
pub use script::{Script, ScriptStep, ScriptSteps};
pub use settings::{Broadcast, HplSettings, Swap};
pub use simulation::Spent;
