//! LogGP parameters from parametrised round trips (Lichei, sections 3.2.3 and 3.3).
//!
//! The median represents the samples of each point. Then
//!
//! - `g`, `G`: the line `y = g + (s-1)·G` through `(PRTT_{n,0}(s) - PRTT_{1,0}(s)) / (n-1)`;
//! - `o = (PRTT_{n,d}(s) - PRTT_{1,0}(s)) / (n-1) - d` at the smallest size whose delay is above the gap;
//! - `L`: the intercept of `PRTT_{1,0}(s)/2 - 2o` over `s-1`.
//!
//! The first line only holds if the interface and not the processor spaces the messages, `s > 1 + (o-g)/G`. The thesis fits
//! all sizes and therefore finds g = 1.518 us, although its own table gives 0.897 us with o = 6.1 us. Here the line is
//! fitted again without the sizes left of this knee until no more sizes are dropped.
//!
//! No parameter can be negative. A negative result is held at 0, the others are fitted under this bound, and the fit
//! carries a warning with the negative value. If L is negative, the sender's overhead is more than half of the time of a
//! message. LogGP has one overhead for both sides, which is then lowered to that half, so that `2o + L` stays as measured.
//! Intervals are bootstrap percentiles: samples are resampled within each point, and the whole procedure is repeated.
//!
//! [`crate::bursts`] fits samples that contain bursts of several lengths and the sender's own time.

pub use super::options::{FitOptions, LineMethod, SizeChoice};
use super::{
    bursts::{BurstFit, fit_bursts, has_bursts},
    error::FitError,
    estimate::{Design, MedianEstimate, estimate, line_through_all},
    prtt::prtt,
    samples::PrttSamples,
    verdict::{FitWarning, ModelError, POOR_MODEL, warnings},
};
use flowcast_network::loggp::LogGp;
use flowcast_statistics::{
    StatsError,
    observation::{Observation, Observations},
    regression::Line,
    resampling::{Resampler, percentile_interval},
    sample::correlation,
};
use flowcast_units::{Time, TimePerByte};

/// Lower and upper end for each parameter. Both are equal if the spread of samples is unknown or the parameter is at a
/// bound ([`interval`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogGpIntervals {
    /// Interval of `L`, lower end first.
    pub latency: (Time, Time),
    /// Interval of `o`, lower end first.
    pub overhead: (Time, Time),
    /// Interval of `g`, lower end first.
    pub gap: (Time, Time),
    /// Interval of `G`, lower end first.
    pub gap_per_byte: (TimePerByte, TimePerByte),
    /// Correlation of `g` and `G`: a steeper line through the same points starts lower. `None` if one of the two does not
    /// vary.
    pub gap_correlation: Option<f64>,
    /// Correlation of `L` and `o`, whose sum the round trips determine.
    pub latency_correlation: Option<f64>,
}

/// Parameters with their intervals, errors and warnings.
#[derive(Debug, Clone, PartialEq)]
pub struct LogGpFit {
    /// The parameters, each at least 0.
    pub parameters: LogGp,
    /// Bootstrap intervals of the parameters at the level of the options.
    pub intervals: LogGpIntervals,
    /// Options of the fit.
    pub options: FitOptions,
    /// Size from which the gap and not the overhead spaces messages, if this is not the first byte. It may lie between two
    /// sizes.
    pub knee_size: Option<f64>,
    /// Number of points that determine g and G.
    pub points_used: usize,
    /// Number of points left of the knee.
    pub points_excluded: usize,
    /// Number of measured round trips of all points together.
    pub samples: usize,
    /// Deviation of the parameters from the medians.
    pub model_error: ModelError,
    /// Warnings for the reader.
    pub warnings: Vec<FitWarning>,
}

/// Returns the two ends of an interval. `None` if they are equal: with one sample for each point, or for a parameter that
/// is held at 0.
pub fn interval<T: PartialEq>(ends: (T, T)) -> Option<(T, T)> {
    (ends.0 != ends.1).then_some(ends)
}

/// Fits the four parameters.
///
/// ```
/// use flowcast_fit::loggp::{FitOptions, fit_loggp};
/// use flowcast_fit::prtt::{PrttPoint, prtt};
/// use flowcast_fit::samples::PrttSamples;
/// use flowcast_network::loggp::LogGp;
/// use flowcast_units::{Bytes, Time};
///
/// let truth = LogGp::from_nanos([10_000.0, 1000.0, 2000.0, 1.0]);
/// let mut samples = PrttSamples::default();
/// for size in [1, 1000, 10_000].map(Bytes) {
///     for (messages, delay) in [(1, 0.0), (16, 0.0), (16, 1e6)] {
///         let point = PrttPoint::new(messages, Time::from_nanos(delay), size);
///         samples.push(point, prtt(&truth, point));
///     }
/// }
/// let found = fit_loggp(&samples, &FitOptions::default())?.parameters;
/// assert!((found.gap.as_nanos() - 2000.0).abs() < 1e-6);
/// # Ok::<(), flowcast_fit::error::FitError>(())
/// ```
///
/// # Errors
/// Too few points for a parameter, which the error names, or a level outside (0, 1).
pub fn fit_loggp(samples: &PrttSamples, options: &FitOptions) -> Result<LogGpFit, FitError> {
    if has_bursts(samples)
        && let Some(fit) = fit_bursts(samples, options.level)
    {
        return of_bursts(samples, &fit, options);
    }
    let design = Design::new(samples);
    let medians = design.medians();
    let best = estimate(&design, &medians, options)?;
    let parameters = parameters(&best);
    let model_error = model_error(&parameters, &design, &medians)?;
    let replicates = replicates(&design, options);
    let failed = options.replicates - replicates.len();
    Ok(LogGpFit {
        parameters,
        intervals: intervals(&best, &replicates, options.level)?,
        options: *options,
        knee_size: best.knee.map(|knee| knee + 1.0),
        points_used: best.gap_points,
        points_excluded: design.gap_points() - best.gap_points,
        samples: samples.len(),
        model_error,
        warnings: warnings(&design, &best, model_error, failed, options.replicates),
    })
}

