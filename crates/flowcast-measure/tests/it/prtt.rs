//! Measurements and fits over a network with known parameters, and over loopback.

use std::{ops::ControlFlow, thread};

use flowcast_fit::{
    error::FitError,
    loggp::{FitOptions, fit_loggp},
    samples::PrttSamples,
    verdict::FitWarning,
};
use flowcast_measure::{
    budget::BudgetBatch,
    loopback::{measure_and_fit_loopback, with_loopback},
    prtt::{
        MeasuredRoundTrips, PrttError, PrttPlan, Round, Stop, TIME_TOLERANCE, answer, measure,
        stepped_sizes,
    },
    tcp::Waiting,
    virtual_network::connect,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time, TimePerByte};
use proptest::prelude::*;

fn short_plan() -> PrttPlan {
    PrttPlan {
        sizes: stepped_sizes(Bytes(32_768), Bytes(4096)),
        min_rounds: 8,
        ..PrttPlan::default()
    }
}

fn measure_virtual(network: LogGp, plan: &PrttPlan) -> MeasuredRoundTrips {
    let (mut client, mut server) = connect(network);
    thread::scope(|scope| {
        let answering = scope.spawn(move || answer(&mut server));
        let measured = measure(&mut client, plan, PrttSamples::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
        answering.join().unwrap().unwrap();
        measured
    })
}

fn network(gap: f64, per_byte: f64, overhead: f64, latency: f64) -> LogGp {
    LogGp {
        latency: Time::from_micros(latency),
        overhead: Time::from_micros(overhead),
        gap: Time::from_micros(gap),
        gap_per_byte: TimePerByte::from_micros(per_byte),
    }
}

fn assert_measured_back(truth: LogGp, plan: &PrttPlan) {
    let measured = measure_virtual(truth, plan);
    assert_eq!(measured.stop, Stop::Precise);
    let found = fit_loggp(
        &measured.samples,
        &FitOptions {
            replicates: 2,
            ..FitOptions::default()
        },
    )
    .unwrap()
    .parameters;
    for (name, found, truth) in [
        ("g", found.gap.as_micros(), truth.gap.as_micros()),
        (
            "G",
            found.gap_per_byte.as_micros(),
            truth.gap_per_byte.as_micros(),
        ),
        ("o", found.overhead.as_micros(), truth.overhead.as_micros()),
        ("L", found.latency.as_micros(), truth.latency.as_micros()),
    ] {
        assert!(
            (found / truth - 1.0).abs() < 1e-6,
            "{name}: {found}, not {truth}"
        );
    }
}

/// Checks that the fit reports the gap as hidden. If no two sizes show the gap, it cannot be distinguished from the
/// overhead.
fn assert_gap_is_called_hidden(truth: LogGp, plan: &PrttPlan) {
    let options = FitOptions {
        replicates: 2,
        ..FitOptions::default()
    };
    match fit_loggp(&measure_virtual(truth, plan).samples, &options) {
        Err(error) => assert!(matches!(error, FitError::TooFewAboveKnee { .. }), "{error}"),
        Ok(fit) => {
            let hidden = fit
                .warnings
                .iter()
                .any(|warning| matches!(warning, FitWarning::GapHidden { .. }));
            assert!(hidden, "{:?}", fit.warnings);
        }
    }
}

#[test]
fn a_network_whose_overhead_hides_the_gap_is_reported() {
    assert_gap_is_called_hidden(network(0.2, 0.0002, 8.0, 5.0), &short_plan());
}

#[test]
fn measurements_of_a_virtual_network_yield_its_parameters() {
    for truth in [
        network(1.4, 0.00103, 1.4, 2.82),
        network(3.4, 0.00409, 1.9, 24.3),
        network(0.897, 0.00849, 6.1, 65.4),
    ] {
        assert_measured_back(truth, &PrttPlan::default());
    }
}

#[test]
fn virtual_time_ends_a_measurement_that_is_never_precise() {
    let plan = PrttPlan {
        relative_half_width: -1.0,
        max_time: Time::from_seconds(0.05),
        ..short_plan()
    };
    let measured = measure_virtual(network(3.4, 0.00409, 1.9, 24.3), &plan);
    assert_eq!(measured.stop, Stop::TimeOver);
    let round = measured.elapsed * (1.0 / f64::from(measured.rounds));
    assert!(
        measured.elapsed + round >= plan.max_time,
        "{}",
        measured.elapsed
    );
    assert!(
        measured.elapsed <= plan.max_time * (1.0 + TIME_TOLERANCE),
        "{}",
        measured.elapsed
    );
}

#[test]
fn a_slow_network_is_measured_at_fewer_sizes_to_keep_the_time_limit() {
    // 30 Mbit/s: a round of all sizes takes 5.4 s, and the plan has six rounds of warm-up.
    let slow = network(3.4, 0.267, 1.9, 24.3);
    let plan = PrttPlan {
        max_time: Time::from_seconds(3.0),
        ..PrttPlan::default()
    };
    let measured = measure_virtual(slow, &plan);
    assert_eq!(measured.stop, Stop::TimeOver);
    assert!(
        measured.elapsed <= plan.max_time * (1.0 + TIME_TOLERANCE),
        "{}",
        measured.elapsed
    );
    assert!(
        measured.rounds >= 3 && measured.sizes_left_out == plan.sizes.len() - 3,
        "{measured:?}"
    );
    let found = fit_loggp(
        &measured.samples,
        &FitOptions {
            replicates: 2,
            ..FitOptions::default()
        },
    )
    .unwrap();
    assert!(
        (found.parameters.gap_per_byte.as_micros() / 0.267 - 1.0).abs() < 1e-6,
        "{found:?}"
    );

    let long = PrttPlan {
        max_time: Time::from_seconds(60.0),
        ..PrttPlan::default()
    };
    let measured = measure_virtual(slow, &long);
    assert!(
        measured.sizes_left_out == 0 && measured.rounds >= 6,
        "{}",
        measured.rounds
    );
    assert!(
        measured.elapsed <= long.max_time * (1.0 + TIME_TOLERANCE),
        "{}",
        measured.elapsed
    );
}

#[test]
fn a_time_limit_below_one_round_is_refused_with_the_time_of_a_round() {
    let (mut client, mut server) = connect(network(3.4, 0.267, 1.9, 24.3));
    let plan = PrttPlan {
        max_time: Time::from_seconds(0.5),
        ..PrttPlan::default()
    };
    let refused = thread::scope(|scope| {
        let answering = scope.spawn(move || answer(&mut server));
        let refused = measure(&mut client, &plan, PrttSamples::default(), &mut |_| {
            ControlFlow::Continue(())
        });
        answering.join().unwrap().unwrap();
        refused.unwrap_err().to_string()
    });
    assert!(
        refused.starts_with("max-time: found 500ms, expected 1."),
        "{refused}"
    );
    assert!(
        refused.contains("a round of 3 sizes up to 63489B takes about"),
        "{refused}"
    );
}

#[test]
fn every_round_measures_every_point_once_in_a_new_order() {
    let (mut client, mut server) = connect(network(3.4, 0.00409, 1.9, 24.3));
    let mut rounds: Vec<Vec<_>> = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || answer(&mut server));
        let mut keep = |round: &Round| {
            rounds.push(round.samples.iter().map(|(point, _)| *point).collect());
            ControlFlow::Continue(())
        };
        measure(
            &mut client,
            &short_plan(),
            PrttSamples::default(),
            &mut keep,
        )
        .unwrap();
    });
    let sorted = |round: &Vec<_>| {
        let mut round = round.clone();
        round.sort_unstable();
        round
    };
    assert!(rounds.len() >= 8);
    assert!(
        rounds
            .windows(2)
            .all(|pair| sorted(&pair[0]) == sorted(&pair[1]) && pair[0] != pair[1])
    );
    // n = 1 and n = 16 at 8 sizes, and the delayed point.
    assert_eq!(rounds[0].len(), 17);
}

