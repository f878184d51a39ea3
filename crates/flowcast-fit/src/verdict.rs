//! Problems of a fit: errors if there is no result, and warnings about a result.

use super::{
    estimate::{Design, MedianEstimate},
    prtt::PrttPoint,
};
use flowcast_units::{Time, TimePerByte};
use thiserror::Error;

/// Minimum number of samples of a point that shows its spread.
const FEW_SAMPLES: usize = 6;
/// Mean relative error of the medians above which the model deserves a warning.
pub(super) const POOR_MODEL: f64 = 0.1;
/// Multiple of the overhead up to which a spacing shows only the overhead.
const HARDLY_ABOVE: f64 = 1.02;
/// Multiple of the shortest spacing above which an overhead contradicts the model.
const CLEARLY_ABOVE: f64 = 1.1;
/// Largest absolute value, in nanoseconds, that rounding of sums may give for a parameter that is 0.
const ROUNDING: f64 = 1e-6;

/// Warning about a fit.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FitWarning {
    /// A negative parameter that is held at 0.
    #[error("{parameter} came out as {found} and is held at 0")]
    Negative {
        /// Symbol of the parameter, such as `L`.
        parameter: &'static str,
        /// Value before it was held at 0, as text with its unit.
        found: String,
    },
    /// Two overheads as long as the sender's are longer than the whole time of a message: receiving costs less than
    /// sending, or the message travels while its sender is still busy. LogGP has one overhead for both sides. It is lowered
    /// until the total is as long as measured, and L is held at 0.
    #[error(
        "L came out as {latency} and is held at 0: sending costs {found}, more than half of the one-way time; o is lowered \
         to {lowered}, which keeps the measured round trips"
    )]
    OverheadBeyondOneWay {
        /// The estimated overhead of the sender.
        found: Time,
        /// The overhead of the fit.
        lowered: Time,
        /// L before it was held at 0; negative.
        latency: Time,
    },
    /// The overhead is based on a delay of less than twice the gap, which disturbs it.
    #[error("o was estimated from a delay of less than twice the gap")]
    ShortDelay,
    /// Sends in a row follow each other faster than one overhead, which LogGP does not allow. The overhead was measured
    /// with pauses and only applies to messages on their own.
    #[error(
        "messages in a row start {spacing} apart, less than the overhead of {overhead} of a message after a pause: o applies \
         to single messages"
    )]
    OverheadAboveSpacing {
        /// The overhead of the fit.
        overhead: Time,
        /// The shortest time between two consecutive sends.
        spacing: Time,
    },
    /// The spacing of messages hardly exceeds the overhead at any size, so the overhead hides the gap. The fitted g and G
    /// are only bounds.
    #[error(
        "g and G are only a bound: messages start at most {spacing} apart, and the overhead of {overhead} hides the gap; \
         measure larger sizes"
    )]
    GapHidden {
        /// The overhead of the fit.
        overhead: Time,
        /// The longest time between two consecutive sends.
        spacing: Time,
    },
    /// Number of points that are left out because their size has no plain round trip.
    #[error("{0} points have no samples of n = 1 at their size and are ignored")]
    Unpaired(usize),
    /// Every point has only one sample, so the spread of samples is unknown.
    #[error("each point has only one sample, so there are no intervals: measure longer")]
    OneSample,
    /// A point has few samples, so the intervals are less reliable than they seem.
    #[error("a point has fewer than {FEW_SAMPLES} samples ({0}): the intervals are too narrow")]
    FewSamples(usize),
    /// Some bootstrap replicates gave no parameters and are left out of the intervals.
    #[error(
        "{failed} of {of} bootstrap replicates gave no parameters: the intervals are too narrow"
    )]
    FailedReplicates {
        /// Number of replicates without parameters.
        failed: usize,
        /// Number of all replicates.
        of: usize,
    },
    /// The parameters reproduce the medians badly: the network does not follow LogGP over these sizes.
    #[error(
        "the parameters miss the medians by {:.0} % on average: this network does not follow LogGP over these sizes",
        .0.mean_absolute * 100.0
    )]
    PoorModel(ModelError),
}

/// Deviation of the parameters from the medians to which they were fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelError {
    /// Mean of the absolute relative errors over all points.
    pub mean_absolute: f64,
    /// Largest absolute relative error.
    pub worst: f64,
    /// Point with the largest error.
    pub worst_point: PrttPoint,
}

/// Returns the warnings for the reader of a fit. `failed` of all `replicates` gave no parameters.
pub(super) fn warnings(
    design: &Design,
    best: &MedianEstimate,
    error: ModelError,
    failed: usize,
    replicates: usize,
) -> Vec<FitWarning> {
    let values = [
        (
            "g",
            best.free_line.intercept,
            rounded(best.free_line.intercept).to_string(),
        ),
        ("G", best.free_line.slope, per_byte(best.free_line.slope)),
        (
            "o",
            best.free_overhead,
            rounded(best.free_overhead).to_string(),
        ),
    ];
    let negative = values
        .into_iter()
        .filter(|(_, value, _)| *value < -ROUNDING);
    let mut warnings: Vec<FitWarning> = negative
        .map(|(parameter, _, found)| FitWarning::Negative { parameter, found })
        .collect();
    let fewest = design.fewest_samples();
    let (overhead, spacing) = (rounded(best.free_overhead), rounded(best.shortest_spacing));
    let (lowered, latency) = (rounded(best.overhead), rounded(best.free_latency));
    let faster_than_alone = best.free_overhead > CLEARLY_ABOVE * best.shortest_spacing;
    let longest = rounded(best.longest_spacing);
    let others = [
        (
            best.free_latency < -ROUNDING,
            FitWarning::OverheadBeyondOneWay {
                found: overhead,
                lowered,
                latency,
            },
        ),
        (
            faster_than_alone,
            FitWarning::OverheadAboveSpacing { overhead, spacing },
        ),
        (
            !faster_than_alone && best.longest_spacing <= HARDLY_ABOVE * best.free_overhead,
            FitWarning::GapHidden {
                overhead,
                spacing: longest,
            },
        ),
        (best.short_delay, FitWarning::ShortDelay),
        (design.unpaired > 0, FitWarning::Unpaired(design.unpaired)),
        (design.most_samples() == 1, FitWarning::OneSample),
        (
            fewest < FEW_SAMPLES && design.most_samples() > 1,
            FitWarning::FewSamples(fewest),
        ),
        (
            failed > 0,
            FitWarning::FailedReplicates {
                failed,
                of: replicates,
            },
        ),
        (
            error.mean_absolute > POOR_MODEL,
            FitWarning::PoorModel(error),
        ),
    ];
    warnings.extend(
        others
            .into_iter()
            .filter(|(holds, _)| *holds)
            .map(|(_, warning)| warning),
    );
    warnings
}

fn rounded(nanos: f64) -> Time {
    Time::from_nanos(four_digits(nanos))
}

fn per_byte(nanos: f64) -> String {
    TimePerByte::from_nanos(four_digits(nanos)).to_string()
}

fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}")
        .parse()
        .expect("a printed number is a number")
}
