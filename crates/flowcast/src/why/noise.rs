//! Effect of random delays of computations on a prediction.

use std::{fmt, ops::Range};

use flowcast_graph::{
    EventGraph,
    noise::{ComputeNoise, factors_of},
};
use flowcast_program::Program;
use flowcast_table::Record;
use flowcast_units::{Rounded, Time};

use crate::{Error, Interval, Prepared};

/// Distribution of delays, and the number of runs with them.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseOptions {
    /// Distribution of a delay.
    pub noise: ComputeNoise,
    /// Number of runs, each with its own random numbers; at least 1.
    pub runs: usize,
    /// Seed of the random numbers; equal seeds give equal runs.
    pub seed: u64,
    /// Probability that the interval contains a run, above 0 and below 1.
    pub level: f64,
    /// Threads; the result does not depend on their number.
    pub threads: usize,
}

/// Distribution of the predicted time. `Display` writes it as a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Noisy {
    /// End of each run, shortest first; at least one.
    pub makespans: Vec<Time>,
    /// Average delay of each rank's end, indexed by rank.
    pub later: Vec<Time>,
    /// The predicted time without delays.
    pub quiet: Time,
    /// Probability of the interval.
    pub level: f64,
    /// `true` if the order of events depends on no cost. Otherwise delays might change the order, which is ignored here.
    pub is_exact: bool,
}

/// Parses a distribution like [`ComputeNoise::parse`], or `empirical`, which uses the variation of the computations of
/// `recorded`.
///
/// # Errors
/// [`Error::Noise`]; a recording without computations.
pub fn parse_noise(text: &str, recorded: Option<&Program>) -> Result<ComputeNoise, Error> {
    let Some(recorded) = recorded.filter(|_| text == "empirical" || text.starts_with("empirical:"))
    else {
        return Ok(ComputeNoise::parse(text)?);
    };
    let factors = factors_of(recorded);
    if factors.is_empty() {
        let expected = "a recording with computations";
        return Err(Error::option(
            "--noise",
            "a recording without computations",
            expected,
        ));
    }
    Ok(ComputeNoise::Factors(factors))
}

impl Prepared<'_> {
    /// Replays once, and then many times from the events of this replay, with random delays.
    ///
    /// # Errors
    /// A schedule; no runs, a delay of a rank that does not exist; errors of the replay.
    pub fn with_noise(&self, options: &NoiseOptions) -> Result<Noisy, Error> {
        self.on_events(options, |graph| Noisy::from_graph(graph, options))
    }

    /// A part of the runs of [`Prepared::with_noise`], for distributed computation. Returns the ends of all ranks for each
    /// run.
    ///
    /// # Errors
    /// Errors of [`Prepared::with_noise`].
    pub fn ends_with_noise(
        &self,
        options: &NoiseOptions,
        runs: Range<usize>,
    ) -> Result<Vec<Vec<Time>>, Error> {
        let NoiseOptions {
            noise,
            seed,
            threads,
            ..
        } = options;
        self.on_events(options, |graph| {
            graph.disturbed_ends(noise, *seed, runs, *threads)
        })
    }

    /// Result of [`Prepared::with_noise`] from its parts. `ends` has the results of [`Prepared::ends_with_noise`] for all
    /// runs, in the order of the runs.
    ///
    /// # Errors
    /// Errors of [`Prepared::with_noise`]; a wrong number of runs or ranks.
    pub fn gathered_noise(
        &self,
        options: &NoiseOptions,
        ends: &[Vec<Time>],
    ) -> Result<Noisy, Error> {
        self.on_events(options, |graph| {
            let ranks = graph.ends().count();
            let is_whole = ends.len() == options.runs && ends.iter().all(|run| run.len() == ranks);
            is_whole.then(|| Noisy::gathered(graph, options, ends))
        })?
        .ok_or_else(|| {
            Error::option(
                "--replicates",
                format!("the ends of {} runs", ends.len()),
                "an end for each run and rank",
            )
        })
    }

    fn on_events<T>(
        &self,
        options: &NoiseOptions,
        work: impl FnOnce(&EventGraph<'_>) -> T,
    ) -> Result<T, Error> {
        if options.runs == 0 {
            return Err(Error::option("--replicates", "0", "at least 1"));
        }
        let unfolded;
        let program = match self {
            Prepared::Program(program) => program,
            Prepared::Folded(folded) => {
                unfolded = folded.unfolded()?;
                &unfolded
            }
            Prepared::Schedule(_) => {
                let expected = "a trace of a program";
                return Err(Error::option("--noise", "a GOAL schedule", expected));
            }
        };
        if let ComputeNoise::Once { rank, .. } = options.noise
            && rank.index() >= program.program().ranks()
        {
            let found = format!("rank {rank}");
            return Err(Error::option("--noise", found, "a rank of the trace"));
        }
        let (_, found) = program.with_graph(|graph| Ok(work(graph)))?;
        Ok(found)
    }
}

