//! What random delays of computations do to a prediction.

use std::{fmt, ops::Range};

use flowcast_graph::{
    EventGraph,
    noise::{ComputeNoise, factors_of},
};
use flowcast_program::Program;
use flowcast_table::Record;
use flowcast_units::{Rounded, Time};

use super::with_graph;
use crate::{Error, Interval, Prepared};

/// Which delays, and how often they are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseOptions {
    /// Distribution of a delay.
    pub noise: ComputeNoise,
    /// Runs with random numbers of their own, at least 1.
    pub runs: usize,
    /// Start of the random numbers; equal seeds give equal runs.
    pub seed: u64,
    /// The probability with which the interval holds a run, above 0 and below 1.
    pub level: f64,
    /// Threads; the result does not depend on them.
    pub threads: usize,
}

/// The distribution of the predicted time. Shown, it is a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Noisy {
    /// The end of each run, shortest first; at least one.
    pub makespans: Vec<Time>,
    /// By rank: by how much later it ends on average.
    pub later: Vec<Time>,
    /// The predicted time without delays.
    pub quiet: Time,
    /// The probability of the interval.
    pub level: f64,
    /// Whether events may change their order without that being known here.
    pub is_exact: bool,
}

/// Reads a distribution: as [`ComputeNoise::parse`], or `empirical`, which takes the variation of the computations of `recorded`.
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
            "one without computations",
            expected,
        ));
    }
    Ok(ComputeNoise::Factors(factors))
}

impl Prepared<'_> {
    /// Replays once, and from its events many times with random delays.
    ///
    /// # Errors
    /// A schedule; no runs, a delay of a rank that there is not; those of the replay.
    pub fn with_noise(&self, options: &NoiseOptions) -> Result<Noisy, Error> {
        self.on_events(options, |graph| Noisy::from_graph(graph, options))
    }

    /// A part of the runs of [`Prepared::with_noise`], to be computed elsewhere: when each rank ends, by run.
    ///
    /// # Errors
    /// Those of [`Prepared::with_noise`].
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

    /// [`Prepared::with_noise`] of runs whose ranks end at these times: all parts in the order of the runs.
    ///
    /// # Errors
    /// Those of [`Prepared::with_noise`]; other numbers of runs or ranks than there are.
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
        let (_, found) = with_graph(program, program.network, |graph| Ok(work(graph)))?;
        Ok(found)
    }
}

impl Noisy {
    /// The noise on the events of a replay.
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

    /// The run below which this part of all runs ends, 0 to 1.
    pub fn quantile(&self, part: f64) -> Time {
        let last = self.makespans.len() - 1;
        self.makespans[((last as f64 * part).round() as usize).min(last)]
    }

    /// The median with the interval that holds a run.
    pub(super) fn as_interval(&self) -> Interval {
        let [low, high] = self.interval();
        Interval {
            predicted: self.quantile(0.5),
            low,
            high,
            level: self.level,
            covers: "the delays that were drawn".to_owned(),
        }
    }

    /// The ends of the interval that holds a run with the probability that was asked for.
    pub fn interval(&self) -> [Time; 2] {
        [(1.0 - self.level) / 2.0, f64::midpoint(1.0, self.level)].map(|part| self.quantile(part))
    }

    /// The distribution of the end for programs.
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
