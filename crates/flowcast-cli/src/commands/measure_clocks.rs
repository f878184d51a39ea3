//! `flowcast measure clocks`: one time for all nodes of a lab or all ranks of a launcher.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use flowcast::units::{Rounded, Time};
use flowcast_measure::clocks::ClockPlan;
use flowcast_measure::lab::{ClockRun, Lab, set_clocks, synchronise_clocks};
use serde::Serialize;

use crate::carrying::WhereArgs;
use crate::commands::doctor;
use crate::commands::lab::explained;
use crate::terminal::output::{Format, Seconds, Shown, println_out, show};
use crate::terminal::tables::table;

/// Measure offsets and drifts of clocks, and how well they can be known
///
/// Ranks learn the first one's clock along a tree of pairs (HCA3). Between hosts each clock is then compared with the first
/// one's directly. In a lab, whose nodes have one clock, each node is given an offset and a drift of up to 100 ppm, and what
/// was learned is compared with these.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast measure clocks --lab fair --lab-set cluster.nodes=4\n  \
                        flowcast measure clocks --launcher 'mpirun -np 8 --hostfile hosts'\n  \
                        flowcast measure clocks --launcher 'srun -n 32' --hold 60s --json"
)]
pub(crate) struct MeasureClocks {
    #[command(flatten)]
    place: WhereArgs,
    /// Points of a line; each is the shortest of several exchanges
    #[arg(long, value_name = "COUNT", default_value_t = ClockPlan::default().bursts)]
    bursts: u32,
    /// Exchanges of a point
    #[arg(long, value_name = "COUNT", default_value_t = ClockPlan::default().exchanges)]
    exchanges: u32,
    /// Time over which a pair spreads its points; drift is known the better the longer
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = Time::parse)]
    span: Time,
    /// Compare once more after this time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = Time::parse)]
    hold: Time,
    /// Seed of the offsets and drifts in a lab
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    format: Format,
}

impl MeasureClocks {
    /// Synchronises and says how well.
    pub(crate) fn run(self) -> Result<()> {
        let plan = ClockPlan {
            bursts: self.bursts,
            exchanges: self.exchanges,
            span: self.span,
        };
        let hold = Duration::from_secs_f64(self.hold.as_seconds());
        let (run, hosts) = match &self.place.launcher {
            Some(words) => {
                let mut session = self.place.by_tcp(words)?;
                (session.synchronise_clocks(&plan, hold)?, session.names())
            }
            None => {
                let lab = Lab::up(&self.place.spec()?).map_err(explained)?;
                let nodes: Vec<String> = lab
                    .spec()
                    .nodes()
                    .map(flowcast_measure::lab::host)
                    .collect();
                let clocks = set_clocks(nodes.len(), self.seed);
                (
                    synchronise_clocks(&lab, &clocks, &plan, hold).map_err(explained)?,
                    nodes,
                )
            }
        };
        show(&Clocks::new(run, hosts, &self), self.format)
    }
}

#[derive(Serialize)]
struct Clocks {
    compared_with: &'static str,
    span_s: Seconds,
    hold_s: Seconds,
    clocks: Vec<Clock>,
    provenance: BTreeMap<String, String>,
}

/// The clock of the first node in terms of that of a node, and what is wrong about it.
#[derive(Serialize)]
struct Clock {
    node: usize,
    host: String,
    offset_s: Seconds,
    drift: f64,
    drift_deviation: f64,
    deviation_s: Seconds,
    asymmetry_s: Seconds,
    error_s: Seconds,
    error_after_hold_s: Seconds,
    error_known_to_s: Seconds,
}

impl Clocks {
    fn new(run: ClockRun, hosts: Vec<String>, options: &MeasureClocks) -> Clocks {
        let each = run
            .learned
            .into_iter()
            .zip(run.deviations)
            .zip(hosts)
            .enumerate();
        let clocks = each.map(|(node, ((learned, wrong), host))| Clock {
            node,
            host,
            offset_s: Seconds(learned.line.offset),
            drift: learned.line.drift,
            drift_deviation: learned.drift_deviation,
            deviation_s: Seconds(learned.deviation),
            asymmetry_s: Seconds(learned.asymmetry),
            error_s: Seconds(wrong.at_once),
            error_after_hold_s: Seconds(wrong.later),
            error_known_to_s: Seconds(wrong.known_to),
        });
        let in_lab = options.place.launcher.is_none();
        Clocks {
            compared_with: if in_lab {
                "the truth"
            } else {
                "the first node's clock"
            },
            span_s: Seconds(options.span),
            hold_s: Seconds(options.hold),
            clocks: clocks.collect(),
            provenance: doctor::provenance_of_measurement(),
        }
    }

    fn largest(&self, of: fn(&Clock) -> Seconds) -> Rounded {
        let sizes = self
            .clocks
            .iter()
            .map(|clock| of(clock).0.max(of(clock).0 * -1.0));
        Rounded(sizes.fold(Time::ZERO, Time::max))
    }
}

impl Shown for Clocks {
    const SCHEMA: &'static str = "flowcast/clocks/1";

    fn print(&self) {
        println_out!(
            "{} clocks on one time axis: beside {} they are wrong by {} at most, and by {} after {}; asymmetric ways can hide {}.",
            self.clocks.len(),
            self.compared_with,
            self.largest(|clock| clock.error_s),
            self.largest(|clock| clock.error_after_hold_s),
            Rounded(self.hold_s.0),
            self.largest(|clock| clock.asymmetry_s)
        );
        let mut rows = table(&[
            ">node",
            "host",
            ">offset",
            ">drift",
            ">deviation",
            ">asymmetry",
            ">error",
            ">after hold",
        ]);
        for clock in &self.clocks {
            rows.add_row([
                clock.node.to_string(),
                clock.host.clone(),
                clock.offset_s.to_string(),
                format!("{:.3} ppm", clock.drift * 1e6),
                clock.deviation_s.to_string(),
                clock.asymmetry_s.to_string(),
                clock.error_s.to_string(),
                clock.error_after_hold_s.to_string(),
            ]);
        }
        println_out!("{rows}");
    }
}
