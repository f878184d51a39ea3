//! What can be wrong with a fit: errors where there is no result, warnings where there is one.

use super::{
    estimate::{Design, MedianEstimate},
    prtt::PrttPoint,
};
use flowcast_units::{Time, TimePerByte};
use thiserror::Error;

/// Fewer samples than this in a point tell nothing about its spread.
const FEW_SAMPLES: usize = 6;
/// A model that misses the medians by more than this share on average is worth a warning.
pub(super) const POOR_MODEL: f64 = 0.1;
/// A spacing up to this multiple of the overhead shows nothing but the overhead.
const HARDLY_ABOVE: f64 = 1.02;
/// An overhead above this multiple of the shortest spacing contradicts the model.
const CLEARLY_ABOVE: f64 = 1.1;
/// A parameter that is 0 comes out of rounded sums as this much or less (nanoseconds).
const ROUNDING: f64 = 1e-6;

/// Something about a fit that its reader should know.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FitWarning {
    /// A parameter came out negative and was held at 0.
    #[error("{parameter} came out as {found} and is held at 0")]
    Negative {
        /// Symbol of the parameter, such as `L`.
        parameter: &'static str,
        /// The value as it came out.
        found: String,
    },
    /// Two overheads as long as the sender's are longer than the whole way of a message: receiving costs less than
    /// sending, or the message travels while its sender is still busy. LogGP has one overhead for both sides, so it is
    /// lowered until the way is as long as measured, and L is held at 0.
    #[error(
        "L came out as {latency} and is held at 0: sending costs {found}, more than half of a message's way; o is lowered to \
         {lowered}, which keeps the round trips as measured"
    )]
    OverheadBeyondOneWay {
        /// The sender's overhead as it came out.
        found: Time,
        /// The overhead of the fit.
        lowered: Time,
        /// L as it came out.
        latency: Time,
    },
    /// The overhead rests on a delay less than twice the gap, which disturbs it.
    #[error("o rests on a delay of less than twice the gap")]
    ShortDelay,
    /// Sends in a row follow each other faster than one overhead, which LogGP does not allow: the overhead, measured
    /// with pauses, holds for messages on their own.
    #[error(
        "messages in a row start {spacing} apart, faster than the overhead of {overhead} that one costs after a pause: o holds \
         for messages on their own"
    )]
    OverheadAboveSpacing {
        /// The overhead of the fit.
        overhead: Time,
        /// The shortest time between two sends in a row.
        spacing: Time,
    },
    /// At no size are messages spaced by clearly more than the overhead, which therefore hides the gap: what was fitted
    /// as g and G is only a bound.
    #[error(
        "g and G are only a bound: messages start at most {spacing} apart, no more than the overhead of {overhead} that hides \
         the gap; measure larger sizes"
    )]
    GapHidden {
        /// The overhead of the fit.
        overhead: Time,
        /// The longest time between two sends in a row.
        spacing: Time,
    },
    /// Points left out because their size has no plain round trip.
    #[error("{0} points have no n = 1 at their size and are not used")]
    Unpaired(usize),
    /// Every point has one sample: nothing says how samples differ.
    #[error("each point has one sample, as of one round, which gives no intervals: measure longer")]
    OneSample,
    /// Points with few samples: intervals say less than they seem to.
    #[error("a point has fewer than {FEW_SAMPLES} samples ({0}): the intervals are too narrow")]
    FewSamples(usize),
    /// Bootstrap replicates that gave no parameters and are left out of the intervals.
    #[error(
        "{failed} of {of} bootstrap replicates gave no parameters: the intervals are too narrow"
    )]
    FailedReplicates {
        /// Number of replicates that gave none.
        failed: usize,
        /// Out of how many.
        of: usize,
    },
    /// The parameters reproduce the medians badly: the network does not follow LogGP over these sizes.
    #[error(
        "the parameters miss the medians by {:.0} % on average: this network does not follow LogGP over these sizes",
        .0.mean_absolute * 100.0
    )]
    PoorModel(ModelError),
}

/// How well the parameters give back the medians they were fitted to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelError {
    /// Mean of the absolute relative errors over all points.
    pub mean_absolute: f64,
    /// The largest of them.
    pub worst: f64,
    /// Point with the largest error.
    pub worst_point: PrttPoint,
}

/// What a reader of the fit should know; `failed` of all `replicates` had no fit.
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
