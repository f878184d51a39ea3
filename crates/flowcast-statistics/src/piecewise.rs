//! Piecewise linear functions with jumps at knees, such as times by message size with the jumps of protocols.
//!
//! The knees minimize the sum of relative errors for their number. They are found by dynamic programming over the possible
//! places of knees (Bellman, 1961; Bai and Perron, 2003). [`super::relative_line`] gives each line. With many points,
//! the first places are every n-th point; each knee is then moved between its neighbours as long as that reduces the errors
//! (branch and bound finds the best place). Cross-validation decides the number of pieces: every fifth point is left out in
//! turn, and the number with the smallest mean error on the points left out is used.

use std::{cell::RefCell, collections::HashMap};

use super::{
    StatsError, check, out_of_range,
    regression::Line,
    relative_line::{WeightedPoints, check_relative, inverses},
};

/// Minimum number of points of a piece.
const LEAST_POINTS: usize = 4;
/// Number of stretches of points between which knees are searched first.
const STRETCHES: usize = 48;
/// Number of parts of the points that are left out in turn.
const FOLDS: usize = 5;
/// Limit of an error's logarithm. Larger errors only mean that the prediction is useless.
const WORST: f64 = 10.0;

/// A straight line from a certain x on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinePiece {
    /// Smallest x for which the line holds.
    pub from: f64,
    /// The line, whose intercept and slope are at least 0.
    pub line: Line,
}

/// Straight lines that follow one another, the first from 0 on.
#[derive(Debug, Clone, PartialEq)]
pub struct PiecewiseLine {
    pieces: Vec<LinePiece>,
}

impl PiecewiseLine {
    /// Pieces by ascending `from`, at least one.
    pub fn pieces(&self) -> &[LinePiece] {
        &self.pieces
    }

    /// Value at `x`, which must be at least 0.
    pub fn at(&self, x: f64) -> f64 {
        let after = self.pieces.partition_point(|piece| piece.from <= x);
        self.pieces[after.saturating_sub(1)].line.at(x)
    }
}

/// A piecewise line, with its errors on points to which it was not fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct PiecewiseFit {
    /// Curve that is fitted to all points.
    pub curve: PiecewiseLine,
    /// `ln(y / predicted)` of each point, for a curve with the same number of pieces that was fitted without the point.
    pub residuals: Vec<f64>,
}

/// Fits the best piecewise line of at most `most` pieces. Cross-validation chooses their number.
///
/// ```
/// use flowcast_statistics::piecewise::fit_piecewise;
///
/// let x: Vec<f64> = (1..=40).map(f64::from).collect();
/// let y: Vec<f64> = x.iter().map(|x| if *x < 20.0 { 10.0 } else { 5.0 * x }).collect();
/// let fit = fit_piecewise(&x, &y, 4)?;
/// assert_eq!(fit.curve.pieces().len(), 2);
/// assert!((fit.curve.at(30.0) - 150.0).abs() < 1e-6);
/// # Ok::<(), flowcast_statistics::StatsError>(())
/// ```
///
/// # Errors
/// No piece, no point, lists of different length, numbers that are not finite, x that do not ascend from 0 on, or a y that
/// is not above 0.
pub fn fit_piecewise(x: &[f64], y: &[f64], most: usize) -> Result<PiecewiseFit, StatsError> {
    check_relative(x, y)?;
    if most == 0 {
        return out_of_range("pieces", 0.0, "at least 1");
    }
    if let Some(pair) = x.windows(2).find(|pair| pair[0] >= pair[1]) {
        return out_of_range("x", pair[1], "more than the previous x");
    }
    let by_count = left_out_residuals(x, y, most);
    let pieces = (0..by_count.len())
        .min_by(|one, other| mean_error(&by_count[*one]).total_cmp(&mean_error(&by_count[*other])))
        .unwrap_or(0);
    let curve = segmentations(x, y, pieces + 1)
        .pop()
        .expect("one piece is always possible");
    Ok(PiecewiseFit {
        residuals: by_count.into_iter().nth(pieces).unwrap_or_default(),
        curve,
    })
}

fn mean_error(residuals: &[f64]) -> f64 {
    residuals.iter().map(|error| error.abs()).sum::<f64>()
}

