//! A convex, piecewise linear function from its tangents.

use flowcast_units::Time;

/// Makespan and its slope at one value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tangent {
    /// Value of the parameter, in its unit.
    pub at: f64,
    /// The makespan at that value of the parameter.
    pub makespan: Time,
    /// Growth of the makespan, in nanoseconds for each unit of the parameter. At a breakpoint, any number between the slopes
    /// on both sides.
    pub slope: f64,
}

/// A part of the curve on which the makespan is a linear function of the parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Start, in the parameter's unit.
    pub from: f64,
    /// End, in the parameter's unit; the next piece starts there.
    pub to: f64,
    /// Makespan at the start.
    pub makespan: Time,
    /// Growth of the makespan, in nanoseconds for each unit of the parameter.
    pub slope: f64,
}

/// A curve, and the effort to find it.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Pieces in the order of the parameter, without gaps.
    pub pieces: Vec<Piece>,
    /// Number of values of the parameter that were walked.
    pub walks: usize,
    /// Largest possible distance of the makespan above the curve, if there were too few walks to find all pieces; otherwise
    /// 0.
    pub error: Time,
}

impl Tangent {
    /// Height of the tangent's line at another value, in nanoseconds.
    fn line(&self, at: f64) -> f64 {
        self.makespan.as_nanos() + self.slope * (at - self.at)
    }
}

impl Piece {
    /// Makespan at a value on the piece.
    pub fn at(&self, value: f64) -> Time {
        self.makespan + Time::from_nanos(self.slope * (value - self.from))
    }
}

impl Curve {
    /// Makespan at a value; `None` outside the curve.
    pub fn at(&self, value: f64) -> Option<Time> {
        self.pieces
            .iter()
            .find(|piece| (piece.from..=piece.to).contains(&value))
            .map(|piece| piece.at(value))
    }
}

/// Two neighbouring tangents, and the knowledge about the function between them.
#[derive(Clone, Copy)]
struct CurveGap {
    left: Tangent,
    right: Tangent,
    /// Value at which their lines meet.
    meet: f64,
    /// Time at which the lines meet, in nanoseconds, if the function may lie above the lines. `None` if the function is
    /// known to be the left line up to `meet` and the right line from there on.
    lowest: Option<f64>,
}

/// Finds the curve between `from` and a larger value `to` by tangents. `walk` returns the tangent at a value. If more than
/// `most_walks` would be needed, the smallest gaps stay open. Returns `None` if the function turns out not to be convex.
pub fn trace_curve(
    from: f64,
    to: f64,
    most_walks: usize,
    mut walk: impl FnMut(f64) -> Tangent,
) -> Option<Curve> {
    let (first, last) = (walk(from), walk(to));
    let tolerance = tolerance(first.makespan.max(last.makespan));
    let mut walks = 2;
    let mut gaps = vec![CurveGap::new(first, last, tolerance)];
    loop {
        let values = open_values(&gaps, most_walks.saturating_sub(walks));
        if values.is_empty() {
            break;
        }
        walks += values.len();
        let found = values.into_iter().map(&mut walk).collect();
        gaps = narrowed(gaps, found, tolerance)?;
    }
    let error = gaps.iter().filter_map(CurveGap::height).fold(0.0, f64::max);
    Some(Curve {
        pieces: pieces(&gaps, from, to, tolerance),
        walks,
        error: Time::from_nanos(error),
    })
}

