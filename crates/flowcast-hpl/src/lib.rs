//! High Performance Linpack: the messages of its processes, and the time of a run on a cluster with measured processors and
//! network. Fits costs to some runs, predicts others with intervals, and finds the best grid.
//!
//! HPL (Petitet, Whaley, Dongarra, Cleary) factors a matrix of order N in blocks on a grid of P by Q processes. A
//! [`Process`] yields its actions one after the other, and the caller that executes them answers its probes. A [`Script`]
//! has the actions of all processes in one fixed order. Sizes, partners and order of messages are those of HPL 2.0 to 2.3,
//! with L1 and U transposed, equilibration on, a row-major map of processes, and no more lookahead than there are panels;
//! they were compared with recordings (`tests/data/hpl`).
//!
//! A prediction of a run executes the processes on a [`Cluster`] by events, so that probes find the messages that have
//! arrived. A script becomes a trace.

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
pub use simulation::ActivityTimes;
