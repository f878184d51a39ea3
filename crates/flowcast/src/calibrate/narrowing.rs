//! Search for the parameters with the least cost, for costs without derivatives, such as those of replays.

/// Number of values tried in each round, including the bounds.
const TRIED: u32 = 9;
/// Number of rounds. Each leaves a quarter of the range; all of them leave one part in 512.
const ROUNDS: u32 = 4;

/// Returns the value between two bounds with the least cost, and that cost. A round tries values at equal distances. The
/// next round searches between the neighbours of the best. Among equal costs, the lower value wins.
///
/// # Errors
/// Errors of `cost`.
pub fn least_cost<E>(
    low: f64,
    high: f64,
    mut cost: impl FnMut(f64) -> Result<f64, E>,
) -> Result<(f64, f64), E> {
    let (mut from, mut step) = (low, (high - low) / f64::from(TRIED - 1));
    let mut best = (low, f64::INFINITY);
    for _ in 0..ROUNDS {
        for tried in 0..TRIED {
            let value = (from + step * f64::from(tried)).min(high);
            let now = cost(value)?;
            if now < best.1 {
                best = (value, now);
            }
        }
        from = (best.0 - step).max(low);
        step = ((best.0 + step).min(high) - from) / f64::from(TRIED - 1);
    }
    Ok(best)
}

/// Searches with multiplicative steps. `better` moves `best` by one step and returns whether the step paid off; if not, the
/// factor becomes its square root. The search ends at the factor `smallest`, which is above 1.
pub fn by_smaller_steps<T>(
    mut best: T,
    [mut factor, smallest]: [f64; 2],
    mut better: impl FnMut(&mut T, f64) -> bool,
) -> T {
    while factor > smallest {
        if !better(&mut best, factor) {
            factor = factor.sqrt();
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    #[test]
    fn the_search_ends_at_the_smallest_step() {
        let found = by_smaller_steps(1.0_f64, [2.0, 1.001], |best, factor| {
            let is_better = *best * factor <= 10.0;
            if is_better {
                *best *= factor;
            }
            is_better
        });
        assert!((found / 10.0 - 1.0).abs() < 0.003, "{found}");
    }

    proptest! {
        #[test]
        fn the_minimum_of_a_cost_that_falls_and_then_rises_is_found(truth in -10.0f64..20.0) {
            let (value, cost) = least_cost(-10.0, 20.0, |x| Ok::<_, Infallible>((x - truth).abs())).unwrap();
            prop_assert!((value - truth).abs() <= 30.0 / 256.0, "{value} {truth}");
            prop_assert_eq!(cost, (value - truth).abs());
        }
    }

    #[test]
    fn an_error_ends_the_search() {
        assert_eq!(least_cost(0.0, 1.0, |_| Err("no")), Err("no"));
    }
}
