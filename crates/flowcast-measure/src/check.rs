//! Check that a network still matches its file: a few round trips are compared with the file's predictions.
//!
//! A check has four points: a message of one byte and a large one, each alone and [`CheckPlan::messages`] times in a row.
//! LogGP predicts their times (`PRTT`, Lichei, equation 3.2.2.3). The interval of a prediction comes from networks drawn
//! from the file's intervals, and is widened by the irrelevant difference. Each round measures every point once, in a new
//! order, until the sequential test ([`flowcast_statistics::stability`]) has a verdict on each point or the time is over.

use std::collections::BTreeMap;

use flowcast_fit::prtt::{PrttPoint, prtt};
use flowcast_network::{
    loggp::LogGp,
    network::{Network, NetworkError},
};
use flowcast_statistics::{
    StatsError,
    resampling::{Resampler, percentile_interval},
    sample::median,
    stability::{StabilityVerdict, StillHolds},
};
use flowcast_units::{Bytes, Time};
use thiserror::Error;

use crate::{
    prtt::{Client, MAX_SIZE, PrttError, require, require_level, require_messages, require_time},
    script::{greet, send_script},
    transport::Transport,
};

/// Number of networks drawn for the interval of a prediction.
const DRAWS: usize = 200;
/// Rounds that warm up the path.
const WARM_UPS: u32 = 3;

/// Error of a check.
#[derive(Debug, Error)]
pub enum CheckError {
    /// Invalid plan, or failure of the measurement of round trips.
    #[error(transparent)]
    Measure(#[from] PrttError),
    /// Contradiction between a value and its interval in the file.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A point without a measurement, which therefore has no median.
    #[error(transparent)]
    Stats(#[from] StatsError),
}

/// Plan of a check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckPlan {
    /// Large size; the small size is one byte.
    pub size: Bytes,
    /// Number of messages in a row.
    pub messages: u32,
    /// Time limit, after which the check ends even without a verdict.
    pub max_time: Time,
    /// Probability of a false alarm if everything is as predicted.
    pub level: f64,
    /// Irrelevant difference, as a share of the predicted time.
    pub least: f64,
    /// Seed for the order of the points.
    pub seed: u64,
}

impl Default for CheckPlan {
    /// Sizes of 1 byte and 64 KiB, 16 messages in a row, a time limit of 1.5 s, a false alarm in 1 of 100 checks, and an
    /// irrelevant difference of 10 %.
    fn default() -> CheckPlan {
        CheckPlan {
            size: Bytes(1 << 16),
            messages: 16,
            max_time: Time::from_seconds(1.5),
            level: 0.01,
            least: 0.1,
            seed: 1,
        }
    }
}

/// Prediction and measurement of one point.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPoint {
    /// Number, size and delay of the messages in a round trip.
    pub point: PrttPoint,
    /// Predicted time, and lower and upper end of its interval.
    pub predicted: (Time, Time, Time),
    /// Median of the measured times.
    pub found: Time,
    /// Number of measured round trips.
    pub count: u32,
    /// Verdict of the test.
    pub verdict: StabilityVerdict,
}

/// Checks a network against its file, as the measuring end of a connection.
///
/// # Errors
/// An invalid plan, a failed connection, or a file whose intervals contradict its values.
pub fn check(
    transport: &mut impl Transport,
    network: &Network,
    plan: &CheckPlan,
) -> Result<Vec<CheckedPoint>, CheckError> {
    verify(plan)?;
    let points = [Bytes(1), plan.size].into_iter().flat_map(|size| {
        [
            PrttPoint::round_trip(size),
            PrttPoint::new(plan.messages, Time::ZERO, size),
        ]
    });
    let predicted = predictions(network, &points.collect::<Vec<_>>(), plan)?;
    let start = transport.now();
    greet(transport)?;
    let mut client = Client::new(transport, plan.size);
    let mut order: Vec<PrttPoint> = predicted.keys().copied().collect();
    let mut chance = Resampler::from_seed(plan.seed);
    for _ in 0..WARM_UPS {
        client.round(&order)?;
    }
    // Each point can raise an alarm.
    let level = plan.level / order.len() as f64;
    let mut tests: BTreeMap<PrttPoint, (StillHolds, Vec<f64>)> = predicted
        .iter()
        .map(|(point, (_, low, high))| {
            let test = StillHolds::new(low.as_nanos(), high.as_nanos(), level);
            (*point, (test, Vec::new()))
        })
        .collect();
    while client.transport.now() - start < plan.max_time {
        chance.shuffle(&mut order);
        for (point, time) in client.round(&order)? {
            let (test, times) = tests
                .get_mut(&point)
                .expect("only points with a test are measured");
            test.observe(time.as_nanos());
            times.push(time.as_nanos());
        }
        if tests
            .values()
            .all(|(test, _)| test.verdict() != StabilityVerdict::Open)
        {
            break;
        }
    }
    send_script(client.transport, &[])?;
    tests
        .into_iter()
        .map(
            |(point, (test, times)): (PrttPoint, (StillHolds, Vec<f64>))| {
                let found = if times.is_empty() {
                    f64::NAN
                } else {
                    median(&times)?
                };
                let (count, verdict) = (test.count(), test.verdict());
                Ok(CheckedPoint {
                    point,
                    predicted: predicted[&point],
                    found: Time::from_nanos(found),
                    count,
                    verdict,
                })
            },
        )
        .collect()
}