impl Noisy {
    /// Distribution from the events of a replay.
    pub(super) fn from_graph(graph: &EventGraph<'_>, options: &NoiseOptions) -> Noisy {
        let NoiseOptions {
            noise,
            seed,
            runs,
            threads,
            ..
        } = options;
        Noisy::gathered(
            graph,
            options,
            &graph.disturbed_ends(noise, *seed, 0..*runs, *threads),
        )
    }

    fn gathered(graph: &EventGraph<'_>, options: &NoiseOptions, ends: &[Vec<Time>]) -> Noisy {
        let drawn = graph.disturbed(ends);
        Noisy {
            makespans: drawn.makespans,
            later: drawn.later,
            quiet: graph.makespan(),
            level: options.level,
            is_exact: graph.is_exact(),
        }
    }

    /// Quantile of the runs' ends. `part` is from 0 to 1.
    pub fn quantile(&self, part: f64) -> Time {
        let last = self.makespans.len() - 1;
        self.makespans[((last as f64 * part).round() as usize).min(last)]
    }

    /// The median, with the interval that contains a run.
    pub(super) fn as_interval(&self) -> Interval {
        let [low, high] = self.interval();
        Interval {
            predicted: self.quantile(0.5),
            low,
            high,
            level: self.level,
            covers: "the random delays".to_owned(),
        }
    }

    /// Ends of the interval that contains a run with the requested probability.
    pub fn interval(&self) -> [Time; 2] {
        [(1.0 - self.level) / 2.0, f64::midpoint(1.0, self.level)].map(|part| self.quantile(part))
    }

    /// Distribution of the end, for programs.
    pub fn document(&self) -> Record {
        Record::new()
            .field("runs", self.makespans.len())
            .field("median_s", self.quantile(0.5))
            .field("interval_s", self.interval())
            .field("level", self.level)
            .field("exact", self.is_exact)
            .field("makespans_s", &self.makespans)
            .field("later_s", &self.later)
    }
}

impl fmt::Display for Noisy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([low, high], median) = (self.interval(), self.quantile(0.5));
        let more = 100.0 * (median.as_nanos() / self.quiet.as_nanos().max(1e-9) - 1.0);
        let (low, high, median) = (Rounded(low), Rounded(high), Rounded(median));
        write!(
            f,
            "{median} ({low} to {high}, {} % of {} runs), ",
            100.0 * self.level,
            self.makespans.len()
        )?;
        write!(f, "{more:.1} % more than without noise")?;
        let reached = self
            .later
            .iter()
            .filter(|later| later.as_nanos() > 1.0)
            .count();
        write!(f, "; {reached} of {} ranks end later", self.later.len())?;
        let fixed = "; events keep the order and the waiting times of the replay without noise";
        f.write_str(if self.is_exact { "" } else { fixed })
    }
}
