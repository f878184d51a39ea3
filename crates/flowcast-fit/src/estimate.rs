//! Estimate of one set of parameters from one set of medians. The bootstrap repeats it for each replicate.
//!
//! All times are in nanoseconds, and sizes are bytes beyond the first.

use super::{
    error::FitError,
    options::{
        FitOptions,
        LineMethod::{self, *},
        SizeChoice,
    },
    prtt::PrttPoint,
    samples::{PrttSamples, nanos},
};
use flowcast_statistics::{
    StatsError,
    regression::{
        Line, least_squares, least_squares_at_least_zero, theil_sen, theil_sen_at_least_zero,
    },
    resampling::Resampler,
    sample::median_in_place,
};
use flowcast_units::Time;

/// A delay of more than this multiple of the gap is clearly above it. With shorter delays, the gap and the delay affect each
/// other (section 3.5.2).
const CLEAR_DELAY: f64 = 2.0;

/// Relative difference below which two spacings or knees are equal.
const ROUNDING: f64 = 1e-9;

/// All points with their samples, and the pairs of points that determine a spacing.
pub(super) struct Design {
    points: Vec<PrttPoint>,
    samples: Vec<Vec<f64>>,
    gaps: Vec<Pair>,
    delays: Vec<Pair>,
    round_trips: Vec<usize>,
    /// Number of points with several messages whose size has no plain round trip.
    pub unpaired: usize,
}

/// Indices of `PRTT_{n,d}(s)` and of `PRTT_{1,0}(s)`.
struct Pair {
    many: usize,
    one: usize,
}

impl Design {
    pub(crate) fn new(samples: &PrttSamples) -> Design {
        let (points, samples): (Vec<PrttPoint>, Vec<Vec<f64>>) = samples
            .points()
            .map(|(point, times)| (point, nanos(times)))
            .unzip();
        let mut design = Design {
            points,
            samples,
            gaps: vec![],
            delays: vec![],
            round_trips: vec![],
            unpaired: 0,
        };
        for many in 0..design.points.len() {
            let point = design.points[many];
            match design
                .points
                .binary_search(&PrttPoint::round_trip(point.size))
            {
                Ok(one) if one == many => design.round_trips.push(many),
                Ok(one) if point.delay == Time::ZERO => design.gaps.push(Pair { many, one }),
                Ok(one) => design.delays.push(Pair { many, one }),
                Err(_) => design.unpaired += 1,
            }
        }
        design
    }

