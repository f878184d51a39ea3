//! Fits to round trips with known parameters.

use flowcast::{
    fit::{
        error::FitError,
        loggp::{FitOptions, LineMethod, LogGpFit, SizeChoice, fit_loggp, preliminary_gap},
        prtt::{PrttPoint, delay_for_overhead, prtt},
        samples::PrttSamples,
        verdict::FitWarning,
    },
    model::{
        loggp::LogGp,
        network::{MessageRule, Network},
    },
    statistics::resampling::Resampler,
    units::{Bytes, Time, TimePerByte},
};
use proptest::prelude::*;

fn network(gap: f64, per_byte: f64, overhead: f64, latency: f64) -> LogGp {
    LogGp {
        latency: Time::from_micros(latency),
        overhead: Time::from_micros(overhead),
        gap: Time::from_micros(gap),
        gap_per_byte: TimePerByte::from_micros(per_byte),
    }
}

fn sizes() -> impl Iterator<Item = Bytes> {
    (0..32).map(|step| Bytes(1 + 2048 * step))
}

/// Round trips of the thesis' procedure, and the delay that it chooses.
fn exact_round_trips(network: &LogGp) -> (PrttSamples, Time) {
    let mut samples = PrttSamples::default();
    for size in sizes() {
        for point in [
            PrttPoint::round_trip(size),
            PrttPoint::new(16, Time::ZERO, size),
        ] {
            samples.push(point, prtt(network, point));
        }
    }
    let (gap, per_byte) = preliminary_gap(&samples).unwrap();
    let delay = delay_for_overhead(gap, per_byte, Bytes(63_489));
    let point = PrttPoint::new(16, delay, Bytes(1));
    samples.push(point, prtt(network, point));
    (samples, delay)
}

fn assert_parameters(fit: &LogGpFit, expected: LogGp, tolerance: f64) {
    let found = fit.parameters;
    for (name, found, expected) in [
        ("g", found.gap.as_micros(), expected.gap.as_micros()),
        (
            "G",
            found.gap_per_byte.as_micros(),
            expected.gap_per_byte.as_micros(),
        ),
        (
            "o",
            found.overhead.as_micros(),
            expected.overhead.as_micros(),
        ),
        ("L", found.latency.as_micros(), expected.latency.as_micros()),
    ] {
        assert!(
            (found - expected).abs() <= tolerance * expected.abs().max(1e-3),
            "{name}: {found}, not {expected}"
        );
    }
}

fn few_replicates() -> FitOptions {
    FitOptions {
        replicates: 20,
        ..FitOptions::default()
    }
}

#[test]
fn parameters_of_infiniband_and_myrinet_are_recovered_exactly() {
    for (network, delay) in [
        (network(1.4, 0.00103, 1.4, 2.82), 34.095_805),
        (network(3.4, 0.00409, 1.9, 24.3), 133.230_915),
    ] {
        let (samples, chosen) = exact_round_trips(&network);
        assert!((chosen.as_micros() / delay - 1.0).abs() < 1e-9);
        assert_parameters(
            &fit_loggp(&samples, &few_replicates()).unwrap(),
            network,
            1e-9,
        );
    }
}

#[test]
fn the_knee_rule_finds_the_gap_that_the_overhead_hides() {
    let gige = network(0.897, 0.00849, 6.1, 65.4);
    let fit = fit_loggp(&exact_round_trips(&gige).0, &few_replicates()).unwrap();
    assert_parameters(&fit, gige, 1e-9);
    assert!((fit.knee_size.unwrap() - (1.0 + (6.1 - 0.897) / 0.00849)).abs() < 1e-6);
    assert_eq!((fit.points_used, fit.points_excluded), (31, 1));
    assert!(fit.model_error.worst < 1e-9, "{:?}", fit.model_error);
}

