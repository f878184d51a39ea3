//! Recommendation of rails by message size, with the gain and its uncertainty from the measured parameters.
//!
//! For each size, N messages sent at the same time by earliest delivery over all rails are compared with the same messages
//! on the best single rail, both by rule E0. The choices use the fitted parameters. Their outcome is recomputed with
//! parameters drawn from the intervals of the fit (normal, with the interval as its central part). The interval of the gain
//! therefore includes the loss from choices with inexact parameters.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{
    RailId, RailsError,
    discipline::{Discipline, SchedulerName},
    schedule::{RailMessage, evaluate, simulate},
    split::{SplitRule, pays_from},
    turns::Shares,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time};

/// A rail and the uncertainty of its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownRail {
    /// Fitted LogGP parameters, around which the draws vary.
    pub cost: LogGp,
    /// Standard errors of the parameters; zero for exact ones.
    pub error: LogGp,
}

/// A burst of messages, and the gain that makes several rails worthwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct RailQuestion {
    /// Number of messages that are sent at the same time.
    pub messages: usize,
    /// Sizes, in ascending order.
    pub sizes: Vec<Bytes>,
    /// Smallest gain that is worth a second rail, such as 0.02 for 2 %.
    pub worthwhile: f64,
    /// Number of draws from the intervals of the parameters.
    pub draws: usize,
}

/// Recommended rails for a burst of messages, for each size.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Advice for each size of the question, in its order.
    pub sizes: Vec<SizeAdvice>,
    /// Smallest size from which the lower end of the gain's interval is worthwhile.
    pub together_from: Option<Bytes>,
    /// Smallest size from which a single message gains from being split.
    pub split_from: Option<Bytes>,
}

/// Recommended rails for messages of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeAdvice {
    /// Size of each message of the burst.
    pub size: Bytes,
    /// The best single rail.
    pub alone: RailId,
    /// Time of the last delivery on the best single rail.
    pub alone_takes: Time,
    /// Time of the last delivery over all rails.
    pub together_takes: Time,
    /// Number of messages on each rail, indexed by rail.
    pub taken: Vec<usize>,
    /// Ratio of the time on the best single rail to the time on all rails.
    pub gain: f64,
    /// Interval that contains 95 % of the draws.
    pub interval: (f64, f64),
}

impl RailQuestion {
    /// Creates the question for `messages` messages at the same time, for each power of two from 1 B to 4 MiB.
    pub fn about(messages: usize) -> RailQuestion {
        let sizes = (0..=22).map(|bits| Bytes(1 << bits)).collect();
        RailQuestion {
            messages,
            sizes,
            worthwhile: 0.02,
            draws: 400,
        }
    }

    /// Answers the question.
    ///
    /// # Errors
    /// No rail, or too many.
    pub fn answer(&self, rails: &[KnownRail]) -> Result<Advice, RailsError> {
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let draws: Vec<Vec<LogGp>> = (0..self.draws)
            .map(|_| rails.iter().map(|rail| rail.draw(&mut random)).collect())
            .collect();
        let sizes: Vec<SizeAdvice> = self
            .sizes
            .iter()
            .map(|size| self.about_size(*size, &costs, &draws))
            .collect::<Result<_, _>>()?;
        let together_from = sizes
            .iter()
            .rev()
            .take_while(|advice: &&SizeAdvice| advice.interval.0 >= 1.0 + self.worthwhile)
            .last()
            .map(|advice| advice.size);
        let split_from = pays_from(&costs, SplitRule::default())?;
        Ok(Advice {
            sizes,
            together_from,
            split_from,
        })
    }

