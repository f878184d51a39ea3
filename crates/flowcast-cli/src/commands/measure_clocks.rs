//! `flowcast measure clocks`: a common time for all nodes of a lab or all ranks of a launcher.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use flowcast::{
    table::{Document, rows, shown},
    units::{Rounded, Time},
};
use flowcast_measure::{
    clocks::ClockPlan,
    lab::{ClockRun, Lab, host, set_clocks, synchronise_clocks},
};

use crate::{
    carrying::WhereArgs,
    commands::{doctor, lab::explained},
};
use flowcast_terminal::{output::Format, shares::count};

/// Measure offsets and drifts of clocks, with their uncertainty
///
/// The ranks learn the clock of the first rank along a tree of pairs (HCA3). Between hosts, each clock is then compared
/// directly with the first one. The nodes of a lab share one clock, so each node gets an artificial offset and a drift of up
/// to 100 ppm, and the results are compared with these.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast measure clocks --lab fair --lab-set cluster.nodes=4\n  \
                        flowcast measure clocks --launcher 'mpirun -np 8 --hostfile hosts'\n  \
                        flowcast measure clocks --launcher 'srun -n 32' --delay 60s --json"
)]
pub(crate) struct MeasureClocks {
    #[command(flatten)]
    place: WhereArgs,
    /// Number of points to which a line is fitted, each the shortest of several round trips; at most 1000000
    #[arg(long, value_name = "COUNT", default_value_t = ClockPlan::default().bursts, value_parser = count::<u32>(..=1_000_000))]
    count: u32,
    /// Number of round trips for each point; at most 1000000
    #[arg(long, value_name = "COUNT", default_value_t = ClockPlan::default().exchanges, value_parser = count::<u32>(..=1_000_000))]
    repetitions: u32,
    /// Time over which the points of a pair are spread; a longer time gives a more precise drift
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = Time::parse)]
    span: Time,
    /// Time after which the clocks are compared again
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = Time::parse)]
    delay: Time,
    /// Seed of the offsets and drifts in a lab
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    format: Format,
}

impl MeasureClocks {
    /// Synchronises the clocks and prints the accuracy.
    pub(crate) fn run(self) -> Result<()> {
        let plan = ClockPlan {
            bursts: self.count,
            exchanges: self.repetitions,
            span: self.span,
        };
        let hold = Duration::from_secs_f64(self.delay.as_seconds());
        let (run, hosts) = match &self.place.launcher {
            Some(words) => {
                let mut session = self.place.by_tcp(words)?;
                (session.synchronise_clocks(&plan, hold)?, session.names())
            }
            None => {
                let lab = Lab::up(&self.place.spec()?).map_err(explained)?;
                let hosts: Vec<String> = lab.spec().nodes().map(host).collect();
                let clocks = set_clocks(hosts.len(), self.seed);
                let run = synchronise_clocks(&lab, &clocks, &plan, hold).map_err(explained)?;
                (run, hosts)
            }
        };
        self.format.print(&self.document(&run, &hosts))
    }

    fn document(&self, run: &ClockRun, hosts: &[String]) -> Document {
        let compared_with = match self.place.launcher {
            None => "the truth",
            Some(_) => "the first node's clock",
        };
        let wrong = &run.deviations;
        let line = format!(
            "{} clocks on one time axis: compared with {compared_with}, the error is at most {}, and {} after {}; asymmetric paths can hide {}.",
            hosts.len(),
            largest(wrong.iter().map(|wrong| wrong.at_once)),
            largest(wrong.iter().map(|wrong| wrong.later)),
            Rounded(self.delay),
            largest(run.learned.iter().map(|learned| learned.asymmetry))
        );
        let clocks = rows(0..hosts.len())
            .column("node", "node", |node| node)
            .column("host", "host", |node| &hosts[node])
            .column("offset_s", "offset", |node| run.learned[node].line.offset)
            .column("drift", "drift", |node| {
                let drift = run.learned[node].line.drift;
                shown(drift, format!("{:.3} ppm", drift * 1e6))
            })
            .field("drift_deviation", |node| run.learned[node].drift_deviation)
            .column("deviation_s", "deviation", |node| {
                run.learned[node].deviation
            })
            .column("asymmetry_s", "asymmetry", |node| {
                run.learned[node].asymmetry
            })
            .column("error_s", "error", |node| wrong[node].at_once)
            .column("error_after_hold_s", "after hold", |node| wrong[node].later)
            .field("error_known_to_s", |node| wrong[node].known_to);
        Document::new("clocks")
            .field("compared_with", compared_with)
            .field("span_s", self.span)
            .field("hold_s", self.delay)
            .line(line)
            .table("clocks", clocks)
            .field("provenance", doctor::provenance_of_measurement())
    }
}

fn largest(times: impl Iterator<Item = Time>) -> Rounded {
    Rounded(
        times
            .map(|time| time.max(time * -1.0))
            .fold(Time::ZERO, Time::max),
    )
}