/// At most `most` values to walk next: those in the gaps in which the makespan may lie highest above the tangents.
fn open_values(gaps: &[CurveGap], most: usize) -> Vec<f64> {
    let mut open: Vec<(f64, f64)> = gaps
        .iter()
        .filter_map(|gap| Some((gap.meet, gap.height()?)))
        .collect();
    open.sort_by(|a, b| b.1.total_cmp(&a.1));
    open.truncate(most);
    let mut values: Vec<f64> = open.into_iter().map(|(at, _)| at).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Gaps that remain after walks at the values where tangents meet: one with a known breakpoint, or two. Returns `None` if
/// the function lies below a tangent.
fn narrowed(gaps: Vec<CurveGap>, found: Vec<Tangent>, tolerance: f64) -> Option<Vec<CurveGap>> {
    let mut found = found.into_iter().peekable();
    let mut narrower = Vec::with_capacity(2 * gaps.len());
    for gap in gaps {
        let walked = gap
            .lowest
            .zip(found.next_if(|tangent| gap.lowest.is_some() && tangent.at == gap.meet));
        match walked.map(|(lowest, tangent)| (tangent.makespan.as_nanos() - lowest, tangent)) {
            None => narrower.push(gap),
            Some((above, _)) if above < -tolerance => return None,
            Some((above, _)) if above <= tolerance => narrower.push(CurveGap {
                lowest: None,
                ..gap
            }),
            Some((_, tangent)) => narrower.extend([
                CurveGap::new(gap.left, tangent, tolerance),
                CurveGap::new(tangent, gap.right, tolerance),
            ]),
        }
    }
    Some(narrower)
}

/// Largest difference that counts as rounding, in nanoseconds: each of some million additions may round a time by half a
/// unit in its last place.
fn tolerance(makespan: Time) -> f64 {
    1e-3 + 1e-13 * makespan.as_nanos()
}

impl CurveGap {
    fn new(left: Tangent, right: Tangent, tolerance: f64) -> CurveGap {
        let behind = right.line(left.at) - left.makespan.as_nanos();
        let (meet, lowest) = if (left.line(right.at) - right.makespan.as_nanos()).abs() <= tolerance
        {
            (right.at, None)
        } else if behind.abs() <= tolerance {
            (left.at, None)
        } else {
            let at = left.at + behind / (left.slope - right.slope);
            // A breakpoint between two adjacent floating-point numbers is one of them.
            if at > left.at && at < right.at {
                (at, Some(left.line(at)))
            } else {
                (right.at, None)
            }
        };
        CurveGap {
            left,
            right,
            meet,
            lowest,
        }
    }

    /// Largest possible height of the function above the point where the tangents meet, in nanoseconds; `None` if the
    /// function is known there.
    fn height(&self) -> Option<f64> {
        let part = (self.meet - self.left.at) / (self.right.at - self.left.at);
        let [left, right] = [self.left, self.right].map(|tangent| tangent.makespan.as_nanos());
        Some(left + part * (right - left) - self.lowest?)
    }
}

/// The lines of the tangents as pieces, each from where it meets the previous line to where it meets the next.
fn pieces(gaps: &[CurveGap], from: f64, to: f64, tolerance: f64) -> Vec<Piece> {
    let tangents = gaps
        .iter()
        .map(|gap| gap.left)
        .chain(gaps.last().map(|gap| gap.right));
    let begins = std::iter::once(from).chain(gaps.iter().map(|gap| gap.meet));
    let ends = gaps.iter().map(|gap| gap.meet).chain([to]);
    let mut pieces: Vec<Piece> = Vec::new();
    for ((tangent, from), to) in tangents.zip(begins).zip(ends) {
        let piece = Piece {
            from,
            to,
            makespan: Time::from_nanos(tangent.line(from)),
            slope: tangent.slope,
        };
        match pieces.last_mut() {
            Some(before) if is_same_line(before, &piece, tolerance) => before.to = to,
            _ if from < to => pieces.push(piece),
            _ => {}
        }
    }
    pieces
}

fn is_same_line(before: &Piece, piece: &Piece, tolerance: f64) -> bool {
    [piece.from, piece.to]
        .iter()
        .all(|at| (before.at(*at) - piece.at(*at)).as_nanos().abs() <= tolerance)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The maximum of lines `(height at 0, slope)`.
    fn highest(lines: &[(f64, f64)], at: f64) -> Tangent {
        let line = lines
            .iter()
            .max_by(|a, b| (a.0 + a.1 * at).total_cmp(&(b.0 + b.1 * at)))
            .unwrap();
        Tangent {
            at,
            makespan: Time::from_nanos(line.0 + line.1 * at),
            slope: line.1,
        }
    }

    fn traced(lines: &[(f64, f64)], most: usize) -> Curve {
        trace_curve(0.0, 100.0, most, |at| highest(lines, at)).unwrap()
    }

    #[test]
    fn the_pieces_are_the_lines_that_are_highest_somewhere() {
        let curve = traced(&[(100.0, 0.0), (90.0, 1.0), (0.0, 2.0), (50.0, 1.1)], 100);
        let expected = [
            (0.0, 10.0, 100.0, 0.0),
            (10.0, 90.0, 100.0, 1.0),
            (90.0, 100.0, 180.0, 2.0),
        ];
        let expected = expected.map(|(from, to, makespan, slope)| Piece {
            from,
            to,
            makespan: Time::from_nanos(makespan),
            slope,
        });
        assert_eq!(curve.pieces, expected);
        assert_eq!((curve.walks, curve.error), (5, Time::ZERO));
    }

    #[test]
    fn a_curve_with_too_few_walks_states_its_error() {
        let curve = traced(&[(100.0, 0.0), (90.0, 1.0), (0.0, 2.0)], 2);
        assert_eq!(curve.walks, 2);
        assert!((curve.error.as_nanos() - 50.0).abs() < 1e-9, "{curve:?}");
    }

    #[test]
    fn a_concave_function_is_refused() {
        let root = |at: f64| Tangent {
            at,
            makespan: Time::from_nanos(at.sqrt()),
            slope: 0.5 / at.sqrt(),
        };
        assert_eq!(trace_curve(1.0, 100.0, 100, root), None);
    }

    proptest! {
        #[test]
        fn a_curve_is_the_maximum_of_its_lines(
            lines in proptest::collection::vec((0u32..2000, 0u32..40), 1..40),
            values in proptest::collection::vec(0.0..100.0f64, 20),
        ) {
            let lines: Vec<(f64, f64)> = lines.iter().map(|(height, slope)| (f64::from(*height), f64::from(*slope))).collect();
            let curve = traced(&lines, 1000);
            prop_assert!(curve.pieces.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].slope < pair[1].slope));
            prop_assert!(curve.walks <= 2 * curve.pieces.len() + 1, "{} walks, {:?}", curve.walks, curve.pieces);
            for at in values {
                let difference = curve.at(at).unwrap() - highest(&lines, at).makespan;
                prop_assert!(difference.as_nanos().abs() < 2e-3, "{at}: {difference:?}");
            }
        }
    }
}