    fn about_size(
        &self,
        size: Bytes,
        costs: &[LogGp],
        draws: &[Vec<LogGp>],
    ) -> Result<SizeAdvice, RailsError> {
        let burst = vec![
            RailMessage {
                arrival: Time::ZERO,
                size
            };
            self.messages
        ];
        let name = SchedulerName::new(Discipline::EarliestDelivery);
        let together = simulate(name, costs, Shares::by_bandwidth(costs)?, &burst)?.schedule;
        let (alone, alone_takes) = best_alone(costs, &burst)?;
        let mut gains = Vec::with_capacity(draws.len());
        for drawn in draws {
            let (_, alone) = best_alone(drawn, &burst)?;
            let takes = evaluate(drawn, &burst, together.choices.clone())?.makespan;
            gains.push(ratio(alone, takes));
        }
        gains.sort_by(f64::total_cmp);
        let gain = ratio(alone_takes, together.makespan);
        let at =
            |share: f64| gains.get((share * gains.len().saturating_sub(1) as f64).round() as usize);
        let interval = (
            at(0.025).map_or(gain, |low| low.min(gain)),
            at(0.975).map_or(gain, |high| high.max(gain)),
        );
        let taken = (0..costs.len()).map(|rail| {
            let choices = together.choices.iter();
            choices.filter(|choice| choice.index() == rail).count()
        });
        let taken = taken.collect();
        Ok(SizeAdvice {
            size,
            alone,
            alone_takes,
            together_takes: together.makespan,
            taken,
            gain,
            interval,
        })
    }
}

/// Returns the rail with the earliest last delivery if it takes all messages, and the time of that delivery.
fn best_alone(costs: &[LogGp], burst: &[RailMessage]) -> Result<(RailId, Time), RailsError> {
    let mut best = (RailId(0), Time::from_nanos(f64::INFINITY));
    for rail in (0..costs.len()).map(|rail| RailId(rail as u8)) {
        let takes = evaluate(costs, burst, vec![rail; burst.len()])?.makespan;
        if takes < best.1 {
            best = (rail, takes);
        }
    }
    Ok(best)
}

/// Ratio of two times; 1 if both are zero.
fn ratio(alone: Time, together: Time) -> f64 {
    if together == Time::ZERO {
        1.0
    } else {
        alone.as_nanos() / together.as_nanos()
    }
}

impl KnownRail {
    fn draw(&self, random: &mut impl Rng) -> LogGp {
        let (values, errors) = (self.cost.as_nanos(), self.error.as_nanos());
        LogGp::from_nanos(std::array::from_fn(|at| {
            (values[at] + errors[at] * normal(random)).max(0.0)
        }))
    }
}

/// Draws from an approximate normal distribution. The sum of twelve uniform draws is close enough within three standard
/// deviations.
fn normal(random: &mut impl Rng) -> f64 {
    (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::{super::Rail, *};
    use flowcast_units::TimePerByte;

    fn known(text: &str, share: f64) -> KnownRail {
        let cost = Rail::parse(text).unwrap().cost;
        let error = LogGp {
            latency: cost.latency * share,
            overhead: cost.overhead * share,
            gap: cost.gap * share,
            gap_per_byte: TimePerByte::from_nanos(cost.gap_per_byte.as_nanos() * share),
        };
        KnownRail { cost, error }
    }

    #[test]
    fn two_equal_rails_nearly_halve_the_time_of_many_large_messages() {
        let rail = known("a=1,0.08,6,60us", 0.0);
        let advice = RailQuestion::about(16).answer(&[rail, rail]).unwrap();
        let last = advice.sizes.last().unwrap();
        assert!(
            last.gain > 1.99 && last.interval == (last.gain, last.gain),
            "{last:?}"
        );
        assert_eq!(last.taken, [8, 8]);
        assert!(advice.split_from.is_some());
    }

    #[test]
    fn a_rail_too_slow_to_help_is_not_used_and_uncertainty_widens_the_interval() {
        let rails = |share| {
            [
                known("ib=1.4,0.00103,1.4,2.82us", share),
                known("myri=3.4,0.00409,1.9,24.3us", share),
            ]
        };
        let [sure, unsure] =
            [0.0, 0.05].map(|share| RailQuestion::about(16).answer(&rails(share)).unwrap());
        assert_eq!(sure.sizes[0].taken, [16, 0]);
        assert_eq!((sure.sizes[0].gain, sure.sizes[0].alone), (1.0, RailId(0)));
        let width = |advice: &Advice| {
            advice.sizes.last().unwrap().interval.1 - advice.sizes.last().unwrap().interval.0
        };
        assert!(width(&unsure) > 0.01 && width(&sure) == 0.0);
        assert!(sure.together_from <= unsure.together_from || unsure.together_from.is_none());
        let from = sure.together_from.unwrap();
        assert!(
            sure.sizes
                .iter()
                .filter(|advice| advice.size >= from)
                .all(|advice| advice.taken[1] > 0)
        );
    }
}
