//! The curve if it cannot be exact: predictions joined by lines.

use flowcast_sensitivity::{Curve, Piece};
use flowcast_units::Time;

use super::Parameter;
use crate::Error;

/// Number of steps of equal width at the start.
const STEPS: usize = 16;

/// Largest number of times that a step is halved.
const HALVINGS: usize = 3;

/// Width of the shortest step, as a fraction of the range.
pub(super) const SMALLEST: f64 = 1.0 / (STEPS << HALVINGS) as f64;

/// A step is halved if the makespan in its middle deviates from the line between its ends by more than this fraction.
const BEND: f64 = 1e-3;

type Point = (f64, Time);

/// Predicts at equal steps, and between them where the curve bends.
pub(super) fn curve(
    parameter: &Parameter,
    is_whole: bool,
    mut makespan: impl FnMut(f64) -> Result<Time, Error>,
) -> Result<Curve, Error> {
    let (from, to) = parameter.range();
    let place = |at: f64| if is_whole { at.round() } else { at };
    let mut values: Vec<f64> = (0..=STEPS)
        .map(|index: usize| place(from + (to - from) * index as f64 / STEPS as f64))
        .collect();
    values.dedup();
    let mut points: Vec<Point> = values
        .into_iter()
        .map(|at| Ok((at, makespan(at)?)))
        .collect::<Result<_, Error>>()?;
    let mut bent = vec![true; points.len().saturating_sub(1)];
    for _ in 0..HALVINGS {
        let mut finer = vec![points[0]];
        let mut still = Vec::new();
        for (pair, bends) in points.windows(2).zip(&bent) {
            let middle = place(f64::midpoint(pair[0].0, pair[1].0));
            if *bends && pair[0].0 < middle && middle < pair[1].0 {
                let found = makespan(middle)?;
                let off = (found - line(pair, middle)).as_nanos().abs() > BEND * found.as_nanos();
                finer.push((middle, found));
                still.extend([off; 2]);
            } else {
                still.push(false);
            }
            finer.push(pair[1]);
        }
        (points, bent) = (finer, still);
    }
    let pieces = points.windows(2).map(|pair| Piece {
        from: pair[0].0,
        to: pair[1].0,
        makespan: pair[0].1,
        slope: (pair[1].1 - pair[0].1).as_nanos() / (pair[1].0 - pair[0].0),
    });
    Ok(Curve {
        pieces: pieces.collect(),
        walks: points.len(),
        error: Time::ZERO,
    })
}

fn line(pair: &[Point], at: f64) -> Time {
    pair[0].1 + (pair[1].1 - pair[0].1) * ((at - pair[0].0) / (pair[1].0 - pair[0].0))
}