#[test]
fn an_observer_ends_the_measurement_and_it_continues_from_its_samples() {
    let mut stop_at_three = |round: &Round| {
        if round.number == 3 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let mut taken = |plan: &PrttPlan, waiting, previous| {
        with_loopback(waiting, |client| {
            measure(client, plan, previous, &mut stop_at_three)
        })
        .unwrap()
    };
    let first = taken(&short_plan(), Waiting::Sleep, PrttSamples::default());
    assert_eq!((first.stop, first.samples.len()), (Stop::Asked, 3 * 17));
    let plan = PrttPlan {
        delay: Some(first.delay),
        ..short_plan()
    };
    let second = taken(&plan, Waiting::Poll, first.samples);
    assert_eq!(second.samples.len(), 6 * 17);
    assert!(second.samples.points().all(|(_, times)| times.len() == 6));
}

#[test]
fn loopback_has_plausible_parameters() {
    let mut go_on = |_: &BudgetBatch| ControlFlow::Continue(());
    let (measured, fit) = measure_and_fit_loopback(Time::from_seconds(1.0), &mut go_on).unwrap();
    let LogGp {
        latency,
        overhead,
        gap,
        gap_per_byte,
    } = fit.parameters;
    for time in [latency, overhead, gap] {
        assert!(
            time >= Time::ZERO && time < Time::from_seconds(0.1),
            "{fit:?}"
        );
    }
    assert!(
        gap_per_byte.as_nanos() >= 0.0 && gap_per_byte.as_nanos() < 1000.0,
        "{fit:?}"
    );
    // Loopback's sender also does the receiver's work, so L or o may be held at 0, with a warning. On a busy machine each draw
    // of the interval then is 0 as well.
    let is_held = fit.warnings.iter().any(|warning| {
        matches!(
            warning,
            FitWarning::Negative { .. } | FitWarning::OverheadBeyondOneWay { .. }
        )
    });
    for (value, (low, high)) in [
        (latency, fit.intervals.latency),
        (overhead, fit.intervals.overhead),
    ] {
        let has_width = low < high || is_held && value == Time::ZERO;
        assert!(low <= value && value <= high && has_width, "{fit:?}");
    }
    assert!(
        measured.messages > 40 && measured.samples.len() > 40,
        "{measured:?}"
    );
}

#[test]
fn invalid_plans_are_refused() {
    let (mut client, _server) = connect(network(3.4, 0.00409, 1.9, 24.3));
    let mut refusal = |plan: PrttPlan| {
        let result = measure(&mut client, &plan, PrttSamples::default(), &mut |_| {
            ControlFlow::Continue(())
        });
        assert!(matches!(result, Err(PrttError::Plan { .. })), "{plan:?}");
        result.unwrap_err().to_string()
    };
    assert!(
        refusal(PrttPlan {
            sizes: vec![Bytes(1)],
            ..short_plan()
        })
        .starts_with("sizes: found 1 sizes")
    );
    assert!(
        refusal(PrttPlan {
            sizes: vec![Bytes(0), Bytes(9)],
            ..short_plan()
        })
        .contains("from 1 B")
    );
    assert!(
        refusal(PrttPlan {
            sizes: vec![Bytes(9), Bytes(9)],
            ..short_plan()
        })
        .contains("different")
    );
    assert!(
        refusal(PrttPlan {
            messages: 1,
            ..short_plan()
        })
        .starts_with("messages: found 1")
    );
    assert!(
        refusal(PrttPlan {
            max_time: Time::ZERO,
            ..short_plan()
        })
        .starts_with("max-time")
    );
    assert!(
        refusal(PrttPlan {
            level: 1.0,
            ..short_plan()
        })
        .starts_with("level")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn measurements_of_any_virtual_network_yield_its_parameters(
        gap in 0.2..10.0f64, per_byte in 2e-4..0.02f64, overhead in 0.2..10.0f64, latency in 5.0..100.0f64,
    ) {
        let plan = short_plan();
        let truth = network(gap, per_byte, overhead, latency);
        let shows_gap = |size: &&Bytes| truth.spacing(**size) > truth.overhead;
        if plan.sizes.iter().filter(shows_gap).count() >= 2 {
            assert_measured_back(truth, &plan);
        } else {
            assert_gap_is_called_hidden(truth, &plan);
        }
    }
}
