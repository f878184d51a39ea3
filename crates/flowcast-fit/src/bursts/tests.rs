use flowcast_units::TimePerByte;

use super::*;
use crate::prtt::prtt;

/// Exact round trips of a network, three of each point, whose sends take `busy`.
fn exact(network: &LogGp, busy: Time) -> PrttSamples {
    let mut samples = PrttSamples::default();
    for (n, size) in [(1, 1), (1, 1448), (8, 1), (8, 4096), (32, 1), (32, 4096)] {
        let point = PrttPoint::new(n, Time::ZERO, Bytes(size));
        [(); 3]
            .iter()
            .for_each(|()| samples.push_timed(point, prtt(network, point), busy));
    }
    samples
}

fn network(overhead: f64) -> LogGp {
    LogGp {
        latency: Time::from_micros(24.3),
        overhead: Time::from_micros(overhead),
        gap: Time::from_micros(3.4),
        gap_per_byte: TimePerByte::from_micros(0.00409),
    }
}

#[test]
fn exact_round_trips_recover_the_parameters() {
    // A gap of 3.4 us is above an overhead of 1.9 us. An overhead of 6.1 us hides it, and only 4 KiB shows it.
    for (overhead, sizes) in [(1.9, vec![Bytes(1), Bytes(4096)]), (6.1, vec![Bytes(4096)])] {
        let truth = network(overhead);
        let fit = fit_bursts(&exact(&truth, truth.overhead), 0.95).unwrap();
        let expected = [truth.latency.as_nanos(), overhead * 1e3, 3400.0, 4.09];
        for (found, expected) in fit.parameters.as_nanos().iter().zip(expected) {
            assert!(
                (found / expected - 1.0).abs() < 1e-9,
                "{found} instead of {expected}"
            );
        }
        assert_eq!((fit.sizes, fit.outliers), (sizes, 0));
    }
}

#[test]
fn the_fixed_cost_of_a_burst_is_no_part_of_the_gap() {
    let truth = network(1.9);
    let mut samples = PrttSamples::default();
    for (point, times) in exact(&truth, truth.overhead).points() {
        let more = if point.messages > 1 {
            Time::from_micros(40.0)
        } else {
            Time::ZERO
        };
        times
            .iter()
            .for_each(|time| samples.push_timed(point, *time + more, truth.overhead));
    }
    let fit = fit_bursts(&samples, 0.95).unwrap();
    assert!(
        (fit.parameters.gap.as_micros() - 3.4).abs() < 1e-6,
        "{:?}",
        fit.parameters
    );
}

#[test]
fn a_lost_packet_is_left_out() {
    let truth = network(1.9);
    let mut samples = exact(&truth, truth.overhead);
    let point = PrttPoint::new(32, Time::ZERO, Bytes(1));
    samples.push_timed(
        point,
        prtt(&truth, point) + Time::from_seconds(0.2),
        truth.overhead,
    );
    let fit = fit_bursts(&samples, 0.95).unwrap();
    assert_eq!(fit.outliers, 1);
    assert!(
        (fit.parameters.gap.as_micros() - 3.4).abs() < 1e-6,
        "{:?}",
        fit.parameters
    );
}

#[test]
fn samples_without_the_sender_s_time_or_second_lengths_have_no_bursts() {
    let truth = network(1.9);
    let mut samples = PrttSamples::default();
    exact(&truth, truth.overhead)
        .points()
        .for_each(|(point, times)| samples.push(point, times[0]));
    assert!(!has_bursts(&samples));
    assert!(has_bursts(&exact(&truth, truth.overhead)));
}
