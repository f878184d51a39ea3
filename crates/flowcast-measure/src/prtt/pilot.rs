//! Adjustment of a plan to the time of its measurement: two sizes are measured first and give the duration of a round.

use flowcast_fit::prtt::PrttPoint;
use flowcast_units::{Bytes, Rounded, Time};

use super::{Client, PrttError, PrttPlan, largest};
use crate::{script::send_script, transport::Transport};

/// Number of rounds, including a warm-up, that must fit into the time. It suffices for the interval of a median. If fewer
/// fit, sizes are left out.
const ROUNDS_IN_TIME: f64 = 8.0;
/// Fewest sizes of a plan, enough for a line through them.
const FEWEST_SIZES: usize = 3;
/// Ratio of the time of a measurement to the largest time of its warm-up, which has at least one round.
const WARM_UP_PART: f64 = 4.0;
/// Cost of an exchange as a line over the size of its messages, through the smallest and the largest size.
struct Pilot {
    smallest: Bytes,
    /// Time for the smallest size: a plain round trip and one with all messages.
    base: Time,
    per_byte: f64,
    /// Time for the point with a delay.
    delayed: Time,
}

impl Pilot {
    fn measure<T: Transport>(
        client: &mut Client<'_, T>,
        plan: &PrttPlan,
    ) -> Result<Pilot, PrttError> {
        let (smallest, largest) = (plan.sizes[0], largest(plan));
        let points = [smallest, largest].map(|size| {
            [
                PrttPoint::round_trip(size),
                PrttPoint::new(plan.messages, Time::ZERO, size),
            ]
        });
        let taken = client.round(&points.concat())?;
        let [base, most] = [&taken[..2], &taken[2..]].map(|two| two[0].1 + two[1].1);
        let beyond = (largest.0 - smallest.0) as f64;
        Ok(Pilot {
            smallest,
            base,
            per_byte: (most - base).as_nanos().max(0.0) / beyond,
            // A chosen delay is about the gap of half the largest size.
            delayed: base
                + plan
                    .delay
                    .map_or(most * 0.5, |delay| delay * f64::from(plan.messages - 1)),
        })
    }

    fn round(&self, sizes: &[Bytes]) -> Time {
        let beyond: f64 = sizes
            .iter()
            .map(|size| (size.0 - self.smallest.0) as f64)
            .sum();
        self.base * sizes.len() as f64 + Time::from_nanos(beyond * self.per_byte) + self.delayed
    }
}

/// Returns the plan with as many of its sizes and as much warm-up as its time allows.
pub(crate) fn fitted_into_time<T: Transport>(
    client: &mut Client<'_, T>,
    plan: &PrttPlan,
) -> Result<PrttPlan, PrttError> {
    let pilot = Pilot::measure(client, plan)?;
    let all = plan.sizes.len();
    let count = (FEWEST_SIZES..=all)
        .rev()
        .find(|count| pilot.round(&spread(&plan.sizes, *count)) * ROUNDS_IN_TIME <= plan.max_time)
        .unwrap_or(FEWEST_SIZES.min(all));
    let sizes = spread(&plan.sizes, count);
    let round = pilot.round(&sizes);
    if round * 2.0 > plan.max_time {
        send_script(client.transport, &[])?;
        let expected = format!(
            "{} or more: a round of {count} sizes up to {} takes about {}, and the warm-up needs one more",
            Rounded(round * 2.0),
            largest(plan),
            Rounded(round)
        );
        return Err(PrttError::Plan {
            field: "max-time",
            found: plan.max_time.to_string(),
            expected,
        });
    }
    let rounds = plan.max_time.as_nanos() / round.as_nanos().max(1.0);
    let warm_up_rounds = plan
        .warm_up_rounds
        .min((rounds / WARM_UP_PART).max(1.0) as u32);
    Ok(PrttPlan {
        sizes,
        warm_up_rounds,
        ..plan.clone()
    })
}

/// Returns `count` of the sizes, at equal distances in their list, including the first and the last.
fn spread(sizes: &[Bytes], count: usize) -> Vec<Bytes> {
    let last = (count - 1).max(1);
    (0..count)
        .map(|at| sizes[at * (sizes.len() - 1) / last])
        .collect()
}