#[test]
fn every_size_gives_the_biased_gap_of_the_thesis() {
    let gige = network(0.897, 0.00849, 6.1, 65.4);
    let (samples, delay) = exact_round_trips(&gige);
    let options = FitOptions {
        sizes: SizeChoice::Every,
        ..few_replicates()
    };
    let biased = network(1.517_812_5, 0.008_475_565_185_546_876, 6.1, 65.4);
    assert_parameters(&fit_loggp(&samples, &options).unwrap(), biased, 1e-9);
    assert!((delay.as_micros() / 270.561_915_967_407_23 - 1.0).abs() < 1e-9);
}

/// Each point many times, with random delays as in real messages: mostly small, sometimes large.
fn noisy(network: &LogGp, seed: u64) -> PrttSamples {
    let (exact, _) = exact_round_trips(network);
    let delays: Vec<f64> = (0..200)
        .map(|step| {
            if step % 20 == 0 {
                500.0
            } else {
                f64::from(step) / 400.0
            }
        })
        .collect();
    let (mut random, mut drawn) = (Resampler::from_seed(seed), Vec::new());
    let mut samples = PrttSamples::default();
    for (point, times) in exact.points() {
        random.draw_into(&delays, &mut drawn);
        drawn.truncate(60);
        drawn
            .iter()
            .for_each(|micros| samples.push(point, times[0] + Time::from_micros(*micros)));
    }
    samples
}

#[test]
fn rare_long_delays_do_not_reach_the_parameters() {
    let myrinet = network(3.4, 0.00409, 1.9, 24.3);
    for line in [LineMethod::LeastSquares, LineMethod::TheilSen] {
        let options = FitOptions {
            line,
            ..FitOptions::default()
        };
        let fit = fit_loggp(&noisy(&myrinet, 5), &options).unwrap();
        let found = fit.parameters;
        assert!(
            (found.gap.as_micros() - 3.4).abs() < 0.05,
            "{line:?} {fit:?}"
        );
        assert!(
            (found.gap_per_byte.as_micros() / 0.00409 - 1.0).abs() < 1e-3,
            "{line:?} {fit:?}"
        );
        assert!(
            (found.overhead.as_micros() - 1.9).abs() < 0.05,
            "{line:?} {fit:?}"
        );
        assert!(
            (found.latency.as_micros() - 24.3).abs() < 0.5,
            "{line:?} {fit:?}"
        );
        let (low, high) = fit.intervals.gap;
        assert!(
            low < found.gap && found.gap < high && high - low < Time::from_micros(0.1),
            "{line:?} {fit:?}"
        );
    }
}

#[test]
fn intervals_hold_the_true_gap_about_as_often_as_they_claim() {
    let myrinet = network(3.4, 0.00409, 1.9, 24.3);
    let options = FitOptions {
        replicates: 100,
        ..FitOptions::default()
    };
    let holds = |seed: &u64| {
        let (low, high) = fit_loggp(&noisy(&myrinet, *seed), &options)
            .unwrap()
            .intervals
            .gap;
        low <= myrinet.gap && myrinet.gap <= high
    };
    let held = (0..60).filter(holds).count();
    assert!((50..=60).contains(&held), "{held} of 60");
}

#[test]
fn equal_samples_and_seeds_give_equal_fits() {
    let samples = noisy(&network(3.4, 0.00409, 1.9, 24.3), 9);
    assert_eq!(
        fit_loggp(&samples, &few_replicates()),
        fit_loggp(&samples, &few_replicates())
    );
}

