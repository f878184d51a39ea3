//! Predicted times of runs, with intervals.

use crate::{ActivityTimes, HplSettings};
use flowcast_network::linpack_costs::FittedLinpack;
use flowcast_program::parallel;
use flowcast_statistics::resampling::normal_score;
use flowcast_units::Time;

use super::{
    Cluster,
    estimate::{Estimate, SimulatedExtent, estimate},
};
use flowcast_replay::outcome::{NotFiniteTime, finite_times};

/// Predicted time of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunPrediction {
    /// Time from the start to the end of the last process.
    pub time: Time,
    /// Lower end of the interval.
    pub low: Time,
    /// Upper end of the interval.
    pub high: Time,
    /// Relative uncertainty of the time due to panels that were not simulated.
    pub left_out: f64,
    /// Activities of the processes, as fractions of the time.
    pub spent: ActivityTimes,
}

/// Relative error of the model for everything but products: the observed error of broadcasts, swaps and panels on machines
/// to which the costs were not fitted.
const BESIDE_PRODUCTS: f64 = 0.2;
/// Relative spread of runs with the same settings if no run was measured.
const UNFITTED: f64 = 0.04;

/// Predicts the times of runs, with intervals that contain a run's time with the probability `level`. Each run is simulated
/// `members` times, with other pivots, other times of products and, if the cluster has more nodes than the run needs, other
/// nodes.
///
/// # Errors
/// [`NotFiniteTime`].
///
/// # Panics
/// If the cluster has too few nodes for a run.
pub fn predict_runs(
    cluster: &Cluster,
    runs: &[HplSettings],
    extent: SimulatedExtent,
    members: u32,
    level: f64,
    threads: usize,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<RunPrediction>, NotFiniteTime> {
    let members = members.max(1);
    let jobs: Vec<(usize, u64)> = (0..runs.len())
        .flat_map(|run| (0..u64::from(members)).map(move |member| (run, member)))
        .collect();
    let estimates = parallel::map(&jobs, threads, |&(run, member)| {
        let machine = cluster.machine(&runs[run], member);
        let found = estimate(&runs[run], &machine, extent, member + 1);
        done();
        found
    });
    let estimates: Vec<Estimate> = estimates.into_iter().collect::<Result<_, _>>()?;
    estimates
        .chunks(members as usize)
        .map(|members| prediction(cluster, members, level))
        .collect()
}

fn prediction(
    cluster: &Cluster,
    members: &[Estimate],
    level: f64,
) -> Result<RunPrediction, NotFiniteTime> {
    let count = members.len() as f64;
    let first = &members[0];
    let logs: Vec<f64> = members.iter().map(|member| member.seconds.ln()).collect();
    let mean = logs.iter().sum::<f64>() / count;
    let apart = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let fitted = cluster.network.linpack.as_deref();
    let runs = fitted.map_or(UNFITTED, |FittedLinpack { spread, .. }| *spread);
    let beside = BESIDE_PRODUCTS * (1.0 - first.spent.multiply).max(0.0);
    let variance = apart + runs.powi(2) + beside.powi(2) + (first.error / 2.0).powi(2);
    let width = normal_score((1.0 + level) / 2.0) * variance.sqrt();
    let seconds = mean.exp();
    let ends = [1.0, (-width).exp(), width.exp()];
    let [time, low, high] = ends.map(|factor| Time::from_seconds(seconds * factor));
    finite_times([high], || {
        "the [linpack] of the network, which determines the interval".to_owned()
    })?;
    Ok(RunPrediction {
        time,
        low,
        high,
        left_out: first.error,
        spent: first.spent,
    })
}