/// Cross-validation errors `ln(y / predicted)`: each point is predicted from the points that remain if every fifth one is
/// left out, this one among them. `fit` gets the remaining points and returns a function that predicts at an x.
///
/// # Errors
/// Fewer than two points.
pub fn residuals_left_out<F: Fn(f64) -> f64>(
    x: &[f64],
    y: &[f64],
    fit: impl Fn(&[f64], &[f64]) -> F,
) -> Result<Vec<f64>, StatsError> {
    check("cross-validation", x, 2)?;
    let mut residuals = vec![0.0; x.len()];
    for (kept, left_out) in folds(x.len()) {
        let predict = fit(&at_places(x, &kept), &at_places(y, &kept));
        left_out
            .into_iter()
            .for_each(|at| residuals[at] = residual(y[at], predict(x[at])));
    }
    Ok(residuals)
}

/// Residuals of all points for each number of pieces, starting with one piece. Numbers of pieces that are impossible in a
/// fold are left out.
fn left_out_residuals(x: &[f64], y: &[f64], most: usize) -> Vec<Vec<f64>> {
    if x.len() < 2 {
        return Vec::new();
    }
    let mut all = vec![vec![0.0; x.len()]; most];
    for (kept, left_out) in folds(x.len()) {
        let curves = segmentations(&at_places(x, &kept), &at_places(y, &kept), most);
        all.truncate(curves.len());
        for (residuals, curve) in all.iter_mut().zip(&curves) {
            left_out
                .iter()
                .for_each(|at| residuals[*at] = residual(y[*at], curve.at(x[*at])));
        }
    }
    all
}

/// Indices of the points that are kept and left out in each fold.
fn folds(points: usize) -> impl Iterator<Item = (Vec<usize>, Vec<usize>)> {
    let folds = FOLDS.min(points);
    (0..folds).map(move |fold| (0..points).partition(|at| at % folds != fold))
}

fn at_places(values: &[f64], places: &[usize]) -> Vec<f64> {
    places.iter().map(|at| values[*at]).collect()
}

fn residual(measured: f64, predicted: f64) -> f64 {
    (measured / predicted).ln().clamp(-WORST, WORST)
}

/// Best curves of 1, 2, .. pieces, up to the largest possible number, at most `most`.
fn segmentations(x: &[f64], y: &[f64], most: usize) -> Vec<PiecewiseLine> {
    let weights = &inverses(y);
    let search = PiecewiseSearch {
        points: WeightedPoints { x, y, weights },
        known: RefCell::default(),
    };
    let stretches = (x.len() / LEAST_POINTS).clamp(1, STRETCHES);
    let places: Vec<usize> = (0..=stretches).map(|at| at * x.len() / stretches).collect();
    let reach = x.len() / stretches + 1;
    let mut all = search.best_cuts(&places, most.min(stretches));
    all.iter_mut().for_each(|cuts| search.refine(cuts, reach));
    all.iter().map(|cuts| search.curve(cuts)).collect()
}

/// Points with ascending x. Cuts are indices into the points; the first is 0, the last the number of points.
struct PiecewiseSearch<'a> {
    points: WeightedPoints<'a>,
    /// Errors of the best lines between two indices, cached because knees of several curves lie at the same places.
    known: RefCell<HashMap<(usize, usize), f64>>,
}

