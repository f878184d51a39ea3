//! Procedures by which papers fit their own models.

use flowcast_statistics::regression::least_squares_at_least_zero;
use flowcast_units::{Bytes, Time};

use super::{ExchangeObservation, OpenSizes, round_trips};
use crate::{
    loggp::{FitOptions, fit_loggp},
    prtt::PrttPoint,
    samples::PrttSamples,
};

/// Hockney's procedure: least squares through half of the plain round trips.
pub(super) fn hockney_line(observed: &[ExchangeObservation]) -> Option<(OpenSizes, Vec<f64>)> {
    let (x, y): (Vec<f64>, Vec<f64>) = round_trips(observed)
        .filter(|(point, _)| point.messages == 1)
        .map(|(point, time)| (point.size.0 as f64, time / 2.0))
        .unzip();
    let line = least_squares_at_least_zero(&x, &y).ok()?;
    Some((OpenSizes::Nothing, vec![line.intercept, line.slope]))
}

/// The procedure of the thesis for LogGP, with its knee: [`mod@crate::loggp`].
pub(super) fn loggp_with_knee(observed: &[ExchangeObservation]) -> Option<(OpenSizes, Vec<f64>)> {
    let mut samples = PrttSamples::default();
    round_trips(observed).for_each(|(point, time)| samples.push(point, Time::from_nanos(time)));
    let options = FitOptions {
        replicates: 0,
        ..FitOptions::default()
    };
    let fitted = fit_loggp(&samples, &options).ok()?;
    Some((OpenSizes::Nothing, fitted.parameters.as_nanos().into()))
}

/// Kielmann's procedure for PLogP: many messages in a row give `g(0)`. Then `g(s) = RTT(s) - RTT(0) + g(0)` for all sizes,
/// and `L = RTT(0)/2 - g(0)`. Its answers have no bytes. Here they are as long as the messages, so half of the difference of
/// round trips is used. The smallest size replaces 0.
pub(super) fn kielmann_tables(observed: &[ExchangeObservation]) -> Option<(OpenSizes, Vec<f64>)> {
    let trips: Vec<(PrttPoint, f64)> = round_trips(observed).collect();
    let plain = trips.iter().filter(|(point, _)| point.messages == 1);
    let sizes: Vec<Bytes> = plain.map(|(point, _)| point.size).collect();
    let smallest = *sizes.iter().min()?;
    let first = plain_time(&trips, smallest)?;
    let (row, time) = trips.iter().rfind(|(point, _)| {
        point.size == smallest && point.messages > 1 && point.delay == Time::ZERO
    })?;
    let gap = (time / f64::from(row.messages)).min(first / 2.0);
    let smallest_overhead = overhead(&trips, smallest).unwrap_or(0.0);
    let mut parameters = vec![(first / 2.0 - gap).max(0.0)];
    for size in &sizes {
        let time = plain_time(&trips, *size)?;
        parameters.push(((time - first) / 2.0 + gap).max(0.0));
    }
    for size in &sizes {
        parameters.push(overhead(&trips, *size).unwrap_or(smallest_overhead));
    }
    Some((OpenSizes::Places(sizes), parameters))
}

/// Returns the time between the messages of the last delayed burst of a size, minus the delay.
fn overhead(trips: &[(PrttPoint, f64)], size: Bytes) -> Option<f64> {
    let (point, time) = trips
        .iter()
        .rfind(|(point, _)| point.size == size && point.delay > Time::ZERO)?;
    let spacing = (time - plain_time(trips, size)?) / f64::from(point.messages - 1);
    Some((spacing - point.delay.as_nanos()).max(0.0))
}

fn plain_time(trips: &[(PrttPoint, f64)], size: Bytes) -> Option<f64> {
    let plain = PrttPoint::round_trip(size);
    let (_, time) = trips.iter().find(|(point, _)| *point == plain)?;
    Some(*time)
}
