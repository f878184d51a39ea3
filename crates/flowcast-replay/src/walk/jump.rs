//! Loops whose iterations are maxima of sums: walked until they repeat a pattern, then the remaining iterations are added in
//! one step.
//!
//! Let `x` be the times of all ranks at the boundary of an iteration, relative to a time that the iteration itself does not
//! depend on, and `f` one iteration, or `p` of them. Each component of `f` is a maximum of sums of components of `x` and
//! constants: it is convex, it never decreases when `x` increases, and `f(x + c) = f(x) + c` for the same `c` in all
//! components.
//!
//! - If `f(x - c) = x`, then `f(x) = x + c`, and so on forever: no check is needed.
//! - If `f(x - 2d) = x - d` and `f(x - d) = x` for steps `d` that differ between ranks, consider
//!   `g(t) = f(x + td) - (x + (t+1)d)`. It is convex in each component and 0 at `t = -2` and `t = -1`. After these points it
//!   is therefore never negative, and once it has left 0 it does not return. So `g(m) = 0`, which one walk of `f` shows,
//!   makes all iterations up to the one that starts at `x + md` exact; bisection finds the largest such `m`. `g` leaves 0
//!   where a rank that gains on another in each iteration finally overtakes it.

use std::collections::VecDeque;

use super::grid::LaneGrid;

/// Maximum number of iterations of a pattern.
const LONGEST_PERIOD: usize = 64;

/// Maximum number of values kept of earlier iterations.
const MOST_KEPT: usize = 1 << 26;

/// Minimum number of patterns for which a jump is worth the cost of finding it.
const WORTH: u64 = 8;

/// Times of all ranks at the start of an iteration, in ticks: the earliest time, and the distance of each rank from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Boundary {
    earliest: i128,
    /// Distance of each time from the earliest one; the smallest is 0.
    pub above: Vec<i64>,
}

/// Reasons why a loop was not walked to its end.
#[derive(Debug, PartialEq)]
pub(super) enum JumpStop<E> {
    /// The times of the ranks differ too much to be exact.
    Unreachable,
    /// An iteration failed, which ends the loop.
    Failed(E),
}

/// Counts of a loop's iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Walked {
    /// Iterations that were walked, including those that only checked a jump.
    pub walked: u64,
    /// Iterations that were added without a walk.
    pub jumped: u64,
}

impl Boundary {
    /// A boundary with `times` times, all 0.
    pub(super) fn new(times: usize) -> Boundary {
        Boundary {
            earliest: 0,
            above: vec![0; times],
        }
    }

    /// Restores the smallest distance to 0 after a change of times.
    pub(super) fn settle(&mut self) {
        let least = self.above.iter().copied().min().unwrap_or(0);
        self.earliest += i128::from(least);
        self.above.iter_mut().for_each(|time| *time -= least);
    }

    /// Time since the start, in ticks.
    pub(super) fn time(&self, index: usize) -> i128 {
        self.earliest + i128::from(self.above[index])
    }

    /// Difference from the same time in `before`.
    fn step(&self, before: &Boundary, index: usize) -> i128 {
        self.time(index) - before.time(index)
    }

    /// The boundary after `times` such steps; `None` if its times differ too much.
    fn on(&self, steps: &[i128], times: u64) -> Option<Boundary> {
        let ahead: Option<Vec<i128>> = (0..steps.len())
            .map(|index| {
                self.time(index)
                    .checked_add(steps[index].checked_mul(times.into())?)
            })
            .collect();
        let ahead = ahead?;
        let earliest = ahead.iter().copied().min().unwrap_or(0);
        let above = ahead
            .into_iter()
            .map(|time| Some(time - earliest).filter(|time| LaneGrid::reaches(*time)));
        Some(Boundary {
            earliest,
            above: above
                .map(|time| time.map(|time| time as i64))
                .collect::<Option<_>>()?,
        })
    }
}

/// Walks `count` iterations, or only as many of them as determine the result.
///
/// # Errors
/// Errors of `body`, which walks one iteration.
pub(super) fn repeat<E>(
    count: u64,
    now: &mut Boundary,
    mut body: impl FnMut(&mut Boundary) -> Result<(), JumpStop<E>>,
) -> Result<Walked, JumpStop<E>> {
    let mut past = PastStarts::new(now);
    let mut walked = Walked::default();
    let (mut done, mut rest, mut timeout) = (0, 0, 1);
    while done < count {
        body(now)?;
        done += 1;
        walked.walked += 1;
        if done == count {
            break;
        }
        past.push(now);
        rest -= u64::min(rest, 1);
        let Some(pattern) = past.pattern(rest == 0) else {
            continue;
        };
        let most = (count - done) / pattern.period as u64;
        let jumped = match pattern.is_even {
            true => most,
            false => farthest(most, |times| {
                pattern.holds(now, times, &mut body, &mut walked)
            })?,
        };
        if jumped < WORTH.min(most) {
            (rest, timeout) = (timeout, timeout * 2);
        }
        if let Some(ahead) = now.on(&pattern.steps, jumped).filter(|_| jumped > 0) {
            *now = ahead;
            done += jumped * pattern.period as u64;
            walked.jumped += jumped * pattern.period as u64;
            past = PastStarts::new(now);
        }
    }
    Ok(walked)
}

