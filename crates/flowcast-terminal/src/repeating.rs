//! Options of commands that repeat a pattern until the mean duration of each flow has the required precision.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use flowcast::{statistics::interval::StoppingRule, units::Time};
use flowcast_measure::lab::{PatternOptions, PatternRun};
use indicatif::HumanDuration;

use crate::{output::Format, say, shares::probability};

/// Transport of the messages of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Over {
    /// TCP, with one connection per flow
    #[default]
    Tcp,
    /// Installed MPI library, with one rank per node
    Mpi,
    /// Shared memory between the cores of this machine, only for `measure pairs`
    Shm,
}

/// Number of repetitions of a pattern.
#[derive(Debug, Args)]
pub struct RepetitionArgs {
    /// Number of warm-up repetitions, which are not counted; at most 1000000
    #[arg(long, default_value_t = 2, value_name = "COUNT", value_parser = crate::shares::count::<usize>(..=1_000_000))]
    warm_ups: usize,
    /// Minimum and maximum number of repetitions; at most 1000000
    #[arg(long, num_args = 2, value_names = ["MIN", "MAX"], default_values_t = [3, 10], value_parser = crate::shares::count::<usize>(..=1_000_000))]
    repetitions: Vec<usize>,
    /// Repeat until the half-width of each flow's confidence interval (Student's t) is at most this share of its mean
    #[arg(long, default_value_t = 0.025, value_name = "SHARE")]
    precision: f64,
    /// Confidence level of the interval for --precision
    #[arg(long, default_value = "0.95", value_name = "PROBABILITY", value_parser = probability)]
    level: f64,
}

/// Limits and output of a command.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Start nothing new after this time, such as 150s; finished parts are kept, and --resume continues
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<Time>,
    /// Skip the check that the lab delivers its rates
    #[arg(long)]
    pub no_self_test: bool,
    #[command(flatten)]
    pub format: Format,
}

/// Progress of a run through its patterns, one after the other.
pub struct RunProgress {
    began: Instant,
    done: usize,
    of: usize,
}

impl RunProgress {
    /// Starts a run of this number of patterns. The first one starts now.
    pub fn with_steps(of: usize) -> RunProgress {
        RunProgress {
            began: Instant::now(),
            done: 0,
            of,
        }
    }

    /// Elapsed time in seconds.
    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Reports that the next pattern, which started at `began`, is complete. Estimates the time of the remaining ones from
    /// the rate so far.
    pub fn report(&mut self, name: &str, run: &PatternRun, began: Instant) {
        self.done += 1;
        let left = self.of - self.done;
        let seconds = self.seconds() / self.done as f64 * left as f64;
        say!(
            "flowcast: {} of {}: {name}: {} flows, {} repetitions{}, {:.1} s; {}",
            self.done,
            self.of,
            run.repetitions.first().map_or(0, Vec::len),
            run.repetitions.len(),
            if run.is_precise {
                ""
            } else {
                " (below the requested precision)"
            },
            began.elapsed().as_secs_f64(),
            if left == 0 {
                "all done".to_owned()
            } else {
                let left = HumanDuration(Duration::from_secs_f64(seconds));
                format!("about {left} left")
            }
        );
    }
}

impl RepetitionArgs {
    /// Checks the options and combines them.
    pub fn options(&self) -> Result<PatternOptions> {
        let (fewest, most) = (self.repetitions[0], self.repetitions[1]);
        if fewest == 0 || most < fewest {
            bail!(
                "--repetitions: found {fewest} {most}, expected two numbers above 0, the second not below the first"
            );
        }
        let rule = StoppingRule {
            level: self.level,
            relative_half_width: self.precision,
            min_repetitions: fewest,
            max_repetitions: most,
        };
        let timeout = Duration::from_secs(60);
        Ok(PatternOptions {
            warm_ups: self.warm_ups,
            rule,
            timeout,
            ..PatternOptions::default()
        })
    }

    /// Description of the options for the record.
    pub fn describe(&self) -> String {
        let (fewest, most) = (self.repetitions[0], self.repetitions[1]);
        format!(
            "{fewest} to {most}, until half the {} % interval of each mean is {} % of it, after {} not counted",
            self.level * 100.0,
            self.precision * 100.0,
            self.warm_ups
        )
    }
}