#[test]
fn a_negative_gap_is_set_to_zero_with_a_warning() {
    let mut samples = PrttSamples::default();
    for (size, spacing) in [(1, 0.2), (1001, 0.8), (2001, 2.6), (3001, 4.4)] {
        samples.push(PrttPoint::round_trip(Bytes(size)), Time::from_micros(10.0));
        let several = PrttPoint::new(11, Time::ZERO, Bytes(size));
        samples.push(several, Time::from_micros(10.0 + 10.0 * spacing));
    }
    samples.push(
        PrttPoint::new(11, Time::from_micros(20.0), Bytes(1)),
        Time::from_micros(210.0 + 0.05 * 10.0),
    );
    let fit = fit_loggp(&samples, &few_replicates()).unwrap();
    assert_eq!(fit.parameters.gap, Time::ZERO);
    assert!(
        fit.warnings
            .iter()
            .any(|warning| matches!(warning, FitWarning::Negative { parameter: "g", .. }))
    );
    assert!(fit.warnings.contains(&FitWarning::OneSample));
    assert!(
        fit.warnings
            .iter()
            .any(|warning| matches!(warning, FitWarning::PoorModel(_))),
        "{:?}",
        fit.warnings
    );
}

#[test]
fn an_overhead_above_the_time_of_a_message_is_lowered_with_a_warning() {
    // A message takes 5 us, and sending alone occupies the processor for 4 us: 2o + L = 5 us gives L = -3 us.
    let mut samples = PrttSamples::default();
    for size in [1u64, 1001, 2001] {
        let transfer = 0.001 * (size - 1) as f64;
        samples.push(
            PrttPoint::round_trip(Bytes(size)),
            Time::from_micros(10.0 + 2.0 * transfer),
        );
        let several = PrttPoint::new(11, Time::ZERO, Bytes(size));
        samples.push(
            several,
            Time::from_micros(10.0 + 2.0 * transfer + 10.0 * (4.5 + transfer)),
        );
    }
    samples.push(
        PrttPoint::new(11, Time::from_micros(20.0), Bytes(1)),
        Time::from_micros(10.0 + 10.0 * 24.0),
    );
    let fit = fit_loggp(&samples, &few_replicates()).unwrap();
    assert_parameters(&fit, network(4.5, 0.001, 2.5, 0.0), 1e-9);
    let expected = FitWarning::OverheadBeyondOneWay {
        found: Time::from_micros(4.0),
        lowered: Time::from_micros(2.5),
        latency: Time::from_micros(-3.0),
    };
    assert!(fit.warnings.contains(&expected), "{:?}", fit.warnings);
}

#[test]
fn messages_in_a_row_that_are_cheaper_than_a_single_one_keep_every_size_with_a_warning() {
    let truth = network(2.0, 0.0001, 1.5, 20.0);
    let (mut samples, _) = exact_round_trips(&truth);
    let point = PrttPoint::new(16, Time::from_micros(30.0), Bytes(1));
    // After a pause each send costs 7 us.
    samples.push(
        point,
        prtt(&truth, PrttPoint::round_trip(Bytes(1))) + Time::from_micros(15.0 * 37.0),
    );
    let only_late: PrttSamples = {
        let mut kept = PrttSamples::default();
        let wanted = samples
            .points()
            .filter(|(at, _)| at.delay == Time::ZERO || *at == point);
        wanted.for_each(|(at, times)| kept.push(at, times[0]));
        kept
    };
    let fit = fit_loggp(&only_late, &few_replicates()).unwrap();
    assert!(
        (fit.parameters.gap.as_micros() - 2.0).abs() < 1e-6 && fit.points_excluded == 0,
        "{fit:?}"
    );
    assert!(
        (fit.parameters.overhead.as_micros() - 7.0).abs() < 1e-6,
        "{fit:?}"
    );
    assert!(
        fit.warnings
            .iter()
            .any(|warning| matches!(warning, FitWarning::OverheadAboveSpacing { .. })),
        "{fit:?}"
    );
}