/// The largest number from 0 to `most` for which `holds` is true. It must be true for all smaller numbers as well.
fn farthest<E>(most: u64, mut holds: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    if most == 0 || holds(most)? {
        return Ok(most);
    }
    let (mut known, mut beyond) = (0, most);
    let mut next = 1;
    while next < beyond {
        if holds(next)? {
            known = next
        } else {
            beyond = next
        }
        next = if beyond == most { next * 2 } else { beyond };
    }
    while beyond - known > 1 {
        let middle = known + (beyond - known) / 2;
        if holds(middle)? {
            known = middle
        } else {
            beyond = middle
        }
    }
    Ok(known)
}

/// A pattern of iterations that advance each time by its own step.
struct LoopPattern {
    period: usize,
    /// Step of each time, in ticks.
    steps: Vec<i128>,
    /// `true` if all steps are equal.
    is_even: bool,
}

impl LoopPattern {
    /// `true` if the iterations repeat the same steps for this number of patterns.
    fn holds<E>(
        &self,
        now: &Boundary,
        times: u64,
        body: &mut impl FnMut(&mut Boundary) -> Result<(), JumpStop<E>>,
        walked: &mut Walked,
    ) -> Result<bool, JumpStop<E>> {
        let (Some(mut last), Some(expected)) =
            (now.on(&self.steps, times - 1), now.on(&self.steps, times))
        else {
            return Ok(false);
        };
        for _ in 0..self.period {
            walked.walked += 1;
            match body(&mut last) {
                Err(JumpStop::Unreachable) => return Ok(false),
                walked => walked?,
            }
        }
        Ok(last == expected)
    }
}

/// Starts of the last iterations, the newest first.
struct PastStarts {
    boundaries: VecDeque<Boundary>,
    most: usize,
    /// Indices of times that most recently disproved a period, indexed by period: for even and for uneven steps.
    witnesses: Vec<(usize, usize)>,
}

impl PastStarts {
    fn new(now: &Boundary) -> PastStarts {
        let longest = (MOST_KEPT / now.above.len().max(1) / 2).clamp(1, LONGEST_PERIOD);
        PastStarts {
            boundaries: VecDeque::from([now.clone()]),
            most: 2 * longest + 1,
            witnesses: vec![(0, 0); longest + 1],
        }
    }

    fn push(&mut self, now: &Boundary) {
        self.boundaries.truncate(self.most - 1);
        self.boundaries.push_front(now.clone());
    }

    /// The shortest pattern in the last iterations; with `also_uneven`, the steps of the ranks may differ.
    fn pattern(&mut self, also_uneven: bool) -> Option<LoopPattern> {
        let longest = (self.boundaries.len() - 1).min(self.witnesses.len() - 1);
        (1..=longest).find_map(|period| {
            let (even, uneven) = self.witnesses[period];
            let is_even = self.differs_evenly(period, even);
            let is_even = is_even
                .map_err(|witness| self.witnesses[period].0 = witness)
                .is_ok();
            if !is_even && also_uneven && 2 * period < self.boundaries.len() {
                let repeats = self.repeats(period, uneven);
                repeats
                    .map_err(|witness| self.witnesses[period].1 = witness)
                    .ok()?;
            } else if !is_even {
                return None;
            }
            let [now, before] = [0, period].map(|age| &self.boundaries[age]);
            let steps = (0..now.above.len())
                .map(|index| now.step(before, index))
                .collect();
            Some(LoopPattern {
                period,
                steps,
                is_even,
            })
        })
    }

    /// Checks that all times have advanced by the same step; otherwise returns the index of one that has not.
    fn differs_evenly(&self, period: usize, witness: usize) -> Result<(), usize> {
        let [now, before] = [0, period].map(|age| &self.boundaries[age].above);
        all(now.len(), witness, |index| now[index] == before[index])
    }

