//! Measurements within a budget over networks with known parameters and disturbances. For more cables and runs: `cargo run
//! --release -p flowcast-measure --example measurement_error`.

use std::{ops::ControlFlow, thread};

use flowcast_fit::{
    loggp::{FitOptions, fit_loggp},
    samples::PrttSamples,
};
use flowcast_measure::{
    budget::{BudgetBatch, BudgetPlan, BudgetedRun, measure_budgeted},
    prtt::{Stop, answer},
    virtual_network::{MessageNoise, connect_noisy},
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time, TimePerByte};

/// Returns 100 Mbit/s of frames with 90 bytes of headers and a latency of 200 us.
fn cable() -> LogGp {
    LogGp {
        latency: Time::from_micros(200.0),
        overhead: Time::from_micros(5.0),
        gap: Time::from_micros(7.28),
        gap_per_byte: TimePerByte::from_nanos(80.0),
    }
}

fn noise() -> MessageNoise {
    MessageNoise {
        jitter: Time::from_micros(2.0),
        loss: 1e-3,
        overhead: Time::from_micros(0.5),
        interrupted: 2e-4,
        interruption: Time::from_micros(100.0),
        ..MessageNoise::default()
    }
}

fn measured(network: LogGp, noise: MessageNoise, plan: &BudgetPlan) -> BudgetedRun {
    measured_after(PrttSamples::default(), network, noise, plan, usize::MAX)
}