#[test]
fn missing_samples_are_named() {
    let myrinet = network(3.4, 0.00409, 1.9, 24.3);
    let (full, delay) = exact_round_trips(&myrinet);
    let without = |drop: &dyn Fn(PrttPoint) -> bool| {
        let mut samples = PrttSamples::default();
        full.points()
            .filter(|(point, _)| !drop(*point))
            .for_each(|(point, times)| samples.push(point, times[0]));
        fit_loggp(&samples, &few_replicates())
    };
    assert_eq!(
        without(&|point| point.delay > Time::ZERO),
        Err(FitError::NoDelay)
    );
    let no_gap =
        without(&|point| point.messages > 1 && point.delay == Time::ZERO && point.size.0 > 1);
    assert_eq!(
        no_gap,
        Err(FitError::TooFewSizes {
            parameter: "g and G",
            rows: "n > 1 and d_us = 0",
            found: 1
        })
    );
    assert_eq!(
        without(&|point| point.messages == 1 && point.size.0 > 1).map(|_| ()),
        no_gap.map(|_| ())
    );
    let unpaired = without(&|point| point.messages == 1 && point.size.0 > 50_000).unwrap();
    assert!(
        unpaired
            .warnings
            .iter()
            .any(|warning| matches!(warning, FitWarning::Unpaired(_)))
    );

    let mut short = full.clone();
    short.push(
        PrttPoint::new(16, Time::from_micros(1.0), Bytes(1)),
        Time::from_micros(100.0),
    );
    assert_parameters(
        &fit_loggp(&short, &few_replicates()).unwrap(),
        myrinet,
        1e-9,
    );
    let only_short = {
        let mut samples = PrttSamples::default();
        let kept = short.points().filter(|(point, _)| point.delay != delay);
        kept.for_each(|(point, times)| samples.push(point, times[0]));
        fit_loggp(&samples, &few_replicates()).unwrap_err()
    };
    assert!(
        only_short
            .to_string()
            .contains("found delays up to 1.000 us at 1 B, where the gap is 3.4"),
        "{only_short}"
    );
}

#[test]
fn a_fit_becomes_a_network_file_that_reads_back() {
    let myrinet = network(3.4, 0.00409, 1.9, 24.3);
    let fit = fit_loggp(&noisy(&myrinet, 2), &few_replicates()).unwrap();
    let network = fit.to_network("mine", [("host".to_owned(), "a".to_owned())].into());
    assert_eq!(network.point_to_point.rule, MessageRule::Loggops);
    assert_eq!(network.intervals["nic.gap_per_byte"].level, 0.95);
    assert_eq!(
        Network::from_toml(&network.to_toml(), &[]).unwrap(),
        network
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_network_is_recovered_from_its_exact_round_trips(
        gap in 0.1..20.0f64, per_byte in 1e-4..0.02f64, share in 0.0..0.8f64, latency in 0.5..100.0f64,
    ) {
        // The overhead may hide the gap for up to four fifths of the measured sizes.
        let overhead = share * (gap + per_byte * 63_488.0);
        let truth = network(gap, per_byte, overhead, latency);
        let mut samples = exact_round_trips(&truth).0;
        let delay = Time::from_micros(3.0 * (gap + per_byte * 63_488.0));
        let point = PrttPoint::new(16, delay, Bytes(1));
        samples.push(point, prtt(&truth, point));
        let fit = fit_loggp(&samples, &FitOptions { replicates: 0, ..FitOptions::default() }).unwrap();
        assert_parameters(&fit, truth, 1e-7);
    }

    #[test]
    fn no_samples_make_the_fit_panic(
        rows in prop::collection::vec((1u32..4, 0u32..3, 1u64..4, 0.0..100.0f64), 0..12),
    ) {
        let mut samples = PrttSamples::default();
        for (messages, delay, size, micros) in rows {
            let point = PrttPoint::new(messages, Time::from_micros(f64::from(delay) * 40.0), Bytes(size));
            samples.push(point, Time::from_micros(micros));
        }
        if let Ok(fit) = fit_loggp(&samples, &FitOptions { replicates: 3, ..FitOptions::default() }) {
            let LogGp { latency, overhead, gap, gap_per_byte } = fit.parameters;
            prop_assert!([latency, overhead, gap].iter().all(|time| *time >= Time::ZERO && time.as_nanos().is_finite()));
            prop_assert!(gap_per_byte.as_nanos() >= 0.0 && gap_per_byte.as_nanos().is_finite());
        }
    }
}