impl PiecewiseSearch<'_> {
    fn errors(&self, from: usize, to: usize) -> f64 {
        let mut known = self.known.borrow_mut();
        *known.entry((from, to)).or_insert_with(|| {
            let points = self.points.between(from, to);
            points.errors(&points.line_at_least_zero())
        })
    }

    /// Cuts with the smallest sum of errors, chosen from `places`, for each number of pieces, starting with one piece.
    fn best_cuts(&self, places: &[usize], most: usize) -> Vec<Vec<usize>> {
        let last = places.len() - 1;
        let errors: Vec<Vec<f64>> = (0..=last)
            .map(|to| {
                (0..to)
                    .map(|from| self.errors(places[from], places[to]))
                    .collect()
            })
            .collect();
        // Sum of errors and start of the last piece, by number of pieces and end of the last piece.
        let mut best = vec![vec![(f64::INFINITY, 0); places.len()]];
        best[0][0].0 = 0.0;
        for pieces in 1..=most {
            let before = &best[pieces - 1];
            best.push(
                (0..=last)
                    .map(|to: usize| {
                        let sums = (0..to).map(|from| (before[from].0 + errors[to][from], from));
                        sums.min_by(|one, other| one.0.total_cmp(&other.0))
                            .unwrap_or((f64::INFINITY, 0))
                    })
                    .collect(),
            );
        }
        (1..=most)
            .map(|pieces: usize| {
                let mut cuts = vec![last; pieces + 1];
                (0..pieces)
                    .rev()
                    .for_each(|piece| cuts[piece] = best[piece + 1][cuts[piece + 1]].1);
                cuts.into_iter().map(|cut| places[cut]).collect()
            })
            .collect()
    }

    /// Moves each knee to the best place between its neighbours, at most `reach` points at a time, as long as that reduces
    /// the errors.
    ///
    /// Errors do not decrease if points are added. For all knees between two places, the errors are therefore at least the
    /// errors left of the first place plus those right of the second. Ranges for which this bound is not better are skipped.
    fn refine(&self, cuts: &mut [usize], reach: usize) {
        let mut moved = true;
        while moved {
            moved = false;
            for knee in 1..cuts.len() - 1 {
                let (before, own, after) = (cuts[knee - 1], cuts[knee], cuts[knee + 1]);
                let errors = |left, right| self.errors(before, left) + self.errors(right, after);
                let lowest = (before + LEAST_POINTS).max(own.saturating_sub(reach));
                let highest = (after - LEAST_POINTS).min(own + reach);
                let mut best = (errors(own, own) * (1.0 - 1e-12), own);
                let mut open = vec![(lowest, highest)];
                while let Some((low, high)) = open.pop() {
                    if low > high || errors(low, high) >= best.0 {
                        continue;
                    }
                    let middle = low.midpoint(high);
                    if errors(middle, middle) < best.0 {
                        best = (errors(middle, middle), middle);
                    }
                    open.extend([(middle + 1, high), (low, middle.saturating_sub(1))]);
                }
                moved |= best.1 != own;
                cuts[knee] = best.1;
            }
        }
    }

    fn curve(&self, cuts: &[usize]) -> PiecewiseLine {
        let mut pieces: Vec<LinePiece> = Vec::with_capacity(cuts.len() - 1);
        for pair in cuts.windows(2) {
            let line = self.points.between(pair[0], pair[1]).line_at_least_zero();
            let from = pieces
                .last()
                .map_or(0.0, |before| self.knee(pair[0], &before.line, &line));
            pieces.push(LinePiece { from, line });
        }
        PiecewiseLine { pieces }
    }

    /// Knee between the last point of one line and the first of the next: the intersection of the lines if it lies there,
    /// otherwise a power of two, like the thresholds of protocols, otherwise the geometric mean.
    fn knee(&self, first: usize, one: &Line, next: &Line) -> f64 {
        let (below, above) = (self.points.x[first - 1], self.points.x[first]);
        let crossing = (next.intercept - one.intercept) / (one.slope - next.slope);
        let power = above.log2().floor().exp2();
        [crossing, power, (below * above).sqrt()]
            .into_iter()
            .find(|at| *at > below && *at <= above)
            .unwrap_or(above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resampling::{Resampler, normal_score};
    use proptest::prelude::*;

    /// Eager up to 64 KiB, then a jump up and another slope; a cache that ends at 4 KiB.
    fn truth(x: f64) -> f64 {
        match x {
            ..4096.0 => 2000.0 + 0.1 * x,
            ..65536.0 => 2000.0 + 0.1 * 4096.0 + 0.3 * (x - 4096.0),
            _ => 90_000.0 + 0.2 * x,
        }
    }

    fn sizes(count: u32) -> Vec<f64> {
        (0..count)
            .map(|at| (20.0 * f64::from(at) / f64::from(count)).exp2().floor() + f64::from(at))
            .collect()
    }

    #[test]
    fn knees_and_jumps_are_found_without_noise() {
        let x = sizes(120);
        let y: Vec<f64> = x.iter().map(|x| truth(*x)).collect();
        let fit = fit_piecewise(&x, &y, 8).unwrap();
        let pieces = fit.curve.pieces();
        assert_eq!(pieces.len(), 3, "{pieces:?}");
        assert!(
            (pieces[1].from - 4096.0).abs() < 1e-6 && pieces[2].from == 65536.0,
            "{pieces:?}"
        );
        assert!(
            x.iter()
                .all(|x| (fit.curve.at(*x) / truth(*x) - 1.0).abs() < 1e-9)
        );
    }

    #[test]
    fn noise_adds_no_pieces() {
        let x = sizes(200);
        let mut noise: Vec<f64> = (0..200)
            .map(|at| 0.02 * normal_score((f64::from(at) + 0.5) / 200.0))
            .collect();
        Resampler::from_seed(7).shuffle(&mut noise);
        let y: Vec<f64> = x
            .iter()
            .zip(noise)
            .map(|(x, noise)| truth(*x) * noise.exp())
            .collect();
        let fit = fit_piecewise(&x, &y, 8).unwrap();
        assert!(
            (3..=5).contains(&fit.curve.pieces().len()),
            "{:?}",
            fit.curve
        );
        let mut errors: Vec<f64> = x
            .iter()
            .map(|x| (fit.curve.at(*x) / truth(*x) - 1.0).abs())
            .collect();
        assert!(crate::sample::median_in_place(&mut errors) < 0.006);
    }

    #[test]
    fn few_points_give_one_piece() {
        let fit = fit_piecewise(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0], 8).unwrap();
        assert_eq!(
            fit.curve.pieces(),
            [LinePiece {
                from: 0.0,
                line: Line {
                    intercept: 1.0,
                    slope: 1.0
                }
            }]
        );
        assert_eq!(fit_piecewise(&[5.0], &[2.0], 8).unwrap().curve.at(9.0), 2.0);
    }

    #[test]
    fn equal_and_descending_x_are_refused() {
        let message = fit_piecewise(&[1.0, 1.0], &[2.0, 3.0], 8)
            .unwrap_err()
            .to_string();
        assert_eq!(message, "x: found 1, expected more than the previous x");
        assert!(fit_piecewise(&[1.0], &[2.0], 0).is_err());
    }

    /// Smallest sum of errors over all cuts, by exhaustive search.
    fn reference(search: &PiecewiseSearch<'_>, from: usize, pieces: usize) -> f64 {
        let end = search.points.x.len();
        if pieces == 1 {
            return search.errors(from, end);
        }
        (from + 1..=end + 1 - pieces)
            .map(|cut: usize| search.errors(from, cut) + reference(search, cut, pieces - 1))
            .fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn no_neighbouring_place_of_a_knee_is_better(y in prop::collection::vec(1.0..100.0f64, 12..60), reach in 1..30usize) {
            let x: Vec<f64> = (0..y.len()).map(|at| at as f64).collect();
            let weights = inverses(&y);
            let search = PiecewiseSearch { points: WeightedPoints { x: &x, y: &y, weights: &weights }, known: RefCell::default() };
            let mut cuts = [0, y.len() / 2, y.len()];
            search.refine(&mut cuts, reach);
            let [_, knee, end] = cuts;
            let errors = |at: usize| search.errors(0, at) + search.errors(at, end);
            let mut places = LEAST_POINTS.max(knee.saturating_sub(reach))..=(end - LEAST_POINTS).min(knee + reach);
            prop_assert!(places.contains(&knee));
            prop_assert!(places.all(|at| errors(knee) <= errors(at) * (1.0 + 1e-9)));
        }

        #[test]
        fn no_other_cuts_are_better(y in prop::collection::vec(1.0..100.0f64, 5..11), pieces in 1..4usize) {
            let x: Vec<f64> = (0..y.len()).map(|at| at as f64).collect();
            let weights = inverses(&y);
            let search = PiecewiseSearch { points: WeightedPoints { x: &x, y: &y, weights: &weights }, known: RefCell::default() };
            let places: Vec<usize> = (0..=x.len()).collect();
            let cuts = search.best_cuts(&places, pieces).pop().unwrap();
            let sum: f64 = cuts.windows(2).map(|pair| search.errors(pair[0], pair[1])).sum();
            prop_assert!((sum - reference(&search, 0, pieces)).abs() <= 1e-9 * (1.0 + sum));
        }
    }
}