/// Measures with at most `batches` further batches.
fn measured_after(
    previous: PrttSamples,
    network: LogGp,
    noise: MessageNoise,
    plan: &BudgetPlan,
    batches: usize,
) -> BudgetedRun {
    let (mut client, mut server) = connect_noisy(network, noise, plan.seed);
    let mut left = batches;
    let mut observe = |_: &BudgetBatch| {
        left -= 1;
        if left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    thread::scope(|scope| {
        scope.spawn(move || answer(&mut server));
        measure_budgeted(&mut client, plan, previous, &mut observe).unwrap()
    })
}

#[test]
fn an_interrupted_run_continues_within_the_same_budget() {
    let truth = noise().truth(cable());
    let truth = [truth.latency, truth.overhead, truth.gap]
        .map(Time::as_nanos)
        .into_iter()
        .chain([80.0]);
    let plan = BudgetPlan::default();
    let begun = measured_after(PrttSamples::default(), cable(), noise(), &plan, 3);
    assert_eq!(begun.stop, Stop::Asked);
    let again = measured_after(
        begun.samples.clone(),
        cable(),
        noise(),
        &BudgetPlan {
            seed: 2,
            ..plan.clone()
        },
        usize::MAX,
    );
    assert!(
        again.samples.len() > begun.samples.len()
            && (begun.messages..=2000).contains(&again.messages),
        "{again:?}"
    );
    let took: Time = begun
        .samples
        .points()
        .flat_map(|(_, times)| times)
        .copied()
        .sum();
    assert!(
        again.elapsed > took && again.bytes > begun.bytes,
        "{again:?}"
    );
    for (found, truth) in again
        .fit
        .as_ref()
        .unwrap()
        .parameters
        .as_nanos()
        .iter()
        .zip(truth)
    {
        assert!(
            (found / truth - 1.0).abs() < 0.03,
            "{found} instead of {truth}"
        );
    }
    // Nothing is left to measure.
    let enough = measured_after(again.samples.clone(), cable(), noise(), &plan, 1);
    assert_eq!((enough.stop, enough.samples), (again.stop, again.samples));
}

#[test]
fn two_thousand_messages_measure_a_disturbed_cable_within_three_percent() {
    let truth = noise().truth(cable());
    let truth = [truth.latency, truth.overhead, truth.gap]
        .map(Time::as_nanos)
        .into_iter()
        .chain([80.0]);
    let truth: Vec<f64> = truth.collect();
    let mut covered = 0;
    for seed in 1..=10 {
        let done = measured(
            cable(),
            noise(),
            &BudgetPlan {
                seed,
                ..BudgetPlan::default()
            },
        );
        assert!(
            done.messages <= 2000 && done.most_in_flight.0 <= 1 << 18,
            "{done:?}"
        );
        let fit = done.fit.unwrap();
        for ((found, truth), half) in fit
            .parameters
            .as_nanos()
            .iter()
            .zip(&truth)
            .zip(fit.half_widths)
        {
            assert!(
                (found / truth - 1.0).abs() < 0.03,
                "seed {seed}: {found} instead of {truth}"
            );
            covered += usize::from((found - truth).abs() <= half);
        }
    }
    // 95 % of 40. The seeds make the result reproducible.
    assert!((35..=40).contains(&covered), "{covered}");
}

#[test]
fn a_written_measurement_is_fitted_to_the_same_parameters() {
    let done = measured(cable(), noise(), &BudgetPlan::default());
    let read = PrttSamples::from_csv(&done.samples.to_csv()).unwrap();
    let (fit, again) = (
        done.fit.unwrap(),
        fit_loggp(&read, &FitOptions::default()).unwrap(),
    );
    assert!(
        (fit.parameters.latency.as_nanos() / again.parameters.latency.as_nanos() - 1.0).abs()
            < 1e-9
    );
    assert!(again.warnings.is_empty(), "{:?}", again.warnings);
}

#[test]
fn an_undisturbed_network_is_precise_at_once_and_its_overhead_does_not_depend_on_the_delay() {
    for latency in [20.0, 200.0] {
        let network = LogGp {
            latency: Time::from_micros(latency),
            ..cable()
        };
        let done = measured(network, MessageNoise::default(), &BudgetPlan::default());
        assert_eq!(done.stop, Stop::Precise);
        assert!(done.messages < 600, "{}", done.messages);
        let found = done.fit.unwrap().parameters;
        assert!((found.overhead.as_micros() - 5.0).abs() < 1e-6, "{found:?}");
        assert!(
            (found.latency.as_micros() - latency).abs() < 1e-6,
            "{found:?}"
        );
    }
}

#[test]
fn an_overhead_that_hides_the_gap_at_every_size_is_still_found() {
    let hidden = LogGp {
        latency: Time::from_micros(3.0),
        overhead: Time::from_micros(20.0),
        gap: Time::from_micros(1.0),
        gap_per_byte: TimePerByte::from_nanos(0.1),
    };
    let plan = BudgetPlan {
        messages: 5000,
        ..BudgetPlan::default()
    };
    for noise in [MessageNoise::default(), noise()] {
        let done = measured(hidden, noise, &plan);
        assert_eq!(done.fit, None, "the gap is hidden");
        let fit = fit_loggp(&done.samples, &FitOptions::default()).unwrap();
        let (found, truth) = (fit.parameters, noise.truth(hidden));
        assert_near(found.overhead, truth.overhead);
        assert_near(found.one_way(Bytes(1)), truth.one_way(Bytes(1)));
    }
}

fn assert_near(found: Time, truth: Time) {
    let off = found.as_nanos() / truth.as_nanos() - 1.0;
    assert!(off.abs() < 0.05, "{found} instead of {truth}");
}

#[test]
fn budgets_of_messages_and_of_time_are_kept() {
    let loud = MessageNoise {
        jitter: Time::from_micros(400.0),
        exponential: true,
        ..noise()
    };
    let few = measured(
        cable(),
        loud,
        &BudgetPlan {
            messages: 500,
            ..BudgetPlan::default()
        },
    );
    assert!(
        few.stop == Stop::BudgetSpent && few.messages <= 500,
        "{} {:?}",
        few.messages,
        few.stop
    );
    let short = BudgetPlan {
        max_time: Time::from_seconds(0.2),
        messages: 1_000_000,
        ..BudgetPlan::default()
    };
    let short = measured(cable(), MessageNoise { loss: 0.0, ..loud }, &short);
    assert_eq!(short.stop, Stop::TimeOver);
    assert!(
        short.elapsed <= Time::from_seconds(0.4),
        "{}",
        short.elapsed
    );
}

#[test]
fn invalid_plans_are_refused() {
    let (mut client, _server) = connect_noisy(cable(), MessageNoise::default(), 1);
    let mut refusal = |plan| {
        measure_budgeted(&mut client, &plan, PrttSamples::default(), &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap_err()
        .to_string()
    };
    assert!(
        refusal(BudgetPlan {
            messages: 9,
            ..BudgetPlan::default()
        })
        .starts_with("most-messages: found 9")
    );
    assert!(
        refusal(BudgetPlan {
            precision: 1.5,
            ..BudgetPlan::default()
        })
        .starts_with("precision: found 1.5")
    );
    assert!(
        refusal(BudgetPlan {
            max_time: Time::ZERO,
            ..BudgetPlan::default()
        })
        .starts_with("budget")
    );
}
