//! High Performance Linpack on a cluster whose processors and messages were measured: its constants from some runs, the time of
//! others with intervals, the best grid.

mod cases;
mod choose;
mod cluster;
mod estimate;
mod fit;
mod predict;

pub use cases::{HPL_COLUMNS, MeasuredRun, measured_runs, settings};
pub use choose::{ClusterChange, LinpackChoice, SettingsQuestion, choose, hpl_dat, operations};
pub use cluster::{Cluster, ClusterError};
pub use estimate::{Estimate, SimulatedExtent, estimate};
pub use fit::{LinpackFit, fit_linpack};
pub use predict::{RunPrediction, predict_runs};
