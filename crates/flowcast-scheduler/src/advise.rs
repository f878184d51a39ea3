//! Which rails messages of a size should use, and what that gains, with the uncertainty of the measured parameters.
//!
//! For each size, N messages sent at once by earliest delivery over all rails are compared with the same over the best
//! rail alone, both by rule E0. The choices are made with the fitted parameters. Their outcome is computed again with
//! parameters drawn from the intervals of the fit (normal, the interval its central part), so that the interval of the
//! gain also holds what is lost by choosing with parameters that are not quite right.

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

/// A rail and how well its parameters are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownRail {
    /// LogGP parameters as they were fitted.
    pub cost: LogGp,
    /// Standard errors of the parameters; zero for those that are known exactly.
    pub error: LogGp,
}

/// A burst of messages, and from which gain on several rails are worth it.
#[derive(Debug, Clone, PartialEq)]
pub struct RailQuestion {
    /// Messages that are sent at once.
    pub messages: usize,
    /// Sizes, in ascending order.
    pub sizes: Vec<Bytes>,
    /// A gain below this is not worth a second rail, 0.02 for 2 %.
    pub worthwhile: f64,
    /// Draws from the intervals of the parameters.
    pub draws: usize,
}

/// Which rails a burst of messages should use, size by size.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Advice for each size of the question, in its order.
    pub sizes: Vec<SizeAdvice>,
    /// From this size on the lower end of the gain's interval is worth while.
    pub together_from: Option<Bytes>,
    /// A single message gains from being split from this size on.
    pub split_from: Option<Bytes>,
}

/// What messages of one size should use.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeAdvice {
    /// Size of each message of the burst.
    pub size: Bytes,
    /// The best rail alone.
    pub alone: RailId,
    /// The last delivery on it.
    pub alone_takes: Time,
    /// The last delivery over all rails.
    pub together_takes: Time,
    /// How many of the messages each rail takes.
    pub taken: Vec<usize>,
    /// Time alone over time together.
    pub gain: f64,
    /// 95 % of the draws are between these.
    pub interval: (f64, f64),
}

impl RailQuestion {
    /// For `messages` at once, each power of two from 1 B to 4 MiB.
    pub fn about(messages: usize) -> RailQuestion {
        let sizes = (0..=22).map(|bits| Bytes(1 << bits)).collect();
        RailQuestion {
            messages,
            sizes,
            worthwhile: 0.02,
            draws: 400,
        }
    }

    /// Answers it.
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

/// The rail whose last delivery is earliest if it takes all messages.
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

/// 1 if nothing takes any time.
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

/// The sum of twelve even draws is close enough to normal within three standard deviations.
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