/// Converts a fit of bursts of several lengths to the common form.
fn of_bursts(
    samples: &PrttSamples,
    fit: &BurstFit,
    options: &FitOptions,
) -> Result<LogGpFit, FitError> {
    let design = Design::new(samples);
    let model_error = model_error(&fit.parameters, &design, &design.medians())?;
    let values = fit.parameters.as_nanos();
    let [latency, overhead, gap, (low, high)] = std::array::from_fn(|at| {
        (
            (values[at] - fit.half_widths[at]).max(0.0),
            values[at] + fit.half_widths[at],
        )
    });
    let [gap_correlation, latency_correlation] = fit
        .correlations
        .map(|found| Some(found.clamp(-MOST_CORRELATION, MOST_CORRELATION)));
    let knee = (values[1] - values[2]) / values[3] + 1.0;
    Ok(LogGpFit {
        parameters: fit.parameters,
        intervals: LogGpIntervals {
            latency: times(latency),
            overhead: times(overhead),
            gap: times(gap),
            gap_per_byte: (TimePerByte::from_nanos(low), TimePerByte::from_nanos(high)),
            gap_correlation,
            latency_correlation,
        },
        options: FitOptions {
            replicates: 0,
            ..*options
        },
        knee_size: Some(knee).filter(|knee| *knee > 1.0 && knee.is_finite()),
        points_used: design.gap_points().saturating_sub(fit.hidden_points),
        points_excluded: fit.hidden_points,
        samples: samples.len(),
        model_error,
        warnings: if model_error.mean_absolute > POOR_MODEL {
            vec![FitWarning::PoorModel(model_error)]
        } else {
            vec![]
        },
    })
}

/// Returns `g` and `G` from a line through all sizes. A measurement needs them to choose its delay.
///
/// # Errors
/// Fewer than two sizes.
pub fn preliminary_gap(samples: &PrttSamples) -> Result<(Time, TimePerByte), FitError> {
    let line = line_through_all(&Design::new(samples))?;
    Ok((
        Time::from_nanos(line.intercept),
        TimePerByte::from_nanos(line.slope),
    ))
}

fn parameters(estimate: &MedianEstimate) -> LogGp {
    let Line { intercept, slope } = estimate.line;
    LogGp::from_nanos([estimate.latency, estimate.overhead, intercept, slope])
}

/// Largest correlation. Completely correlated parameters would leave nothing to draw for the second of them.
const MOST_CORRELATION: f64 = 0.99;

fn replicates(design: &Design, options: &FitOptions) -> Vec<MedianEstimate> {
    let mut resampler = Resampler::from_seed(options.seed);
    (0..options.replicates)
        .filter_map(|_| estimate(design, &design.resampled_medians(&mut resampler), options).ok())
        .collect()
}

fn intervals(
    best: &MedianEstimate,
    replicates: &[MedianEstimate],
    level: f64,
) -> Result<LogGpIntervals, StatsError> {
    let interval = |value: fn(&MedianEstimate) -> f64| {
        let values: Vec<f64> = replicates.iter().map(value).collect();
        if values.is_empty() {
            Ok((value(best), value(best)))
        } else {
            percentile_interval(&values, level)
        }
    };
    let together = |one: fn(&MedianEstimate) -> f64, other: fn(&MedianEstimate) -> f64| {
        let [one, other] = [one, other].map(|of| replicates.iter().map(of).collect::<Vec<_>>());
        correlation(&one, &other).map(|found| found.clamp(-MOST_CORRELATION, MOST_CORRELATION))
    };
    let (low, high) = interval(|estimate| estimate.line.slope)?;
    Ok(LogGpIntervals {
        gap_correlation: together(
            |estimate| estimate.line.intercept,
            |estimate| estimate.line.slope,
        ),
        latency_correlation: together(|estimate| estimate.latency, |estimate| estimate.overhead),
        latency: times(interval(|estimate| estimate.latency)?),
        overhead: times(interval(|estimate| estimate.overhead)?),
        gap: times(interval(|estimate| estimate.line.intercept)?),
        gap_per_byte: (TimePerByte::from_nanos(low), TimePerByte::from_nanos(high)),
    })
}

fn times((low, high): (f64, f64)) -> (Time, Time) {
    (Time::from_nanos(low), Time::from_nanos(high))
}

fn model_error(
    parameters: &LogGp,
    design: &Design,
    medians: &[f64],
) -> Result<ModelError, StatsError> {
    let measured = design.points().iter().zip(medians);
    let measured = measured.filter(|(_, median)| **median > 0.0);
    let observed = Observations::new(measured.map(|(point, measured)| Observation {
        of: *point,
        predicted: prtt(parameters, *point).as_nanos(),
        measured: *measured,
    }))?;
    let worst = observed.worst();
    Ok(ModelError {
        mean_absolute: observed.mean_absolute(),
        worst: worst.error().abs(),
        worst_point: worst.of,
    })
}