fn verify(plan: &CheckPlan) -> Result<(), PrttError> {
    require_level(plan.level)?;
    require(
        (0.0..1.0).contains(&plan.least),
        "least",
        plan.least,
        "a fraction of at least 0 and below 1",
    )?;
    require(
        (Bytes(2)..=MAX_SIZE).contains(&plan.size),
        "size",
        plan.size,
        "a size from 2 B to 64 MiB",
    )?;
    require_messages(plan.messages)?;
    require_time("max-time", plan.max_time)
}

/// Returns the predicted time for each point, with the lower and upper end of its interval.
fn predictions(
    network: &Network,
    points: &[PrttPoint],
    plan: &CheckPlan,
) -> Result<BTreeMap<PrttPoint, (Time, Time, Time)>, CheckError> {
    let drawn = network.drawn(&|field| field.starts_with("nic."), DRAWS, plan.seed)?;
    let drawn: Vec<LogGp> = drawn
        .iter()
        .map(|network| LogGp::from(&network.nic))
        .collect();
    let own = LogGp::from(&network.nic);
    points
        .iter()
        .map(|point: &PrttPoint| {
            let middle = prtt(&own, *point);
            let all: Vec<f64> = drawn
                .iter()
                .map(|drawn| prtt(drawn, *point).as_nanos())
                .collect();
            let (low, high) = if all.is_empty() {
                (middle.as_nanos(), middle.as_nanos())
            } else {
                percentile_interval(&all, 0.95)?
            };
            let ends = (
                Time::from_nanos(low * (1.0 - plan.least)),
                Time::from_nanos(high * (1.0 + plan.least)),
            );
            Ok((*point, (middle, ends.0, ends.1)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{prtt::answer, virtual_network::connect};
    use flowcast_network::network::{MessageRule, Nic, SingleFlowRate};
    use flowcast_units::TimePerByte;

    fn loggp(latency: f64, gap_per_byte: f64) -> LogGp {
        LogGp {
            latency: Time::from_micros(latency),
            overhead: Time::from_micros(2.0),
            gap: Time::from_micros(4.0),
            gap_per_byte: TimePerByte::from_nanos(gap_per_byte),
        }
    }

    fn file(costs: LogGp) -> Network {
        let nic = Nic {
            overhead: costs.overhead,
            gap: costs.gap,
            ..Nic::new(
                costs.latency,
                SingleFlowRate::GapPerByte(costs.gap_per_byte),
            )
        };
        Network::new("n", MessageRule::Loggops, nic)
    }

    /// Returns the verdicts on one byte and on 64 KiB, each once and 16 times in a row, over a network with the costs `now`.
    fn verdicts(now: LogGp) -> Vec<StabilityVerdict> {
        let (mut client, mut server) = connect(now);
        std::thread::scope(|scope| {
            scope.spawn(move || answer(&mut server));
            let checked =
                check(&mut client, &file(loggp(20.0, 1.0)), &CheckPlan::default()).unwrap();
            drop(client);
            let sizes: Vec<(u32, u64)> = checked
                .iter()
                .map(|one| (one.point.messages, one.point.size.0))
                .collect();
            assert_eq!(sizes, [(1, 1), (1, 65_536), (16, 1), (16, 65_536)]);
            assert!(checked.iter().all(|one| one.count < 20), "{checked:?}");
            checked.iter().map(|one| one.verdict).collect()
        })
    }

    #[test]
    fn an_unchanged_network_passes_and_a_change_fails_the_points_that_depend_on_it() {
        use StabilityVerdict::{Above, Below, Between};
        assert_eq!(verdicts(loggp(20.0, 1.0)), [Between; 4]);
        assert_eq!(
            verdicts(loggp(21.0, 1.03)),
            [Between; 4],
            "5 % of the latency have no effect"
        );
        assert_eq!(verdicts(loggp(40.0, 1.0)), [Above, Above, Above, Between]);
        assert_eq!(verdicts(loggp(20.0, 2.0)), [Between, Above, Between, Above]);
        assert_eq!(verdicts(loggp(20.0, 0.5)), [Between, Below, Between, Below]);
    }

    #[test]
    fn an_invalid_plan_is_refused() {
        let (mut client, _server) = connect(loggp(20.0, 1.0));
        let mut refused = |plan| {
            check(&mut client, &file(loggp(20.0, 1.0)), &plan)
                .unwrap_err()
                .to_string()
        };
        let plan = CheckPlan {
            level: 1.5,
            ..CheckPlan::default()
        };
        assert_eq!(
            refused(plan),
            "level: found 1.5, expected a probability between 0 and 1"
        );
        assert!(
            refused(CheckPlan {
                size: Bytes(1),
                ..CheckPlan::default()
            })
            .starts_with("size: found 1B")
        );
        assert!(
            refused(CheckPlan {
                messages: 9999,
                ..CheckPlan::default()
            })
            .starts_with("messages: found 9999")
        );
    }
}