    /// Smallest number of samples of a point.
    pub(crate) fn fewest_samples(&self) -> usize {
        self.samples.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Largest number of samples of a point.
    pub(crate) fn most_samples(&self) -> usize {
        self.samples.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Number of points with several messages and no delay.
    pub(crate) fn gap_points(&self) -> usize {
        self.gaps.len()
    }

    pub(crate) fn medians(&self) -> Vec<f64> {
        self.samples
            .iter()
            .map(|samples| median_in_place(&mut samples.clone()))
            .collect()
    }

    /// Returns medians of samples that are drawn with replacement within each point.
    pub(crate) fn resampled_medians(&self, resampler: &mut Resampler) -> Vec<f64> {
        let mut drawn = Vec::new();
        self.samples
            .iter()
            .map(&mut |samples: &Vec<f64>| {
                resampler.draw_into(samples, &mut drawn);
                median_in_place(&mut drawn)
            })
            .collect()
    }

    /// The points, in the same order as their medians.
    pub(crate) fn points(&self) -> &[PrttPoint] {
        &self.points
    }

    /// Time between two sends of a pair's messages: `(PRTT_{n,d}(s) - PRTT_{1,0}(s)) / (n - 1)`.
    fn spacing(&self, pair: &Pair, medians: &[f64]) -> f64 {
        (medians[pair.many] - medians[pair.one]) / f64::from(self.points[pair.many].messages - 1)
    }

    /// Returns the bytes beyond the first and the spacing of each point without a delay.
    fn gap_points_of(&self, medians: &[f64]) -> Result<Vec<(f64, f64)>, FitError> {
        let points = self.gaps.iter().map(|pair: &Pair| {
            (
                self.points[pair.many].beyond_first_byte(),
                self.spacing(pair, medians),
            )
        });
        with_two_sizes(points.collect(), "g and G", "n > 1 and d_us = 0")
    }
}

/// The parameters for one set of medians, both unconstrained and held at or above 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MedianEstimate {
    /// `g` and `G`, unconstrained.
    pub free_line: Line,
    /// `g` and `G`, held at or above 0.
    pub line: Line,
    pub free_overhead: f64,
    pub overhead: f64,
    pub free_latency: f64,
    pub latency: f64,
    /// Number of bytes beyond the first from which the gap and not the overhead spaces messages, if it is above 0.
    pub knee: Option<f64>,
    /// Shortest time between two consecutive sends.
    pub shortest_spacing: f64,
    /// Longest time between two consecutive sends.
    pub longest_spacing: f64,
    /// Number of points that determine g and G.
    pub gap_points: usize,
    /// `true` if the overhead is based on a delay only slightly above the gap.
    pub short_delay: bool,
}

pub(super) fn estimate(
    design: &Design,
    medians: &[f64],
    options: &FitOptions,
) -> Result<MedianEstimate, FitError> {
    let Sending {
        points,
        line,
        overhead,
        knee,
        shortest_spacing,
    } = sending(design, medians, options)?;
    let sending_overhead = overhead.value.max(0.0);
    let one_way = one_way_of_one_byte(design, medians, options.line)?.max(0.0);
    Ok(MedianEstimate {
        free_line: free_line(&points, options.line)?,
        line,
        free_overhead: overhead.value,
        overhead: sending_overhead.min(one_way / 2.0),
        free_latency: one_way - 2.0 * sending_overhead,
        latency: (one_way - 2.0 * sending_overhead).max(0.0),
        knee: Some(knee).filter(|knee| *knee > ROUNDING && knee.is_finite()),
        shortest_spacing,
        longest_spacing: points.iter().map(|point| point.1).fold(0.0, f64::max),
        gap_points: points.len(),
        short_delay: overhead.short_delay,
    })
}

/// Spacing of messages: the line of g and G with its points, and the overhead.
struct Sending {
    points: Vec<(f64, f64)>,
    line: Line,
    overhead: Overhead,
    knee: f64,
    shortest_spacing: f64,
}

/// Fits the line, drops the sizes left of the knee, and repeats this until no more sizes are dropped. Dropped sizes stay
/// out. Without noise, a line through points on both sides of the true knee meets the overhead left of it, so this ends at
/// the true knee and drops no point beyond.
///
/// Under LogGP, no spacing is below the overhead. A network may violate this, because a message after a pause costs its
/// sender more than one in a row (over TCP it wakes the receiver). The shortest spacing then replaces the overhead in the
/// knee: an overhead above it cannot have hidden the gap.
fn sending(design: &Design, medians: &[f64], options: &FitOptions) -> Result<Sending, FitError> {
    let mut points = design.gap_points_of(medians)?;
    let shortest_spacing = points
        .iter()
        .map(|point| point.1)
        .fold(f64::INFINITY, f64::min)
        .max(0.0);
    loop {
        let line = line_at_least_zero(&points, options.line)?;
        let overhead = overhead(design, medians, line)?;
        let hiding = overhead.value.clamp(0.0, shortest_spacing);
        let knee = knee(line, hiding);
        let kept: Vec<(f64, f64)> = points
            .iter()
            .copied()
            .filter(|point| line.at(point.0) >= hiding * (1.0 - ROUNDING))
            .collect();
        if options.sizes == SizeChoice::Every || kept.len() == points.len() {
            return Ok(Sending {
                points,
                line,
                overhead,
                knee,
                shortest_spacing,
            });
        }
        require_two_above(&kept, knee)?;
        points = kept;
    }
}

/// Returns the line `y = g + (s-1)·G` through all sizes, for choosing a delay before the overhead is known.
pub(super) fn line_through_all(design: &Design) -> Result<Line, FitError> {
    let points = design.gap_points_of(&design.medians())?;
    Ok(line_at_least_zero(&points, LeastSquares)?)
}

/// Returns `(o - g) / G`. Left of it, the processor and not the interface spaces messages.
fn knee(line: Line, overhead: f64) -> f64 {
    if overhead <= line.intercept {
        f64::NEG_INFINITY
    } else {
        (overhead - line.intercept) / line.slope
    }
}

struct Overhead {
    value: f64,
    short_delay: bool,
}

/// Returns `o = spacing - d` at the smallest size at which the delay hides the gap.
fn overhead(design: &Design, medians: &[f64], line: Line) -> Result<Overhead, FitError> {
    let clear = hidden(design, line, CLEAR_DELAY);
    let short_delay = clear.is_empty();
    let pairs = if short_delay {
        hidden(design, line, 1.0)
    } else {
        clear
    };
    let smallest = pairs.iter().map(|pair| design.points[pair.many].size).min();
    let Some(smallest) = smallest else {
        return Err(no_overhead(design, line));
    };
    let mut values: Vec<f64> = pairs
        .iter()
        .filter(|pair| design.points[pair.many].size == smallest)
        .map(|pair| design.spacing(pair, medians) - design.points[pair.many].delay.as_nanos())
        .collect();
    Ok(Overhead {
        value: median_in_place(&mut values),
        short_delay,
    })
}

/// Returns the pairs whose delay is longer than `least` times the gap that it hides.
fn hidden(design: &Design, line: Line, least: f64) -> Vec<&Pair> {
    let pairs = design.delays.iter().filter(|pair| {
        let point = design.points[pair.many];
        point.delay.as_nanos() / line.at(point.beyond_first_byte()) > least
    });
    pairs.collect()
}

fn no_overhead(design: &Design, line: Line) -> FitError {
    let longest = design
        .delays
        .iter()
        .map(|pair| design.points[pair.many])
        .max_by_key(|point| point.delay);
    match longest {
        None => FitError::NoDelay,
        Some(point) => FitError::ShortDelay {
            delay: point.delay,
            size: point.size,
            gap: Time::from_nanos(line.at(point.beyond_first_byte())),
        },
    }
}

/// Returns `2o + L`: the intercept of `PRTT_{1,0}(s)/2` over the bytes beyond the first.
fn one_way_of_one_byte(
    design: &Design,
    medians: &[f64],
    method: LineMethod,
) -> Result<f64, FitError> {
    let trips = design.round_trips.iter();
    let points = trips
        .map(|&at| (design.points[at].beyond_first_byte(), medians[at] / 2.0))
        .collect();
    let points = with_two_sizes(points, "L", "n = 1")?;
    Ok(free_line(&points, method)?.intercept)
}

fn line_at_least_zero(points: &[(f64, f64)], method: LineMethod) -> Result<Line, StatsError> {
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    match method {
        LeastSquares => least_squares_at_least_zero(&x, &y),
        TheilSen => theil_sen_at_least_zero(&x, &y),
    }
}

fn free_line(points: &[(f64, f64)], method: LineMethod) -> Result<Line, StatsError> {
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    match method {
        LeastSquares => least_squares(&x, &y),
        TheilSen => theil_sen(&x, &y),
    }
}

fn distinct_sizes(points: &[(f64, f64)]) -> usize {
    let mut sizes: Vec<f64> = points.iter().map(|point| point.0).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.dedup();
    sizes.len()
}

/// Returns the points if they have at least two sizes.
fn with_two_sizes(
    points: Vec<(f64, f64)>,
    parameter: &'static str,
    rows: &'static str,
) -> Result<Vec<(f64, f64)>, FitError> {
    match distinct_sizes(&points) {
        found @ 0..2 => Err(FitError::TooFewSizes {
            parameter,
            rows,
            found,
        }),
        _ => Ok(points),
    }
}

fn require_two_above(points: &[(f64, f64)], knee: f64) -> Result<(), FitError> {
    match distinct_sizes(points) {
        found @ 0..2 => Err(FitError::TooFewAboveKnee {
            found,
            knee: knee + 1.0,
        }),
        _ => Ok(()),
    }
}
