//! Time of a run, from all or some of its panels.

use crate::{ActivityTimes, HplSettings, Pivots, machine::Machine, simulation::Simulation};
use flowcast_statistics::linear_fit::{LinearFit, LinearRow};
use flowcast_units::Time;

use flowcast_replay::outcome::{NotFiniteTime, finite_times};

/// Part of a run that is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedExtent {
    /// All panels, unless there are too many exchanges by spread and roll, or the simulation takes too long.
    Full,
    /// Some panels at each of this number of places, at least four. This suffices because the time of a panel changes
    /// steadily.
    Windows(u32),
}

impl SimulatedExtent {
    /// Number of places of a run at which panels are simulated. `None` if all panels are simulated.
    pub fn places(self, settings: &HplSettings) -> Option<u32> {
        let is_long = || {
            exchanges(settings) > MOST_EXCHANGES
                || effort(settings, settings.panels()) > LONGEST_WHOLE
        };
        let places = match self {
            SimulatedExtent::Windows(places) => places.max(4),
            SimulatedExtent::Full if is_long() => WINDOWS,
            SimulatedExtent::Full => return None,
        };
        (places * (lead(settings) + MEASURED) < settings.panels()).then_some(places)
    }

    /// Approximate processor time of a simulation, in hours.
    pub(super) fn hours(self, settings: &HplSettings) -> f64 {
        let panels = self.places(settings);
        let panels = panels.map(|places| places * (lead(settings) + MEASURED));
        effort(settings, panels.unwrap_or(settings.panels())) / 3600.0
    }
}

/// Number of panels before the measured ones in a window. In contrast to a full run, all processes start a window at the
/// same time.
fn lead(settings: &HplSettings) -> u32 {
    2 * settings.columns + settings.depth
}

/// Estimated time of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// Time of the whole run, in seconds; extrapolated if panels were left out.
    pub seconds: f64,
    /// Relative uncertainty due to panels that were left out: two standard errors. 0 if none was left out.
    pub error: f64,
    /// Activities of the processes, as fractions of the simulated time.
    pub spent: ActivityTimes,
    /// Simulated time, in seconds.
    pub simulated: f64,
}

/// Maximum number of exchanges of a full simulation.
const MOST_EXCHANGES: f64 = 4e8;
/// Number of places at which panels of a run are simulated if all of them would take too long.
const WINDOWS: u32 = 10;

/// Number of measured panels of a window.
const MEASURED: u32 = 16;
/// Maximum processor time for the simulation of all panels, in seconds.
const LONGEST_WHOLE: f64 = 600.0;

/// Estimates the time of a run on a machine. The seed determines the pivots and the variation of the products' times.
///
/// # Errors
/// [`NotFiniteTime`], also for a time of 0.
pub(super) fn estimate(
    settings: &HplSettings,
    machine: &Machine,
    extent: SimulatedExtent,
    seed: u64,
) -> Result<Estimate, NotFiniteTime> {
    let found = simulated(settings, machine, extent, seed);
    // Runs are compared by the logarithms of their times.
    finite_times([Time::from_seconds(found.seconds.ln())], || {
        let HplSettings {
            order,
            rows,
            columns,
            ..
        } = settings;
        format!(
            "the network, its [linpack] or the times of products: a run of N = {order} on {rows}x{columns} ranks takes {} s",
            found.seconds
        )
    })?;
    Ok(found)
}

fn simulated(
    settings: &HplSettings,
    machine: &Machine,
    extent: SimulatedExtent,
    seed: u64,
) -> Estimate {
    let Some(windows) = extent.places(settings) else {
        return full(settings, machine, seed);
    };
    let (lead, panels) = (lead(settings), settings.panels());
    let length = lead + MEASURED;
    let mut rates = Vec::new();
    let (mut spent, mut simulated) = (ActivityTimes::default(), 0.0);
    for window in 0..windows {
        let middle = (f64::from(window) + 0.5) / f64::from(windows);
        let start = (middle * f64::from(panels - length)) as u32;
        let pivots = Pivots::Random { seed };
        let end = start + length;
        let outcome = Simulation::new(*settings, machine, pivots, start..end, seed).run();
        let from = outcome.factored[lead as usize - 1];
        let to = outcome.factored[length as usize - 1];
        // When a panel is factored, the update by the last panel that is not ahead has just ended.
        let updated = start + lead + MEASURED / 2 - settings.depth - 1;
        let place = f64::from(updated) / f64::from(panels);
        rates.push((place, (to - from) / f64::from(MEASURED)));
        spent.add(&outcome.spent);
        simulated += outcome.seconds;
    }
    let Parabola { mean, error } = parabola(&rates);
    Estimate {
        seconds: mean * f64::from(panels),
        error: 2.0 * error / mean,
        spent: spent.times(1.0 / simulated),
        simulated,
    }
}

