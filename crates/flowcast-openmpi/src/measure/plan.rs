//! Selection of the round trips that fit into the available time (Lichei, section 3.4, with fewer points).
//!
//! Trains of [`TRAIN`] messages at two sizes determine `g` and `G`. Single messages determine the latency. A train of the
//! smallest size with a pause determines `o`. The time limits the largest size: a rail of 10 Mbit/s carries 16 KiB in 13 ms.

use std::time::Duration;

use flowcast_fit::prtt::{PrttPoint, prtt};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time};

use super::wire::HEADER;

/// Number of messages before an answer.
pub(super) const TRAIN: u32 = 8;
/// Largest size that is tried, in bytes; larger messages are rendezvous messages.
const LARGEST: u64 = 32 * 1024;
/// Lower limit of the largest size, in bytes. Below this a train ends before a busy machine's next time slice, and inside
/// the bucket of a traffic shaper.
const SMALLEST_LARGEST: u64 = 4096;
const MOST_REPETITIONS: u32 = 12;
/// Number of repetitions that must fit into the time; the largest size is halved until they do. Two long trains are better
/// than many short ones, because disturbances last milliseconds.
const FEWEST_REPETITIONS: f64 = 2.0;

/// Round trips to be measured on a rail.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// Points, each measured once in a repetition.
    pub points: Vec<PrttPoint>,
    pub repetitions: u32,
}

/// Plans the measurement of a rail with approximately the parameters `rough`.
pub(super) fn plan(rough: &LogGp, time: Duration) -> Plan {
    let time = Time::from_seconds(time.as_secs_f64());
    let mut largest = LARGEST;
    while largest > SMALLEST_LARGEST
        && took(rough, &points(rough, largest)) * FEWEST_REPETITIONS > time
    {
        largest /= 2;
    }
    let points = points(rough, largest);
    let fitting = time.as_nanos() / took(rough, &points).as_nanos().max(1.0);
    Plan {
        repetitions: (fitting as u32).clamp(1, MOST_REPETITIONS),
        points,
    }
}

fn took(rough: &LogGp, points: &[PrttPoint]) -> Time {
    points.iter().map(|point| prtt(rough, *point)).sum()
}

fn points(rough: &LogGp, largest: u64) -> Vec<PrttPoint> {
    let smallest = Bytes(HEADER as u64);
    let sizes = [Bytes(largest / 4), Bytes(largest)];
    let pause = rough.spacing(smallest) * 4.0 + Time::from_micros(20.0);
    let mut points = vec![
        PrttPoint::round_trip(smallest),
        PrttPoint::new(TRAIN, pause, smallest),
    ];
    points.extend(sizes.iter().map(|size| PrttPoint::round_trip(*size)));
    points.extend(
        sizes
            .iter()
            .map(|size| PrttPoint::new(TRAIN, Time::ZERO, *size)),
    );
    points
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use flowcast_fit::{
        loggp::{FitOptions, fit_loggp},
        samples::PrttSamples,
    };
    use flowcast_units::TimePerByte;

    /// A rail with this rate, in Mbit/s.
    pub(in crate::measure) fn rail(megabits: f64) -> LogGp {
        LogGp {
            latency: Time::from_micros(20.0),
            overhead: Time::from_micros(1.0),
            gap: Time::from_micros(3.0),
            gap_per_byte: TimePerByte::from_nanos(8e3 / megabits),
        }
    }

    #[test]
    fn a_plan_fits_into_its_time_on_slow_and_fast_rails() {
        for megabits in [10.0, 100.0, 1000.0, 100_000.0] {
            let plan = plan(&rail(megabits), Duration::from_millis(90));
            let all = took(&rail(megabits), &plan.points) * f64::from(plan.repetitions);
            assert!(all.as_micros() <= 90_000.0, "{megabits}: {all}");
            assert!(
                plan.repetitions >= 1 && (megabits < 100.0 || plan.repetitions >= 2),
                "{megabits}"
            );
        }
    }

    #[test]
    fn what_a_plan_measures_is_enough_for_a_fit() {
        let truth = rail(100.0);
        let mut samples = PrttSamples::default();
        for point in plan(&truth, Duration::from_millis(90)).points {
            samples.push(point, prtt(&truth, point));
        }
        let options = FitOptions {
            replicates: 0,
            ..FitOptions::default()
        };
        let found = fit_loggp(&samples, &options).unwrap().parameters;
        for (found, truth) in [
            (found.gap.as_nanos(), truth.gap.as_nanos()),
            (found.gap_per_byte.as_nanos(), truth.gap_per_byte.as_nanos()),
            (found.overhead.as_nanos(), truth.overhead.as_nanos()),
            (found.latency.as_nanos(), truth.latency.as_nanos()),
        ] {
            assert!((found / truth - 1.0).abs() < 1e-6, "{found} {truth}");
        }
    }
}
