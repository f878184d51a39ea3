//! Half round trips as a sum with the overheads of both sides: `o_s(s) + L + s·G + a(s) + o_r(s)`. Here `a` is the time
//! that the network adds depending on the size, such as for a handshake.
//!
//! The pieces are those of the half round trips' own fit. `L` is the intercept of the first piece. `G` is the smallest
//! slope among the pieces that bytes dominate, so that the remainder `a` is never negative. All lines minimize the sum of
//! relative errors, so that single outliers do not bend them.

use std::ops::Range;

use flowcast_statistics::{
    StatsError,
    piecewise::{PiecewiseFit, fit_piecewise},
    regression::Line,
    relative_line::weighted_line_at_least_zero,
    resampling::Resampler,
};

/// Times of a message of one size, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct HalfTrip {
    /// Size of the message, in bytes.
    pub size: f64,
    /// Half of the round trip, above 0.
    pub half: f64,
    /// Overhead of the sender.
    pub send: f64,
    /// Overhead of the receiver, before scaling.
    pub receive: f64,
}

/// Half round trips, sorted by size.
#[derive(Debug, Clone)]
pub(super) struct HalfTrips {
    trips: Vec<HalfTrip>,
    pieces: Vec<HalfTripPiece>,
    /// Residual `ln(measured / predicted)` of each size, from a fit without it.
    pub residuals: Vec<f64>,
}

#[derive(Debug, Clone)]
struct HalfTripPiece {
    from: f64,
    trips: Range<usize>,
}

/// Time of a message in the network: `L + s·G`, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Transfer {
    /// Latency `L`, in nanoseconds.
    pub latency: f64,
    /// Time per byte `G`.
    pub per_byte: f64,
}

impl HalfTrips {
    /// Fits half round trips with at most `most` pieces.
    pub(super) fn new(trips: Vec<HalfTrip>, most: usize) -> Result<HalfTrips, StatsError> {
        let (sizes, halves): (Vec<f64>, Vec<f64>) =
            trips.iter().map(|trip| (trip.size, trip.half)).unzip();
        let PiecewiseFit { curve, residuals } = fit_piecewise(&sizes, &halves, most)?;
        let firsts = curve.pieces().iter().map(|piece| {
            let first = sizes.partition_point(|size| *size < piece.from);
            (piece.from, first)
        });
        let ends = firsts
            .clone()
            .skip(1)
            .map(|(_, first)| first)
            .chain([sizes.len()]);
        let pieces = firsts.zip(ends).map(|((from, first), end)| HalfTripPiece {
            from,
            trips: first..end,
        });
        Ok(HalfTrips {
            pieces: pieces.filter(|piece| !piece.trips.is_empty()).collect(),
            trips,
            residuals,
        })
    }

    /// Returns `L` and `G` if the receiver's overhead is `warmth` times its value measured alone.
    pub(super) fn transfer(&self, warmth: f64) -> Result<Transfer, StatsError> {
        let none = Transfer {
            latency: 0.0,
            per_byte: 0.0,
        };
        let latency = self.line(&self.pieces[0], warmth, none)?.intercept;
        let lines = self.pieces.iter().map(|piece| {
            let line = self.line(piece, warmth, Transfer { latency, ..none })?;
            let last = self.trips[piece.trips.end - 1];
            Ok((line.slope, line.slope * last.size >= last.half / 2.0))
        });
        let slopes = lines.collect::<Result<Vec<(f64, bool)>, StatsError>>()?;
        let dominant = slopes.iter().filter(|(_, dominates)| *dominates);
        let per_byte = dominant.map(|(slope, _)| *slope).min_by(f64::total_cmp);
        Ok(Transfer {
            latency,
            per_byte: per_byte.unwrap_or(slopes[slopes.len() - 1].0),
        })
    }

    /// Returns the time in the network beyond `transfer`: for each piece, its first size and a line over the size.
    pub(super) fn added(
        &self,
        warmth: f64,
        transfer: Transfer,
    ) -> Result<Vec<(f64, Line)>, StatsError> {
        self.pieces
            .iter()
            .map(|piece| Ok((piece.from, self.line(piece, warmth, transfer)?)))
            .collect()
    }

    /// Fits a line to the remainder of the half round trips of a piece.
    fn line(
        &self,
        piece: &HalfTripPiece,
        warmth: f64,
        transfer: Transfer,
    ) -> Result<Line, StatsError> {
        let trips = &self.trips[piece.trips.clone()];
        let x: Vec<f64> = trips.iter().map(|trip| trip.size).collect();
        let y: Vec<f64> = trips
            .iter()
            .map(|trip| {
                let overheads = trip.send + warmth * trip.receive;
                trip.half - overheads - transfer.latency - transfer.per_byte * trip.size
            })
            .collect();
        let weights: Vec<f64> = trips.iter().map(|trip| 1.0 / trip.half).collect();
        weighted_line_at_least_zero(&x, &y, &weights)
    }

    /// Draws the same number of sizes in each piece, from the sizes of that piece.
    pub(super) fn resampled(&self, resampler: &mut Resampler) -> HalfTrips {
        let mut drawn = self.clone();
        for piece in &self.pieces {
            let own = &self.trips[piece.trips.clone()];
            let mut places = resampler.draw_places(own.len());
            places.sort_unstable();
            for (trip, place) in drawn.trips[piece.trips.clone()].iter_mut().zip(places) {
                *trip = own[place];
            }
        }
        drawn
    }
}