fn full(settings: &HplSettings, machine: &Machine, seed: u64) -> Estimate {
    let pivots = Pivots::Random { seed };
    let outcome = Simulation::new(*settings, machine, pivots, 0..settings.panels(), seed).run();
    Estimate {
        seconds: outcome.seconds,
        error: 0.0,
        spent: outcome.spent.times(1.0 / outcome.seconds),
        simulated: outcome.seconds,
    }
}

/// Number of exchanges of all processes in swaps by spread and roll.
fn exchanges(settings: &HplSettings) -> f64 {
    if !settings.swap.is_long(u64::from(settings.block) + 1) {
        return 0.0;
    }
    let ranks = f64::from(settings.ranks());
    ranks * f64::from(settings.rows) * f64::from(settings.panels())
}

/// Approximate processor time, in seconds, for the simulation of this number of panels on a processor of 2020. It has three
/// parts: pivot searches of a process column, exchanges of all processes, and probes for the next panel after each block.
fn effort(settings: &HplSettings, panels: u32) -> f64 {
    let [rows, ranks, width] = [settings.rows, settings.ranks(), settings.block].map(f64::from);
    let rounds = 1.0 + rows.log2();
    let rolls = if settings.swap.is_long(u64::from(settings.block) + 1) {
        rows
    } else {
        0.0
    };
    let probes = if settings.columns > 1 {
        rows * f64::from(settings.panels())
    } else {
        0.0
    };
    let nanoseconds = width * (20.0 + 5.0 * rows * rounds)
        + ranks * (1000.0 + 400.0 * rounds + 60.0 * rolls)
        + 50.0 * probes;
    f64::from(panels) * nanoseconds * 1e-9
}

/// Mean over [0, 1] of the parabola through some points, with its standard error.
struct Parabola {
    mean: f64,
    error: f64,
}

fn parabola(points: &[(f64, f64)]) -> Parabola {
    // With Legendre polynomials, the mean over [0, 1] is the first coefficient if the points cover the interval evenly.
    let rows = points.iter().map(|&(x, value)| {
        let x = 2.0 * x - 1.0;
        LinearRow {
            columns: vec![1.0, x, 1.5 * x * x - 0.5],
            value,
            variance: 1.0,
        }
    });
    let rows: Vec<LinearRow> = rows.collect();
    let fit = LinearFit::new(&rows).expect("four points or more at different places");
    let squares: f64 = rows
        .iter()
        .map(|row| (row.value - fit.at(row)).powi(2))
        .sum();
    let freedom = (points.len() - 3).max(1) as f64;
    Parabola {
        mean: fit.values[0],
        error: (squares / freedom * fit.covariance[0][0]).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Broadcast, Cluster, NodeProcessors, Swap};
    use flowcast_network::network::Network;

    #[test]
    fn simulating_some_panels_takes_fewer_messages_than_all() {
        let text = "schema = \"flowcast/network/2\"\nname = \"x\"\n[point_to_point]\nrule = \"loggops\"\nrendezvous_from = \"8KiB\"\n\
            [nic]\nlatency = \"1us\"\nbandwidth = \"10GB/s\"\n";
        let network = Network::from_toml(text, &[]).unwrap();
        let mut table = "node,intercept_s,s_per_mnk,resid_per_mnk\n".to_owned();
        for node in 0..4 {
            table += &format!("{node},2e-6,{}e-11,2e-12\n", 7.0 + 0.14 * f64::from(node));
        }
        let cluster = Cluster::new(network, NodeProcessors::parse(&table).unwrap(), 4);
        for (rows, columns) in [(4, 4), (8, 2)] {
            let settings = HplSettings {
                order: 20_000,
                block: 64,
                rows,
                columns,
                depth: 1,
                broadcast: Broadcast::TwoRings,
                swap: Swap::Binary,
            };
            let machine = cluster.machine(&settings, 0);
            let found = |extent| estimate(&settings, &machine, extent, 1).unwrap();
            let whole = found(SimulatedExtent::Full).seconds;
            let some = found(SimulatedExtent::Windows(6)).simulated;
            assert!(some < 0.7 * whole, "{some} {whole}");
        }
    }
}