    /// Checks that each time has advanced by its own step twice; otherwise returns the index of one that has not.
    fn repeats(&self, period: usize, witness: usize) -> Result<(), usize> {
        let [now, before, long_ago] = [0, period, 2 * period].map(|age| &self.boundaries[age]);
        all(now.above.len(), witness, |index| {
            now.step(before, index) == before.step(long_ago, index)
        })
    }
}

/// Checks a condition for all numbers below `count`; otherwise returns one that violates it. The witness is checked first.
fn all(count: usize, witness: usize, is_so: impl Fn(usize) -> bool) -> Result<(), usize> {
    if witness < count && !is_so(witness) {
        return Err(witness);
    }
    (0..count).find(|index| !is_so(*index)).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A matrix of the max-plus algebra: each row lists the terms whose maximum is the new time.
    type Matrix = Vec<Vec<Option<i64>>>;

    fn apply(matrix: &Matrix, now: &mut Boundary) {
        let next = matrix.iter().map(|row| {
            let terms = row
                .iter()
                .zip(&now.above)
                .filter_map(|(cost, time)| cost.map(|cost| cost + time));
            terms.max().expect("each row has a cost")
        });
        now.above = next.collect();
        now.settle();
    }

    fn walked_one_by_one(matrix: &Matrix, count: u64) -> Boundary {
        let mut now = Boundary::new(matrix.len());
        (0..count).for_each(|_| apply(matrix, &mut now));
        now
    }

    fn jumped(matrix: &Matrix, count: u64) -> (Boundary, Walked) {
        let mut now = Boundary::new(matrix.len());
        let walked = repeat(count, &mut now, |now| {
            apply(matrix, now);
            Ok::<(), JumpStop<()>>(())
        });
        (now, walked.unwrap())
    }

    #[test]
    fn a_rank_that_overtakes_late_ends_the_jump_at_that_point() {
        // The second rank takes 1 more in each iteration, and starts 1000 behind the first rank's dependence on it.
        let matrix = vec![vec![Some(10), Some(-1000)], vec![None, Some(11)]];
        for count in [900, 1009, 1010, 1011, 1012, 5000] {
            let (now, walked) = jumped(&matrix, count);
            assert_eq!(now, walked_one_by_one(&matrix, count), "{count} iterations");
            assert!(
                walked.walked < 120 && walked.jumped > count - 120,
                "{walked:?} of {count}"
            );
        }
    }

    #[test]
    fn independent_ranks_jump_together() {
        let matrix = vec![vec![Some(7), None], vec![None, Some(3)]];
        let (now, walked) = jumped(&matrix, 1 << 40);
        assert_eq!((now.time(0), now.time(1)), (7 << 40, 3 << 40));
        assert!(walked.walked < 8, "{walked:?}");
    }

    #[test]
    fn a_pattern_of_three_iterations_is_found() {
        // A ring in which each rank depends only on the one before it, with different costs.
        let matrix = vec![
            vec![None, None, Some(1)],
            vec![Some(5), None, None],
            vec![None, Some(9), None],
        ];
        let (now, walked) = jumped(&matrix, 1_000_001);
        assert_eq!(now, walked_one_by_one(&matrix, 1_000_001));
        assert!(walked.walked < 20, "{walked:?}");
    }

    #[test]
    fn a_loop_with_diverging_times_is_reported() {
        let matrix = vec![vec![Some(1 << 45), None], vec![None, Some(0)]];
        let mut now = Boundary::new(2);
        let walked = repeat(1 << 10, &mut now, |now| {
            apply(&matrix, now);
            if LaneGrid::reaches(now.above[0].into()) {
                Ok(())
            } else {
                Err(JumpStop::<()>::Unreachable)
            }
        });
        assert_eq!(walked, Err(JumpStop::Unreachable));
    }

    fn matrices() -> impl Strategy<Value = Matrix> {
        let cost = prop_oneof![2 => Just(None), 2 => (-400i64..0).prop_map(Some), 2 => (0i64..20).prop_map(Some)];
        let row = move |size: usize| proptest::collection::vec(cost.clone(), size);
        let matrix = move |size: usize| proptest::collection::vec(row(size), size);
        (1usize..7).prop_flat_map(matrix).prop_map(|mut matrix| {
            // A rank does not end before it starts.
            for (index, row) in matrix.iter_mut().enumerate() {
                row[index] = Some(row[index].unwrap_or(0).max(0));
            }
            matrix
        })
    }

    proptest! {
        #[test]
        fn jumps_give_the_result_of_single_iterations(matrix in matrices(), count in 1u64..3000) {
            prop_assert_eq!(jumped(&matrix, count).0, walked_one_by_one(&matrix, count));
        }
    }
}
